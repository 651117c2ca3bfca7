# SPDX-License-Identifier: GPL-2.0-or-later
"""How much longer whole programs take under vaprod, in pairs with and without. Part programs."""
import json
import math
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import hpcc_input, lammps, last_json  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary
from bench_common import t  # noqa: E402

PAIRS_LEAST, PAIRS_MOST, HALF_WIDTH_PCT = 8, 60, 0.7

# Runs last for 10 to 20 s: what attaching costs once, some 75 ms of CPU, is reported in a run of its length.


def hpcc(directory):
    hpcc_input(directory, repeat(4000, 1000))
    return mpirun(2, "hpcc"), "*/hpcc"


def lammps_program(directory):
    return lammps(repeat(4000, 600), os.path.join(directory, "log.lammps")), "*/lmp"


def demo(directory):
    return mpirun(2, tool("demo_mpi"), "--seconds", repeat(20, 4), "--scratch", directory, "--bind"), "*/demo_mpi"


def cost_of_run(name, job, wall):
    """Seconds of a run; demo_mpi does as much as its time allows, so its result is per iteration."""
    return last_json(job.out())["ms_per_iteration"] if name.startswith("demo") else wall


def one_run(jobs, name, command, directory, pattern):
    """(what the program took, records of vaprod or []). pattern None: without vaprod."""
    daemon = ndjson = None
    if pattern:
        # vaprod runs before the job begins, as on a node
        ndjson = os.path.join(jobs.directory, name + ".ndjson")
        daemon = jobs.start([VAPROD, "--exe", pattern, "--output", ndjson], name + ".vaprod")
        if not until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson) > 0, 20, 0.02):
            raise RuntimeError("vaprod did not start: " + daemon.err().strip()[-300:])
        time.sleep(0.3)
    begin = time.monotonic()
    code, job = jobs.run(command, name, 300, cwd=directory)
    seconds = time.monotonic() - begin
    well(code, job)
    seconds = cost_of_run(name, job, seconds)
    if not daemon:
        return seconds, []
    well(jobs.interrupt(daemon), daemon)
    return seconds, t.load_records(ndjson)


def pairs_of(jobs, name, command, directory, pattern):
    """[(without, with)] until the difference is known well enough, and what vaprod said it cost."""
    pairs, said = [], []
    one_run(jobs, name + "_warm", command, directory, None)
    least, most = repeat(PAIRS_LEAST, 2), repeat(PAIRS_MOST, 2)
    while len(pairs) < most:
        seconds = {}
        for watched in (False, True) if len(pairs) % 2 == 0 else (True, False):
            seconds[watched], records = one_run(jobs, name, command, directory, pattern if watched else None)
            if watched:
                for window, length in window_weights(records):
                    if window["overhead_pct"]["mean"] is not None:
                        said.append((window["overhead_pct"]["mean"], window["overhead_pct"]["max"], length))
                if not any(hits_of(r) for r in of_type(records, "process")):
                    raise RuntimeError(f"vaprod saw nothing of {name}")
        pairs.append((seconds[False], seconds[True]))
        found, lower, upper = shift(percents(pairs))
        print(f"{name}: {len(pairs)} pairs, {pairs[-1][0]:.2f} and {pairs[-1][1]:.2f}; {found:+.2f} % in {lower:+.2f} .. {upper:+.2f}",
              file=sys.stderr)
        if len(pairs) >= least and upper - lower <= 2 * HALF_WIDTH_PCT:
            break
    return pairs, said


def percents(pairs):
    """What each pair says, in percent; by logarithms, so that drift up and drift down weigh the same."""
    return [100 * math.log(watched / bare) for bare, watched in pairs]


def part_programs():
    rows = []
    for name, program in (("lammps", lammps_program), ("demo", demo), ("hpcc", hpcc)):
        directory = scratch("programs", name)
        with Jobs(directory) as jobs:
            command, pattern = program(directory)
            pairs, said = pairs_of(jobs, name, command, directory, pattern)
        found, lower, upper = shift(percents(pairs))
        mean, _ = interval(percents(pairs))
        half = (upper - lower) / 2
        weight = sum(length for _, _, length in said)
        reported = sum(value * length for value, _, length in said) / weight if weight else float("nan")
        rows.append(row(f"{name}: {len(pairs)} pairs of {statistics.median(p[0] for p in pairs):.1f} {'ms (iteration)' if name == 'demo' else 's'}, with / without",
                        f"{found:+.2f} % +- {half:.2f}, upper 95 % bound {upper:+.2f} %", "bound at most 2 %, +- 0.7",
                        upper <= 2 and half <= HALF_WIDTH_PCT, pairs=pairs, shift_pct=found, lower_pct=lower, upper_pct=upper,
                        mean_pct=mean))
        rows.append(row(f"{name}: what vaprod said it cost: mean, worst window", f"{reported:.3f} %, {max((m for _, m, _ in said), default=math.nan):.3f} %",
                        "mean inside the interval", lower <= reported <= upper, reported_pct=reported))
    return rows
