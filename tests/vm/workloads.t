#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Clusters against the true work of four kernels (VAPRO (PPoPP'22) table 2), where an emulated PMU counts instructions
exactly; and a rank that is slow from start to end, found where instructions are the workload and not claimed
where they are not.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "..", "tools", "vm")]
import guest  # noqa: E402
from live import ROOT, VAPRO, Tap, j, losses, of_type, records  # noqa: E402

ARCH, SUITE = "arm64", "trixie-backports"
RANKS = 2
COVERAGE = 70  # percent, VAPRO (PPoPP'22) section 6.2


def text(directory, *name):
    with open(os.path.join(directory, *name), encoding="utf-8", errors="replace") as file:
        return file.read()


def note(*words):
    print("#", *words, flush=True)


def check_run(tap, directory, part, source="instructions"):
    """The program and vaprod ended well, and nothing was lost. Returns the records."""
    codes = [text(directory, part, name + ".code").strip() for name in ("program", "vaprod")]
    tap.ok(codes == ["0", "0"], f"{part}: program and vaprod end well",
           text(directory, part, "vaprod.err")[-800:] + text(directory, part, "program.err")[-400:])
    lines = records(os.path.join(directory, part, "out.ndjson"))
    tap.equal(lines[0]["workload_source"], source, f"{part}: the workload comes from {source}")
    lost = losses(lines)
    # now and then an argument cannot be read at once: its call is emitted without it, and that is counted
    unread = lost.pop("argument", 0)
    approximate = lost.pop("approximated", 0)
    tap.ok(not lost and unread <= 2 and approximate <= unread, f"{part}: nothing is lost", losses(lines))
    schema = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"),
                             os.path.join(directory, part, "out.ndjson")], capture_output=True, text=True, check=False)
    tap.ok(schema.returncode == 0, f"{part}: every line is valid by the schema", schema.stdout[-600:])
    return lines


def truth_of(directory, part, rank):
    lines = text(directory, part, f"path.{rank}").splitlines()
    if lines[-1] != f"end {len(lines) - 1}":
        raise ValueError(f"path.{rank} was cut short")
    return lines[:-1]


def fragments_of(tap, directory, part):
    """The computations of the capture with the work that the program knows of."""
    printed = subprocess.run([j.path("tests", "print_fragments"), os.path.join(directory, part, "run.capture")],
                             capture_output=True, text=True, check=False)
    tap.ok(printed.returncode == 0, f"{part}: every computation is emitted singly", printed.stderr)
    fragments = [json.loads(line) for line in printed.stdout.splitlines()]
    for rank in range(RANKS):
        own = sorted((f for f in fragments if f["rank"] == rank), key=lambda f: f.pop("call"))
        truth = truth_of(directory, part, rank)
        tap.equal(len(own), len(truth), f"{part}: rank {rank} has as many computations as its log")
        for fragment, work in zip(own, truth):
            fragment["truth"] = work
    return fragments


def check_truth(tap, part, fragments):
    """Equal work has equal counts, but for the random numbers of ep."""
    counts = {}
    for fragment in fragments:
        counts.setdefault((fragment["from"], fragment["to"], fragment["truth"]), []).append(fragment["workload"]["instructions"])
    apart = max(max(c) - min(c) - (0.005 * min(c) if part == "ep" else 0) for c in counts.values())
    tap.ok(apart <= 64, f"{part}: equal work has equal counts", apart)


def score(directory, part, fragments, *options, drop=()):
    """V-measure, number of clusters, and the sentence that has both."""
    path = os.path.join(directory, part, "fragments.ndjson")
    with open(path, "w", encoding="utf-8") as file:
        for fragment in fragments:
            workload = {name: n for name, n in fragment["workload"].items() if name not in drop}
            print(json.dumps(dict(fragment, workload=workload)), file=file)
    done = subprocess.run([j.path("tests", "score_clusters"), *options, path], capture_output=True, text=True, check=False)
    found = re.search(r"homogeneity ([\d.]+), completeness ([\d.]+), V-measure ([\d.]+) \(.* (\d+) clusters", done.stdout)
    if done.returncode or not found:
        raise ValueError(done.stderr)
    return float(found.group(3)), int(found.group(4)), done.stdout.strip()


def coverage_of(lines):
    """(percent of its time that is covered, window) of a run that is one window."""
    windows = of_type(lines, "window")
    if len(windows) != 1:
        raise ValueError(f"{len(windows)} windows")
    return 100 * windows[0]["coverage"]["total"], windows[0]


def check_kernel(tap, directory, part):
    """One kernel with instructions alone: V-measure against its own log; and coverage. Returns the former, clusters, fragments."""
    check_run(tap, directory, part)
    fragments = fragments_of(tap, directory, part)
    check_truth(tap, part, fragments)
    measure, clusters, said = score(directory, part, fragments, drop=("named_1", "named_2"))
    note(f"{part}: {said}")
    coverage, window = coverage_of(check_run(tap, directory, part + "_default"))
    note(f"{part}: coverage {coverage:.1f} %, overhead {window['overhead_pct']['mean']:.2f} %,",
         ", ".join(f"{u['reason']} {u['time_pct_of_job']:.1f} %" for u in window["uncovered"]))
    tap.ok(coverage >= COVERAGE, f"{part}: at least {COVERAGE} % of its time is covered", coverage)
    return measure, clusters, fragments


def check_pagerank(tap, directory):
    one, fewest, fragments = check_kernel(tap, directory, "pagerank")
    tap.ok(one > 0.85, "pagerank: a V-measure over 0.85 by instructions", one)
    # with bands states differ by whether work touches new memory, and not by how much of it
    rule, between, said = score(directory, "pagerank", fragments, "--bands", "named_1/instructions:0.0005,0.003")
    note(f"pagerank, instructions in bands of page faults: {said}")
    tap.ok(one <= rule and fewest < between, "pagerank: with bands of page faults clusters agree better", (one, rule, fewest, between))
    out = os.path.join(directory, "pagerank", "bands.ndjson")
    states = []
    for bands in ("", "page-faults/instructions:0.0005,0.003"):
        subprocess.run([VAPRO, "analyze", "--bands", bands, "--output", out, os.path.join(directory, "pagerank", "run.capture")],
                       capture_output=True, text=True, check=True)
        states.append(of_type(records(out), "window")[-1]["clusters"]["states"])
    tap.ok(states[1] > states[0], "pagerank: with other bands a capture has more states", states)


def computation(lines):
    """The last revisions of variances of computation."""
    last = {v["id"]: v for v in of_type(lines, "variance")}
    return [v for v in last.values() if v["class"] == "computation"]


def check_slow_rank(tap, directory):
    lines = check_run(tap, directory, "slow")
    slow = computation(lines)
    note("slow with instructions:", [(v["ranks"], round(v["performance"], 3), v["alarm"], v["confidence"]) for v in slow])
    tap.ok(any(v["ranks"] == "1" and v["alarm"] for v in slow), "with instructions the slow rank is an alarm", slow)
    tap.ok(all(v["ranks"] == "1" for v in slow), "no other rank is slow", slow)
    lines = check_run(tap, directory, "slow_arguments", "arguments")
    claimed = computation(lines)
    note("slow with arguments:", [(v["ranks"], round(v["performance"], 3), v["alarm"], v["confidence"]) for v in claimed],
         [(i["ranks"], i["ratio"]) for i in of_type(lines, "imbalance")])
    tap.ok(not claimed, "with arguments no variance is claimed", claimed)
    tap.ok(any(i["ranks"] == "1" for i in of_type(lines, "imbalance")),
           "with arguments an imbalance says that the ranks differ, by work or by speed")


def main():
    tap = Tap()
    try:
        directory = guest.run(ARCH, SUITE, os.path.join(HERE, "workloads.sh"), name="workloads")
        for part in ("cg", "ft", "ep"):
            measure, _, _ = check_kernel(tap, directory, part)
            tap.equal(measure, 1.0, f"{part}: the V-measure of its clusters is 1.00")
        check_pagerank(tap, directory)
        check_slow_rank(tap, directory)
    except (guest.GuestFailed, OSError, subprocess.CalledProcessError, KeyError, IndexError, ValueError) as failure:
        tap.ok(False, "the guest's results can be judged", repr(failure))
    print(f"1..{tap.count}")


main()
