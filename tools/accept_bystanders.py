# SPDX-License-Identifier: GPL-2.0-or-later
"""
Is a process that is no target ever harmed, and does it pay? MPI programs under binary translators beside and under
vaprod in each attach mode, a user's translators against another user's job, and a stranger's program of many calls.
All map a copy of Open MPI's library, so that no other job of the node shares it.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402

MODES = ("session", "multi", "perf")
VALGRIND = ("valgrind", "--tool=none", "-q")
QEMU = ("qemu-x86_64",)
USER = 65533  # of translators that are so named only


def mpi_copy():
    """A directory with a copy of the library that paced is linked to."""
    directory = scratch("bystanders", "lib")
    lines = subprocess.run(["ldd", tool("paced")], capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
    name, file = next((line.split()[0], line.split()[2]) for line in lines if "libmpi.so" in line)
    shutil.copy(file, os.path.join(directory, name))
    return {"LD_LIBRARY_PATH": directory}


def works(mode):
    check = subprocess.run([VAPRO, "check"], capture_output=True, text=True, timeout=60, check=False).stdout
    return f"attach by {mode}" in check and check.split(f"attach by {mode}")[1].split()[0] == "yes"


def targets(jobs, env, count, rate, seconds, *options):
    """A job of so many ranks that call at a rate, once all are there."""
    command = mpirun(count, tool("paced"), "--rate", rate, "--seconds", seconds, *options)
    job = jobs.start([command[0], "-x", "LD_LIBRARY_PATH", *command[1:]], f"targets{count}", env=env)
    if not until(lambda: job.out().count('"ready"') == count, 120):
        raise RuntimeError("the targets do not start: " + job.err().strip()[-300:])
    return job


def watch(jobs, name, count, *options):
    """vaprod without a selection, or with options, once it watches so many processes."""
    daemon, ndjson = vaprod(jobs, name, [], None, "--io", "off", "--window", "3", *options)
    if not until(lambda: len(attached_pids(ndjson)) >= count, 60):
        raise RuntimeError(f"vaprod does not watch {count} processes: " + daemon.err().strip()[-300:])
    return daemon, ndjson


def attached_pids(ndjson):
    try:
        return {r["pid"] for r in of_type(t.load_records(ndjson), "process") if r["state"] == "attached"}
    except (OSError, ValueError):
        return set()


def alone(jobs, env, name, translator, *options):
    """A program of one process under a translator."""
    single = {**env, "OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_btl": "self"}
    return jobs.start([*translator, tool("paced"), "--rate", 200, *options], name, env=single)


def lives(jobs, job):
    """Whether a program ends with 0 and the right result."""
    code = jobs.wait(job, 120)
    return code == 0 and last_json(job.out())["wrong"] == 0


def beside(jobs, env, translator, runs):
    """Runs that start beside a vaprod: how many are right."""
    good = 0
    for number in range(runs):
        good += lives(jobs, alone(jobs, env, f"beside{number}", translator, "--seconds", 1))
    return good


def under(jobs, env, translator, number, mode):
    """A run to which vaprod comes before Init, in the steady state or before Finalize. Returns whether it is right."""
    at = number % 3
    job = alone(jobs, env, f"under{number}", translator, "--seconds", 6 if at == 1 else 1, "--idle", 0 if at == 1 else 5)
    if at:
        until(lambda: '"ready"' in job.out(), 60)
    time.sleep(1.5)
    daemon, _ = vaprod(jobs, f"vapro{number}", [], None, "--io", "off", "--attach", mode)
    good = lives(jobs, job)
    jobs.interrupt(daemon, 400)
    return good


def translated(mode, env):
    """(right runs, runs) of Valgrind in one attach mode, with 1 and 17 targets."""
    good = runs = 0
    few = repeat(2, 1)
    for count in (1, 17):
        with Jobs(scratch("bystanders", f"{mode}{count}")) as jobs:
            targets(jobs, env, count, 100, 3600)
            # links of mode perf take some 8 s of each process to remove
            rounds = 0 if mode == "perf" and count > 1 else 3 * few
            for number in range(rounds):
                good += under(jobs, env, VALGRIND, number, mode)
            daemon, _ = watch(jobs, "vapro", count, "--attach", mode)
            more = 5 * few - rounds
            good += beside(jobs, env, VALGRIND, more)
            runs += rounds + more
            jobs.interrupt(daemon, 400)
    return good, runs


def shared(env):
    """Runs beside links for all processes: [(translator, right, runs, s from exec to mapping, s to the last closed link)]."""
    found = []
    with Jobs(scratch("bystanders", "shared")) as jobs:
        job = targets(jobs, env, 2, 30000, 3600, "--spin")
        for translator in (VALGRIND, QEMU):
            good, mapped, closed, runs = 0, [], [], repeat(5, 2)
            for number in range(runs):
                daemon, ndjson = watch(jobs, f"shared{number}", 2)
                time.sleep(4)
                begin, one = time.time(), alone(jobs, env, f"one{number}", translator, "--seconds", 1)
                if until(lambda: maps_library(one.pid), 5):
                    mapped.append(time.time() - begin)
                good += lives(jobs, one)
                well(jobs.interrupt(daemon), daemon)
                for warning in of_type(t.load_records(ndjson), "warning"):
                    if warning["code"] == "translator":
                        closed.append(t.parse_time(warning["time"]) * 1e-9 - begin)
            found.append((translator[0], good, runs, mapped, closed))
        jobs.stop(job)
    return found


def maps_library(pid):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return "/libmpi" in maps.read()
    except OSError:
        return False


def unseen(ndjson):
    """(share of the time that was governed or not seen, mean overhead) of the windows but the first two, percent."""
    windows = of_type(t.load_records(ndjson), "window")[2:]
    shares = [sum(u["time_pct_of_job"] for u in w["uncovered"] if u["reason"] in ("governed", "not_seen")) for w in windows]
    return sum(shares) / max(1, len(shares)), sum(w["overhead_pct"]["mean"] for w in windows) / max(1, len(windows))


def attacked(env, count, rate):
    """What of a job is not seen without and with another user's translators that come and go, so named only."""
    found = []
    directory = scratch("bystanders", f"attack{count}")
    fake = os.path.join("/tmp", f"vapro-accept-{os.getpid()}", "none-amd64-linux")
    os.makedirs(os.path.dirname(fake))
    shutil.copy(shutil.which("sleep"), fake)
    try:
        with Jobs(directory) as jobs:
            job = targets(jobs, env, count, rate, 3600)
            for number in range(2):
                daemon, ndjson = watch(jobs, f"vapro{number}", count)
                time.sleep(9)  # beyond the windows that are left out
                for second in range(repeat(24, 9)):
                    if number:
                        jobs.start([fake, "2"], f"fake{second}", user=USER)
                    time.sleep(1)
                well(jobs.interrupt(daemon, 120), daemon)
                found.append(unseen(ndjson))
            jobs.stop(job)
    finally:
        shutil.rmtree(os.path.dirname(fake))
    return found


def check_translators():
    rows, env = [], mpi_copy()
    for mode in MODES:
        if not works(mode):
            rows.append(t.row(f"{mode}: Valgrind", "this kernel has no such links", "-", True))
            continue
        good, runs = translated(mode, env)
        rows.append(t.row(f"{mode}: Valgrind beside and under vaprod, 1 and 17 targets: exit code 0 and right", f"{good} of {runs}",
                          "all", good == runs))
    with Jobs(scratch("bystanders", "qemu")) as jobs:
        targets(jobs, env, 2, 100, 3600)
        daemon, _ = watch(jobs, "vapro", 2)
        runs = repeat(10, 3)
        good = beside(jobs, env, QEMU, runs)
        well(jobs.interrupt(daemon), daemon)
        rows.append(t.row("qemu-user beside filtered links: exit code 0 and right", f"{good} of {runs}", "all", good == runs))
    for name, good, runs, mapped, closed in shared(env):
        text = f"{good} of {runs}, {len(closed)} of them so linked; mapped after {min(mapped, default=0) * 1e3:.0f} ms, linked for each after {max(closed, default=0) * 1e3:.0f} ms"
        rows.append(t.row(f"{name} beside links for all processes: right (of qemu-user information)", text,
                          "all of Valgrind", good == runs or name != VALGRIND[0]))
    for count in (17, 64):
        (calm, cost), (loss, more) = attacked(env, count, 500)
        rows.append(t.row(f"{count} targets of 500 calls/s: not seen without and with another user's translators, overhead",
                          f"{calm:.1f} and {loss:.1f} %, {cost:.2f} and {more:.2f} %", "at most 5 points more", loss - calm <= 5))
    return rows


def stranger(env, count, rate, spin):
    """(hits, their cost as a share of the stranger's CPU time) of a program of 50,000 calls/s beside selected ones."""
    with Jobs(scratch("bystanders", f"stranger{count}at{rate}")) as jobs:
        other = os.path.join(jobs.directory, "stranger")
        shutil.copy(tool("paced"), other)
        targets(jobs, env, count, rate, 3600, *(["--spin"] if spin else []))
        daemon, ndjson = watch(jobs, "vapro", count, "--exe", "paced")
        time.sleep(4)
        single = {**env, "OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_btl": "self"}
        code, job = jobs.run([other, "--rate", 50000, "--seconds", repeat(20, 8), "--spin"], "stranger", 60, env=single)
        well(code, job)
        well(jobs.interrupt(daemon, 120), daemon)
        records = t.load_records(ndjson)
    costs = of_type(records, "hello")[0]["costs"]
    hits = sum(w["bystanders"]["hits"] or 0 for w in of_type(records, "window"))
    return hits, hits * (costs["entry_ns"] + costs["return_ns"]) * 1e-9 / last_json(job.out())["cpu_s"]


def check_strangers():
    rows, env = [], mpi_copy()
    for count, rate, spin in ((2, 100, False), (17, 100, False), (2, 30000, True)):
        hits, share = stranger(env, count, rate, spin)
        rows.append(t.row(f"a stranger of 50,000 calls/s beside {count} selected of {rate}: hits, their cost of its CPU time",
                          f"{hits:.0f}, {share:.3%}", "at most 0.5 %", share <= 0.005))
    return rows


CHECKS = {"harm:translators": check_translators, "harm:strangers": check_strangers}
