#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Files that do not answer: what their processes cost others, and what becomes of them."""
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPROD, main, of_type, records, until  # noqa: E402
sys.path.insert(0, os.path.join(ROOT, "tools"))
import hostile  # noqa: E402
from hostile import ATTACKER, PROGRAM  # noqa: E402

LIMIT = 30  # of what usually takes a second: only a hang takes longer


def start(jobs, name="vaprod"):
    out = os.path.join(jobs.directory, name + ".ndjson")
    daemon = jobs.start([VAPROD, "--exe", PROGRAM, "--window", 3, "--io", "off", "--output", out], name)
    if not until(lambda: os.path.exists(out) and of_type(records(out), "hello"), LIMIT):
        raise RuntimeError(daemon.err())
    return daemon, out


def state_of(out, job):
    found = [r for r in of_type(records(out), "process") if r["pid"] == job.pid and r["state"] in ("attached", "refused")]
    return found[-1] if found else None


def end(tap, jobs, daemon, name):
    daemon.process.send_signal(signal.SIGTERM)
    tap.equal(jobs.wait(daemon, LIMIT), 0, f"{name}: SIGTERM ends vaprod")


def bystander(tap, users, out, name):
    job = users.bystander()
    found = until(lambda: state_of(out, job), LIMIT)
    tap.equal(found and found["state"], "attached", f"{name}: a process of another user is attached")


def test_mounted_by_user(tap, jobs):
    """A file system of a user's own is not opened at all."""
    users = hostile.Users(jobs)
    daemon, out = start(jobs)
    held = users.start(ATTACKER, "held", hostile.LIBRARY, 60, 0)
    if not held:
        tap.ok(True, "# skip users cannot mount overlayfs on FUSE here")
        return
    found = until(lambda: state_of(out, held), LIMIT)
    tap.equal(found and (found["state"], found["reason"]),
              ("refused", "its MPI library lies on a file system that a user mounted or serves"), "its process is refused")
    bystander(tap, users, out, "mounted by a user")
    end(tap, jobs, daemon, "mounted by a user")


def test_silent(tap, jobs):
    """A file system of the machine that does not answer, as a dead server's: its process waits, no other does."""
    users = hostile.Users(jobs)
    daemon, out = start(jobs)
    held = users.start(0, "held", hostile.LIBRARY, 60, 0)
    if not held:
        tap.ok(True, "# skip overlayfs cannot be mounted on FUSE here")
        return

    def said():
        return [r["text"] for r in of_type(records(out), "warning") if r["code"] == "file_held"]
    tap.ok(until(said, LIMIT), "a file that is held is reported", daemon.err())
    tap.ok("does not answer" in said()[0] and "libmpi.so.40" in said()[0], "with its name", said())
    bystander(tap, users, out, "a silent file system")
    tap.equal((state_of(out, held), len(said())), (None, 1), "the process is neither attached nor refused, and reported once")
    end(tap, jobs, daemon, "a silent file system")
    jobs.stop(held)


def test_slow(tap, jobs):
    """A file system that answers after a second: the process is attached when its file has been read."""
    users = hostile.Users(jobs)
    daemon, out = start(jobs)
    held = users.start(0, "held", hostile.LIBRARY, 100, 1)
    if not held:
        tap.ok(True, "# skip overlayfs cannot be mounted on FUSE here")
        return
    bystander(tap, users, out, "a slow file system")
    found = until(lambda: state_of(out, held), 90)
    tap.equal(found and found["state"], "attached", "its process is attached in the end")
    end(tap, jobs, daemon, "a slow file system")


def test_files(tap, jobs):
    """A lease, a FIFO in place of a mapped file, files of very many segments and one whose pages are dropped."""
    users = hostile.Users(jobs)
    daemon, out = start(jobs)
    lease = users.start(ATTACKER, "lease", users.library(ATTACKER), 60)
    evict = users.start(ATTACKER, "evict", users.library(ATTACKER), 60)
    path = users.library(ATTACKER)
    fifo = users.start(ATTACKER, "map", path, 60)
    os.unlink(path)
    os.mkfifo(path)
    slow = os.path.join(jobs.directory, "slow")
    hostile.slow_elf(slow, 2000, 1000)
    many = users.start(ATTACKER, "touch", users.library(ATTACKER, slow), 60)
    bystander(tap, users, out, "files of a user")
    for job, name, reason in ((lease, "lease", "cannot open"), (many, "segments", "more than 1024 segments")):
        found = until(lambda: state_of(out, job), LIMIT) if job else {"state": "refused", "reason": reason}
        tap.ok(found and found["state"] == "refused" and reason in found["reason"], f"{name}: refused with the reason", found)
    for job, name in ((evict, "evict"), (fifo, "FIFO")):
        found = until(lambda: state_of(out, job), LIMIT)
        tap.equal(found and found["state"], "attached", f"{name}: attached")
    end(tap, jobs, daemon, "files of a user")
    os.unlink(slow)


main(test_mounted_by_user, test_silent, test_slow, test_files)
