#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One program under Open MPI and under MPICH gives the same states with the same labels."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, graph, j, main, of_type, rank_pids, records, select, tool  # noqa: E402


def states(tap, jobs, name, command):
    """{(labels of a vertex): calls} of a run, files apart; and the jobs that vaprod reported."""
    logs = os.path.join(jobs.directory, name)
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    program = jobs.start([*command, "--seconds", "6", "--log", logs, "--scratch", logs, "--bind"], name)
    pids = rank_pids(program, logs, 2)
    out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off"], name + "_vaprod")
    attached(out, pids)
    tap.equal(jobs.wait(program, 40), 0, f"{name}: the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, f"{name}: vaprod ends with its targets")
    tap.ok('"wrong":0' in program.out(), f"{name}: the results of the program are right", program.out())
    found = {}
    for state in graph(jobs, capture):
        if "at" in state and state["n"] > 5 and "function=MPI_" in state["labels"]:
            found[state["labels"]] = found.get(state["labels"], 0) + state["n"]
    lines = records(out)
    return found, {w["job"] for w in of_type(lines, "window")}, {r["rank"] for r in of_type(lines, "process")}


def test_same_states(tap, jobs):
    open_mpi = j.mpirun(2, tool("demo_mpi"))
    mpich = ["mpirun.mpich", "-n", "2", tool("mpich_demo_mpi")]
    first, jobs_seen, ranks = states(tap, jobs, "openmpi", open_mpi)
    tap.ok(len(first) >= 6 and any("op=sum" in labels for labels in first), "Open MPI: labels are read", first)
    second, other_jobs, other_ranks = states(tap, jobs, "mpich", mpich)
    tap.equal((len(jobs_seen), len(other_jobs)), (1, 1), "each run is one job")
    tap.equal((ranks, other_ranks), ({0, 1}, {0, 1}), "ranks are known under both libraries")
    tap.equal(set(second), set(first), "every call has equal labels under both libraries")


main(test_same_states)
