#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Noise components of tasks that stall ranks, against what the kernel itself says of these tasks (/proc/PID/schedstat); for
how long a rank was unseen.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, attached, j, main, of_type, ready_pid, records, tool  # noqa: E402

SECONDS = 20
TICKER = os.path.join(os.path.dirname(os.path.abspath(j.__file__)), "ticker.py")


def stalled(jobs, victims, us, hz):
    """
    Watches programs that only compute, all on CPU 0, while a ticker runs there. Returns its pid, how often it got the CPU and
    for how long by the kernel's own figures, the latest noise records, and the output of vaprod.
    """
    out, capture = os.path.join(jobs.directory, f"{us}.ndjson"), os.path.join(jobs.directory, f"{us}.capture")
    victim = os.path.join(jobs.directory, "victim")
    shutil.copy(tool("hog"), victim)
    programs = [jobs.start([victim, "--cpu", 0, "--seconds", SECONDS + 60], f"victim{i}") for i in range(victims)]
    pids = [program.pid for program in programs]
    daemon = jobs.start([VAPROD, *[word for pid in pids for word in ("--pid", pid)], "--output", out, "--capture", capture,
                         "--window", 6], f"vaprod{us}")
    attached(out, pids)
    time.sleep(1)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {1})
    ticker = jobs.start([sys.executable, TICKER, 0, us, hz, SECONDS], f"ticker{us}")
    os.sched_setaffinity(0, cpus)
    if jobs.wait(ticker, 4 * SECONDS):
        raise RuntimeError(ticker.err())
    time.sleep(1)
    if jobs.interrupt(daemon):
        raise RuntimeError(daemon.err())
    for program in programs:
        jobs.stop(program)
    stays, seconds = ticker.out().split()
    return ticker.pid, int(stays), float(seconds), of_type(records(out), "noise"), out, capture


def compare(tap, jobs, victims, us, hz):
    pid, stays, seconds, found, out, capture = stalled(jobs, victims, us, hz)
    name = f"{us} us at {hz} Hz beside {victims}"
    finals = [record for record in found if record["what"] == "ticker" and record["final"]]
    n, lost = sum(record["n"] for record in finals), sum(record["lost_seconds"] for record in finals)
    tap.ok(finals and all(record["pid"] == pid and record["relation"] == "foreign" for record in finals),
           f"{name}: the ticker is a component, with its pid", found)
    tap.ok(abs(n - victims * stays) <= max(3, 0.01 * victims * stays), f"{name}: {n} slices of {victims} x {stays}")
    # The kernel's figure begins at the wake-up, before the switch, and has no time of interrupts: some 10 us a slice, either way.
    tap.ok(abs(lost - victims * seconds) <= victims * (0.05 * seconds + 40e-6 * stays),
           f"{name}: {lost:.4f} s of {victims} x {seconds:.4f} s")
    tap.ok(all(lost / n * 1e6 <= record["longest_us"] + 1 for record in finals), f"{name}: no slice is longer than the longest", finals)
    lines = records(out)
    tap.equal(sum(window["lost"]["interference"] for window in of_type(lines, "window")), 0, f"{name}: no slice had no room")
    charged = sum(record["lost_seconds"] for record in found if record["final"])
    waited = sum(w["account_seconds"]["preempted"] + w["account_seconds"]["wakeup_wait"] for w in of_type(lines, "window"))
    tap.ok(charged <= 1.01 * waited, f"{name}: {charged:.3f} s charged of {waited:.3f} s of waiting", found)
    return capture, out


def test_short_and_often(tap, jobs):
    capture, out = compare(tap, jobs, 1, 200, 100)
    again = subprocess.run([VAPRO, "analyze", capture], capture_output=True, text=True, check=False).stdout.splitlines()
    with open(out, encoding="utf-8") as file:
        tap.equal([line for line in again if '"noise"' in line], [line for line in file.read().splitlines() if '"noise"' in line],
                  "the replay of the capture emits the same components")
    table = subprocess.run([VAPRO, "noise", out], capture_output=True, text=True, check=False)
    tap.ok(table.returncode == 0 and "ticker (pid" in table.stdout, "vapro noise lists the component", table.stdout + table.stderr)
    shown = subprocess.run([VAPRO, "noise", "--json", capture], capture_output=True, text=True, check=False)
    tap.equal([json.loads(line)["what"] for line in shown.stdout.splitlines()].count("ticker"), 1, "vapro noise reads a capture")


def test_long_and_rarely(tap, jobs):
    compare(tap, jobs, 1, 5000, 10)


def test_two_threads_wait_for_one_cpu(tap, jobs):
    """While the ticker runs, both programs wait: each is charged with all of it."""
    compare(tap, jobs, 2, 2000, 20)


def test_a_stop_is_unseen(tap, jobs):
    """A rank that makes a call each 10 ms makes none for 3 s: it was unseen for as long, give or take a bin."""
    out = os.path.join(jobs.directory, "out.ndjson")
    job = jobs.start(j.mpirun(1, tool("rounds"), "--us", 10000, "--phase", "4:25"), "rounds")
    pid = ready_pid(job)
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--io", "off", "--window", 6], "vaprod")
    attached(out, [pid])
    time.sleep(12)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    os.kill(pid, signal.SIGCONT)
    time.sleep(6)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.stop(job)
    seen = [window["sensing"] for window in of_type(records(out), "window") if window["sensing"]]
    longest = max(seen, key=lambda sensing: sensing["unseen_seconds"])
    tap.ok(2.8 <= longest["unseen_seconds"] <= 3.4, "the rank was unseen for 3 s", seen)
    tap.equal(longest["rank"], 0, "that rank is named")


main(test_short_and_often, test_long_and_rarely, test_two_threads_wait_for_one_cpu, test_a_stop_is_unseen)
