#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""While computation is slow its threads are sampled, and the function that became slow is named first."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from live import ROOT, VAPRO, VAPROD, attached, clocks, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402


def inside_of(lines):
    """The functions of all revisions of the second rank's slow computation."""
    return [v["inside"] for v in of_type(lines, "variance") if v["class"] == "computation" and v["ranks"] in ("1", "0-1") and "inside" in v]


def has_grown(lines):
    """Whether a revision has the function that became slow first; on a busy machine both ranks are slow before that."""
    return any(f and f[0]["function"] == "growing" and f[0]["pct_of_samples"] > 50 for f in inside_of(lines))


def watch(jobs, name, seconds, *options):
    """A job of two ranks, the second of which needs longer in one function for a while. (records, capture, open clocks)."""
    logs = os.path.join(jobs.directory, name)
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
    job = jobs.start(j.mpirun(2, tool("two_parts"), "--seconds", seconds, "--log", logs, "--late-share", 40), name)
    pids = rank_pids(job, logs, 2)
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off", "--window", "3", *options],
                        name + "_vaprod")
    attached(out, pids)
    before = clocks(daemon.pid)
    time.sleep(6)
    os.kill(pids[1], signal.SIGUSR1)
    sampled = until(lambda: clocks(daemon.pid) > before, seconds / 4)
    if sampled:
        until(lambda: has_grown(records(out)), seconds / 2)
    os.kill(pids[1], signal.SIGUSR2)
    code = jobs.wait(job, 60)
    jobs.wait(daemon, 20)
    return records(out), capture, out, sampled, code


def test_function_that_became_slow(tap, jobs):
    lines, capture, out, sampled, code = watch(jobs, "on", 32)
    tap.equal(code, 0, "the program's result is right")
    tap.ok(sampled, "a thread is sampled while it is slow")
    cost = of_type(lines, "hello")[0]["costs"]["sample_ns"]
    tap.ok(cost > 0, "the cost of a sample is reported", cost)
    found = inside_of(lines)
    tap.ok(has_grown(lines), "the function that became slow is first", found)
    tap.ok(any("(two_parts.c:" in f["source"] for functions in found for f in functions), "with its line", found)
    tap.ok(all(sum(f["samples"] for f in functions) > 0 and sum(f["pct_of_samples"] for f in functions) < 100.6 for functions in found),
           "shares are of all samples", found)
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True, text=True, check=False)
    tap.equal(check.returncode, 0, "the records follow the schema " + check.stdout[-300:])
    again = out + ".again"
    jobs.run([VAPRO, "analyze", capture, "--output", again], "analyze", 60)
    tap.equal([v.get("inside") for v in of_type(records(again), "variance")], [v.get("inside") for v in of_type(lines, "variance")],
              "a replay has the same functions")
    code, view = jobs.run([VAPRO, "view", "--color=never", "--all", out], "view", 30)
    tap.ok(code == 0 and "    inside " in view.out() and "% in " in view.out(), "vapro view has them", view.out()[-1500:])


def test_off(tap, jobs):
    lines, _, _, sampled, code = watch(jobs, "off", 16, "--inside", "off")
    tap.equal(code, 0, "off: the program's result is right")
    tap.ok(not sampled, "off: no thread is sampled")
    tap.equal([v["id"] for v in of_type(lines, "variance") if "inside" in v], [], "off: no record has functions inside")
    tap.equal(of_type(lines, "hello")[0]["costs"]["sample_ns"], None, "off: no cost of a sample")


main(test_function_that_became_slow, test_off)
