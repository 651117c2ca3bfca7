#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""
Probes are moved repeatedly while calls are in flight: the program ends well and no call lacks its return, on
every rung of the ladder that this kernel has.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import (ROOT, RUNGS, VAPROD, attached, go, j, main, of_rung, of_type, rank_pids, records, select,  # noqa: E402
                  tool, until, works)

MOVE = os.path.join(ROOT, "build", "tests", "move_probes")
# a move of perf links takes seconds
ROUNDS = {"session": 600, "multi": 600, "perf": 3000}


def launcher(name):
    return ["mpirun.mpich", "-n", "2"] if name.startswith("mpich_") else j.mpirun(2)


def moves(tap, jobs, rung):
    for name in ("steps", "mpich_steps"):
        log = os.path.join(jobs.directory, name)
        os.makedirs(log, exist_ok=True)
        for old in os.listdir(log):
            os.unlink(os.path.join(log, old))
        program = jobs.start([*launcher(name), tool(name), "--rounds", ROUNDS[rung], "--log", log], name)
        pids = rank_pids(program, log, 2)
        mover = jobs.start([MOVE, rung, *pids], "move_probes")
        if not until(lambda: "ready" in mover.out(), 60):
            raise RuntimeError(f"move_probes did not attach: {mover.err()}")
        go()
        tap.equal(jobs.wait(program, 300), 0, f"{rung}: {name} ends well")
        tap.ok('"done":true' in program.out(), f"{rung}: {name} went through all its rounds", program.err())
        tap.equal(jobs.wait(mover, 120), 0, f"{rung}: move_probes ends well" + mover.err())
        found = json.loads(mover.out().splitlines()[-1])
        tap.ok(found["moves"] > 0 and found["calls"] > 0, f"{rung}: {name}: probes moved while calls came", found)
        tap.equal(found["missing"], 0, f"{rung}: {name}: no call lacks its return")


def two_libraries(tap, jobs):
    """MPI_Waitall is probed behind its entry in Open MPI and at its entry in MPICH: their calls are not mixed."""
    programs, pids = [], []
    for name in ("steps", "mpich_steps"):
        log = os.path.join(jobs.directory, name + "_log")
        os.makedirs(log, exist_ok=True)
        for old in os.listdir(log):
            os.unlink(os.path.join(log, old))
        programs.append(jobs.start([*launcher(name), tool(name), "--rounds", 1000, "--log", log], name))
        pids += rank_pids(programs[-1], log, 2)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--overhead-cap", "0", "--io", "off"], "vaprod")
    attached(out, pids)
    tap.equal([jobs.wait(program, 300) for program in programs], [0, 0], "both programs end well")
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends with its targets")
    warned = [w["text"] for w in of_type(records(out), "warning") if "no longer match" in w["text"]]
    tap.equal(warned, [], "returns of no function are missed")


main(two_libraries, *[of_rung(moves, rung) for rung in RUNGS if works(rung)])
