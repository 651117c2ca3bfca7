# SPDX-License-Identifier: GPL-2.0-or-later
"""
What owners of jobs and sites get (checks site:reports and site:alert): reports of many jobs that end at once, and the loop of
vaprod meanwhile; the time until an alert. Users without accounts: 60001 to 60005.
"""
import multiprocessing
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_alert import check_alert  # noqa: E402
from accept_common import t  # noqa: E402
from accept_owners import Programs  # noqa: E402

USERS = range(60001, 60006)
FIRST_JOB = 9900000
WITHIN_S, STALL_S = 10, 0.1
# system calls in which vaprod's loop waits for events: poll, nanosleep, epoll_wait, ppoll, epoll_pwait
WAITS = {"x86_64": {"7", "35", "230", "232", "271", "281"}, "aarch64": {"22", "73", "101", "115"}}[os.uname().machine]


LATE_LOOK_S = 0.01


def look(pid):
    """(whether a process waits for events; how long it was ready to run and had no CPU, s)"""
    base = f"/proc/{pid}/task/{pid}/"
    with open(base + "schedstat", encoding="ascii") as file:
        delay = int(file.read().split()[1]) / 1e9
    with open(base + "syscall", encoding="ascii") as file:
        return file.read().split()[0] in WAITS, delay


def watch_loop(pid, ended, answer):
    """
    Looks at a process every two milliseconds, in a process of its own. Answers with the longest time between two looks at which it
    waits for events, without the time for which it had no CPU, and how many looks there were. The kernel counts that time when it
    gets one: so it is known as soon as the process waits again. What passes while a look is late does not count: it may have waited.
    """
    os.nice(-10)
    worst, looks, late, before, left = 0, 0, 0, None, None
    while not ended.is_set():
        try:
            waits, delay = look(pid)
        except OSError:
            break
        now = time.monotonic()
        late += max(0, now - before - LATE_LOOK_S) if before else 0
        if waits:
            worst = max(worst, now - left[0] - (delay - left[1]) - late if left else 0)
            left, late = (now, delay), 0
        before, looks = now, looks + 1
        time.sleep(0.002)
    answer.send((worst, looks))


class Loop:
    def __init__(self, pid):
        self.ended = multiprocessing.Event()
        self.answer, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=watch_loop, args=(pid, self.ended, other), daemon=True)
        self.process.start()

    def end(self):
        """(longest time away, s; looks)"""
        self.ended.set()
        return self.answer.recv()


def job_environment(number):
    return {"SLURM_JOB_ID": str(FIRST_JOB + number), "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_JOB_NAME": "many"}


def text_of(left, user, number):
    return os.path.join(left, "jobs", str(user), f"slurm-{FIRST_JOB + number}.0.txt")


def check_reports():
    count, spread, life = repeat(500, 50), repeat(50, 10), 10
    left = os.path.join(scratch("reports"), "left")
    pending, delays, failed, begins = {}, [], 0, []
    with Programs() as programs, Jobs(scratch("reports", "jobs")) as jobs:
        daemon, ndjson = vaprod(jobs, "vapro", [], None, "--exe", programs.program, "--job-reports", left)
        if not until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson), 20):
            raise RuntimeError("vaprod did not start: " + daemon.err().strip())
        loop = Loop(daemon.pid)
        begun = time.monotonic()
        started, running = 0, []
        while len(delays) < count and time.monotonic() < begun + spread + life + 120:
            now = time.monotonic()
            while started < count and now >= begun + started * spread / count:
                user = USERS[started % len(USERS)]
                process = subprocess.Popen([programs.program, "threads", programs.library, "1", str(life)], stdout=subprocess.DEVNULL,
                                           env={**os.environ, **job_environment(started)}, user=user, group=user, extra_groups=[])
                running.append((process, user, started))
                started += 1
            for entry in [entry for entry in running if entry[0].poll() is not None]:
                running.remove(entry)
                failed += entry[0].returncode != 0
                pending[text_of(left, *entry[1:])] = now
            for path_of in [path_of for path_of in pending if os.path.exists(path_of)]:
                delays.append(now - pending.pop(path_of))
            time.sleep(0.05)
        away_s, looks = loop.end()
        jobs.interrupt(daemon, 90)
        records = t.load_records(ndjson)
    lost = [r["text"] for r in of_type(records, "warning") if r["code"] == "report_failed"]
    late = sum(delay > WITHIN_S for delay in delays)
    delays.sort()
    return [t.row(f"{count} jobs end within {spread} s: programs that failed", failed, 0, failed == 0),
            t.row("jobs without a report; warnings about lost ones", f"{len(pending)}; {lost[:2]}", "0, or counted", not pending or bool(lost)),
            t.row("from the end to the report, median and worst", f"{delays[len(delays) // 2]:.1f}, {delays[-1]:.1f} s" if delays else "-",
                  f"{WITHIN_S} s", bool(delays) and late == 0),
            t.row(f"longest time of the loop away from its events ({looks} looks)", f"{1000 * away_s:.0f} ms", f"{1000 * STALL_S:.0f} ms",
                  away_s <= STALL_S)]


CHECKS = {"site:reports": check_reports, "site:alert": check_alert}
