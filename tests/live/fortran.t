#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""
One sequence of calls from C and from Fortran, under Open MPI and under MPICH, gives one graph on every
rung of the ladder that this kernel has. tests/vm/kernels.t tests the same on other kernels and CPUs.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stg_compare  # noqa: E402
from live import ROOT, RUNGS, capture_run, graph, losses, main, tool, works  # noqa: E402

MARKERS = set(range(1, 25))
ALL = ["steps", "mpich_steps", "steps_h", "steps_use", "steps_f08", "mpich_steps_h", "mpich_steps_use", "mpich_steps_f08"]
# perf removes its probes one by one, which lasts: one program for each language and library, and the deepest binding
PROGRAMS = {"session": ALL, "multi": ALL, "perf": ["steps", "mpich_steps", "steps_f08", "mpich_steps_h"]}


def see(tap, jobs, program, *options):
    """The graph of a program, after the checks that need no other graph."""
    name = " ".join([program, *options])
    capture, lines, _ = capture_run(tap, jobs, program, *options)
    tap.equal(losses(lines), {}, f"{name}: no fragment is lost or approximate")
    states = graph(jobs, capture)
    outside = [s for s in stg_compare.sites_of(states) if s.partition("@")[0] != program]
    tap.equal(outside, [], f"{name}: every call-site is the program's own")
    seen = stg_compare.Graph(capture, tool(program))
    tap.equal(seen.wrong, [], f"{name}: a call-site for each marked line")
    tap.equal(set(seen.sites), MARKERS, f"{name}: each marked line has a call-site")
    return seen


def test_one_graph(tap, jobs):
    first = see(tap, jobs, "steps", "--attach", "session" if works("session") else "auto")
    calls = {key[1]: part.n for key, part in first.parts.items() if key[0] == "communication" and key[1] in (8, 9, 14, 23)}
    tap.equal(calls, {8: 80, 9: 240, 14: 80, 23: 20}, "the counts are those of the program's loops")
    for rung in filter(works, RUNGS):
        for name in PROGRAMS[rung]:
            differences = stg_compare.compare(first, see(tap, jobs, name, "--attach", rung))
            tap.ok(not differences, f"{name} on {rung}: the graph is that of steps", "\n".join(differences))


def test_own_lines(tap, jobs):
    for name, source in (("steps", "steps.c"), ("steps_f08", "steps.F90")):
        capture, _, _ = capture_run(tap, jobs, name)
        states = graph(jobs, capture)
        reported = stg_compare.markers_of(states, os.path.join(ROOT, "tools", "workloads", source))
        tap.equal(reported, stg_compare.markers_of(states, tool(name)), f"{name}: lines of the graph are those of addr2line")


def test_shows_differences(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "steps_f08")
    one, other = stg_compare.Graph(capture, tool("steps_f08")), stg_compare.Graph(capture, tool("steps_f08"))
    tap.equal(stg_compare.compare(one, other), [], "a graph is equal to itself")
    key = next(key for key in other.parts if key[1:-1] == (8,))
    part = other.parts[key]
    for change, name in (({"n": part.n + 1}, "a call more"), ({"clusters": part.clusters + 1}, "a cluster more")):
        other.parts[key] = part._replace(**change)
        tap.equal(len(stg_compare.compare(one, other)), 1, f"{name} is a difference")
    del other.parts[key]
    tap.equal(len(stg_compare.compare(one, other)), 1, "a state less is a difference")


def test_site_wrapper(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "wrapped")
    inside = {s["at"].partition("@")[0] for s in graph(jobs, capture) if "function=MPI_Allreduce" in s["labels"] and "at" in s}
    tap.equal(inside, {"libwrapper.so"}, "a wrapper without a rule is the call-site")
    capture, _, _ = capture_run(tap, jobs, "wrapped", "--transparent", "libother.so,libwrapper*.so")
    states = [s for s in graph(jobs, capture) if "function=MPI_Allreduce" in s["labels"] and "at" in s]
    markers = stg_compare.markers_of(states, tool("wrapped"))
    found = {markers[s["at"]]: s["n"] for s in states if s["at"] in markers}
    early = [s for s in states if s["at"] not in markers]
    tap.equal(set(found), {1, 2}, "a wrapper named by --transparent is passed through to its callers")
    tap.equal(sum(s["n"] for s in states), 160, "every call is reported")
    tap.ok(all(s["approx"] for s in early), "calls before the library was found are approximate", early)


main(test_one_graph, test_own_lines, test_site_wrapper, test_shows_differences)
