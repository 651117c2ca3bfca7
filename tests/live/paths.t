#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Context-aware states: a call-site that two paths reach is one state without paths and two states with paths."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stg_compare  # noqa: E402
from live import capture_run, graph, main, of_type, tool  # noqa: E402


def vertices(jobs, name, capture):
    """{marker: [(call-site, n)]}"""
    states = graph(jobs, capture)
    markers = stg_compare.markers_of(states, tool(name))
    found = {}
    for state in states:
        if "at" in state:
            found.setdefault(markers[stg_compare.bare(state["at"])], []).append((state["at"], state["n"]))
    return found


def test_paths(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "paths")
    plain = vertices(jobs, "paths", capture)
    tap.equal([n for _, n in plain[1]], [150], "by call-site: one state")
    tap.ok(all("#" not in site for sites in plain.values() for site, _ in sites), "without paths the name has no path", plain)
    capture, lines, _ = capture_run(tap, jobs, "paths", "--states", "call-path")
    aware = vertices(jobs, "paths", capture)
    # both ranks have their own addresses: without common names there would be four states
    tap.equal(sorted(n for _, n in aware[1]), [50, 100], "by call path: two states, the same on both ranks")
    tap.equal([n for _, n in aware[2]], [100], "a call-site with one path is one state")
    tap.ok(all("#path:" in site for site, _ in aware[1] + aware[2]), "the name has the path", aware)
    tap.equal([r["code"] for r in of_type(lines, "warning")], [], "no warning")


def test_no_frames(tap, jobs):
    capture, lines, _ = capture_run(tap, jobs, "paths_unframed", "--states", "call-path")
    found = vertices(jobs, "paths_unframed", capture)
    tap.equal([n for _, n in found[1]], [150], "without frame pointers: one state")
    warned = [r["pid"] for r in of_type(lines, "warning") if r["code"] == "no_frame_pointers"]
    tap.equal(len(set(warned)), 2, "each process has a warning that frame pointers are missing")


main(test_paths, test_no_frames)
