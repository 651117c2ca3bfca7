#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Says whether two runs of one program have isomorphic State Transition Graphs: other MPI library, other
language, other kernel or CPU. Call-sites are matched by numbered markers in the source (`site 7`).

    stg_compare.py GRAPH PROGRAM GRAPH PROGRAM
    stg_compare.py --markers GRAPH PROGRAM > TABLE

GRAPH: a capture, or the output of `vapro stg --json`. PROGRAM: the executable, with line numbers and
its source at hand; or that source, and the lines are those of the graph itself; or the TABLE of
it made where it is ({call-site: number} as JSON). Equal means: the same markers, each at one call-site;
the same vertices and edges with the same labels, n, bytes and clusters (where both graphs have some:
clusters of computation need a counter of instructions).
Exit code 0 equal, 1 different (each difference is printed), 2 usage or unreadable input.
"""
import json
import os
import re
import subprocess
import sys
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VAPRO = os.path.join(ROOT, os.environ.get("BUILD", "build"), "vapro")
MARKER = re.compile(r"\bsite (\d+)\b")


# What must be equal of a vertex or an edge; None: has none.
Part = namedtuple("Part", "n bytes clusters")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def states_of(path):
    """The states of a capture or of a saved `vapro stg --json`."""
    with open(path, "rb") as file:
        saved = file.read(9) == b'{"class":'
    if saved:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    else:
        text = run(VAPRO, "stg", "--json", path)
    states = [json.loads(line) for line in text.splitlines()]
    if not states:
        raise OSError(f"{path}: no states")
    return states


def sites_of(states):
    return sorted({bare(state[end]) for state in states for end in ("from", "to", "at") if end in state})


def bare(site):
    """Without the path: its hash holds the program's name."""
    return site.partition("#")[0]


def to_address(program):
    """A function from file offsets to linked addresses."""
    loads = []
    for line in run("readelf", "-lW", program).splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"]:
            loads.append([int(fields[i], 16) for i in (1, 2, 4)])

    def convert(offset):
        for at, address, size in loads:
            if at <= offset < at + size:
                return offset - at + address
        return None
    return convert


def marker_at(source, number):
    """The marker in a line of a file, or None."""
    with open(source, encoding="utf-8") as file:
        match = MARKER.search(file.read().splitlines()[int(number) - 1])
    return int(match.group(1)) if match else None


def markers_told(states, source):
    """{call-site: number} by the lines of the states."""
    found, name = {}, os.path.basename(source)
    for state in states:
        for end in ("from", "to", "at"):
            file, _, number = state.get(end + "_source", "").rpartition(":")
            marker = marker_at(source, number) if file == name else None
            if marker is not None:
                found[bare(state[end])] = marker
    return found


def markers_of(states, program):
    """{call-site: number in the source line of the call}; those without a marker are left out."""
    if program.endswith(".json"):
        with open(program, encoding="utf-8") as file:
            return json.load(file)
    if program.endswith((".c", ".F90")):
        return markers_told(states, program)
    convert, found = to_address(program), {}
    own = [site for site in sites_of(states) if site.partition("@")[0] == os.path.basename(program)]
    # the call is before the address it returns to
    addresses = [convert(int(site.rpartition("+")[2], 16) - 1) for site in own]
    lines = run("addr2line", "-e", program, *(hex(a) for a in addresses if a is not None)).splitlines() if own else []
    for site, line in zip([s for s, a in zip(own, addresses) if a is not None], lines):
        path, _, number = line.split(" (")[0].rpartition(":")
        if not number.isdigit() or not os.path.exists(path):
            continue
        marker = marker_at(path, number)
        if marker is not None:
            found[site] = marker
    return found


class Graph:
    """{vertex or edge: what must be equal}, in markers; and what is wrong with the graph by itself."""

    def __init__(self, path, program):
        states = states_of(path)
        markers = markers_of(states, program)
        self.parts, self.wrong, self.sites = {}, [], {}
        for site in sites_of(states):
            if site in markers:
                self.sites.setdefault(markers[site], []).append(site)
            else:
                self.wrong.append(f"{site} has no marker")
        for number, sites in sorted(self.sites.items()):
            if len(sites) > 1:
                self.wrong.append(f"site {number} is at several call-sites: {', '.join(sites)}")
        for state in states:
            ends = [markers.get(bare(state[end]), bare(state[end])) for end in ("from", "to", "at") if end in state]
            key = (state["class"], *ends, state["labels"])
            part = Part(state["n"], (state.get("min_bytes"), state.get("max_bytes")), state.get("clusters"))
            self.parts[key] = joined(self.parts[key], part) if key in self.parts else part


def joined(one, other):
    """Two states that differ in what is not compared, as one."""
    size = one.bytes
    if size[0] is not None:
        size = (min(size[0], other.bytes[0]), max(size[1], other.bytes[1]))
    clusters = None if one.clusters is None else max(one.clusters, other.clusters)
    return Part(one.n + other.n, size, clusters)


def same(one, other):
    known = one.clusters is not None and other.clusters is not None
    return one[:2] == other[:2] and (not known or one.clusters == other.clusters)


def show(key, part):
    ends = " -> ".join(str(end) for end in key[1:-1])
    size = "" if part.bytes[0] is None else f", {part.bytes[0]:g} to {part.bytes[1]:g} bytes"
    clusters = "" if part.clusters is None else f", {part.clusters} clusters"
    return f"{key[0]} at {ends} [{key[-1]}]: n {part.n}{size}{clusters}"


def compare(first, second):
    """The differences, one sentence each."""
    found = [f"first: {text}" for text in first.wrong] + [f"second: {text}" for text in second.wrong]
    for name, one, other in (("first", first, second), ("second", second, first)):
        found += [f"only in the {name}: site {n}" for n in sorted(set(one.sites) - set(other.sites))]
        found += [f"only in the {name}: {show(k, one.parts[k])}" for k in sorted(set(one.parts) - set(other.parts), key=str)]
    for key in sorted(set(first.parts) & set(second.parts), key=str):
        if not same(first.parts[key], second.parts[key]):
            found.append(f"different: {show(key, first.parts[key])}; second: {show(key, second.parts[key])}")
    return found


def main(words):
    try:
        if len(words) == 3 and words[0] == "--markers":
            print(json.dumps(markers_of(states_of(words[1]), words[2]), indent=1))
            return 0
        if len(words) != 4:
            print(__doc__.strip(), file=sys.stderr)
            return 2
        first, second = Graph(*words[:2]), Graph(*words[2:])
    except (OSError, ValueError) as problem:
        print(f"stg_compare: {problem}", file=sys.stderr)
        return 2
    differences = compare(first, second)
    print("\n".join(differences) if differences else
          f"equal: {len(first.sites)} call-sites, {len(first.parts)} states")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
