#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make accept: measures every figure that vaprod promises and prints what was measured beside what is
wanted. Needs a finished build, root, two cores and an otherwise idle machine.

  accept.py all | CHECK...      CHECK: demo quiet random coverage correctness slowpeer sites bystander
                                throw kill9 rate cap badinput owners held programs strangers ranks64 threads hogs nodes harm
                                site noise
  --quick                       fewer repetitions, to try the measuring itself (says so in the table)

nodes is all of nodes:shared nodes:killed nodes:silent nodes:absent nodes:delays nodes:large, and
programs is all of programs:results programs:coverage programs:overhead programs:inject programs:bystanders
programs:sentences, each of which can be selected alone, and harm is all of owners held harm:translators harm:strangers
harm:churn harm:shapes, and site of site:reports and site:alert (which needs the packages of
`tools/deps.sh install bench`). The results of programs are stored for each commit and joined over invocations
(build/accept/programs/COMMIT/results.json); known results are not measured again:
  --program NAME,...            only these programs
  --minutes N                   time of each part (40 at most); another invocation goes on with what is left
  --seed N                      of the injections' times
  --again                       measures known results again
  --noisy                       measures again what other work disturbed
  --capture                     inject: keeps a capture of each run, so that `vapro analyze` can show why one was missed
  --bare                        not in a cgroup with a large share of the CPUs (then there are no quotas either)
  --reference BUILD             directory of another build, which bystanders is compared with

Results go to build/accept/accept.json ({"checks": {CHECK: {time, seconds, quick, rows [{what, measured,
wanted, ok}]}}}; other checks' earlier rows stay), what each run left to build/accept/CHECK/. Exit code
1 where a row is not ok, or where another accept writes to that directory. Every run has a time limit; nothing that was started here stays.
"""
import argparse
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import accept_bystanders  # noqa: E402
import accept_churn  # noqa: E402
import accept_detect  # noqa: E402
import accept_harm  # noqa: E402
import accept_hogs  # noqa: E402
import accept_input  # noqa: E402
import accept_held  # noqa: E402
import accept_many  # noqa: E402
import accept_nodes  # noqa: E402
import accept_noise  # noqa: E402
import accept_owners  # noqa: E402
import accept_programs  # noqa: E402
import accept_site  # noqa: E402
import accept_threads  # noqa: E402
import contradictions  # noqa: E402
from accept_common import QUICK, VAPRO, VAPROD, measured, path, save, t, tool  # noqa: E402
from programs_common import Busy, only_run  # noqa: E402

CHECKS = {
    "demo": accept_detect.check_demo, "quiet": accept_detect.check_quiet, "random": accept_detect.check_random,
    "coverage": accept_detect.check_coverage, "correctness": accept_harm.check_correctness,
    "slowpeer": accept_detect.check_slowpeer, "sites": accept_input.check_sites,
    "bystander": accept_harm.check_bystander, "throw": accept_harm.check_throw, "kill9": accept_harm.check_kill9,
    "rate": accept_harm.check_rate, "cap": accept_harm.check_cap, "badinput": accept_input.check_badinput,
    **accept_held.CHECKS, **accept_programs.CHECKS, "ranks64": accept_many.check_ranks64,
    "threads": accept_threads.check_threads, "hogs": accept_hogs.check_hogs,
    "owners": accept_owners.check_owners,
    **accept_programs.STRANGERS, **accept_nodes.CHECKS, **accept_bystanders.CHECKS, **accept_churn.CHECKS,
    **accept_site.CHECKS, **accept_noise.CHECKS,
}
# checks of several parts, each of which can be measured alone
GROUPS = {"programs": accept_programs.CHECKS, "nodes": accept_nodes.CHECKS, "site": accept_site.CHECKS,
          "harm": ("owners", *accept_bystanders.CHECKS, *accept_held.CHECKS, *accept_churn.CHECKS)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="+", choices=["all", *GROUPS, *CHECKS], metavar="CHECK")
    parser.add_argument("--quick", action="store_true")
    accept_programs.add_options(parser)
    args = parser.parse_args()
    accept_programs.use_options(args)
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    names = []
    for name in CHECKS if "all" in args.checks else args.checks:
        names += GROUPS.get(name, [name])
    if os.geteuid() != 0:
        print("accept: vaprod needs root", file=sys.stderr)
        return 3
    missing = [p for p in (VAPROD, VAPRO, tool("demo_mpi"), tool("hog")) if not os.access(p, os.X_OK)]
    if missing:
        print("accept: missing, run make first: " + " ".join(missing), file=sys.stderr)
        return 1
    try:
        with only_run(path("accept")):
            failed = measure(names)
    except Busy as busy:
        print(f"accept: {busy}", file=sys.stderr)
        return 1
    print(f"\n{'all ok' if not failed else f'{failed} rows are not ok'}; {path('accept', 'accept.json')}")
    return 1 if failed else 0


def without_contradictions(since):
    """The row about the record files that a check has written: nothing in them contradicts itself."""
    files, found = contradictions.below([path("accept"), path("demo")], since)
    for sentence in found:
        print(f"contradiction: {sentence}", flush=True)
    return t.row(f"contradictions in {files} record files", len(found), 0, not found)


def measure(names):
    """Measures these checks and returns how many rows are not ok."""
    failed = 0
    for name in names:
        begin, begin_s = time.monotonic(), time.time()
        rows = measured(name, CHECKS[name])
        rows.append(without_contradictions(begin_s))
        seconds = time.monotonic() - begin
        save("accept", "checks", name, {"seconds": round(seconds, 1), "ok": all(r["ok"] for r in rows), "rows": rows})
        bad = sum(not r["ok"] for r in rows)
        failed += bad
        print(f"\n{name}{' (quick: fewer repetitions)' if QUICK else ''}: "
              f"{'ok' if not bad else f'{bad} of {len(rows)} not ok'}, {seconds:.0f} s")
        t.table(rows)
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
