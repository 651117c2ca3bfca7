#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One program under Open MPI and under MPICH gives the same states with the same labels."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, graph, j, main, of_type, rank_pids, records, select, tool  # noqa: E402


# Functions that are left out for their cost are part of a state's labels, and which ones are depends on the machine.
AFFORDS_ALL = ("--overhead-cap", "0")


def states(tap, jobs, name, command):
    """{(labels of a vertex): calls} of a run, files apart; and the jobs that vaprod reported."""
    logs = os.path.join(jobs.directory, name)
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    program = jobs.start([*command, "--seconds", "6", "--log", logs, "--scratch", logs, "--bind"], name)
    pids = rank_pids(program, logs, 2)
    out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off",
                         *AFFORDS_ALL], name + "_vaprod")
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


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])


# Starts a proxy on this machine, under the name of the host that it is meant for: HOST COMMAND.
REMOTE_SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec unshare --uts sh -c "hostname $host; exec $*"
"""


def test_two_proxies_are_one_job(tap, jobs):
    logs = os.path.join(jobs.directory, "proxies")
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    shell, hosts = os.path.join(logs, "shell"), os.path.join(logs, "hosts")
    with open(shell, "w", encoding="utf-8") as file:
        file.write(REMOTE_SHELL)
    os.chmod(shell, 0o755)
    with open(hosts, "w", encoding="utf-8") as file:
        file.write("127.0.0.2:1\n127.0.0.3:1\n")
    command = ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", shell, "-f", hosts, "-n", "2", tool("mpich_demo_mpi")]
    program = jobs.start([*command, "--seconds", "5", "--log", logs, "--scratch", logs, "--bind"], "proxies")
    pids = rank_pids(program, logs, 2)
    parents = {parent_of(pid) for pid in pids}
    out = os.path.join(logs, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--io", "off"], "proxies_vaprod")
    attached(out, pids)
    tap.equal(jobs.wait(program, 40), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its targets")
    lines = of_type(records(out), "process")
    tap.equal(len(parents), 2, "each rank has a proxy of its own")
    tap.equal({line["rank"] for line in lines}, {0, 1}, "both ranks are known")
    identities = {line["job"]["identity"] for line in lines}
    tap.ok(len(identities) == 1 and re.fullmatch(r"mpi:launcher-\d+@.+", min(identities)),
           "both proxies belong to one job, the launcher's", identities)


main(test_same_states, test_two_proxies_are_one_job)
