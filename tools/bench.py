#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make bench: what vaprod costs and how much it takes in, measured beside what is wanted. A benchmark and
no test: the exit code is 0 unless it could not run. Needs a finished build, root, two cores and, for
figures that mean something, an otherwise idle machine.

  bench.py all | PART...
  --quick               fewer repetitions, to try the measuring itself (says so in the table)

  calls      one MPI_Send, MPI_Waitall, MPI_Test, read(2): bare, with an empty probe pair at the same
             site, with vaprod's, with vaprod itself, with bpftrace and perf trace, with a PMPI shim
  hits       the same with 1, 8 and 64 watched processes
  attach     60 and 400 functions of 2, 16 and 64 processes: attached, detached
  programs   hpcc, lammps and the demo as a whole, in pairs with and without
  model      what vaprod says it costs against what it costs, at 10 to 1000 times a natural rate of
             calls; and what the governor leaves of it
  pauses     the model for calls after pauses, with little memory and with much, against their duration
  drain      calls flat out: nothing lost unsaid, vaprod's CPU and memory
  inside     samples of slow computation while they are taken, of the CPU time of the ranks
  analysis   bundles and fragments a second of `vapro analyze`, 16 to 4096 ranks
  hosts      the same job as one host and as up to 1,024: how much longer `vapro analyze` takes
  ndjson     what vaprod writes
  nodes      many nodes: bytes on the wire, a worker's CPU, memory and profile, the delay of its records,
             vaprod with and without --broker
  page       the report page of large jobs: size, time to the first picture, drawing, moving, zooming
  top        what `vapro top` costs at 64 processes, itself and vaprod

Results go to build/bench/bench.json ({"parts": {PART: {time, seconds, quick, rows [{what, measured,
wanted, ok, and the values}]}}}; other parts' earlier rows stay), what each run left to
build/bench/PART/. Every run has a time limit; nothing that was started here stays.
"""
import argparse
import os
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bench_analysis  # noqa: E402
import bench_calls  # noqa: E402
import bench_inside  # noqa: E402
import bench_model  # noqa: E402
import bench_nodes  # noqa: E402
import bench_page  # noqa: E402
import bench_programs  # noqa: E402
import bench_top  # noqa: E402
from bench_common import CALLS, PROBES, QUICK, SHIM, VAPROD, TimeLimit, path, row, save, table, tool  # noqa: E402

PARTS = {
    "calls": bench_calls.part_calls, "hits": bench_calls.part_hits, "attach": bench_calls.part_attach,
    "programs": bench_programs.part_programs, "model": bench_model.part_model, "pauses": bench_model.part_pauses,
    "drain": bench_model.part_drain, "inside": bench_inside.part_inside,
    "analysis": bench_analysis.part_analysis, "hosts": bench_analysis.part_hosts, "ndjson": bench_analysis.part_ndjson,
    "nodes": bench_nodes.part_nodes,
    "page": bench_page.part_page, "top": bench_top.part_top,
}


def measured(name, function):
    """The rows of a part, or one that says why it could not be measured; whether it could."""
    try:
        return function(), True
    except (RuntimeError, OSError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, TimeLimit,
            subprocess.SubprocessError) as error:
        with open(path("bench", name + ".error"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        return [row(f"{name} could not be measured", f"{type(error).__name__}: {error}", "a measurement", False)], False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=["all", *PARTS], metavar="PART")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    if os.geteuid() != 0:
        print("bench: vaprod needs root", file=sys.stderr)
        return 3
    missing = [p for p in (VAPROD, CALLS, PROBES, SHIM, tool("sleepers"), tool("flat_out")) if not os.access(p, os.R_OK)]
    if missing:
        print("bench: missing, run make bench: " + " ".join(missing), file=sys.stderr)
        return 1
    os.makedirs(path("bench"), exist_ok=True)
    failed, short = [], 0
    for name in list(PARTS) if "all" in args.parts else args.parts:
        begin = time.monotonic()
        rows, could = measured(name, PARTS[name])
        seconds = time.monotonic() - begin
        save("bench", "parts", name, {"seconds": round(seconds, 1), "load": os.getloadavg()[0], "rows": rows})
        failed += [] if could else [name]
        short += sum(r["ok"] is False for r in rows)
        print(f"\n{name}{' (quick: fewer repetitions)' if QUICK else ''}, {seconds:.0f} s")
        table(rows)
        sys.stdout.flush()
    print(f"\n{'all that is wanted was reached' if not short else f'{short} rows are not as wanted'}; {path('bench', 'bench.json')}")
    if failed:
        print("bench: could not be measured: " + " ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
