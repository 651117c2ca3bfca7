# SPDX-License-Identifier: GPL-2.0-or-later
"""What the samples of slow computation cost while their clocks are open. Part inside."""
import os
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import rank_pids, vaprod  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary
from bench_common import t  # noqa: E402
from jobs import clocks  # noqa: E402
from programs_kernel import bpf_stats, program_runs  # noqa: E402

PAIRS, MOST_PCT = 4, 0.2
HEALTHY_S = 6  # before the fault: the usual speed is known by then


def one_run(jobs, name, inside, seconds):
    """
    A job of two ranks, one of which is slow in one function from HEALTHY_S on. {"ranks": their CPU time, "daemon": vaprod's,
    "open": the ranks' CPU time while a clock was open, "runs" and "run_ns" of the program of the clocks, "sample_ns"}; times
    are in seconds, of the time after the fault began, where a unit is not named.
    """
    job = jobs.start(mpirun(2, tool("two_parts"), "--seconds", HEALTHY_S + seconds, "--log", jobs.directory, "--late-share", 40), name)
    pids = until(lambda: rank_pids(job, "two_parts", 2), 20)
    if not pids:
        raise RuntimeError("two_parts did not start: " + job.err().strip()[-300:])
    daemon, ndjson = vaprod(jobs, name, pids, None, "--io", "off", "--window", "3", "--inside", inside)
    if not until(lambda: all(attached(ndjson, pid) for pid in pids), 20):
        raise RuntimeError("vaprod did not attach: " + daemon.err().strip()[-300:])
    before, first = clocks(daemon.pid), program_runs(daemon.pid).get("inside_clock", (0, 0))
    time.sleep(HEALTHY_S)
    os.kill(pids[1], signal.SIGUSR1)
    used, begin, last, found = sum(map(processor_seconds, pids)), processor_seconds(daemon.pid), None, {"open": 0.0}
    while job.process.poll() is None:
        try:
            now = sum(map(processor_seconds, pids))
            if last is not None and is_open:
                found["open"] += now - last
            last, is_open = now, clocks(daemon.pid) > before
            found["ranks"], found["daemon"] = now - used, processor_seconds(daemon.pid) - begin
            runs = program_runs(daemon.pid).get("inside_clock", first)
        except OSError:
            break
        found["runs"], found["run_ns"] = runs[0] - first[0], runs[1] - first[1]
        time.sleep(0.2)
    well(jobs.wait(job, 30), job)
    well(jobs.wait(daemon, 30), daemon)
    found["sample_ns"] = of_type(t.load_records(ndjson), "hello")[0]["costs"]["sample_ns"]
    return found


def part_inside():
    runs = {"on": [], "off": []}
    with Jobs(scratch("inside")) as jobs, bpf_stats():
        for pair in range(repeat(PAIRS, 1)):
            for inside in ("on", "off") if pair % 2 == 0 else ("off", "on"):
                runs[inside].append(one_run(jobs, f"{inside}_{pair}", inside, repeat(14, 10)))
    on = runs["on"]
    if not all(run["open"] and run["runs"] for run in on):
        raise RuntimeError("no thread was sampled")
    samples = [100e-9 * run["runs"] * run["sample_ns"] / run["open"] for run in on]
    program = [run["run_ns"] / run["runs"] for run in on]
    extra = [100 * (one["daemon"] / one["ranks"] - other["daemon"] / other["ranks"]) for one, other in zip(on, runs["off"])]
    rate = [run["runs"] / run["open"] for run in on]
    mean, half = interval(extra)
    return [
        row("a sample: cost, of it in the program; samples per second of CPU time",
            f"{statistics.median(run['sample_ns'] for run in on):.0f} ns, {statistics.median(program):.0f} ns; {statistics.median(rate):.1f}",
            program_ns=program, rate=rate),
        row("samples while clocks are open, of the CPU time of the ranks: median, worst run",
            f"{statistics.median(samples):.4f} %, {max(samples):.4f} %", f"under {MOST_PCT} %", max(samples) < MOST_PCT, samples_pct=samples),
        row(f"vaprod's CPU with --inside on, more than off, {len(extra)} pairs, of the same", f"{mean:+.3f} % +- {half:.3f}", extra_pct=extra,
            runs=runs)]
