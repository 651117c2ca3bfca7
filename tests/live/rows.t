#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions with probes at their exits: user functions, thread libraries, outlined functions."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, ROOT, attached, j, main, of_type, rank_pids, ready_pid, records, select, text_of, tool, until  # noqa: E402


def states(capture):
    """{(class, from function, to function): calls} of a capture; a vertex has no from."""
    lines = subprocess.run([VAPRO, "stg", "--json", capture], capture_output=True, text=True, check=True).stdout
    found = {}
    for state in map(json.loads, lines.splitlines()):
        labels = dict(word.split("=", 1) for word in state["labels"].split())
        key = (state["class"], labels.get("from.function"), labels.get("to.function", labels.get("function")))
        found[key] = found.get(key, 0) + state["n"]
    return found


def into(found, function):
    return sum(calls for (_, begin, end), calls in found.items() if begin and end == function)


def watch(jobs, pid, *more, cap=0):
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "out.vap"))
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--capture", capture, "--overhead-cap", cap, "--io", "off",
                         *more], "vaprod")
    attached(out, [pid])
    return daemon, out, capture


def last_line(job):
    return json.loads(job.out().splitlines()[-1])


def lost(lines):
    return {cause: n for w in of_type(lines, "window") for cause, n in w["lost"].items() if n}


def test_user_functions(tap, jobs):
    program = jobs.start([tool("solver"), "--calls", 600, "--delay", 2, "--every", 200], "solver")
    pid = ready_pid(program)
    before = text_of(pid)
    config = os.path.join(jobs.directory, "vapro.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("function = exe:sim::advance class=user\nfunction = sol?er:sim::tail\n")
    daemon, out, capture = watch(jobs, pid, "--config", config, "--function", "exe:solve_step", "--function",
                                 "exe:_ZN3sim4riskEi")
    tap.ok(set(text_of(pid)) - set(before), "probes are in the text")
    tap.equal(jobs.wait(program, 30), 0, "exceptions pass through user functions")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    reported, found, lines = last_line(program), states(capture), records(out)
    tap.equal([reported["thrown"], reported["caught"], reported["unwound"]], [300, 300, 600], "exceptions unwind all frames")
    for name, symbol in (("solve_step",) * 2, ("advance", "sim::advance"), ("tail", "sim::tail"), ("risk", "_ZN3sim4riskEi")):
        first = name == "solve_step"  # nothing leads to the very first boundary
        tap.equal(into(found, symbol), reported[name] - first, f"every entry of {name} is seen")
        left = reported[name] - (reported["thrown"] if name == "risk" else 0)
        tap.equal(into(found, symbol + ":exit"), left, f"every exit of {name} but those by exceptions is seen, {left}")
    tap.equal(found.get(("computation", "sim::tail:exit", "solve_step")), reported["tail"],
              "the exit of a function that ends in a tail call precedes the entry of its callee")
    tap.equal(lost(lines), {}, "nothing is lost")
    tap.equal({kind for kind, begin, _ in found}, {"computation"}, "only computation is seen")
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                           text=True, check=False)
    tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))


def test_contains_mpi(tap, jobs):
    program = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 6, "--log", jobs.directory, "--scratch", jobs.directory,
                                  "--bind"), "demo_mpi")
    pids = rank_pids(program, jobs.directory, 2)
    out, capture = (os.path.join(jobs.directory, name) for name in ("two.ndjson", "two.vap"))
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--function",
                         "exe:relax"], "vaprod")
    attached(out, pids)
    tap.equal(jobs.wait(program, 30), 0, "an MPI program with a user function ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its targets")
    found = states(capture)
    tap.ok(into(found, "relax") > 0, "the function is seen", found)
    tap.ok(any(kind == "communication" for kind, _, _ in found), "MPI calls are seen", found)
    # requests that were posted before attachment are completed after it
    tap.ok(not set(lost(records(out))) - {"vanished", "unmatched"}, "nothing is lost", lost(records(out)))


def test_pthread_barrier(tap, jobs):
    program = jobs.start([tool("barriers"), "--threads", 8, "--rounds", 150, "--delay", 3], "barriers")
    pid = ready_pid(program)
    daemon, out, capture = watch(jobs, pid)
    tap.equal(jobs.wait(program, 60), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    found, lines = states(capture), records(out)
    tap.equal(found.get(("communication", None, "pthread_barrier_wait")), 8 * 150, "every wait of every thread is a vertex")
    tap.equal(found.get(("computation", "pthread_barrier_wait", "pthread_barrier_wait")), 8 * 149,
              "the time between two waits is an edge")
    tap.equal(found.get(("communication", None, "pthread_join")), 7, "calls of pthread_join are vertices")
    tap.equal(lost(lines), {}, "nothing is lost")
    image = of_type(lines, "process")[0]["images"][0]
    tap.ok("libc" in image["path"] and image["functions"] >= 6, "the image is reported", image)


def test_threads_off(tap, jobs):
    program = jobs.start([tool("barriers"), "--threads", 4, "--rounds", 50, "--delay", 2], "barriers")
    pid = ready_pid(program)
    before = text_of(pid)
    daemon, out, _ = watch(jobs, pid, "--threads", "off", "--function", "exe:nowhere")
    tap.equal(text_of(pid), before, "with --threads off libc has no probe")
    tap.equal(jobs.wait(program, 60), 0, "the program ends well")
    jobs.wait(daemon, 20)
    tap.equal(of_type(records(out), "process")[-1]["hits"], 0, "no probe was hit")
    tap.equal([w["code"] for w in of_type(records(out), "warning")], ["function_missing"], "a function that is nowhere is reported")


def test_openmp(tap, jobs):
    for name, barrier, fork in (("team", "GOMP_barrier", "GOMP_parallel"), ("team_llvm", "__kmpc_barrier", "__kmpc_fork_call")):
        program = jobs.start([tool(name), "--threads", 4, "--regions", 120, "--delay", 2], name)
        pid = ready_pid(program)
        daemon, out, capture = watch(jobs, pid)
        tap.equal(jobs.wait(program, 60), 0, f"{name} ends well")
        tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
        found, lines = states(capture), records(out)
        reported = last_line(program)
        tap.equal(reported["ran"], 4 * 121, "the regions ran")
        waits = {end: n for (kind, begin, end), n in found.items() if kind == "communication" and not begin and end.endswith(":barrier")}
        # the first region after attachment shows the function's address
        tap.equal(list(waits.values()), [4 * 119], "every region of every thread ends in a wait")
        tap.equal(found.get(("communication", None, barrier)), 4 * 120, "every barrier of every thread is seen")
        # the function of the first region is not known in time: the time of its threads is not counted as a wait
        tap.equal(found.get(("communication", None, fork)), 119, "every fork but the first is seen")
        for function in waits:
            tap.equal(found.get(("computation", barrier, function)), 4 * 119, "computation ends with the region")
        tap.equal(lost(lines), {"governed": 1}, "only the first fork is lost")


def test_thinning(tap, jobs):
    program = jobs.start([tool("solver"), "--calls", 30000000, "--delay", 2], "solver")
    pid = ready_pid(program)
    daemon, out, _ = watch(jobs, pid, "--function", "exe:sim::advance", "--window", 2, "--duration", 14, cap=2)
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends after its duration")
    warnings = [w for w in of_type(records(out), "warning") if w["code"] == "thinned"]
    tap.equal(len(warnings), 1, "a function that is called too often is left out, with one warning")
    tap.ok(warnings and "sim::advance" in warnings[0]["text"] and "calls/s" in warnings[0]["text"],
           "the warning names the function and its rate", warnings)
    tap.equal(of_type(records(out), "process")[0]["state"], "attached", "the process stays watched")
    skipped = [s for i in of_type(records(out), "process")[-1]["images"] for s in i["skipped"] if "too expensive" in s["reason"]]
    tap.equal([s["function"] for s in skipped], ["sim::advance"], "the process record names the function that is left out")
    tap.equal(program.process.poll(), None, "the program continues")
    jobs.stop(program)


def waiting(capture):
    """{function of a barrier: calls} of a capture."""
    return {end: n for (kind, begin, end), n in states(capture).items()
            if kind == "communication" and not begin and end.endswith(":barrier")}


def test_team_of_one(tap, jobs):
    program = jobs.start([tool("team"), "--threads", 1, "--regions", 60, "--delay", 2], "one")
    pid = ready_pid(program)
    daemon, _, capture = watch(jobs, pid)
    tap.equal(jobs.wait(program, 60), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    tap.equal(waiting(capture), {}, "a team of one thread waits at no barrier")
    tap.equal(sum(n for (kind, _, end), n in states(capture).items() if kind == "computation" and end.endswith("GOMP_parallel")), 58,
              "the time between its regions is computation")


def test_hot_regions(tap, jobs):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        wide = ["regions_avx512"] if "avx512vl" in file.read() else []
    for name in ["regions", "regions_llvm", *wide]:
        program = jobs.start([tool(name), "--seconds", 8, "--elements", 400, "--delay", 1], name, env={"OMP_NUM_THREADS": "2"})
        pid = ready_pid(program)
        daemon, out, capture = watch(jobs, pid, cap=2)
        tap.equal(jobs.wait(program, 60), 0, f"{name} ends well")
        tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
        lines = records(out)
        thinned = [w["text"] for w in of_type(lines, "warning") if w["code"] == "thinned"]
        tap.ok(0 < len(thinned) <= 6, "functions that are called too often are left out, reported together", thinned)
        skipped = {s["function"] for i in of_type(lines, "process")[-1]["images"] for s in i["skipped"] if "too expensive" in s["reason"]}
        tap.ok(skipped, "the process record names the functions that are left out")
        tap.equal([w["text"] for w in of_type(lines, "warning") if "cannot be watched" in w["text"]], [], "every function is decoded")
        check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                               text=True, check=False)
        tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))


main(test_user_functions, test_contains_mpi, test_pthread_barrier, test_threads_off, test_openmp, test_thinning,
     test_team_of_one, test_hot_regions)
