# SPDX-License-Identifier: GPL-2.0-or-later
"""
Two disturbances at once are distinguished: a CPU hog on the rank's CPU, a memory hog on another one, both together. Check hogs.

The rank works without a pause (tools/workloads/walk.c). The CPU hog takes a tenth of its CPU, in bursts: a hog that took half
of it would halve what the rank loses to memory in a second, since the rank would run half as long. The memory hog writes cache
lines that the rank reads, which slows the rank on any machine. A hog that streams through arrays would not slow the rank of
a virtual machine with two cores, since one core cannot use up a server's memory bandwidth or its last cache.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402

SHARE = 0.1
TOLERANCE = 0.2
QUIET, HOGS = 10, 12  # seconds
MEASURABLE = 0.05  # lost seconds per second: less than that cannot be compared within the tolerance
# both are small beside a hog that takes half of a CPU
FINER = ("--threshold", "0.95", "--window", "6", "--io", "off")
FACTORS = ("preempted", "on_cpu")
# with counters the time on the CPU is reported by its parts
PARTS = {"preempted": ("preempted",), "on_cpu": ("on_cpu", "retiring", "frontend", "bad_speculation", "backend")}


def watch_walk(directory, cpu_hog, memory_hog):
    """{factor: lost seconds per wall second of the hogs} of one run."""
    quiet, hogs = repeat(QUIET, 8), repeat(HOGS, 8)
    os.makedirs(directory)
    with Jobs(directory) as jobs:
        lines = os.path.join(directory, "lines")
        walk = jobs.start(mpirun(1, tool("walk"), "--lines", lines, "--seconds", quiet + hogs + 90, "--log", directory), "walk")
        pids = pids_of(walk, directory, 1)
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, None, *FINER)
        if not until(lambda: attached(ndjson, pids[0]), 60):
            raise RuntimeError("vaprod did not attach")
        time.sleep(quiet)
        running, log = [], os.path.join(directory, "hogs.json")
        if cpu_hog:
            running.append(jobs.start([tool("hog"), "--cpu", 0, "--share", SHARE, "--seconds", hogs, "--log", log], "hog"))
        if memory_hog:
            running.append(jobs.start([tool("memory_hog"), "--cpu", 1, "--lines", lines, "--seconds", hogs, "--log", log],
                                      "memory_hog"))
        for hog in running:
            well(jobs.wait(hog, hogs + 20), hog)
        time.sleep(2)
        well(jobs.interrupt(daemon), daemon)
        jobs.stop(walk)
    events = t.load_events(log)
    begin, end = min(e["begin"] for e in events), max(e["end"] for e in events)
    records = t.load_records(ndjson)
    offset, lost = t.utc_offset(records), dict.fromkeys(FACTORS, 0)
    for variance in t.variances(records).values():
        middle = (t.parse_time(variance["begin"]) + t.parse_time(variance["end"])) / 2 - offset
        if variance["class"] == "computation" and begin < middle < end:
            factors = t.diagnosis(records, variance["id"])[0]
            for name in FACTORS:
                lost[name] += sum(factors.get(part, {}).get("impact_seconds", 0) for part in PARTS[name])
    return {name: seconds / ((end - begin) / 1e9) for name, seconds in lost.items()}


def mean(runs):
    return {name: sum(run[name] for run in runs) / len(runs) for name in FACTORS}


def compare(name, alone, together):
    off = together / alone - 1 if alone > 0 else float("inf")
    return t.row(f"{name}: lost per second with both hogs", f"{together:.4f} s ({off:+.0%})",
                 f"{alone:.4f} s as with its hog alone, within {TOLERANCE:.0%}",
                 alone >= MEASURABLE and abs(off) <= TOLERANCE)


def check_hogs():
    scratch("hogs")
    means = {}
    rows = []
    for name, cpu_hog, memory_hog in (("CPU hog", True, False), ("memory hog", False, True), ("both", True, True)):
        runs = [watch_walk(path("accept", "hogs", f"{name.replace(' ', '_')}{number}"), cpu_hog, memory_hog)
                for number in range(1, repeat(3, 1) + 1)]
        means[name] = mean(runs)
        rows.append(t.row(f"{name}: lost per second, preempted and on the CPU (information)",
                          "; ".join(f"{run['preempted']:.4f} and {run['on_cpu']:.4f}" for run in runs), "", True))
    alone = {"preempted": means["CPU hog"]["preempted"], "on_cpu": means["memory hog"]["on_cpu"]}
    for name in FACTORS:
        rows.append(t.row(f"{name}: lost per second with its hog alone", f"{alone[name]:.4f} s", f"at least {MEASURABLE} s",
                          alone[name] >= MEASURABLE))
    return rows + [compare(name, alone[name], means["both"][name]) for name in FACTORS]
