#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One sequence of calls from C and from Fortran, under Open MPI and under MPICH, gives one graph."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stg_compare  # noqa: E402
from live import capture_run, graph, losses, main, tool  # noqa: E402

MARKERS = set(range(1, 25))
OTHERS = ["mpich_steps", "steps_h", "steps_use", "steps_f08", "mpich_steps_h", "mpich_steps_use", "mpich_steps_f08"]


def see(tap, jobs, name):
    capture, lines, _ = capture_run(tap, jobs, name)
    tap.equal(losses(lines), {}, f"{name}: nothing is lost, nothing approximate")
    states = graph(jobs, capture)
    outside = [s for s in stg_compare.sites_of(states) if s.partition("@")[0] != name]
    tap.equal(outside, [], f"{name}: every call-site is the program's own")
    seen = stg_compare.Graph(capture, tool(name))
    tap.equal(seen.wrong, [], f"{name}: a call-site for each marked line")
    tap.equal(set(seen.sites), MARKERS, f"{name}: and each line is there")
    return seen


def test_one_graph(tap, jobs):
    first = see(tap, jobs, "steps")
    calls = {key[1]: part[0] for key, part in first.parts.items() if key[0] == "communication" and key[1] in (8, 9, 14, 23)}
    tap.equal(calls, {8: 80, 9: 240, 14: 80, 23: 20}, "the counts are those of the program's loops")
    for name in OTHERS:
        differences = stg_compare.compare(first, see(tap, jobs, name))
        tap.ok(not differences, f"{name}: the graph is that of steps", "\n".join(differences))


def test_tells_differences(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "steps_f08")
    one, other = stg_compare.Graph(capture, tool("steps_f08")), stg_compare.Graph(capture, tool("steps_f08"))
    tap.equal(stg_compare.compare(one, other), [], "a graph is equal to itself")
    key = next(key for key in other.parts if key[1:-1] == (8,))
    n, size = other.parts[key]
    other.parts[key] = (n + 1, size)
    tap.equal(len(stg_compare.compare(one, other)), 1, "a call more is a difference")
    del other.parts[key]
    tap.equal(len(stg_compare.compare(one, other)), 1, "so is a state less")


def test_site_wrapper(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "wrapped")
    inside = {s["at"].partition("@")[0] for s in graph(jobs, capture) if "function=MPI_Allreduce" in s["labels"] and "at" in s}
    tap.equal(inside, {"libwrapper.so"}, "a wrapper nobody told us of is the call-site")
    capture, _, _ = capture_run(tap, jobs, "wrapped", "--transparent", "libother.so,libwrapper*.so")
    states = [s for s in graph(jobs, capture) if "function=MPI_Allreduce" in s["labels"] and "at" in s]
    markers = stg_compare.markers_of(states, tool("wrapped"))
    found = {markers[s["at"]]: s["n"] for s in states if s["at"] in markers}
    early = [s for s in states if s["at"] not in markers]
    tap.equal(set(found), {1, 2}, "named, it is looked through to its callers")
    tap.equal(sum(s["n"] for s in states), 160, "every call is told")
    tap.ok(all(s["approx"] for s in early), "those before the library was found as approximate", early)


main(test_one_graph, test_site_wrapper, test_tells_differences)
