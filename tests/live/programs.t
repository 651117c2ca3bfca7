#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of threads without MPI, found by their names and as a command; hybrid programs, and regions whose functions are not seen."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, attached, graph, j, losses, main, of_type, rank_pids, ready_pid, records, select, tool, until  # noqa: E402

ASLEEP = {"OMP_WAIT_POLICY": "passive"}


def test_by_name(tap, jobs):
    for name in ("crew", "crew_omp", "crew_llvm"):
        out = os.path.join(jobs.directory, name + ".ndjson")
        daemon = jobs.start([VAPROD, "--exe", tool(name), "--output", out, "--io", "off", "--window", 2], name + "_vaprod")
        until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
        crew = jobs.start([tool(name), "--seconds", 3, "--delay", 1], name, env=ASLEEP)
        pid = ready_pid(crew)
        attached(out, [pid])
        tap.equal(jobs.wait(crew, 30), 0, f"{name} ends well")
        tap.equal(jobs.interrupt(daemon), 0, "and vaprod at SIGINT")
        lines = records(out)
        tap.ok(sum(w["fragments"] for w in of_type(lines, "window")) > 100, f"{name} was seen, found by its name")
        tap.equal({r["pid"] for r in of_type(lines, "process")}, {pid}, "no other process is attached")


def test_running_by_name(tap, jobs):
    crew = jobs.start([tool("crew"), "--seconds", 3, "--delay", 1], "crew")
    pid = ready_pid(crew)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "crew", "--output", out, "--io", "off", "--window", 2], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(crew, 30), 0, "a program that runs already is found by its name, and ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")


def test_as_command(tap, jobs):
    for name, command in (("crew_omp", [tool("crew_omp")]), ("crew", [tool("crew")]),
                          ("script", ["/bin/sh", "-c", tool("crew_llvm") + " --seconds 4; true"])):
        out = os.path.join(jobs.directory, name + ".ndjson")
        seconds = [] if name == "script" else ["--seconds", 4]
        code, job = jobs.run([VAPRO, "run", "--output", out, "--io", "off", "--", *command, *seconds], name, 60,
                             env={**ASLEEP, "VAPRO_GO": ""})
        tap.equal(code, 0, f"vapro run: {name} ends well")
        lines = records(out)
        exes = {os.path.basename(r["exe"]) for r in of_type(lines, "process") if r["state"] == "attached"}
        tap.equal(exes, {"crew_llvm" if name == "script" else name}, "only the program is attached")
        tap.ok(sum(w["fragments"] for w in of_type(lines, "window")) > 50, "the threads of the program are seen", job.err())


def test_hybrid(tap, jobs):
    for name, threads, more in (("funneled", 4, []), ("multiple", 2, ["--multiple"])):
        logs = os.path.join(jobs.directory, name)
        os.makedirs(logs, exist_ok=True)
        for old in os.listdir(logs):
            os.unlink(os.path.join(logs, old))
        program = jobs.start(j.mpirun(2, tool("hybrid"), "--threads", threads, "--rounds", 100, "--delay", 2, "--log", logs, *more),
                             name, env=ASLEEP)
        pids = rank_pids(program, logs, 2)
        out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
        daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0"],
                            name + "_vaprod")
        attached(out, pids)
        tap.equal(jobs.wait(program, 60), 0, f"{name}: the program ends well")
        tap.equal(jobs.wait(daemon, 20), 0, f"{name}: vaprod ends with its targets")
        lines = records(out)
        ranks = {r["pid"]: r["rank"] for r in of_type(lines, "process") if r["state"] == "attached"}
        tap.equal(ranks, dict(zip(pids, (0, 1))), f"{name}: the ranks are right")
        functions = ("MPI_Sendrecv", "MPI_Sendrecv_replace") if more else ("MPI_Allreduce",)
        for rank in (0, 1):
            with open(os.path.join(logs, f"calls.{rank}"), encoding="utf-8") as file:
                reported = [int(line.split()[2]) for line in file]
            found = [sum(state["n"] for state in graph(jobs, capture, "--rank", str(rank))
                         if "at" in state and f" function={function} " in f" {state['labels']} ") for function in functions]
            tap.equal(found, reported, f"{name}: rank {rank}: the calls of each thread are counted, {reported}")
        teams = {s["labels"]: s["n"] for s in graph(jobs, capture) if ":barrier" in s["labels"] and "at" in s}
        parts = sum(teams.values())
        tap.ok(2 * threads * 99 <= parts <= 2 * threads * 100,
               f"{name}: every part of every region is counted, but perhaps of the first region", parts)
        # governed: the function of the first region is not known in time, so that its time is not counted as a wait
        tap.ok(not set(losses(lines)) - {"approximated", "governed"}, f"{name}: nothing is lost", losses(lines))


def test_unseen_functions(tap, jobs):
    """A region whose function cannot be probed is one computation of the thread that begins it: no wait, and not unseen."""
    program = os.path.join(jobs.directory, "bare")
    code, job = jobs.run(["objcopy", "--strip-all", "-R", ".eh_frame", "-R", ".eh_frame_hdr", tool("hybrid_steps"), program], "objcopy", 20)
    tap.ok(code == 0, "the unwind information is removed", job.err())
    steps = jobs.start([program, "--seconds", 6, "--log", jobs.directory], "bare", env={"OMP_NUM_THREADS": "2"})
    out, capture = (os.path.join(jobs.directory, name) for name in ("bare.ndjson", "bare.capture"))
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0"], "vaprod")
    tap.equal(jobs.wait(steps, 30), 0, "a program without unwind information ends well")
    jobs.stop(daemon)
    skipped = {s["reason"] for i in of_type(records(out), "process")[-1]["images"] for s in i["skipped"]}
    tap.equal(skipped, {"size unknown"}, "its functions are left out, with the reason")
    states = graph(jobs, capture)
    regions = [s for s in states if "at" not in s and "from.function=GOMP_parallel " in s["labels"] and ":exit" in s["labels"]]
    # The probes of MPI are linked some steps before those of the OpenMP runtime: regions are compared with calls of the runtime.
    begun = sum(s["n"] for s in states if "from.function=MPI_Allreduce " in s["labels"] and "to.function=GOMP_parallel" in s["labels"])
    tap.ok(begun > 50 and sum(s["n"] for s in regions) >= begun - 1, "each region is a computation", (regions, begun))
    tap.equal([s for s in states if "at" in s and "function=GOMP_parallel " in s["labels"]], [], "and no wait")


main(test_by_name, test_running_by_name, test_as_command, test_hybrid, test_unseen_functions)
