#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""Threads as rows: one of eight is disturbed."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, main, of_type, ready_pid, records, tool  # noqa: E402
import truth as t  # noqa: E402


def prefer(job):
    """Gives the session of a job a larger share of the CPUs, so that other work does not disturb it; needs autogroups."""
    try:
        with open(f"/proc/{job.pid}/autogroup", "w", encoding="utf-8") as file:
            file.write("-15")
    except OSError:
        pass


def waited_s(pid, tid):
    """Seconds that a thread had work and no CPU so far."""
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="utf-8") as file:
        return int(file.read().split()[1]) / 1e9


def disturb_once(tap, jobs, options):
    """A crew with a hog on the CPU of its last thread. Returns (that thread, its run delay in s, vaprod's records)."""
    crew = jobs.start([tool("crew"), "--seconds", 30, "--delay", 1, "--log", jobs.directory, *options], "crew")
    prefer(crew)
    pid = ready_pid(crew)
    victim = json.loads(crew.out().splitlines()[0])["tids"][-1]
    out = os.path.join(jobs.directory, "out.ndjson")
    if os.path.exists(out):
        os.unlink(out)
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--duration", 18, "--window", 6, "--io", "off"], "vaprod")
    attached(out, [pid])
    before = waited_s(pid, victim)
    prefer(jobs.start([tool("hog"), "--cpu", 0, "--start-after", 8, "--seconds", 3], "hog"))
    tap.equal(jobs.wait(daemon, 40), 0, "vaprod ends after its duration")
    tap.equal(crew.process.poll(), None, "the program continues")
    delay_s = waited_s(pid, victim) - before
    jobs.stop(crew)
    return victim, delay_s, records(out)


def disturb(tap, jobs, *options):
    """
    Returns (the disturbed thread, vaprod's records, alarms of the hog). By the kernel's own account the hog must
    have used its CPU, else there is no alarm to find, and the run is repeated. Where the host stops a CPU at the
    same time, the other threads on it are reported with it.
    """
    for _ in range(3):
        victim, delay_s, lines = disturb_once(tap, jobs, options)
        if delay_s >= 0.5:
            break
        print(f"# the hog took only {delay_s:.2f} s from the thread: once more", file=sys.stderr, flush=True)
    tap.ok(delay_s >= 0.5, "the hog takes the CPU from the thread", delay_s)
    hits = [v for v in t.variances(lines).values() if v["alarm"] and victim in [thread["tid"] for thread in v["threads"]]
            and [i["comm"] for i in t.diagnosis(lines, v["id"])[1]][:1] == ["hog"]]
    tap.ok(hits, "an alarm names the disturbed thread and the hog",
           [(v["who"], v["alarm"], v["lost_seconds"], v["evidence"]) for v in t.variances(lines).values()])
    tap.equal({v["class"] for v in hits}, {"computation"}, "the alarms are of computation")
    return victim, lines, hits


def test_disturbed_thread(tap, jobs):
    victim, lines, hits = disturb(tap, jobs)
    waits = [v for v in t.variances(lines).values() if v["effect_of"] in [hit["id"] for hit in hits]]
    tap.ok({thread["tid"] for v in waits for thread in v["threads"]} - {victim},
           "other threads wait for it, as an effect of the alarm",
           [(v["who"], v["evidence"]) for v in waits])
    tap.ok(all(" of this process" in v["who"] for v in hits), "a process without rank is called this process", hits)


def test_disturbed_in_varying_work(tap, jobs):
    """The time that the hog takes is lost, although such work has no reference."""
    _, lines, _ = disturb(tap, jobs, "--vary", 2)
    states = [gap for w in of_type(lines, "window") for gap in w["uncovered"] if gap["class"] == "computation"]
    tap.ok(any(gap["reason"] == "spread" for gap in states), "and the work is reported to vary", states)


main(test_disturbed_thread, test_disturbed_in_varying_work)
