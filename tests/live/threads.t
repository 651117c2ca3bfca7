#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads as rows: one of eight is disturbed; programs without MPI are found by name and as a command; hybrid programs."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, ROOT, attached, graph, j, main, of_type, ready_pid, records, tool, until  # noqa: E402
import truth as t  # noqa: E402

ASLEEP = {"OMP_WAIT_POLICY": "passive"}


def test_disturbed_thread(tap, jobs):
    crew = jobs.start([tool("crew"), "--seconds", 30, "--delay", 1, "--log", jobs.directory], "crew")
    pid = ready_pid(crew)
    victim = json.loads(crew.out().splitlines()[0])["tids"][-1]
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--duration", 18, "--window", 6, "--io", "off"], "vaprod")
    attached(out, [pid])
    jobs.start([tool("hog"), "--cpu", 0, "--start-after", 9, "--seconds", 3], "hog")
    tap.equal(jobs.wait(daemon, 40), 0, "vaprod ends after its duration")
    tap.equal(crew.process.poll(), None, "the program runs on")
    jobs.stop(crew)
    lines = records(out)
    alarms = [v for v in t.variances(lines).values() if v["alarm"]]
    hits = [v for v in alarms if [thread["tid"] for thread in v["threads"]] == [victim]
            and any(i["comm"] == "hog" for i in t.diagnosis(lines, v["id"])[1])]
    tap.ok(hits, "an alarm names the disturbed thread and the hog", alarms)
    tap.equal({v["class"] for v in hits}, {"computation"}, "as computation")
    waits = [v for v in t.variances(lines).values() if v["effect_of"] in [hit["id"] for hit in hits]]
    tap.ok(waits and not any(thread["tid"] == victim for v in waits for thread in v["threads"]),
           "the others' waiting is its effect", waits)
    tap.ok(all(" of this process" in v["who"] for v in hits), "a process without rank is called this process", hits)


def test_by_name(tap, jobs):
    for name, delay in (("crew", 1), ("crew_omp", 1), ("crew_llvm", 1)):
        out = os.path.join(jobs.directory, name + ".ndjson")
        daemon = jobs.start([VAPROD, "--exe", tool(name), "--output", out, "--io", "off", "--window", 2], name + "_vaprod")
        until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
        crew = jobs.start([tool(name), "--seconds", 3, "--delay", delay], name, env=ASLEEP)
        pid = ready_pid(crew)
        attached(out, [pid])
        tap.equal(jobs.wait(crew, 30), 0, f"{name} ends well")
        tap.equal(jobs.interrupt(daemon), 0, "and vaprod when it is told to")
        lines = records(out)
        tap.ok(sum(w["fragments"] for w in of_type(lines, "window")) > 100, f"{name} was seen, found by its name")
        tap.equal({r["pid"] for r in of_type(lines, "process")}, {pid}, "and nobody else")


def test_running_by_name(tap, jobs):
    crew = jobs.start([tool("crew"), "--seconds", 3, "--delay", 1], "crew")
    pid = ready_pid(crew)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "crew", "--output", out, "--io", "off", "--window", 2], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(crew, 30), 0, "a program that ran already is found by its name, and ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends")


def test_as_command(tap, jobs):
    for name, command in (("crew_omp", [tool("crew_omp")]), ("crew", [tool("crew")]),
                          ("script", ["/bin/sh", "-c", tool("crew_llvm") + " --seconds 4; true"])):
        out = os.path.join(jobs.directory, name + ".ndjson")
        seconds = [] if name == "script" else ["--seconds", 4]
        code, job = jobs.run([VAPRO, "run", "--output", out, "--io", "off", "--", *command, *seconds], name, 60, env=ASLEEP)
        tap.equal(code, 0, f"vapro run: {name} ends well")
        lines = records(out)
        exes = {os.path.basename(r["exe"]) for r in of_type(lines, "process") if r["state"] == "attached"}
        tap.equal(exes, {"crew_llvm" if name == "script" else name}, "the program is watched, and it alone")
        tap.ok(sum(w["fragments"] for w in of_type(lines, "window")) > 50, "its threads are seen", job.err())


main(test_disturbed_thread, test_by_name, test_running_by_name)
os.environ.pop("VAPRO_GO", None)
main(test_as_command, held=False)
