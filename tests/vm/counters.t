#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions counted by an emulated PMU that counts them exactly: seven classes of work on one edge."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "..", "tools", "vm")]
import guest  # noqa: E402
from live import ROOT, Tap, j, of_type, records  # noqa: E402

ARCH, SUITE = "arm64", "trixie-backports"
CLASSES, ROUNDS = 7, 9


def text(directory, *name):
    with open(os.path.join(directory, *name), encoding="utf-8", errors="replace") as file:
        return file.read()


def check_run(tap, directory, part):
    """The program, vaprod and the clusters of its last window."""
    codes = [text(directory, part, name + ".code").strip() for name in ("program", "vaprod")]
    tap.ok(codes == ["0", "0"], f"{part}: program and vaprod end well",
           text(directory, part, "vaprod.err")[-800:] + text(directory, part, "program.err")[-400:])
    lines = records(os.path.join(directory, part, "out.ndjson"))
    hello = lines[0]
    instructions = [c for c in hello["counters"] if c["name"] == "instructions"][0]
    tap.ok(instructions["available"] and instructions["provider"] == "hardware", f"{part}: instructions are counted", instructions)
    tap.equal(hello["workload_source"], "instructions", f"{part}: the workload source is instructions")
    lost = {cause: n for w in of_type(lines, "window") for cause, n in w["lost"].items() if n}
    tap.ok(not lost, f"{part}: nothing is lost", lost)
    clusters = of_type(lines, "window")[-1]["clusters"]
    # the other edges, such as the one to MPI_Finalize, are passed once
    tap.ok(clusters and clusters["clusters"] - (clusters["states"] - 1) == CLASSES, f"{part}: {CLASSES} clusters on the edge", clusters)
    tap.ok(clusters and not clusters["approximate"], f"{part}: the clusters are exactly those of Algorithm 1", clusters)
    schema = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"),
                             os.path.join(directory, part, "out.ndjson")], capture_output=True, text=True, check=False)
    tap.ok(schema.returncode == 0, f"{part}: every line is valid by the schema", schema.stdout[-600:])


def check_counts(tap, directory):
    """Each count is equal for equal work, and linear over the classes."""
    sums = subprocess.run([j.path("tests", "sum_counts"), os.path.join(directory, "single", "run.capture")],
                          capture_output=True, text=True, check=True)
    pieces = json.loads(sums.stdout)["singles"]
    tap.equal(len(pieces), CLASSES * ROUNDS + 1, "every piece of work is emitted singly")
    for at, what in ((1, "instructions"), (2, "branches")):
        # in the first round functions are bound
        by_class = [[piece[at] for piece in pieces[CLASSES + c:CLASSES * ROUNDS:CLASSES]] for c in range(CLASSES)]
        if at == 2 and not any(map(any, by_class)):
            continue  # this PMU counts none, and hello says so
        tap.ok(all(max(counts) == min(counts) for counts in by_class), f"{what}: equal work has exactly equal counts", by_class)
        least = [min(counts) for counts in by_class]
        steps = [b - a for a, b in zip(least, least[1:])]
        tap.ok(min(steps) > 0 and max(steps) - min(steps) <= 0.001 * max(steps),
               f"{what}: the count grows from class to class as the work does",
               least)


def main():
    tap = Tap()
    try:
        directory = guest.run(ARCH, SUITE, os.path.join(HERE, "counters.sh"), name="counters")
        tap.equal(text(directory, "check.code").strip(), "0", "vapro check --counters finds instructions")
        tap.ok("a loop of 200000 instructions" in text(directory, "check.out"),
               "vapro check --counters counts a known loop", text(directory, "check.out"))
        for part in ("merged", "single"):
            check_run(tap, directory, part)
        check_counts(tap, directory)
    except (guest.GuestFailed, OSError, subprocess.CalledProcessError, KeyError, IndexError) as failure:
        tap.ok(False, "the guest's results can be judged", repr(failure))
    print(f"1..{tap.count}")


main()
