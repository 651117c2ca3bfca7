#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make accuracy WHAT=live: does vaprod find disturbances of real MPI programs, with their causes, and nothing else? Needs a
finished build with its workloads, root, two cores, an otherwise idle machine and some 35 minutes.

  accuracy_live.py [--injections N] [--quiet N] [--seed S] [--only hog|duty|quota|late|quiet] [--bare]
  accuracy_live.py --self-test

Each injection has a kind, a program, a rank, an onset and a length, drawn by the seed. A missed one is run once more: the
better of two runs counts, and misses are explained from the records. An alarm of a quiet run must be confirmed by the
program's own log or by the kernel's account of the time that its ranks had no CPU. All programs run in a cgroup with a large share of the CPUs, so that other work of the machine disturbs
little; --bare omits the cgroup.

Results go to build/accuracy/live.json, after each run; what each run left (vapro.ndjson, injection.json, the program's
own log, schedstat.ndjson) to build/accuracy/live/seedN/NAME/RUN/. Exit code 1 where less than 29 of 30 were found, or
an alarm of a quiet run was not confirmed, or where records contradict themselves
(contradictions.py). Every run has a time limit; nothing that was started here stays.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "live")]
import truth as t  # noqa: E402
import contradictions  # noqa: E402
from cgroups import Cgroups, NoCgroups  # noqa: E402
from jobs import Jobs, TimeLimit, path, until  # noqa: E402
from live_inject import KINDS, Injection, in_words, plan  # noqa: E402
from live_programs import PROGRAMS, Kernel, bind, ranks_of, tool, truths_of  # noqa: E402
from live_score import explain, score_injection, score_quiet, self_test  # noqa: E402

VAPROD = path("vaprod")
WATCH = 25    # seconds from vaprod's start
AFTER = 3     # least seconds that are watched after a disturbance
MPI_INIT = 1.5
SHARE_WANTED = 29 / 30
BESIDE = 0.1  # of a rank's time
FAILURES = (RuntimeError, OSError, KeyError, IndexError, ValueError, TypeError, TimeLimit, NoCgroups, subprocess.SubprocessError)


def is_attached(ndjson, pids):
    """Whether vaprod has reported these processes as attached."""
    try:
        found = {r["pid"] for r in t.load_records(ndjson) if r.get("type") == "process" and r.get("state") == "attached"}
    except (OSError, ValueError):
        return False
    return set(pids) <= found


def groups_for(one, shield):
    """Cgroups where a run needs some: job for all of it, rank for one with a quota."""
    if shield or (one and one["kind"] == "quota"):
        return Cgroups(f"vapro-live-{os.getpid()}", "job", "rank")
    return contextlib.nullcontext()


def watch(directory, program, one, shield):
    """One run of a program under vaprod: (records, {rank: Truth} or None, the injection's truth or None, Kernel)."""
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    with groups_for(one, shield) as groups, Jobs(directory) as jobs:
        mpi = program.start(jobs, directory, WATCH + 8, (one or {}).get("late_share", 0))
        if shield:
            groups.move("job", mpi.pid)
        pids = ranks_of(mpi, program)
        cpus = bind(pids, sorted(os.sched_getaffinity(0)))
        for rank, pid in enumerate(pids):
            if groups:
                groups.move("rank" if one and one["kind"] == "quota" and rank == one["rank"] else "job", pid)
        time.sleep(MPI_INIT)
        kernel = Kernel(directory, pids, cpus, os.path.join(directory, "log") if program.log == "thermo" else None)
        ndjson = os.path.join(directory, "vapro.ndjson")
        select = [word for pid in pids for word in ("--pid", str(pid))]
        daemon = jobs.start([VAPROD, *select, "--output", ndjson, *program.options], "vaprod")
        if groups:
            groups.move("job", daemon.pid)  # so that it competes with the job as with any other program
        if not until(lambda: is_attached(ndjson, pids), 30):
            raise RuntimeError("vaprod did not attach: " + daemon.err().strip()[-300:])
        begun = time.monotonic()
        kernel.start()
        truth = None
        if one:
            injection = Injection(one, jobs, directory, pids, cpus, groups)
            injection.run()
            truth = injection.truth()
            with open(os.path.join(directory, "injection.json"), "w", encoding="utf-8") as file:
                json.dump(truth, file, indent=1)
        rest = begun + WATCH - time.monotonic()
        time.sleep(max(AFTER if one else 0, rest))
        code = jobs.interrupt(daemon)
        kernel.finish()
        if code:
            raise RuntimeError(f"vaprod ended with {code}: {daemon.err().strip()[-300:]}")
        if program.ends:
            if jobs.wait(mpi, 60):
                raise RuntimeError(f"{program.name} failed: {mpi.err().strip()[-300:]}")
        else:
            jobs.stop(mpi)
    shutil.rmtree(os.path.join(directory, "files"), ignore_errors=True)
    return t.load_records(ndjson), truths_of(program, directory, kernel), truth, kernel


def by_others(lost, rank):
    """The largest share of its time that an undisturbed rank lost to other work of the machine."""
    return round(max(((of["wait_s"] + of["steal_s"]) / of["wall_s"] for other, of in enumerate(lost) if other != rank), default=0), 3)


def one_run(directory, number, program, one, shield):
    """The entry of one run, also where the run failed."""
    entry = {"run": number, "directory": os.path.relpath(directory, path())}
    try:
        records, truths, truth, kernel = watch(directory, program, one, shield)
        entry["version"] = next((r.get("version") for r in records if r.get("type") == "hello"), None)
        entry["windows"] = sum(r.get("type") == "window" for r in records)
        entry["contradictions"] = [": ".join(found) for found in contradictions.contradictions(records)]
        if one:
            begin, end = truth["begin_mono_ns"], truth["end_mono_ns"]
            lost = kernel.lost(begin, end)
            entry.update(truth=truth, kernel=lost, others=by_others(lost, one["rank"]), **score_injection(records, truth))
            if truths:
                truths[one["rank"]].learn(begin, end)
                entry["lost_by_log_s"] = round(truths[one["rank"]].lost_ns(begin, end) / 1e9, 3)
        else:
            entry["alarms"] = score_quiet(records, truths, kernel.away_s)
            entry["hit"] = all(row["ok"] for row in entry["alarms"])
    except FAILURES as error:
        entry.update(hit=False, error=f"{type(error).__name__}: {error}")
        with open(os.path.join(directory, "error"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
    return entry


class Report:
    """What was measured so far, in build/accuracy/live.json."""

    def __init__(self, args):
        uname = os.uname()
        self.begun = time.monotonic()
        self.result = {"seed": args.seed, "time": t.format_time(time.time_ns()), "kernel": uname.release,
                       "cpus": os.cpu_count(), "shield": args.shield, "injections": [], "quiet": []}

    def progress(self, place, text):
        took = time.monotonic() - self.begun
        print(f"[{place} {took // 60:02.0f}:{took % 60:02.0f}] {text}", flush=True)

    def add(self, group, entry):
        self.result[group].append(entry)
        found, quiet = self.result["injections"], self.result["quiet"]
        alarms = [row for one in quiet for run in one["runs"] for row in run.get("alarms", [])]
        self.result["summary"] = {
            "injections": len(found), "found": sum(one["hit"] for one in found),
            "in_first_run": sum(one["runs"][0]["hit"] for one in found),
            "quiet_runs": len(quiet), "alarms": len(alarms), "confirmed": sum(row["ok"] for row in alarms),
            "quiet_failed": sum("error" in run for one in quiet for run in one["runs"]),
            "seconds": round(time.monotonic() - self.begun)}
        where = path("accuracy", "live.json")
        with open(where + ".new", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
            file.write("\n")
        os.replace(where + ".new", where)


def brief(run):
    """A run in a few words."""
    if "error" in run:
        return run["error"]
    if not run["hit"]:
        return "missed, " + run["why"]
    said = run["found"]
    way = "alarm" if said["alarm"] else "culprit"
    return (f"found: {way} {said['id']}, {said['class']}, {', '.join(said['majors']) or 'no major factor'}, lost {said['lost_seconds']:.2f} s"
            + (f" (log: {run['lost_by_log_s']:.2f} s)" if "lost_by_log_s" in run else "")
            + f", begins {said['begin_off_s']:+.2f} s, ends {said['end_off_s']:+.2f} s"
            + (f", in {run['parts']} parts" if run["parts"] > 1 else ""))


def runs_of(args, name, number):
    return path("accuracy", "live", f"seed{args.seed}", name, str(number))


def inject_all(report, args):
    injections = plan(args.injections, args.seed, args.only)
    for position, one in enumerate(injections, 1):
        entry = {**one, "runs": []}
        for number in (1, 2):
            directory = runs_of(args, f"{one['number']:02d}-{one['kind']}-{one['program']}", number)
            run = one_run(directory, number, PROGRAMS[one["program"]], one, args.shield)
            entry["runs"].append(run)
            report.progress(f"{position}/{len(injections)}", f"{in_words(one)}: {brief(run)}")
            if run["hit"]:
                break
        entry["hit"] = any(run["hit"] for run in entry["runs"])
        if not entry["hit"]:
            explain(entry)
        report.add("injections", entry)


def all_quiet(report, args):
    names = [name for name, program in PROGRAMS.items() if program.log]
    for number in range(1, args.quiet + 1):
        name = names[(number - 1 + args.seed) % len(names)]
        for attempt in (1, 2):  # the second where the first failed
            run = one_run(runs_of(args, f"quiet{number:02d}-{name}", attempt), attempt, PROGRAMS[name], None, args.shield)
            if "error" not in run:
                break
        alarms = run.get("alarms", [])
        wrong = [row for row in alarms if not row["ok"]]
        report.progress(f"quiet {number}/{args.quiet}", f"{name}: " + (run.get("error") or
                        f"{len(alarms)} alarms, {len(wrong)} of them not confirmed"))
        if alarms:
            t.table(alarms)
        report.add("quiet", {"number": number, "program": name, "hit": run["hit"], "runs": [run]})


def table_of(result):
    """[{what, measured, wanted, ok}]"""
    rows, summary = [], result["summary"]
    for kind in KINDS:
        some = [one for one in result["injections"] if one["kind"] == kind]
        if some:
            good = sum(one["hit"] for one in some)
            rows.append(t.row(f"{kind}: right rank and cause in the better of two runs", f"{good} of {len(some)}",
                              "all (information)", True))
    if result["injections"]:
        least = SHARE_WANTED * summary["injections"]
        nearly = sum(not one["hit"] and any((run.get("why") or "").endswith(": no alarm (unconfirmed)") for run in one["runs"])
                     for one in result["injections"])
        rows.append(t.row("missed, with an unconfirmed variance", nearly, "none (information)", True))
        beside = sum(run.get("others", 0) > BESIDE for one in result["injections"] for run in one["runs"])
        rows.append(t.row(f"runs in which other work took over {BESIDE:.0%} of another rank's time", beside, "none (information)", True))
        rows.append(t.row("all injections", f"{summary['found']} of {summary['injections']} ({summary['in_first_run']} in the first run)",
                          "at least 29 of 30", summary["found"] + 1e-9 >= least))
    if result["quiet"]:
        rows.append(t.row("quiet runs: alarms that the program's own log or the kernel's account confirms",
                          f"{summary['confirmed']} of {summary['alarms']} in {summary['quiet_runs']} runs", "all",
                          summary["confirmed"] == summary["alarms"]))
        rows.append(t.row("quiet runs that failed", summary["quiet_failed"], 0, summary["quiet_failed"] == 0))
    runs = [run for one in result["injections"] + result["quiet"] for run in one["runs"]]
    found = [sentence for run in runs for sentence in run.get("contradictions", [])]
    for sentence in found:
        print(f"contradiction: {sentence}")
    rows.append(t.row(f"contradictions in the records of {len(runs)} runs", len(found), 0, not found))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--injections", type=int, default=30)
    parser.add_argument("--quiet", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*KINDS, "quiet"])
    parser.add_argument("--bare", dest="shield", action="store_false")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        self_test()
        return 0
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    if os.geteuid() != 0:
        print("accuracy: vaprod needs root", file=sys.stderr)
        return 3
    missing = [p for p in (VAPROD, tool("demo_mpi"), tool("mpich_iterate"), tool("hog"), tool("pauser")) if not os.access(p, os.X_OK)]
    if missing:
        print("accuracy: missing, run make workloads first: " + " ".join(missing), file=sys.stderr)
        return 1
    os.makedirs(path("accuracy"), exist_ok=True)
    if args.shield:
        try:
            with groups_for(None, True):
                pass
        except NoCgroups as error:
            print(f"accuracy: no cgroups, and no quotas: {error}", file=sys.stderr)
            args.shield = False
    report = Report(args)
    if args.only != "quiet":
        inject_all(report, args)
    if args.only in (None, "quiet"):
        all_quiet(report, args)
    if "summary" not in report.result:
        return 0
    rows = table_of(report.result)
    print()
    t.table(rows)
    print(f"\n{path('accuracy', 'live.json')}, {report.result['summary']['seconds']} s")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
