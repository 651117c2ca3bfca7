# SPDX-License-Identifier: GPL-2.0-or-later
"""Many ranks on one node: how long it takes to attach to them all, and to detach. Check ranks64."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402

RANKS = 64
ATTACH_S, DETACH_S = 1, 1


def process_times(ndjson, state):
    """When vaprod reported this state of processes, ns."""
    return [t.parse_time(r["time"]) for r in of_type(t.load_records(ndjson), "process") if r["state"] == state]


def attach_and_leave(jobs, name, ndjson, selection):
    """(from start, and from hello, to the last process attached, from SIGINT to the last detached, to the end), seconds."""
    begin = time.time_ns()
    daemon = jobs.start([VAPROD, *selection, "--output", ndjson, "--io", "off"], name)
    if not until(lambda: os.path.exists(ndjson) and len(process_times(ndjson, "attached")) >= RANKS, 30):
        raise RuntimeError(f"{name}: not all {RANKS} ranks are attached: {daemon.err()[-300:]}")
    time.sleep(2)
    signalled = time.time_ns()
    daemon.process.send_signal(signal.SIGINT)
    well(jobs.wait(daemon, 30), daemon)
    ended = time.time_ns()
    last, ready = max(process_times(ndjson, "attached")), t.parse_time(of_type(t.load_records(ndjson), "hello")[0]["time"])
    return ((last - begin) / 1e9, (last - ready) / 1e9,
            (max(process_times(ndjson, "detached")) - signalled) / 1e9, (ended - signalled) / 1e9)


def check_ranks64():
    rows = []
    directory = scratch("ranks64")
    with Jobs(directory) as jobs:
        program = jobs.start(mpirun(RANKS, tool("sleepers"), "--seconds", 600, "--period", 5), "sleepers")
        if not until(lambda: '"ready"' in program.out(), 120):
            raise RuntimeError(f"the {RANKS} ranks did not start: {program.err()[-300:]}")
        pids = until(lambda: rank_pids(program, "sleepers", RANKS), 10)
        if not pids:
            raise RuntimeError(f"the {RANKS} ranks are not found")
        by_exe = ["--exe", tool("sleepers")]
        for name, selection in (("by --pid", select(pids)), ("by --exe", by_exe), ("multi links", [*by_exe, "--attach", "multi"])):
            word = re.sub("[ -]+", "_", name)
            start, attach, detach, end = attach_and_leave(jobs, word, os.path.join(directory, word + ".ndjson"), selection)
            rows.append(t.row(f"{RANKS} ranks {name}: hello to the last attached", f"{attach:.2f} s", f"under {ATTACH_S} s",
                              attach < ATTACH_S))
            rows.append(t.row(f"{RANKS} ranks {name}: the same from vaprod's start (information)", f"{start:.2f} s", "-", True))
            rows.append(t.row(f"{RANKS} ranks {name}: SIGINT to the last detachment, to the end", f"{detach:.2f} s, {end:.2f} s",
                              f"under {DETACH_S} s", end < DETACH_S))
    return rows
