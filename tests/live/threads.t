#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""Threads as rows: one of eight is disturbed; programs without MPI are found by name and as a command; hybrid programs."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, attached, graph, j, losses, main, of_type, rank_pids, ready_pid, records, select, tool, until  # noqa: E402
import truth as t  # noqa: E402

ASLEEP = {"OMP_WAIT_POLICY": "passive"}


def prefer(job):
    """Gives the session of a job a larger share of the CPUs, so that other work does not disturb it; needs autogroups."""
    try:
        with open(f"/proc/{job.pid}/autogroup", "w", encoding="utf-8") as file:
            file.write("-15")
    except OSError:
        pass


def waited_s(pid, tid):
    """Seconds that a thread had work and no CPU so far."""
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="utf-8") as file:
        return int(file.read().split()[1]) / 1e9


def disturb_once(tap, jobs, options):
    """A crew with a hog on the CPU of its last thread. Returns (that thread, its run delay in s, vaprod's records)."""
    crew = jobs.start([tool("crew"), "--seconds", 30, "--delay", 1, "--log", jobs.directory, *options], "crew")
    prefer(crew)
    pid = ready_pid(crew)
    victim = json.loads(crew.out().splitlines()[0])["tids"][-1]
    out = os.path.join(jobs.directory, "out.ndjson")
    if os.path.exists(out):
        os.unlink(out)
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--duration", 18, "--window", 6, "--io", "off"], "vaprod")
    attached(out, [pid])
    before = waited_s(pid, victim)
    prefer(jobs.start([tool("hog"), "--cpu", 0, "--start-after", 8, "--seconds", 3], "hog"))
    tap.equal(jobs.wait(daemon, 40), 0, "vaprod ends after its duration")
    tap.equal(crew.process.poll(), None, "the program continues")
    delay_s = waited_s(pid, victim) - before
    jobs.stop(crew)
    return victim, delay_s, records(out)


def disturb(tap, jobs, *options):
    """
    Returns (the disturbed thread, vaprod's records, alarms of the hog). By the kernel's own account the hog must
    have used its CPU, else there is no alarm to find, and the run is repeated. Where the host stops a CPU at the
    same time, the other threads on it are reported with it.
    """
    for _ in range(3):
        victim, delay_s, lines = disturb_once(tap, jobs, options)
        if delay_s >= 0.5:
            break
        print(f"# the hog took only {delay_s:.2f} s from the thread: once more", file=sys.stderr, flush=True)
    tap.ok(delay_s >= 0.5, "the hog takes the CPU from the thread", delay_s)
    hits = [v for v in t.variances(lines).values() if v["alarm"] and victim in [thread["tid"] for thread in v["threads"]]
            and [i["comm"] for i in t.diagnosis(lines, v["id"])[1]][:1] == ["hog"]]
    tap.ok(hits, "an alarm names the disturbed thread and the hog",
           [(v["who"], v["alarm"], v["lost_seconds"], v["evidence"]) for v in t.variances(lines).values()])
    tap.equal({v["class"] for v in hits}, {"computation"}, "the alarms are of computation")
    return victim, lines, hits


def test_disturbed_thread(tap, jobs):
    victim, lines, hits = disturb(tap, jobs)
    waits = [v for v in t.variances(lines).values() if v["effect_of"] in [hit["id"] for hit in hits]]
    tap.ok({thread["tid"] for v in waits for thread in v["threads"]} - {victim},
           "other threads wait for it, as an effect of the alarm",
           [(v["who"], v["evidence"]) for v in waits])
    tap.ok(all(" of this process" in v["who"] for v in hits), "a process without rank is called this process", hits)


def test_disturbed_in_varying_work(tap, jobs):
    """The time that the hog takes is lost, although such work has no reference."""
    _, lines, _ = disturb(tap, jobs, "--vary", 2)
    states = [gap for w in of_type(lines, "window") for gap in w["uncovered"] if gap["class"] == "computation"]
    tap.ok(any(gap["reason"] == "spread" for gap in states), "and the work is reported to vary", states)


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


main(test_disturbed_thread, test_disturbed_in_varying_work, test_by_name, test_running_by_name, test_as_command, test_hybrid,
     test_unseen_functions)
