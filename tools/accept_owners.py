# SPDX-License-Identifier: GPL-2.0-or-later
"""What many processes of one user cost another user's job (check owners of WHAT=harm). Users without accounts: 60001, 60002."""
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402
from jobs import calls_within_budget  # noqa: E402

MANY, OTHER = 60001, 60002
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """CPU time of a process and of its children that ended, s."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(int(fields[i]) for i in range(11, 15)) / TICKS


class Programs:
    """Copies of the program and of its library, which any user may execute."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp()
        os.chmod(self.directory, 0o755)
        self.program = shutil.copy(tool("many"), self.directory)
        self.library = shutil.copy(tool("stand_in/libmpi.so.40"), self.directory)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def start(self, jobs, user, what, *args, off=False):
        return jobs.start([self.program, what, self.library, *args], what, user=user, env={"VAPRO": "off"} if off else None)


def of_user(records, kind, uid):
    return [r for r in of_type(records, kind) if (r["job"] if kind == "process" else r).get("uid") == uid]


def begin(jobs, *options):
    daemon, ndjson = vaprod(jobs, "vapro", [], None, *options)
    if not until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson), 20):
        raise RuntimeError("vaprod did not start: " + daemon.err().strip())
    return daemon, ndjson


def beside(count, seconds, off):
    """(coverage of the other user's job, warnings that blame it, CPU time of vaprod in percent of a core)"""
    with Programs() as programs, Jobs(scratch("owners")) as jobs:
        daemon, ndjson = begin(jobs)
        ranks = programs.start(jobs, OTHER, "ranks", 2, seconds + 8)
        if not until(lambda: len(of_user(t.load_records(ndjson), "process", OTHER)) == 2, 30):
            raise RuntimeError("the other user's ranks are not attached")
        time.sleep(3)
        peers = programs.start(jobs, MANY, "peers", count, seconds, calls_within_budget(of_type(t.load_records(ndjson), "hello")[0]["costs"]), off=off)
        time.sleep(seconds / 4)
        before, begun = cpu_of(daemon.pid), time.monotonic()
        time.sleep(seconds / 2)
        cpu = (cpu_of(daemon.pid) - before) / (time.monotonic() - begun) * 100
        well(jobs.wait(peers, 120), peers)
        well(jobs.wait(ranks, 120), ranks)
        daemon.process.send_signal(signal.SIGTERM)
        well(jobs.wait(daemon, 60), daemon)
        records = t.load_records(ndjson)
    pids = {r["pid"] for r in of_user(records, "process", OTHER)}
    blamed = [r["code"] for r in of_type(records, "warning") if r["pid"] in pids and r["code"] in ("governed", "coarser")]
    # the first windows have no references, in the last one programs end
    coverage = [w["coverage"]["total"] for w in of_user(records, "window", OTHER)][2:-1]
    return statistics.mean(coverage or [0]), blamed, cpu


def rows_beside():
    rows, seconds = [], repeat(45, 30)  # windows are those of users, since vaprod's cost is measured
    for count in repeat((8, 48, 200), (8, 48)):
        without, _, _ = beside(count, seconds, True)
        coverage, blamed, cpu = beside(count, seconds, False)
        name = f"{count} processes of one user with ever new states: another user's job"
        rows += [t.row(f"{name}: coverage with, without them", f"{coverage:.1%}, {without:.1%}", "at most 5 points less",
                       coverage > without - 0.05),
                 t.row(f"{name}: warnings that blame it", len(blamed), 0, not blamed),
                 t.row(f"{name}: vaprod's CPU time, percent of a core", f"{cpu:.1f}", "under 5", cpu < 5)]
    return rows


def answered(user, socket_path):
    """Seconds until `vapro top` of a user has answered; None: it failed."""
    begun = time.monotonic()
    done = subprocess.run([VAPRO, "top", "--once", "--socket", socket_path], capture_output=True, check=False, timeout=20,
                          **({"user": user, "group": user, "extra_groups": []} if user else {}))
    return None if done.returncode else time.monotonic() - begun


def flood(path, seconds):
    """Connects all the time, in a process of the first user. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    os.setgroups([])
    os.setgid(MANY)
    os.setuid(MANY)
    held, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(path)
            held.append(client)
        except OSError:
            client.close()
        if len(held) > 64:
            held.pop(0).close()
    os._exit(0)


def rows_of_rooms():
    with Programs() as programs, Jobs(scratch("owners")) as jobs:
        where = os.path.join(programs.directory, "")
        daemon, ndjson = begin(jobs, "--socket", where)
        programs.start(jobs, MANY, "hold", 1100)
        full = until(lambda: [r for r in of_user(t.load_records(ndjson), "process", MANY) if r["state"] == "refused"], 60)
        begun = time.monotonic()
        programs.start(jobs, OTHER, "ranks", 2, 60)
        known = until(lambda: len(of_user(t.load_records(ndjson), "process", OTHER)) == 2, 20)
        took = time.monotonic() - begun
        states = [r["state"] for r in of_user(t.load_records(ndjson), "process", OTHER)]
        rows = [t.row("1,100 idle processes of one user have all slots: another user's job is attached",
                      f"{states}, {took:.1f} s", "both ranks, 2 s", full and known and set(states) == {"attached"} and took < 2)]
        path = next(where + name for name in os.listdir(where) if name.endswith(".status"))
        floods = [flood(path, 12) for _ in range(3)]
        answers = [answered(user, where) for _ in range(4) for user in (0, OTHER)]
        for pid in floods:
            os.waitpid(pid, 0)
        worst = max((a for a in answers if a is not None), default=0)
        rows.append(t.row("vapro top of root and of another user beside these and three that connect all the time",
                          f"{sum(a is not None for a in answers)} of {len(answers)}, at most {worst:.1f} s", "all",
                          None not in answers))
        daemon.process.send_signal(signal.SIGTERM)
        well(jobs.wait(daemon, 60), daemon)
    return rows


def check_owners():
    return rows_of_rooms() + rows_beside()
