#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""What one user's processes cost is that user's: others keep their slots, their coverage and their windows."""
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, j, main, of_type, records, tool, until  # noqa: E402

FIRST, SECOND = 60001, 60002  # users without accounts


class Programs:
    """Copies of the program and its library that other users may execute."""

    def __init__(self):
        self.directory = tempfile.mkdtemp()
        os.chmod(self.directory, 0o755)
        self.program = shutil.copy(tool("many"), self.directory)
        self.library = shutil.copy(tool("stand_in/libmpi.so.40"), self.directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def command(self, what, *args):
        return [self.program, what, self.library, *args]


def begin(jobs, *options, env=None):
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--output", out, "--window", "3", "--io", "off", *options], "vaprod", env=env)
    until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
    return daemon, out


def end(tap, jobs, daemon, out):
    daemon.process.send_signal(signal.SIGTERM)
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends with exit code 0")
    return records(out)


def of_user(lines, kind, uid):
    return [r for r in of_type(lines, kind) if (r["job"] if kind == "process" else r).get("uid") == uid]


def test_waits_are_the_cause_s(tap, jobs):
    with Programs() as programs:
        daemon, out = begin(jobs)
        ranks = jobs.start(programs.command("ranks", 2, 14), "ranks", user=SECOND)
        until(lambda: len(of_user(records(out), "process", SECOND)) == 2, 20)
        calls = j.calls_within_budget(of_type(records(out), "hello")[0]["costs"])
        peers = jobs.start(programs.command("peers", 32, 9, calls), "peers", user=FIRST)
        tap.equal((jobs.wait(peers, 60), jobs.wait(ranks, 60)), (0, 0), "the programs end well")
        lines = end(tap, jobs, daemon, out)
        own = {r["pid"] for r in of_user(lines, "process", SECOND)}
        tap.equal(len({r["pid"] for r in of_user(lines, "process", FIRST)}), 32, "the other user's processes are watched")
        said = [r["text"] for r in of_type(lines, "warning") if
                r["code"] in ("governed", "coarser", "detail_reduced") and r["pid"] in own]
        tap.equal(said, [], "the job of few calls is not blamed")
        coverage = statistics.median(w["coverage"]["total"] for w in of_user(lines, "window", SECOND)[1:])
        tap.ok(coverage > 0.8, "its time is seen", f"coverage {coverage}")
        bounded = [r for r in of_type(lines, "warning") if r["code"] == "states_bounded"]
        tap.ok(bounded and sum(r.get("count", 1) for r in bounded) >= 32 > len(bounded),
               "equal warnings of one owner are one record with their number", bounded)


def test_mappings_of_others_are_no_attachment(tap, jobs):
    with Programs() as programs:
        daemon, out = begin(jobs)
        jobs.wait(jobs.start(programs.command("ranks", 1, 2), "first", user=SECOND), 30)
        maps = jobs.start(programs.command("maps", 3), "maps", user=FIRST)
        tap.ok(until(lambda: len({r["pid"] for r in of_user(records(out), "process", FIRST)}) == 3, 60),
               "processes with as many mappings as can be are known", of_user(records(out), "process", FIRST))
        for number in range(3):
            ranks = jobs.start(programs.command("ranks", 1, 4), f"ranks{number}", user=SECOND)
            tap.equal(jobs.wait(ranks, 30), 0, "another user's short job ends well")
        jobs.stop(maps)
        lines = end(tap, jobs, daemon, out)
        pids = {r["pid"] for r in of_user(lines, "process", SECOND) if r["state"] == "attached"}
        tap.equal(len(pids), 4, "all of these jobs were attached")


def test_slots_are_given_back(tap, jobs):
    with Programs() as programs:
        daemon, out = begin(jobs)
        holders = jobs.start(programs.command("hold", 1100), "hold", user=FIRST)
        full = until(lambda: [r for r in of_user(records(out), "process", FIRST) if r["state"] == "refused"], 240)
        tap.ok(full, "one user's processes have all slots", "none was refused")
        ranks = jobs.start(programs.command("ranks", 2, 20), "ranks", user=SECOND)
        known = until(lambda: len(of_user(records(out), "process", SECOND)) == 2 and of_user(records(out), "process", SECOND), 15)
        tap.equal([r["state"] for r in known or []], ["attached", "attached"], "another user's processes are attached")
        jobs.stop(ranks)
        jobs.stop(holders)
        lines = end(tap, jobs, daemon, out)
        said = [r["code"] for r in of_type(lines, "warning") if r["code"] == "slots_given_back"]
        tap.equal(said, ["slots_given_back"], "that is reported once")
        detached = [r for r in of_user(lines, "process", FIRST) if r["reason"] == "another user needs its slot"]
        tap.equal(len(detached), 2, "each of them has one slot of the other user's")


def received(manager, seconds):
    """What a service manager receives in so many seconds."""
    found, limit = [], time.monotonic() + seconds
    while time.monotonic() < limit:
        manager.settimeout(max(0.01, limit - time.monotonic()))
        try:
            found.append(manager.recv(4096).decode())
        except socket.timeout:
            break
    return found


def test_watchdog(tap, jobs):
    path = os.path.join(jobs.directory, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        daemon, out = begin(jobs, env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
        tap.equal(until(lambda: received(manager, 0.5), 20)[:1], ["READY=1"], "a service manager learns that it is ready")
        tap.ok("WATCHDOG=1" in received(manager, 2), "the loop gives signs of life")
        os.kill(daemon.process.pid, signal.SIGSTOP)
        received(manager, 1)
        tap.equal(received(manager, 2), [], "none while it is stopped")
        os.kill(daemon.process.pid, signal.SIGCONT)
        tap.ok("WATCHDOG=1" in received(manager, 2), "and again after that")
        end(tap, jobs, daemon, out)
        tap.ok("STOPPING=1" in received(manager, 1), "and that it stops")


def test_stopped(tap, jobs):
    with Programs() as programs:
        daemon, out = begin(jobs)
        ranks = jobs.start(programs.command("ranks", 2, 18), "ranks", user=SECOND)
        until(lambda: len(of_user(records(out), "window", SECOND)) >= 2, 30)
        os.kill(daemon.process.pid, signal.SIGSTOP)
        time.sleep(7)
        os.kill(daemon.process.pid, signal.SIGCONT)
        jobs.wait(ranks, 60)
        lines = end(tap, jobs, daemon, out)
        fragments = [w["fragments"] for w in of_user(lines, "window", SECOND)][1:-1]
        middle = statistics.median(fragments)
        tap.ok(len(fragments) > 4 and all(middle / 4 < n < middle * 4 for n in fragments),
               "calls made while vaprod was stopped are in their own windows", fragments)


main(test_waits_are_the_cause_s, test_mappings_of_others_are_no_attachment, test_slots_are_given_back, test_watchdog, test_stopped, held=False)
