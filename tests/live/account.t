#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""The account of a thread needs no fragment: it has stops, and hogs while no call is seen. Structure, no times."""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, attached, j, main, of_type, rank_pids, ready_pid, records, select, tool, until  # noqa: E402
import truth as t  # noqa: E402

QUIET, DISTURBED = 7, 3  # seconds


def alarms(lines, factor):
    """Alarms of which a factor is major: [(variance, interferers, verdict)]."""
    found = []
    for variance in t.variances(lines).values():
        factors, interferers = t.diagnosis(lines, variance["id"])
        reported = [d for d in of_type(lines, "diagnosis") if d["variance"] == variance["id"]]
        if variance["alarm"] and factors.get(factor, {}).get("major"):
            found.append((variance, interferers, reported[-1]["verdict"]))
    return found


def said(lines):
    return [(v["ranks"], v["alarm"], v["effect_of"], v["evidence"]) for v in t.variances(lines).values()]


def test_stopped_rank(tap, jobs):
    """A stopped rank is the cause, whatever it was executing; the other rank polls for it."""
    logs, out = jobs.directory, os.path.join(jobs.directory, "out.ndjson")
    demo = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 150, "--log", logs, "--bind"), "demo_mpi")
    pids = rank_pids(demo, logs, 2)
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--window", 6, "--io", "off"], "vaprod")
    attached(out, pids)
    time.sleep(QUIET)
    os.kill(pids[1], signal.SIGSTOP)
    time.sleep(DISTURBED)
    os.kill(pids[1], signal.SIGCONT)
    time.sleep(5)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.stop(demo)
    lines = records(out)
    # where others disturb both ranks the stop may lie in an alarm of both
    causes = [c for c in of_type(lines, "cause") if c["final"] and c["alarm"] and c["cause"] == "stopped" and c["ranks"] == "1"]
    tap.ok(causes, "the stop of the rank is the cause of an alarm", said(lines))
    found = {number for cause in causes for number in cause["variances"]}
    verdicts = [d["verdict"] for d in of_type(lines, "diagnosis") if d["variance"] in found]
    tap.ok(any("stopped (signal or tracer)" in verdict for verdict in verdicts), "the verdict says that the rank was stopped", verdicts)
    tap.ok(any(v["effect_of"] in found and v["ranks"] in ("0", "0-1") for v in t.variances(lines).values()),
           "the waiting of the other rank is an effect of that alarm", said(lines))
    stopped = sum(w["account_seconds"]["stopped"] for w in of_type(lines, "window"))
    # its helper threads are stopped as well
    tap.ok(stopped > 0.9 * DISTURBED, f"the account contains the stop: {stopped:.2f} s of threads")


def test_no_call_at_all(tap, jobs):
    """A program without MPI that only computes: a hog is an alarm that names it; the replay emits the same variances."""
    out, capture = os.path.join(jobs.directory, "out.ndjson"), os.path.join(jobs.directory, "run.capture")
    victim = os.path.join(jobs.directory, "victim")
    shutil.copy(tool("hog"), victim)
    program = jobs.start([victim, "--cpu", 0, "--seconds", 40], "victim")
    daemon = jobs.start([VAPROD, "--pid", program.pid, "--output", out, "--capture", capture, "--window", 6], "vaprod")
    attached(out, [program.pid])
    time.sleep(3)
    hog = jobs.start([tool("hog"), "--cpu", 0, "--seconds", DISTURBED], "hog")
    tap.equal(jobs.wait(hog, DISTURBED + 20), 0, "the hog ends well")
    time.sleep(3)
    os.kill(program.pid, signal.SIGSTOP)
    time.sleep(DISTURBED)
    os.kill(program.pid, signal.SIGCONT)
    time.sleep(3)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.stop(program)
    lines = records(out)
    tap.equal(sum(w["fragments"] for w in of_type(lines, "window")), 0, "no fragment was seen")
    found = alarms(lines, "preempted")
    tap.ok(any(i["pid"] == hog.pid for _, some, _ in found for i in some),
           "an alarm has preempted as a major factor and names the hog",
           [(some, verdict) for _, some, verdict in found])
    tap.ok(all(v["work_unknown"] and "not known" in v["evidence"] for v, _, _ in found),
           "the evidence says that the work is not known",
           said(lines))
    lost = sum(f.get("stopped", {}).get("impact_seconds", 0)
               for f, _ in (t.diagnosis(lines, v) for v in t.variances(lines)))
    tap.ok(0.9 * DISTURBED < lost < 1.5 * DISTURBED, f"the loss is the length of the stop: {lost:.2f} s")
    tap.ok(all(w["coverage"]["total"] == 0 for w in of_type(lines, "window")), "no window has coverage")
    again = subprocess.run([VAPRO, "analyze", capture], capture_output=True, text=True, check=False).stdout.splitlines()
    tap.equal([line for line in again if '"variance"' in line], [line for line in open(out).read().splitlines() if '"variance"' in line],
              "the replay of the capture emits the same variances")


def test_probes_closed(tap, jobs):
    """A hog is found while the governor has closed the probes."""
    program, out = os.path.join(jobs.directory, "rounds_closed"), os.path.join(jobs.directory, "out.ndjson")
    shutil.copy(tool("rounds"), program)
    daemon = jobs.start([VAPROD, "--exe", "rounds_closed", "--output", out, "--io", "off", "--window", 6], "vaprod")
    until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
    job = jobs.start(["taskset", "-c", 0, *j.mpirun(1, program, "--us", 40000, "--phase", "10000:25", "--delay", 3)], "rounds")
    pid = ready_pid(job)
    attached(out, [pid])
    time.sleep(10)
    hog = jobs.start([tool("hog"), "--cpu", 0, "--seconds", DISTURBED], "hog")
    tap.equal(jobs.wait(hog, DISTURBED + 20), 0, "the hog ends well")
    tap.equal(jobs.wait(job, 120), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    tap.ok([w for w in of_type(lines, "warning") if w["code"] == "governed"], "probes were closed")
    found = alarms(lines, "preempted")
    tap.ok(any(i["pid"] == hog.pid for _, some, _ in found for i in some), "the hog is named",
           [(v["begin"], v["end"], some) for v, some, _ in found] + said(lines))


main(test_stopped_rank, test_no_call_at_all, test_probes_closed)
