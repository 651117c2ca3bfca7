#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""Processes that are no targets: no probe reaches one that runs under a binary translator, and none pays for long."""
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import RUNGS, VAPROD, j, main, of_rung, of_type, records, text_of, tool, until, works  # noqa: E402

# a program of one process needs no launcher
SINGLE = {"OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_btl": "self"}


def copy_of_mpi(jobs):
    """The environment of programs with an MPI library of their own: other jobs of the node do not share it."""
    lines = subprocess.run(["ldd", tool("paced")], capture_output=True, text=True, check=True).stdout.splitlines()
    name, file = next((line.split()[0], line.split()[2]) for line in lines if "libmpi.so" in line)
    shutil.copy(file, os.path.join(jobs.directory, name))
    return {"LD_LIBRARY_PATH": jobs.directory}


def ready(job, count=1):
    if not until(lambda: job.out().count('"ready"') == count, 60):
        raise RuntimeError(f"{job.name} did not start: {job.err()}")
    return [int(pid) for pid in re.findall(r'"ready":true,"pid":(\d+)', job.out())]


def targets(jobs, env, count, rate, *options):
    command = j.mpirun(count, tool("paced"), "--rate", rate, "--seconds", 600, *options)
    job = jobs.start([command[0], "-x", "LD_LIBRARY_PATH", *command[1:]], "targets", env=env)
    return job, ready(job, count)


def watch(jobs, pids, *options):
    """vaprod without a selection that watches these processes, with its records."""
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--io", "off", "--window", "3", "--output", out, *options], "vaprod")

    def look():
        return os.path.exists(out) and set(pids) <= {r["pid"] for r in of_type(records(out), "process") if r["state"] == "attached"}
    if not until(look, 60):
        raise RuntimeError(f"vaprod did not attach: {daemon.err()}")
    return daemon, out


def touched(pid):
    """Whether the code of an MPI library in a process differs from its file."""
    return any("/libmpi" in file for file, _ in text_of(pid))


def translated(tap, jobs, rung):
    """Valgrind beside vaprod, and under it from its steady state on."""
    if not works(rung):
        tap.ok(True, f"{rung}: this kernel has no such links # SKIP")
        return
    env = copy_of_mpi(jobs)
    valgrind = ["valgrind", "--tool=none", "-q", tool("paced"), "--rate", "200", "--seconds"]
    early = jobs.start([*valgrind, "8"], "early", env={**env, **SINGLE})
    ready(early)
    _, pids = targets(jobs, env, 1, 100)
    daemon, out = watch(jobs, pids, "--attach", rung)
    late = jobs.start([*valgrind, "1"], "late", env={**env, **SINGLE})
    for job in (early, late):
        tap.equal(jobs.wait(job, 120), 0, f"{rung}: the program under Valgrind ends well ({job.name})")
        tap.ok('"wrong":0' in job.out(), f"{rung}: its results are right ({job.name})", job.out() + job.err())
    refused = {r["pid"]: r["reason"] for r in of_type(records(out), "process") if r["state"] == "refused"}
    tap.ok(all("Valgrind" in refused.get(job.pid, "") for job in (early, late)), f"{rung}: they are refused with the reason", refused)
    tap.equal(jobs.interrupt(daemon, 120), 0, f"{rung}: vaprod ends well")


def test_strangers(tap, jobs):
    """A program that is not selected is not touched, whenever it starts."""
    env = copy_of_mpi(jobs)
    _, pids = targets(jobs, env, 2, 100)
    daemon, out = watch(jobs, pids, "--exe", "paced")
    other = os.path.join(jobs.directory, "stranger")
    shutil.copy(tool("paced"), other)
    stranger = jobs.start([other, "--rate", "1000", "--seconds", "600"], "stranger", env={**env, **SINGLE})
    ready(stranger)
    tap.ok(until(lambda: all(touched(pid) for pid in pids), 20), "the targets are probed")
    tap.ok(not touched(stranger.pid), "a program that started later is not")
    tap.ok(until(lambda: len(of_type(records(out), "window")) > 1, 30), "there are windows")
    windows = of_type(records(out), "window")
    tap.equal([w["bystanders"] for w in windows[1:]], [{"hits": 0, "cpu_pct": 0}] * (len(windows) - 1), "it pays nothing")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")


def test_links_for_all_give_way(tap, jobs):
    """A job of many calls is linked for all processes while no other process maps its library, and not beside a translator."""
    env = copy_of_mpi(jobs)
    _, pids = targets(jobs, env, 2, 20000, "--spin")
    daemon, out = watch(jobs, pids)
    time.sleep(5)  # their cost is known, and links for all are cheaper
    opted_out = jobs.start([tool("paced"), "--rate", "1", "--seconds", "600"], "opted_out", env={**env, **SINGLE, "VAPRO": "off"})
    ready(opted_out)
    stand_in = os.path.join(jobs.directory, "none-amd64-linux")
    shutil.copy(shutil.which("sleep"), stand_in)
    reached = until(lambda: touched(opted_out.pid), 10)
    translator = jobs.start([stand_in, "600"], "translator")
    tap.ok(until(lambda: not touched(opted_out.pid), 20), "beside a translator, if only by its name, no other process is touched")
    tap.ok(until(lambda: all(touched(pid) for pid in pids), 20), "the targets are probed")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    said = [w["pid"] for w in of_type(records(out), "warning") if w["code"] == "translator"]
    tap.equal(said, [translator.pid] if reached else [], "that is reported where links had to give way")
    tap.ok(not any(touched(pid) for pid in (*pids, opted_out.pid)), "no probe is left")


def test_dry_run(tap, jobs):
    env = copy_of_mpi(jobs)
    _, pids = targets(jobs, env, 2, 100)
    opted_out = jobs.start([tool("paced"), "--seconds", "600"], "opted_out", env={**env, **SINGLE, "VAPRO": "off"})
    ready(opted_out)
    out = os.path.join(jobs.directory, "none.ndjson")
    code, job = jobs.run([VAPROD, "--dry-run", "--exe", "paced", "--output", out], "dry_run", 60)
    tap.equal((code, os.path.exists(out)), (0, False), "a dry run ends well and writes no records")
    for rank, pid in enumerate(pids):
        tap.ok(re.search(rf"process {pid} .*, job .*: \d+ functions of .*libmpi.* links for this process alone", job.out()),
               f"it prints what would be linked ({rank})", job.out() + job.err())
    tap.ok(re.search(rf"process {opted_out.pid} .*: not watched: VAPRO=off", job.out()), "and why a process would be refused", job.out())
    tap.ok(not any(touched(pid) for pid in pids), "nothing is probed")


main(*(of_rung(translated, rung) for rung in RUNGS), test_strangers, test_links_for_all_give_way, test_dry_run, held=False)
