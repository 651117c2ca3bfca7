# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the machine alone leaves of a program's time. A fixed amount of work is done bare, and with an empty probe pair at the
calls of the program that can wait, and nothing else: where these exceed the budget, no tool that probes entries and returns
can watch all of its time. Runs scatter by more than a percent, so that only the interval decides.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench_common import PROBES, Talker, shift  # noqa: E402
from programs_common import Jobs, Unit, shielded, t  # noqa: E402
from programs_overhead import cpu_of_run, in_words  # noqa: E402

BUDGET_PCT = 1.0
PAIRS = 10
# the functions whose probes are the last to be left out: those that can wait
WAITING = {"posts": ("MPI_Waitall",), "hybrid_steps": ("MPI_Sendrecv", "MPI_Allreduce"), "wrapped_twice": ("MPI_Sendrecv", "MPI_Allreduce"),
           "kernels3": ("MPI_Allreduce",), "lammps": ("MPI_Wait", "MPI_Send", "MPI_Sendrecv", "MPI_Allreduce")}


def library():
    """Open MPI's library, as the programs map it."""
    return os.path.realpath(f"/usr/lib/{os.uname().machine}-linux-gnu/libmpi.so.40")


def share_of(cost_pct):
    """The share of its time that a program may be watched for the budget, where all of it would cost so much."""
    return min(1.0, BUDGET_PCT / cost_pct) if cost_pct > 0 else 1.0


def unit(program, options):
    def measure(directory, progress):
        values = []
        with shielded(options) as groups, Jobs(directory) as jobs:
            if hasattr(program, "prepare"):
                program.prepare()
            probes = Talker(jobs, [PROBES], "probes")
            cpu_of_run(jobs, groups, os.path.join(directory, "warm"), program, "warm")
            for number in range(options.repeat(PAIRS, 2)):
                one = {}
                for probed in (False, True) if number % 2 else (True, False):
                    name = f"{number + 1}{'probed' if probed else 'bare'}"
                    if probed:
                        probes.request("pair", "empty", library(), ",".join(WAITING[program.name]), 0)
                    one["probed" if probed else "bare"] = cpu_of_run(jobs, groups, os.path.join(directory, name), program, name)[0]
                    if probed:
                        probes.request("off")
                values.append(one)
            probes.leave()
        cost = shift([100 * (one["probed"] / one["bare"] - 1) for one in values])
        share = share_of(cost[0])
        rows = [t.row(f"the machine's floor: an empty pair at {', '.join(WAITING[program.name])}",
                      f"{in_words(cost)} of the CPU time: {BUDGET_PCT:g} % allows for {share:.0%} of it", "100% (information)", True)]
        return {"rows": rows, "found": {"cost": cost, "share": round(share, 3)}, "values": values, "brief": in_words(cost)}
    return Unit(program.name, "floor", 110, measure)
