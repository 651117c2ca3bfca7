#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""MPI libraries under names of vendors and packagers, loaded at run time, beside another one; large counts; ranks without MPI."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, graph, j, library, main, of_type, ready_pid, records, select, tool, until  # noqa: E402

OPEN_MPI, MPICH = library("libmpi.so.40"), library("libmpich.so.12")
NAMES = (("libmpi-1c2e33d1.so.40.30.4", OPEN_MPI), ("libmpi_ibm.so.3", OPEN_MPI), ("libmpi-ab12cd34.so.12.2.2", MPICH),
         ("libmpi_gnu_123.so.12", MPICH), ("libmpi_cray.so.12", MPICH), ("libmpi_nvidia.so.12", MPICH), ("libmpi_abi.so.0", MPICH))


def renamed(jobs, name, source):
    """A copy of a library in a directory of its own."""
    directory = os.path.join(jobs.directory, name + ".d")
    os.makedirs(directory, exist_ok=True)
    return shutil.copy(source, os.path.join(directory, name))


def started(out):
    until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)


def test_names(tap, jobs):
    """The copies answer to the names for the linker of those they were made of, so that programs map nothing else."""
    programs, copies = {}, {}
    for name, source in NAMES:
        copies[name] = renamed(jobs, name, source)
        programs[name] = jobs.start([tool("sleepers" if source == OPEN_MPI else "mpich_sleepers"), "--seconds", "60", "--period", "0.2"],
                                    name, env={"LD_PRELOAD": copies[name]})
    vendor = renamed(jobs, "libvendor.so.1", OPEN_MPI)  # no name suggests MPI: a launcher's rank does
    programs["libvendor.so.1"] = jobs.start(j.mpirun(1, "-x", f"LD_PRELOAD={vendor}", tool("sleepers"), "--seconds", "60", "--period", "0.2"),
                                            "vendor")
    pids = {name: ready_pid(program) for name, program in programs.items()}
    code, job = jobs.run([VAPROD, "--dry-run"], "dry_run", 60)
    for name, pid in pids.items():
        match = re.search(rf"^process {pid} .*: (\d+) functions of \S*/{re.escape(name)} ", job.out(), re.M)
        tap.ok(code == 0 and match and int(match.group(1)) >= 100, f"{name}: its functions would be probed without a selection", job.out())
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids.values()), "--output", out, "--io", "off", "--duration", "4"], "vaprod")
    attached(out, pids.values())
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends well")
    last = {r["pid"]: r for r in of_type(records(out), "process")}
    for name, pid in pids.items():
        tap.ok(last[pid]["hits"] > 5, f"{name}: its calls are seen", last[pid])
    for program in programs.values():
        jobs.stop(program)


def test_loaded_at_run_time(tap, jobs):
    """As a wheel's library: a hash in its name, loaded with names of its own."""
    copy = renamed(jobs, "libmpi-77aa88bb.so.40.30.4", OPEN_MPI)
    program = shutil.copy(tool("late_mpi"), jobs.directory)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off"], "vaprod")
    started(out)
    late = jobs.start([program, "--seconds", "2", "--delay", "1", "--local", "--library", copy], "late_mpi", env={"VAPRO_GO": ""})
    pid = ready_pid(late)
    tap.equal(jobs.wait(late, 30), 0, "a program that loads MPI with names of its own ends well")
    until(lambda: any(r["state"] == "exited" for r in of_type(records(out), "process")), 10)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    last = [r for r in of_type(records(out), "process") if r["pid"] == pid][-1]
    tap.ok(last["hits"] > 50, "its calls are seen", last)


def test_two_libraries(tap, jobs):
    """One that the program is linked to, and one that it loads: the calls of the first are seen, each once."""
    other = renamed(jobs, "libmpi_other.so.12", MPICH)
    program = jobs.start([tool("two_mpi"), "--library", other, "--seconds", "3"], "two_mpi")
    pid = ready_pid(program)
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    daemon = jobs.start([VAPROD, "--pid", str(pid), "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "a program with two MPI libraries ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with it")
    lines = records(out)
    image = next(r for r in of_type(lines, "process") if r["state"] == "attached")["images"][0]
    tap.ok("libmpi.so.40" in image["path"] and image["functions"] >= 100, "the library that it is linked to is probed", image)
    tap.equal([w["code"] for w in of_type(lines, "warning") if w["code"] == "several_mpi"], ["several_mpi"], "a warning names both")
    calls = int(re.search(r'"calls":(\d+)', program.out()).group(1))
    seen = sum(s["n"] for s in graph(jobs, capture) if "at" in s and "function=MPI_Barrier" in s["labels"])
    tap.equal(seen, calls, "each call is counted once")


def test_profiler(tap, jobs):
    """A library in front of MPI is looked through as soon as a call of it is seen, in each process."""
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    programs = [jobs.start([tool("sleepers"), "--seconds", "6", "--period", "0.02"], f"profiled{i}",
                           env={"LD_PRELOAD": tool("libprofiler.so")}) for i in range(2)]
    pids = [ready_pid(program) for program in programs]
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0"], "vaprod")
    attached(out, pids)
    for program in programs:
        tap.equal(jobs.wait(program, 30), 0, "a program with a profiling library ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with them")
    calls = {}
    for state in graph(jobs, capture):
        if "function=MPI_Barrier" in state["labels"] and "at" in state:
            calls[state["at"].partition("@")[0]] = calls.get(state["at"].partition("@")[0], 0) + state["n"]
    tap.ok(set(calls) <= {"sleepers", "libprofiler.so"}, "calls are those of the program, or of the library", calls)
    tap.ok(calls.get("sleepers", 0) > 4 * calls.get("libprofiler.so", 0), "and nearly all are the program's", calls)


def test_large_counts(tap, jobs):
    """Calls with counts of 64 bits equal the program's own count, with their bytes."""
    program = jobs.start([tool("mpich_large_counts"), "--seconds", "3"], "large_counts")
    pid = ready_pid(program)
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    daemon = jobs.start([VAPROD, "--pid", str(pid), "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "a program with large counts ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with it")
    calls = int(re.search(r'"calls":(\d+)', program.out()).group(1))
    states = graph(jobs, capture)
    for function, sites in (("MPI_Allreduce", 2), ("MPI_Bcast", 1), ("MPI_Alltoallv", 1)):
        found = [s["n"] for s in states if "at" in s and f"function={function} " in s["labels"] + " "]
        tap.equal(found, [calls] * sites, f"{function}: each call is counted, at each of its sites")
    sizes = {m.group(1) + "=" + m.group(2) for s in states if "at" not in s
             for m in re.finditer(r"from\.bytes=~?(\d+) from\.function=(MPI_\w+)", s["labels"])}
    # the least size of a cell: eight of them between powers of two
    tap.ok({"768=MPI_Allreduce", "80=MPI_Allreduce", "2816=MPI_Bcast", "4608=MPI_Alltoallv"} <= sizes, "with their bytes", sorted(sizes))


def test_rank_without_mpi(tap, jobs):
    """A process that a launcher gave a rank computes, and has no MPI."""
    program = shutil.copy(tool("hog"), os.path.join(jobs.directory, "no_mpi"))
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off"], "vaprod")
    started(out)
    hog = jobs.start([program, "--cpu", "0", "--seconds", "20", "--share", "0.4"], "no_mpi", env={"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "VAPRO_GO": ""})
    warned = until(lambda: [w for w in of_type(records(out), "warning") if w["code"] == "rank_without_mpi"], 12)
    tap.ok(warned and "has rank 3 in its environment" in warned[0]["text"] and warned[0]["pid"] == hog.process.pid, "is reported", warned)
    jobs.stop(hog)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    tap.ok("no MPI library was found in it" in daemon.err(), "on the terminal as well", daemon.err())


def test_distributed(tap, jobs):
    """Processes without MPI that a launcher such as torchrun starts: one job, with its ranks."""
    program = shutil.copy(tool("crew"), os.path.join(jobs.directory, "distributed"))
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off", "--window", "2"], "vaprod")
    started(out)
    crews = [jobs.start([program, "--seconds", "4", "--delay", "1"], f"crew_{rank}",
                        env={"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "localhost", "MASTER_PORT": "29500",
                             "VAPRO_GO": ""}) for rank in (0, 1)]
    pids = [ready_pid(crew) for crew in crews]
    attached(out, pids)
    tap.equal([jobs.wait(crew, 30) for crew in crews], [0, 0], "two processes without MPI end well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    ranks = {r["pid"]: (r["rank"], r["world_size"], r["job"]["kind"]) for r in of_type(lines, "process")}
    tap.equal(ranks, {pid: (rank, 2, "distributed") for rank, pid in enumerate(pids)}, "they are the ranks of a job of two")
    tap.equal({w["job"] for w in of_type(lines, "window")}, {of_type(lines, "process")[0]["job"]["identity"]}, "they are one job")
    tap.ok(any(w["ranks"] == "0-1" and w["fragments"] > 100 for w in of_type(lines, "window")), "and both are seen")


main(test_names, test_loaded_at_run_time, test_two_libraries, test_profiler, test_large_counts, test_rank_without_mpi, test_distributed)
