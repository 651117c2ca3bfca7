#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters: clocks take the place of hardware counters; where a counter is missing, the reason is reported."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, ROOT, attached, j, main, of_type, ready_pid, records, tool  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))


def stolen_ns():
    """Time that the hypervisor stole from this machine: clocks of threads do not include it, other clocks do."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(file.readline().split()[8]) * 1e9 / os.sysconf("SC_CLK_TCK")


def sums_of(capture):
    answer = subprocess.run([j.path("tests", "sum_counts"), capture], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def watch(jobs, arguments, *options):
    """Runs `classes` under vaprod to its end: its own result, the records, the sums of the capture, time stolen."""
    program = jobs.start(j.mpirun(1, tool("classes"), *arguments, "--delay", 3), "classes")
    pid = ready_pid(program)
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0",
                         *options], "vaprod")
    attached(out, [pid])
    before = stolen_ns()
    if jobs.wait(program, 60) or jobs.wait(daemon, 20):
        raise RuntimeError(program.err() + daemon.err())
    stolen = stolen_ns() - before
    return json.loads(program.out().splitlines()[-1]), records(out), sums_of(capture), stolen


def test_sums_over_switches_and_migrations(tap, jobs):
    for cpu in CPUS[:2]:
        jobs.start([tool("hog"), "--cpu", cpu, "--seconds", 30], f"hog{cpu}")
    # pieces are long enough to travel singly: their counts are emitted one by one
    result, lines, sums, stolen = watch(jobs, ["--classes", 4, "--rounds", 12, "--us", 15000, "--migrate"], "--counters",
                                        "test", "--workload", "instructions,task-clock")
    hello = lines[0]
    tap.equal(hello["workload_source"], "instructions", "the workload source is instructions")
    counters = {c["name"]: c for c in hello["counters"]}
    tap.ok(counters["instructions"]["available"] and counters["instructions"]["provider"] == "clock",
           "a clock is the provider of instructions", counters)
    tap.ok(counters["task-clock"]["available"], "the event that was named is available", counters)
    took = result["cpu_ns"]
    pieces = sums["singles"][:len(took)]  # after them MPI_Finalize is reached
    tap.equal(len(pieces), len(took), "every piece of work is one computation, emitted singly")
    # some kernels do not report all switches: uncounted computations must be reported as lost, and be few
    counted = [(piece, ns) for piece, ns in zip(pieces, took) if piece[1]]
    lost = sum(w["lost"]["counter"] for w in of_type(lines, "window"))
    tap.equal(len(took) - len(counted), lost, "computations that were not counted are reported as lost")
    tap.ok(len(counted) > 0.8 * len(took), "nearly all computations are counted", sums)
    tap.ok(sums["away_ns"] > 0.2 * sums["ns"], "the program was preempted", sums)
    tap.ok(len(CPUS) < 2 or sums["migrations"] >= len(took), "the program was migrated", sums)
    cpu = sum(ns for _, ns in counted)
    for at, what in ((1, "instructions"), (2, "task-clock")):
        count = sum(piece[at] for piece, _ in counted)
        tap.ok(abs(count - cpu) <= 0.005 * cpu + stolen, f"{what}: the sum is the thread's CPU time, within 0.5 %",
               f"counted {count}, CPU time {cpu}, stolen {stolen}, {counted}")
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"),
                            os.path.join(jobs.directory, "out.ndjson")], capture_output=True, text=True, check=False)
    tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))
    replay = os.path.join(jobs.directory, "replay.ndjson")
    code = subprocess.run([VAPRO, "analyze", os.path.join(jobs.directory, "run.capture"), "--output", replay],
                          capture_output=True, text=True, check=False)
    tap.equal(code.returncode, 0, "the capture replays" + code.stderr[-300:])
    live, again = ([(w["begin"], w["coverage"], w["clusters"]) for w in of_type(r, "window")] for r in (lines, records(replay)))
    tap.equal(again, live, "the replay emits the same windows")
    # the two clocks tick alike: all computations lie in one band of their ratio, and are labelled so; states
    # are reported where they are not covered, which rare ones are not
    code = subprocess.run([VAPRO, "analyze", os.path.join(jobs.directory, "run.capture"), "--bands", "task-clock/instructions:0.5,2",
                           "--rare-members", "1000", "--output", replay], capture_output=True, text=True, check=False)
    tap.equal(code.returncode, 0, "the capture replays with bands of its events" + code.stderr[-300:])
    labels = {u["labels"] for w in of_type(records(replay), "window") for u in w["uncovered"]
              if u["class"] == "computation" and u["reason"] != "no_workload"}
    tap.ok(labels and all("task-clock/instructions=0.5..2" in label for label in labels),
           "bands are labels of the states", labels)


def test_says_what_is_missing(tap, jobs):
    for name, options, code, words in (
            ("none", ["--counters", "none"], 0, "not wanted"),
            ("unknown", ["--counters", "test", "--workload", "instructions,nonsense"], 0, "unknown event 'nonsense'"),
            ("bands", ["--counters", "test", "--bands", "nonsense/instructions:0.01"], 0, "unknown event 'nonsense'"),
            ("cycles", ["--counters", "test", "--workload", "instructions,page-faults,task-clock,cpu-clock"], 0,
             "no more than 2 events")):
        out = os.path.join(jobs.directory, name + ".ndjson")
        daemon = jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--output", out, *options], name)
        tap.equal(jobs.wait(daemon, 30), code, f"{name}: exit code")
        hello = records(out)[0]
        reasons = [c["reason"] for c in hello["counters"] if not c["available"]]
        tap.ok(any(words in (reason or "") for reason in reasons), f"{name}: the reason is reported", hello["counters"])
        tap.ok(all(c["available"] or c["reason"] for c in hello["counters"]), f"{name}: nothing is missing without a reason")
    check = subprocess.run([VAPRO, "check", "--counters"], capture_output=True, text=True, check=False, timeout=60)
    tap.ok(check.returncode in (0, 3) and "instructions: yes" in check.stdout, "vapro check --counters counts clocks at least", check.stdout)
    pmu = any(name == "cpu" or os.path.exists(f"/sys/bus/event_source/devices/{name}/cpus")
              for name in os.listdir("/sys/bus/event_source/devices"))
    hardware = jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--counters", "hardware"], "hardware")
    code = jobs.wait(hardware, 30)
    if pmu:
        tap.ok(code in (0, 3), "hardware counters are used or refused", hardware.err())
        out = os.path.join(jobs.directory, "auto.ndjson")
        tap.equal(jobs.wait(jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--output", out], "auto"), 30), 0, "auto")
        reported = records(out)[0]["pmu"]
        tap.ok(reported["available"] or code or re.search("takes [0-9.]+ us here", reported["reason"]),
               "auto: used where they work, or their cost is reported", reported)
    else:
        tap.equal(code, 3, "hardware counters that are not there are refused")
        tap.ok("no PMU" in hardware.err(), "the refusal has a reason", hardware.err())
        tap.ok(check.returncode == 3 and "no PMU" in check.stdout, "vapro check reports the missing PMU", check.stdout)


main(test_sums_over_switches_and_migrations, test_says_what_is_missing)
