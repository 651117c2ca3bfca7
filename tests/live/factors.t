#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""What the operating system reports beyond switches: a quota that ran out is distinguished from a CPU that another task had."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cgroups import Cgroups, NoCgroups  # noqa: E402
from live import VAPROD, attached, j, main, of_type, rank_pids, ready_pid, records, select, tool  # noqa: E402
import truth as t  # noqa: E402

QUIET, DISTURBED, BETWEEN = 7, 4, 5  # seconds
SUSPENSION = ("preempted", "wakeup_wait", "blocked_io", "blocked_other", "throttled", "steal", "stopped")


def alarms_of(lines, begin, end):
    """Alarms of rank 0 in a time, most lost first: [(variance, {factor}, [interferer], the last diagnosis)]."""
    offset = t.utc_offset(lines)
    found = []
    for variance in t.variances(lines).values():
        middle = (t.parse_time(variance["begin"]) + t.parse_time(variance["end"])) / 2 - offset
        # a host that runs neither CPU makes it an alarm of both ranks
        if variance["alarm"] and variance["ranks"] in ("0", "0-1") and begin <= middle <= end:
            factors, interferers = t.diagnosis(lines, variance["id"])
            last = [d for d in of_type(lines, "diagnosis") if d["variance"] == variance["id"]][-1]
            found.append((variance, factors, interferers, last))
    return sorted(found, key=lambda alarm: -alarm[0]["lost_seconds"])


def seconds(alarms, name):
    return sum(factors.get(name, {}).get("impact_seconds", 0) for _, factors, _, _ in alarms)


def is_partition(factors, lost):
    """Whether the parts of suspension add up to it, but for omitted ones: small parts of the loss, or less than usual."""
    whole = factors.get("suspension", {}).get("impact_seconds", 0)
    parts = sum(factors.get(name, {}).get("impact_seconds", 0) for name in SUSPENSION)
    return -0.02 * whole - 0.001 * lost <= parts - whole <= 0.02 * whole + 0.01 * lost


def skip(tap, why):
    tap.count += 1
    print(f"ok {tap.count} - # SKIP {why}", flush=True)


def test_hello(tap, jobs):
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--interrupts", "off", "--output", out], "vaprod")
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends well")
    factors = {f["name"]: f for f in records(out)[0]["factors"]}
    tap.equal(sorted(factors), ["frequency", "hard_irq", "irq", "soft_irq", "steal", "throttled"], "hello names each factor")
    tap.ok(all(f["available"] or f["reason"] for f in factors.values()), "each missing factor has a reason", factors)
    tap.ok(not factors["hard_irq"]["available"] and "--interrupts off" in factors["hard_irq"]["reason"],
           "interrupts are not timed with --interrupts off", factors["hard_irq"])


def test_quota_and_hog(tap, jobs):
    name = f"vapro-test-{os.getpid()}"
    try:
        with Cgroups(name, "slow", "other", "monitor") as groups:
            quota_and_hog(tap, jobs, groups)
    except NoCgroups as why:
        skip(tap, why)


def quota_and_hog(tap, jobs, groups):
    logs = jobs.directory
    demo = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 150, "--log", logs, "--bind"), "demo_mpi")
    pids = rank_pids(demo, logs, 2)
    groups.move("slow", pids[0])
    groups.move("other", pids[1])
    out = os.path.join(logs, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--window", 6, "--io", "off"], "vaprod")
    groups.move("monitor", daemon.pid)  # in the root cgroup vaprod would have 2 % of the CPUs and attach after a minute
    attached(out, pids)
    time.sleep(QUIET)
    hog = jobs.start([tool("hog"), "--cpu", 0, "--seconds", DISTURBED], "hog")
    groups.move("slow", hog.pid)
    begin = time.monotonic_ns()
    tap.equal(jobs.wait(hog, DISTURBED + 10), 0, "the hog ends well")
    hogged = begin, time.monotonic_ns()
    time.sleep(BETWEEN)
    before, begin = groups.throttled_s("slow"), time.monotonic_ns()
    groups.limit("slow", 30000, 100000)
    time.sleep(DISTURBED)
    groups.limit("slow")
    reported = groups.throttled_s("slow") - before  # the kernel adds a spell when it ends: not while the limit stands
    limited = begin, time.monotonic_ns()
    time.sleep(4)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.stop(demo)
    lines = records(out)
    tap.ok(reported > 0.5, "the kernel throttled the cgroup", reported)

    alarms = alarms_of(lines, *hogged)
    tap.ok(alarms and alarms[0][1].get("preempted", {}).get("major"), "a CPU hog: preempted is major",
           [(v["who"], v["evidence"], f) for v, f, _, _ in alarms])
    tap.ok(any(i["comm"] == "hog" for _, _, some, _ in alarms for i in some), "the hog is named", alarms)
    tap.ok(seconds(alarms, "throttled") < 0.02 * seconds(alarms, "preempted"), "nothing was throttled beside the hog", alarms)

    alarms = alarms_of(lines, *limited)
    tap.ok(alarms and alarms[0][1].get("throttled", {}).get("major"), "a CPU quota: throttled is major",
           [(v["who"], v["evidence"], f) for v, f, _, _ in alarms])
    tap.ok(seconds(alarms, "throttled") > 5 * (seconds(alarms, "preempted") + seconds(alarms, "wakeup_wait")),
           "under the quota preemption is a small part", alarms)
    # rank 0 also waits in its calls, where throttled time is no loss
    lost = seconds(alarms, "throttled")
    tap.ok(0.2 * reported < lost <= 1.02 * reported, f"lost seconds are those of the kernel: {lost:.2f} of {reported:.2f}")
    group = groups.path + "/slow"
    value = "cpu.max 30000 100000" if groups.version == 2 else "cpu.cfs_quota_us 30000 of cpu.cfs_period_us 100000"
    tap.ok(any(group in d["advice"] and value in d["advice"] for _, _, _, d in alarms), "the advice names cgroup and quota",
           [d["advice"] for _, _, _, d in alarms])
    tap.ok(any(d["where"].get("quota") == {"cgroup": group, "value": value} for _, _, _, d in alarms),
           "the record names cgroup and quota",
           [d["where"] for _, _, _, d in alarms])
    tap.ok(all(is_partition(t.diagnosis(lines, v)[0], variance["lost_seconds"]) for v, variance in t.variances(lines).items()
               if variance["lost_seconds"] > 0.05), "the parts of suspension add up to it")


def test_interrupts(tap, jobs):
    for how in ("on", "off"):
        out, capture = (os.path.join(jobs.directory, f"{how}.{kind}") for kind in ("ndjson", "capture"))
        program = jobs.start(j.mpirun(1, tool("classes"), "--classes", 4, "--rounds", 40, "--us", 15000, "--delay", 3), "classes")
        pid = ready_pid(program)
        daemon = jobs.start([VAPROD, "--pid", pid, "--interrupts", how, "--output", out, "--capture", capture, "--io", "off"],
                            "vaprod_" + how)
        attached(out, [pid])
        tap.equal(jobs.wait(program, 60), 0, f"interrupts {how}: the program ends well")
        tap.equal(jobs.wait(daemon, 20), 0, f"interrupts {how}: vaprod ends with it")
        sums = json.loads(subprocess.run([j.path("tests", "sum_counts"), capture], capture_output=True, text=True, check=True).stdout)
        timed = sums["factors"]["hard_irq"] + sums["factors"]["soft_irq"]
        if how == "on":
            tap.ok(0 < timed < 0.5 * sums["ns"], "interrupts have used some time", sums["factors"])
        else:
            tap.equal(timed, 0, "no interrupt time is reported where it is not measured")


main(test_hello, test_quota_and_hog, test_interrupts)
