# SPDX-License-Identifier: GPL-2.0-or-later
"""
What comes and goes for long, and unusual shapes of targets (checks harm:churn and harm:shapes): memory and descriptors of
vaprod, results of programs, what is left behind.
"""
import os
import re
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402
from accept_owners import MANY, OTHER, Programs, begin, of_user  # noqa: E402
from jobs import descendants, leaked_probes  # noqa: E402

MINUTES = repeat(30, 2)
SETTLED_MINUTES = MINUTES / 3  # memory and descriptors may grow until then
KILL_S = 20  # between two deaths of a helper
FLAT_MIB, FLAT_DESCRIPTORS = 1, 4


def state_of(pid):
    """(resident MiB, descriptors, threads) of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        text = file.read()
    return (int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) / 1024, len(os.listdir(f"/proc/{pid}/fd")),
            int(re.search(r"Threads:\s+(\d+)", text).group(1)))


def kill_helper(daemon, number):
    """Kills one of vaprod's helper processes, another one each time. Returns whether there was one."""
    helpers = sorted(pid for pid in descendants(daemon.pid) if pid != daemon.pid)
    if not helpers:
        return False
    try:
        os.kill(helpers[number % len(helpers)], signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Churn:
    """Programs that come, execute others and go, until the end."""

    def __init__(self, programs, jobs):
        self.programs, self.jobs, self.running, self.done, self.failed = programs, jobs, [], 0, []

    def step(self):
        for job in list(self.running):
            if job.process.poll() is not None:
                self.running.remove(job)
                self.jobs.jobs.remove(job)
                self.done += 1
                if job.process.returncode or ("execs" in job.name and "execs 20" not in job.out()):
                    self.failed.append(f"{job.name}: {job.process.returncode} {job.err().strip()[-100:]}")
        kinds = (("ranks", 2, 3), ("execs", 20, 4), ("ranks", 4, 2), ("threads", 30, 3))
        while len(self.running) < len(kinds):
            kind, count, seconds = kinds[(self.done + len(self.running)) % len(kinds)]
            self.running.append(self.programs.start(self.jobs, MANY, kind, count, seconds))


def check_churn():
    samples, killed = [], 0
    with Programs() as programs, Jobs(scratch("churn")) as jobs:
        daemon, ndjson = begin(jobs, "--window", "5", "--exe", programs.program)
        constant = programs.start(jobs, OTHER, "ranks", 2, MINUTES * 60 + 20)
        churn = Churn(programs, jobs)
        begun, killed_at = time.monotonic(), time.monotonic()
        while time.monotonic() < begun + MINUTES * 60:
            churn.step()
            time.sleep(0.5)
            if time.monotonic() > killed_at + KILL_S:
                killed_at = time.monotonic()
                killed += kill_helper(daemon, killed)
            if not samples or time.monotonic() > samples[-1][0] + 5:
                samples.append((time.monotonic(), *state_of(daemon.pid)))
        for job in churn.running:
            jobs.wait(job, 30)
        churn.step()
        well(jobs.wait(constant, 60), constant)
        begun_end = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        well(jobs.wait(daemon, 60), daemon)
        ended = time.monotonic() - begun_end
        records = t.load_records(ndjson)
    settled = [s for s in samples if s[0] > begun + SETTLED_MINUTES * 60]
    third = max(1, len(settled) // 3)
    (mib, files, threads), (mib_end, files_end, threads_end) = (
        [statistics.median(s[i] for s in part) for i in (1, 2, 3)] for part in (settled[:third], settled[-third:]))
    coverage = [w["coverage"]["total"] for w in of_user(records, "window", OTHER)][2:-1]
    return [t.row(f"{MINUTES} min of programs that come and go: programs; with a wrong result", f"{churn.done}; {len(churn.failed)} {churn.failed[:2]}",
                  "0 wrong", not churn.failed),
            t.row("helpers of vaprod killed", killed, "some", killed > 0),
            t.row("vaprod's resident memory, first and last third of the settled time", f"{mib:.1f}, {mib_end:.1f} MiB",
                  f"at most {FLAT_MIB} MiB more", mib_end - mib <= FLAT_MIB),
            t.row("its descriptors", f"{files:.0f}, {files_end:.0f}", f"at most {FLAT_DESCRIPTORS} more", files_end - files <= FLAT_DESCRIPTORS),
            t.row("its threads", f"{threads:.0f}, {threads_end:.0f}", "not more", threads_end <= threads),
            t.row("coverage of a job that lasts", f"{statistics.mean(coverage or [0]):.1%}", "-", bool(coverage)),
            t.row("SIGTERM ends vaprod within", f"{ended:.1f} s", "10 s", ended < 10)]


def begin_for(programs, jobs):
    """A vaprod of these programs alone, wherever other ones run."""
    return begin(jobs, "--exe", programs.program)


def first_states(ndjson):
    """{pid: (state, owner)} of processes when they were first reported."""
    found = {}
    for r in of_type(t.load_records(ndjson), "process"):
        found.setdefault(r["pid"], (r["state"], r["job"].get("uid")))
    return found


def attached_of(ndjson, uid):
    return list(first_states(ndjson).values()).count(("attached", uid))


def two_daemons(programs, jobs):
    """Two vaprods of the same ranks."""
    daemons = [begin_for(programs, jobs)]
    first = os.path.join(jobs.directory, "first.ndjson")
    os.rename(daemons[0][1], first)
    daemons.append(begin_for(programs, jobs))
    job = programs.start(jobs, OTHER, "ranks", 2, 12)
    code = jobs.wait(job, 60)
    for daemon, _ in daemons:
        daemon.process.send_signal(signal.SIGTERM)
        well(jobs.wait(daemon, 60), daemon)
    seen = [attached_of(ndjson, OTHER) for ndjson in (first, daemons[1][1])]
    return t.row("two vaprods beside one job: exit code; ranks that each has attached", f"{code}; {seen}", "0; 2 each",
                 code == 0 and seen == [2, 2])


def setuid(programs, jobs):
    """A target whose file gives it root's rights, started by a user."""
    os.chmod(programs.program, 0o4755)
    daemon, ndjson = begin_for(programs, jobs)
    job = programs.start(jobs, OTHER, "ranks", 2, 10)
    code = jobs.wait(job, 60)
    daemon.process.send_signal(signal.SIGTERM)
    well(jobs.wait(daemon, 60), daemon)
    os.chmod(programs.program, 0o755)
    states = list(first_states(ndjson).values())
    return t.row("a program with the setuid bit: exit code; states and owners", f"{code}; {states}", "0; 2 of the user who started it",
                 code == 0 and states == [("attached", OTHER)] * 2)


def loads(jobs):
    """A program that loads and unloads an observed library all the time, with other code at its place in between."""
    times, daemon_ndjson = repeat(2000, 200), begin(jobs, "--exe", tool("unmap"))
    go = os.path.join(jobs.directory, "go")
    job = jobs.start([tool("unmap"), tool("unmapped/libmpi.so.40"), go, times], "unmap")
    pid = ready_pid(job)
    until(lambda: attached(daemon_ndjson[1], pid), 20)
    with open(go, "w", encoding="utf-8"):
        pass
    code = jobs.wait(job, 300)
    daemon_ndjson[0].process.send_signal(signal.SIGTERM)
    well(jobs.wait(daemon_ndjson[0], 60), daemon_ndjson[0])
    alone, job_alone = jobs.run([tool("unmap"), tool("unmapped/libmpi.so.40"), go, times], "alone", 300)
    return t.row(f"{times} times dlopen and dlclose: exit code, result as without vaprod", f"{code}, {job.out().splitlines()[-1:]}",
                 f"0, {job_alone.out().splitlines()[-1:]}",
                 code == 0 and alone == 0 and job.out().splitlines()[-1] == job_alone.out().splitlines()[-1])


def threads(programs, jobs):
    count = repeat(4000, 1000)
    daemon, ndjson = begin_for(programs, jobs)
    job = programs.start(jobs, OTHER, "threads", count, 12)
    code = jobs.wait(job, 120)
    daemon.process.send_signal(signal.SIGTERM)
    well(jobs.wait(daemon, 60), daemon)
    seen = attached_of(ndjson, OTHER)
    calls = re.search(r"calls (\d+)", job.out())
    return t.row(f"{count} threads: exit code; calls; attached", f"{code}; {calls and calls.group(1)}; {seen}", f"0; {20 * count}; 1",
                 code == 0 and calls and int(calls.group(1)) == 20 * count and seen == 1)


def restart(programs, jobs):
    """vaprod is ended during a job and started again, as for an upgrade: what the second one sees of the job, and since when."""
    daemon, ndjson = begin_for(programs, jobs)
    job = programs.start(jobs, OTHER, "ranks", 2, 40)
    if not until(lambda: attached_of(ndjson, OTHER) == 2, 30):
        raise RuntimeError("the ranks are not attached")
    time.sleep(12)
    daemon.process.send_signal(signal.SIGTERM)
    well(jobs.wait(daemon, 60), daemon)
    first = of_user(t.load_records(ndjson), "window", OTHER)
    daemon, ndjson = begin_for(programs, jobs)
    code = jobs.wait(job, 120)
    daemon.process.send_signal(signal.SIGTERM)
    well(jobs.wait(daemon, 60), daemon)
    second = of_user(t.load_records(ndjson), "window", OTHER)
    gap = (t.parse_time(second[0]["begin"]) - t.parse_time(first[-1]["end"])) / 1e9 if first and second else float("nan")
    coverage = [[w["coverage"]["total"] for w in windows][2:-1] for windows in (first, second)]
    before, after = (statistics.mean(values or [0]) for values in coverage)
    return t.row("vaprod ended and started again during a job: exit code; not seen between; coverage before, after",
                 f"{code}; {gap:.1f} s; {before:.1%}, {after:.1%}", "0; 5 s; 5 points less", code == 0 and gap < 5 and after > before - 0.05)


def check_shapes():
    leaked = leaked_probes()
    rows = []
    with Programs() as programs:
        for part in (lambda jobs: two_daemons(programs, jobs), lambda jobs: setuid(programs, jobs), loads, lambda jobs: threads(programs, jobs),
                     lambda jobs: restart(programs, jobs)):
            with Jobs(scratch("shapes")) as jobs:
                rows.append(part(jobs))
    left = leaked_probes()
    rows.append(t.row("probes that the kernel could not remove", None if leaked is None else left - leaked, 0, leaked is None or left == leaked))
    return rows


CHECKS = {"harm:churn": check_churn, "harm:shapes": check_shapes}
