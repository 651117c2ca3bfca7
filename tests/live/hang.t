#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""
A job that does not go on is an alarm after --hang-after and at most one window, with the ranks, their lines and whom they
wait for, and stays one after the job was killed. The lengths compared are those of records, which end with windows.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, freezer, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402

AFTER, WINDOW = 6, 6  # s: --hang-after, --window
STRIDE = WINDOW * 2 / 3
LIMIT = 90  # s: by then a window has ended on any machine


def line_of(mark):
    """The line of the workload's source with a mark."""
    with open(os.path.join(ROOT, "tools", "workloads", "hang.c"), encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if f"/* {mark} */" in line)


class Run:
    """A workload and its vaprod."""

    def __init__(self, jobs, how, ranks=2):
        self.jobs, name = jobs, f"{how}_{ranks}"
        self.logs = os.path.join(jobs.directory, name)
        os.makedirs(self.logs, exist_ok=True)
        self.out, pipe = os.path.join(self.logs, "out.ndjson"), os.path.join(self.logs, "pipe")
        for name in os.listdir(self.logs):
            os.unlink(os.path.join(self.logs, name))
        os.mkfifo(pipe)
        self.job = jobs.start(j.mpirun(ranks, tool("hang"), how, "--before", 5, "--log", self.logs, "--pipe", pipe), name)
        self.pids = rank_pids(self.job, self.logs, ranks)
        self.daemon = jobs.start([VAPROD, *select(self.pids), "--output", self.out, "--hang-after", AFTER, "--window", WINDOW,
                                  "--io", "on", "--fail-on", "critical"], name + "_vaprod")
        attached(self.out, self.pids)

    def hangs(self):
        return of_type(records(self.out), "hang") if os.path.exists(self.out) else []

    def windows(self):
        return len(of_type(records(self.out), "window"))

    def wait(self, wanted=lambda hang: True):
        """The first record of a hang that is wanted."""
        return until(lambda: next((hang for hang in self.hangs() if wanted(hang)), None), LIMIT)

    def kill(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.jobs.wait(self.job, 30)
        return self.jobs.wait(self.daemon, 60)


def group_of(hang, rank):
    """What a rank does."""
    def has(text):
        return any(int(part.split("-")[0]) <= rank <= int(part.split("-")[-1]) for part in text.split(","))
    return next((group for group in hang["groups"] if has(group["ranks"])), {})


def check(tap, jobs, how, ranks, state, last, others):
    """A hang of a kind, in which the last rank is at a line, and the others at another one."""
    run = Run(jobs, how, ranks)
    how = f"{how} of {ranks} ranks"
    found = run.wait()
    tap.ok(found, f"{how}: the hang is found", jobs.directory)
    if not found:
        return
    own, other = group_of(found, ranks - 1), group_of(found, 0)
    tap.ok(found["alarm"] and found["severity"] == "critical" and found["kind"] == "calls", f"{how}: it is an alarm", found)
    tap.ok(AFTER <= found["seconds"] < AFTER + STRIDE + 0.3, f"{how}: after the stated time and one window at most", found)
    tap.equal(own["ranks"], str(ranks - 1), f"{how}: the last rank is apart")
    tap.ok(state in own["labels"] and f"hang.c:{line_of(last)}" in own["source"], f"{how}: its line is named", own)
    tap.equal(other["ranks"], "0" if ranks == 2 else f"0-{ranks - 2}", f"{how}: the others are together")
    tap.ok("function=MPI_Allreduce" in other["labels"] and f"hang.c:{line_of(others)}" in other["source"],
           f"{how}: their line is named", other)
    tap.equal(other.get("did_not_enter"), str(ranks - 1), f"{how}: they wait for the last rank")
    if state == "function=MPI_Recv":
        tap.equal(own.get("waits_for"), "0", f"{how}: the last rank waits for rank 0")
    tap.equal(run.kill(), 4, f"{how}: vaprod ends with the job that was killed, and fails for the alarm")
    closed = run.hangs()[-1]
    tap.equal((closed["id"], closed["state"], closed["outcome"], closed["alarm"], closed["severity"]),
              (found["id"], "closed", "job_ended", True, "critical"), f"{how}: it stays an alarm after the job was killed")
    tap.equal([(g["ranks"], g["source"]) for g in closed["groups"]], [(g["ranks"], g["source"]) for g in found["groups"]],
              f"{how}: with the same ranks and lines")
    view = subprocess.run([VAPRO, "view", run.out], capture_output=True, text=True, check=False).stdout
    tap.ok(re.match(r"critical: hang: no rank made progress from .* until the job ended", view),
           f"{how}: it is the first line of the summary", view)


def test_unanswered_receive(tap, jobs):
    for ranks in (2, 16):
        check(tap, jobs, "receive", ranks, "function=MPI_Recv", "receive", "others")


def test_member_missing(tap, jobs):
    for ranks in (2, 16):
        check(tap, jobs, "missing", ranks, "function=MPI_Barrier", "missing", "others")


def test_io(tap, jobs):
    for ranks in (2, 16):
        check(tap, jobs, "io", ranks, "function=read", "read", "others")


def test_no_hang(tap, jobs):
    """All ranks compute; a rank waits for input before the first collective."""
    for how in ("compute", "input"):
        run = Run(jobs, how)
        enough = until(lambda: run.windows() >= (5 + AFTER) / STRIDE + 3, LIMIT)
        tap.ok(enough and not run.hangs(), f"{how}: no hang in {run.windows()} windows", run.hangs())
        jobs.interrupt(run.daemon)
        for pid in run.pids:
            os.kill(pid, signal.SIGKILL)
        jobs.wait(run.job, 30)


def test_stopped_and_frozen(tap, jobs):
    """A stopped and a frozen rank are of kinds of their own; both go on."""
    run = Run(jobs, "loop")
    time.sleep(3)
    os.kill(run.pids[1], signal.SIGSTOP)
    found = run.wait(lambda hang: hang["kind"] == "stopped")
    tap.ok(found and found["alarm"] and group_of(found, 1)["condition"] == "stopped", "a stopped rank is named", run.hangs())
    os.kill(run.pids[1], signal.SIGCONT)
    over = run.wait(lambda hang: hang["state"] == "closed")
    tap.equal(over and over["outcome"], "resumed", "the job goes on")
    thaw = freezer(run.pids[1])
    if thaw:
        found = run.wait(lambda hang: hang["kind"] == "frozen")
        thaw()
        tap.ok(found and group_of(found, 1)["condition"] == "frozen", "a frozen rank is named", run.hangs())
    tap.ok(run.kill() in (0, 4), "vaprod ends with the job")


main(test_unanswered_receive, test_member_missing, test_io, test_no_hang, test_stopped_and_frozen)
