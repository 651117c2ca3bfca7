#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Every attach mode (rung) that this kernel has sees each call of each rank and leaves no probe behind.
Targets map a copy of the MPI library, so that other programs of this machine do not share it.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import (ROOT, RUNGS, VAPROD, attached, j, main, of_rung, of_type, rank_pids, ready_pid, records,  # noqa: E402
                  select, text_of, tool, until, works)

FREE = 60  # seconds within which probes are removed: perf removes them one by one


def own_library(jobs):
    """Environment in which programs map a copy of libmpi."""
    with os.popen("/sbin/ldconfig -p") as cache:
        paths = [line.split("=> ")[1].strip() for line in cache if "libmpi.so.40 " in line]
    shutil.copy(os.path.realpath(paths[0]), os.path.join(jobs.directory, "libmpi.so.40"))
    return {"LD_LIBRARY_PATH": jobs.directory}


def own_program(jobs, name):
    """A copy of a program, so that no other vaprod on this machine selects it by its name."""
    path = os.path.join(jobs.directory, name + "_on_a_rung")
    shutil.copy(tool(name), path)
    return path


def counts_every_call(tap, jobs, rung):
    env = own_library(jobs)
    program = jobs.start(j.mpirun(1, own_program(jobs, "flat_out"), "--rate", 50000, "--seconds", 2, "--delay", 5), "flat_out", env=env)
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--overhead-cap", "0", "--io", "off", "--attach", rung],
                        "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, f"{rung}: the program ends well")
    tap.equal(jobs.wait(daemon, FREE), 0, f"{rung}: vaprod ends with its target")
    calls = int(program.out().rsplit('"calls":', 1)[1].split(",")[0])
    lines = records(out)
    fragments = sum(w["fragments"] for w in of_type(lines, "window"))
    # a vertex a call, an edge between two; and MPI_Finalize
    tap.equal(fragments, 2 * calls + 1, f"{rung}: every call and every edge is counted")
    tap.equal(of_type(lines, "process")[-1]["hits"], calls + 1, f"{rung}: every call is one hit")
    hello = lines[0]
    tap.equal(hello["attach_mode"], rung, f"{rung}: hello names the rung")
    tap.equal([(r["name"], r["works"]) for r in hello["attach_modes"]], [(r, r == rung) for r in RUNGS],
              f"{rung}: hello has the other rungs")
    tap.ok(hello["costs"]["entry_ns"] > 0 and hello["costs"]["return_ns"] > 0,
           f"{rung}: hello has the cost of a hit", hello["costs"])


def sees_ranks(tap, jobs, rung):
    env = own_library(jobs)
    program = jobs.start(j.mpirun(2, own_program(jobs, "demo_mpi"), "--seconds", 60 if rung == "perf" else 10, "--log", jobs.directory, "--scratch", jobs.directory,
                                  "--bind"), "demo_mpi", env=env)  # perf removes its probes one by one, of one rank after the other
    pids = rank_pids(program, jobs.directory, 2)
    before = [text_of(pid) for pid in pids]
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--window", "3", "--attach", rung], "vaprod")
    attached(out, pids)
    until(lambda: of_type(records(out), "window"), 20)
    code = jobs.interrupt(daemon, FREE)
    tap.equal(code, 0, f"{rung}: SIGINT ends it with exit code 0")
    # there is no wait here: probes must be removed when vaprod has ended
    tap.ok([text_of(pid) for pid in pids] == before, f"{rung}: no probe is left in the text")
    lines = records(out)
    reported = {r["rank"]: r for r in of_type(lines, "process") if r["state"] == "attached"}
    tap.equal(sorted(reported), [0, 1], f"{rung}: both ranks are known")
    images = [r["images"][0] for r in reported.values()]
    if rung == "perf":
        tap.ok(all(20 < i["functions"] <= 40 for i in images), "perf: the common functions are probed", images)
        tap.ok(all({"MPI_Issend"} <= {s["function"] for s in i["skipped"]} for i in images),
               "perf: the functions that are not probed are named")
    else:
        tap.ok(all(i["functions"] > 100 for i in images), f"{rung}: functions of libmpi are probed", images)
    lost = {cause: n for w in of_type(lines, "window") for cause, n in w["lost"].items() if n}
    # requests that were posted before attachment have no post; perf sets and removes its probes one by one
    tap.ok(not set(lost) - {"vanished", "governed", "unmatched"}, f"{rung}: nothing is lost", lost)
    # each rank's sets of functions are linked one after the other: some posts lie between
    tap.ok(lost.get("unmatched", 0) <= 24, f"{rung}: nearly all completions match their posts", lost)
    maps = {m["class"] for m in of_type(lines, "heatmap")}
    tap.ok("computation" in maps, f"{rung}: there is a heat map of computation", maps)
    tap.equal(jobs.wait(program, 120), 0, f"{rung}: the program ends well")
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                           text=True, check=False)
    tap.equal((check.returncode, check.stdout if check.returncode else ""), (0, ""), f"{rung}: every line is valid")


def leaves_others_alone(tap, jobs, rung):
    env = own_library(jobs)
    mine = own_program(jobs, "flat_out")
    program = jobs.start(j.mpirun(1, mine, "--rate", 1000, "--seconds", 20), "flat_out", env=env)
    other = jobs.start(j.mpirun(1, mine, "--rate", 1000, "--seconds", 20), "other", env=env)
    pid, other_pid = ready_pid(program), ready_pid(other)
    before, other_before = text_of(pid), text_of(other_pid)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--attach", rung], "vaprod")
    attached(out, [pid])
    tap.ok(text_of(pid) != before, f"{rung}: probes are in the text while it runs")
    tap.ok(text_of(other_pid) == other_before, f"{rung}: a process that is not selected has no probe")
    daemon.process.send_signal(signal.SIGKILL)
    jobs.wait(daemon, FREE)
    tap.ok(until(lambda: text_of(pid) == before, FREE), f"{rung}: after kill -9 the text is as before")
    tap.equal([jobs.wait(program, 60), jobs.wait(other, 60)], [0, 0], f"{rung}: the programs end well")


def takes_no_returns(tap, jobs, rung):
    env = own_library(jobs)
    program = jobs.start(j.mpirun(1, own_program(jobs, "throw"), "--count", 300, "--seconds", 2, "--delay", 5), "throw", env=env)
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--no-return", "--attach", rung], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, f"{rung}: exceptions pass through MPI calls with --no-return")
    tap.equal(jobs.wait(daemon, FREE), 0, f"{rung}: vaprod ends with its target")
    tap.ok(of_type(records(out), "process")[-1]["hits"] >= 300, f"{rung}: the calls were seen")


def links_of(pid):
    """How many links a vaprod holds on functions of user programs."""
    found = 0
    for entry in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            with open(f"/proc/{pid}/fdinfo/{entry}", encoding="utf-8") as info:
                found += "uprobe_multi" in info.read()
    return found


def one_link_for_all(tap, jobs):
    """Targets beside other processes have their own links; when only targets remain, one link replaces these."""
    env = own_library(jobs)
    mine = own_program(jobs, "flat_out")

    def start(name, program, seconds):
        return jobs.start(j.mpirun(1, program, "--rate", 1000, "--seconds", seconds), name, env=env)

    first, other = start("first", mine, 20), start("other", tool("flat_out"), 10)  # of another name
    pid = ready_pid(first)
    ready_pid(other)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "flat_out_on_a_rung", "--output", out, "--io", "off", "--overhead-cap", "0",
                         "--learn", "0"], "vaprod")
    attached(out, [pid])
    # functions that never wait have links apart from the others, by kind
    alone = links_of(daemon.pid)
    tap.ok(alone, "a target beside another process has its own links")
    jobs.wait(other, 30)
    second = start("second", mine, 4)
    attached(out, [ready_pid(second)])
    tap.ok(until(lambda: links_of(daemon.pid) == alone, 5), "without other processes the same number of links serves all targets",
           (alone, links_of(daemon.pid)))
    codes = [jobs.wait(second, 30), jobs.wait(first, 60)]
    tap.equal(codes, [0, 0], "the programs end well")
    tap.equal(jobs.interrupt(daemon, FREE), 0, "vaprod ends well")
    calls = int(first.out().rsplit('"calls":', 1)[1].split(",")[0])
    seen = [r["hits"] for r in of_type(records(out), "process") if r["pid"] == pid and r["state"] == "exited"]
    tap.ok(len(seen) == 1 and 0.5 * calls < seen[0] < 1.1 * calls, "calls are not seen twice", (seen, calls))


def spares_who_came_between_runs(tap, jobs):
    """That only targets mapped the library in one run is remembered in the next one, but not beside another process."""
    env = own_library(jobs)
    mine = own_program(jobs, "flat_out")

    def start(name, program, seconds):
        job = jobs.start(j.mpirun(1, program, "--rate", 1000, "--seconds", seconds), name, env=env)
        return job, ready_pid(job)

    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "flat_out_on_a_rung", "--output", out, "--io", "off", "--overhead-cap", "0"], "vaprod")
    until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
    first, pid = start("first", mine, 2)
    attached(out, [pid])
    tap.equal(jobs.wait(first, 30), 0, "a first run ends well")
    other, other_pid = start("other", tool("flat_out"), 6)  # of another name
    before = text_of(other_pid)
    second, pid = start("second", mine, 3)
    attached(out, [pid])
    tap.ok(text_of(other_pid) == before, "a process that came between two runs has no probe")
    tap.equal([jobs.wait(second, 30), jobs.wait(other, 30)], [0, 0], "the programs end well")
    tap.equal(jobs.interrupt(daemon, FREE), 0, "vaprod ends well")


def unknown_rung(tap, jobs):
    code, daemon = jobs.run([VAPROD, "--attach", "ladder"], "vaprod", 20)
    tap.equal(code, 2, "an unknown rung is a usage error")
    tap.ok("expected auto, session, multi or perf" in daemon.err(), "the known rungs are named", daemon.err())


TESTS = (counts_every_call, sees_ranks, leaves_others_alone, takes_no_returns)
main(unknown_rung, one_link_for_all, spares_who_came_between_runs, *(of_rung(test, rung) for rung in RUNGS if works(rung) for test in TESTS))
