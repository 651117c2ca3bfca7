#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""Ranks without MPI that talk over sockets: one job, whose ranks are distinguished where one of them is stopped."""
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, main, of_type, ready_pid, records, tool, until  # noqa: E402


def test_stopped_rank(tap, jobs):
    program = shutil.copy(tool("peers"), os.path.join(jobs.directory, "peers"))
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off", "--window", "6"], "vaprod")
    until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
    port = str(29600 + os.getpid() % 300)
    ranks = [jobs.start([program, "--seconds", "12", "--bind"], f"peer_{rank}",
                        env={"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": port}) for rank in (0, 1)]
    pids = [ready_pid(rank) for rank in ranks]
    attached(out, pids)
    time.sleep(6)
    os.kill(pids[0], signal.SIGSTOP)
    time.sleep(1)
    os.kill(pids[0], signal.SIGCONT)
    tap.equal([jobs.wait(rank, 40) for rank in ranks], [0, 0], "both end well, with the same results")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    tap.equal({r["rank"]: r["pid"] for r in of_type(lines, "process")}, dict(enumerate(pids)), "they are the ranks of one job")
    last = {v["id"]: v for v in of_type(lines, "variance")}
    stops = [(v, c) for v in last.values() if v["alarm"] for c in v["causes"] if c["cause"] == "stopped"]
    tap.ok(len(stops) == 1 and stops[0][1]["ranks"] == "0" and 0.8 < stops[0][1]["lost_seconds"] < 1.3, "the stopped rank is named, with its loss", last)
    # at least a part of its sleep: what it usually sleeps for is not known to the bin
    tap.ok(stops and 0 < stops[0][1]["caused_seconds"] <= 1.1 * stops[0][1]["lost_seconds"], "the other one waited for it", stops)


main(test_stopped_rank)
