# SPDX-License-Identifier: GPL-2.0-or-later
"""What `vapro top` costs at 64 processes: its own CPU time, and vaprod's with it and without. Part top."""
import os
import pty
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import VAPRO  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary
from bench_common import t  # noqa: E402

RANKS, SETTLE_S, STOPPED_S = 64, 10, 8


def on_a_terminal(command):
    """Starts a command on a pseudo-terminal, whose output is discarded. Returns its pid, and a list of the bytes of each write."""
    written = []
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="200", LINES="50")
        os.execv(command[0], command)

    def read():
        try:
            while True:
                written.append(len(os.read(master, 65536)))
        except OSError:  # the end of the command closes it
            pass
    threading.Thread(target=read, daemon=True).start()
    return pid, written


def cpu_seconds(pid):
    """CPU time of a process's first thread so far."""
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
        return int(file.read().split()[0]) * 1e-9


def shares(pids, seconds):
    """The shares of a CPU that processes take, in percent."""
    before, began = [cpu_seconds(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return [100 * (cpu_seconds(pid) - b) / passed for pid, b in zip(pids, before)]


def part_top():
    seconds = repeat(10, 3)
    with Jobs(scratch("top")) as jobs:
        where, out = os.path.join(jobs.directory, "run") + "/", os.path.join(jobs.directory, "out.ndjson")
        os.makedirs(where, mode=0o755, exist_ok=True)
        daemon = jobs.start([VAPROD, "--exe", "sleepers", "--output", out, "--window", "3", "--socket", where], "vaprod")
        job = jobs.start(mpirun(RANKS, tool("sleepers"), "--seconds", 60 + 2 * seconds, "--period", 1), "sleepers")
        if not until(lambda: os.path.exists(out) and sum(r["state"] == "attached" for r in of_type(t.load_records(out), "process")) == RANKS, 60):
            raise RuntimeError("vaprod did not attach to all ranks: " + daemon.err().strip()[-300:])
        top, written = on_a_terminal([VAPRO, "top", "--socket", where])
        try:
            time.sleep(SETTLE_S)  # vaprod reads names
            before = sum(written)
            own, with_it = shares([top, daemon.pid], seconds)
            if sum(written) == before:
                raise RuntimeError("vapro top wrote nothing in that time")
            os.kill(top, signal.SIGSTOP)
            time.sleep(STOPPED_S)  # vaprod drops it
            without = shares([daemon.pid], seconds)[0]
        finally:
            os.kill(top, signal.SIGKILL)
            os.waitpid(top, 0)
        well(jobs.interrupt(daemon), daemon)
        jobs.interrupt(job)
    return [row(f"vapro top at {RANKS} processes, of a CPU", f"{own:.2f} %", percent=own),
            row("vaprod with it, without it, of a CPU", f"{with_it:.2f} %, {without:.2f} %", with_it=with_it, without=without)]
