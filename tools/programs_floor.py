# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the machine alone leaves of a program's time. The program runs with all probes open, whatever they cost; of that cost,
by the model, the time that vaprod's own programs took by the kernel's account, and vaprod's own CPU time, are subtracted. What
remains is the machine's: the traps of empty probes at the same places. Where these exceed the budget in a window, no tool
that probes entries and exits can watch all of its time.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs_common import Unit, t  # noqa: E402
from programs_overhead import attached_s, watch_parts  # noqa: E402

BUDGET_PCT = 1.0
SECONDS = 30
WITHOUT_BUDGET = ("--overhead-budget", "100", "--overhead-cap", "100")
# programs whose probes cost more than the budget on machines with slow traps, or do in bursts
MEASURED = ("hybrid_steps", "lammps", "hpcc")


def traps_share(found):
    """The part of the model's cost that empty probes would have: without vaprod's programs and its own CPU time."""
    own = found["probes_bpf_pct"] + found["switches_pct"] + found["vaprod_pct"]
    return max(0.0, 1 - own / found["all_mean"]) if found["all_mean"] > 0 else 0.0


def share_of(costs, traps=1.0):
    """The share of the time that may be watched for the budget: costs is [(percent, seconds)] of windows without a budget."""
    total = sum(seconds for _, seconds in costs)
    watched = sum(seconds * min(1.0, BUDGET_PCT / (percent * traps) if percent * traps > 0 else 1.0) for percent, seconds in costs)
    return watched / total if total else 1.0


def unit(program, options, coverage_of, in_words):
    """coverage_of, in_words: of programs_coverage, for what would be covered without a budget."""
    def measure(directory, progress):
        found = watch_parts(directory, program, options.repeat(SECONDS, 12), options, WITHOUT_BUDGET)
        records = t.load_records(os.path.join(directory, "vaprod.ndjson"))
        costs = [(w["overhead_pct"]["mean"], s) for w, s in attached_s(records) if w["overhead_pct"]["mean"] is not None and s > 0]
        traps = traps_share(found)
        share, worst = share_of(costs, traps), max(percent for percent, _ in costs)
        own_share = share_of(costs)
        rows = [t.row("without a budget: coverage in 30 s, and what it costs by the model",
                      f"{in_words(coverage_of(records))}; {found['all_mean']:.2f} %, {worst:.2f} % in the most expensive window: "
                      f"{BUDGET_PCT:g} % allows for {own_share:.0%} of its time",
                      "information", True),
                t.row("the machine's floor: the same with empty probes",
                      f"{traps * found['all_mean']:.2f} % ({traps:.0%} of the model's cost), {traps * worst:.2f} % in that window: "
                      f"{BUDGET_PCT:g} % allows for {share:.0%} of its time", "information", True)]
        return {"rows": rows, "found": {**found, "traps": round(traps, 3), "share": round(share, 3), "own_share": round(own_share, 3),
                                        "covered": coverage_of(records)["total"]},
                "brief": f"{found['all_mean']:.2f} % without a budget, {traps:.0%} of it traps: {share:.0%} of its time for {BUDGET_PCT:g} %"}
    return Unit(program.name, "floor", 45, measure)
