#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""
A program that wraps MPI twice: its call-sites are distinguished by the callers of the outer wrapper, whose lines are
known. There is one rank, since waiting for another rank would be that rank's time.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, go, graph, main, of_type, rank_pids, records, select, tool, until  # noqa: E402
import jobs as j  # noqa: E402

JOIN = " < "
SOURCE = os.path.join(ROOT, "tools", "workloads", "nested.c")
MARKER = re.compile(r"/\* site (\d+) \*/")


def codes(path):
    return [r["code"] for r in of_type(records(path), "warning")]


def watch(jobs, program, done, *options, limit=150, mpich=False, more=(), io="off"):
    """Watches a program until done(path of the lines) says so, then ends it. Returns (records, capture)."""
    name = os.path.basename(program)
    logs = os.path.join(jobs.directory, name + "_logs" + "".join(options))
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    path = tool(program)  # itself, where it is a path
    command = ["mpirun.mpich", "-n", "1", path] if mpich else j.mpirun(1, path)
    job = jobs.start([*command, "--seconds", "3", "--log", logs, "--rounds", "100000000", "--scale", "0.1", *more], name)
    pids = rank_pids(job, logs, 1)
    out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", io, "--overhead-cap", "0",
                         "--window", "3s", *options], name + "_vaprod")
    attached(out, pids)
    until(lambda: done(out), limit)
    jobs.interrupt(daemon)
    jobs.stop(job)
    return records(out), capture


def lines_of(program, sites):
    """{call-site: marker of its line}; empty without debug information."""
    found = {}
    source = open(SOURCE, encoding="utf-8").read().splitlines()
    loads = [line.split() for line in subprocess.run(["readelf", "-lW", tool(program)], capture_output=True, text=True,
                                                     check=True).stdout.splitlines() if line.split()[:1] == ["LOAD"]]
    for site in sites:
        offset = int(site.rpartition("+")[2], 16) - 1
        for load in loads:
            at, address, size = (int(load[i], 16) for i in (1, 2, 4))
            if at <= offset < at + size:
                line = subprocess.run(["addr2line", "-e", tool(program), hex(offset - at + address)], capture_output=True,
                                      text=True, check=True).stdout.split(" (")[0].rpartition(":")[2].strip()
                match = MARKER.search(source[int(line) - 1]) if line.isdigit() else None
                if match:
                    found[site] = int(match.group(1))
    return found


def chains(states):
    """Call-sites of computations, each a tuple of its frames."""
    return {tuple(state[end].split(JOIN)) for state in states for end in ("from", "to") if end in state}


def steady(path):
    """Whether some window had most of its time in certified states."""
    return any(w["coverage"]["computation"] > 0.6 for w in of_type(records(path), "window"))


def test_hopped(tap, jobs):
    lines, capture = watch(jobs, "nested", steady)
    reported = [r for r in of_type(lines, "warning") if r["code"] == "hopped"]
    tap.ok(any(re.search(r"at send_receive(\+| \(nested\.c:)", r["text"]) for r in reported), "the inner wrapper is hopped", reported)
    tap.ok(any(re.search(r"at exchange(\+| \(nested\.c:)", r["text"]) for r in reported), "the outer wrapper is hopped, one frame further", reported)
    tap.ok(not any(re.search(r"at (assemble|correct)\b", r["text"]) for r in reported),
           "the callers of the outer wrapper are not hopped", reported)
    share = max((w["coverage"]["computation"] for w in of_type(lines, "window")), default=0)
    tap.ok(share > 0.6, "computation is covered after the hops", share)
    found = chains(graph(jobs, capture))
    marks = lines_of("nested", {site for chain in found for site in chain})
    callers = {marks.get(chain[2]) for chain in found if len(chain) == 3 and marks.get(chain[0]) == 1}
    tap.equal(callers, set(range(11, 19)), "each phase has its own call-site, at its line of the program")
    tap.equal({tuple(marks.get(s) for s in chain[:2]) for chain in found if len(chain) == 3 and marks.get(chain[0]) == 1},
              {(1, 2)}, "the wrappers precede the phase in each call-site")
    tap.ok(any(len(chain) == 1 and marks[chain[0]] == 1 for chain in found if chain[0] in marks),
           "the state before the hops is a prefix")
    again = subprocess.run([VAPRO, "analyze", capture], capture_output=True, text=True, check=False)
    replayed = [json.loads(line) for line in again.stdout.splitlines()]
    tap.equal([w["coverage"] for w in of_type(replayed, "window")], [w["coverage"] for w in of_type(lines, "window")],
              "a replay has the same states")
    tap.equal([r["text"] for r in of_type(replayed, "warning") if r["code"] == "hopped"], [r["text"] for r in reported],
              "and emits the same decisions")


def test_unseen(tap, jobs):
    lines, capture = watch(jobs, "nested_unseen", lambda path: "hop_refused" in codes(path))
    reported = [r["text"] for r in of_type(lines, "warning") if r["code"] == "hop_refused"]
    tap.ok(reported and "without unwind information" in reported[0],
           "code without unwind information is not hopped, and a warning says so", reported)
    tap.ok(all(len(chain) == 1 for chain in chains(graph(jobs, capture))), "the states of such code keep one frame")


def test_off(tap, jobs):
    start = []

    def long_enough(path):
        start.append(len(of_type(records(path), "window")))
        return start[-1] >= 4
    lines, capture = watch(jobs, "nested", long_enough, "--hop-frames", "0")
    tap.ok(all(len(chain) == 1 for chain in chains(graph(jobs, capture))), "with --hop-frames 0 call-sites keep one frame")
    tap.ok("hopped" not in [r["code"] for r in of_type(lines, "warning")], "with --hop-frames 0 there is no warning of hops")


def test_stripped_mpich(tap, jobs):
    stripped = os.path.join(jobs.directory, "nested_stripped")
    subprocess.run(["strip", "-o", stripped, tool("mpich_nested")], check=True)
    _, capture = watch(jobs, stripped, steady, mpich=True)
    deep = [chain for chain in chains(graph(jobs, capture)) if len(chain) == 3]
    tap.ok(len(deep) >= 8, "a program without symbols is hopped under MPICH", deep)


def test_buffered_io(tap, jobs):
    seen = []

    def some_windows(path):
        seen.append(len(of_type(records(path), "window")))
        return seen[-1] >= 12  # the call-sites are hopped within the first few
    _, capture = watch(jobs, "nested", some_windows, "--hop-frames", "4", more=("--notes", os.path.join(jobs.directory, "notes")),
                       io="on")
    writes = [(s["at"].split(JOIN), s["n"]) for s in graph(jobs, capture) if "at" in s and "function=write" in s["labels"]]
    marks = lines_of("nested", {chain[1] for chain, _ in writes if len(chain) == 2 and chain[1].startswith("nested@")})
    reported = sum(n for chain, n in writes if len(chain) == 2 and marks.get(chain[1]) == 21)
    tap.ok(reported > 0 and reported > 0.8 * sum(n for chain, n in writes if chain[0].startswith("libc.so")),
           "writes through the C library's buffer have the program's line", writes)


def test_result(tap, jobs):
    """The same sum with vaprod and without, while call-sites are hopped, also where frames are left by longjmp."""
    sums, out = [], os.path.join(jobs.directory, "result.ndjson")
    for watched in (False, True):
        job = jobs.start([*j.mpirun(1, tool("nested")), "--seconds", "1", "--log", jobs.directory, "--rounds", "12000", "--scale", "0.1"],
                         f"nested_{watched}")
        pids = rank_pids(job, jobs.directory, 1)
        if watched:
            # 10,000 to 15,000 calls a second are over the budget: with their probes closed nothing is hopped in time
            daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--io", "off", "--overhead-cap", "0"], "vaprod")
            attached(out, pids)
        else:
            go()
        tap.equal(jobs.wait(job, 120), 0, f"the program ends well, {'' if watched else 'not '}watched")
        sums.append(json.loads(job.out().splitlines()[-1])["sum"])
        os.unlink(os.path.join(jobs.directory, "truth.0"))
    jobs.interrupt(daemon)
    tap.ok("hopped" in codes(out), "its call-sites were hopped meanwhile", codes(out))
    tap.equal(sums[1], sums[0], "the result of the program is the same with and without vaprod")


main(test_hopped, test_unseen, test_off, test_stripped_mpich, test_buffered_io, test_result)
