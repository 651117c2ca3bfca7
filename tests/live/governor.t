#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The budget on overhead: what is suppressed, closed and restored, and that all of it is reported. Structure, no times."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, ROOT, attached, graph, j, losses, main, of_type, ready_pid, records, tool, until, works  # noqa: E402


def own(jobs, name, called):
    """A copy of a program under its own name, for the selection by name."""
    path = os.path.join(jobs.directory, called)
    shutil.copy(tool(name), path)
    return path


def watch(jobs, called, *options):
    """Starts vaprod before its target: (daemon, its output, its hello)."""
    out = os.path.join(jobs.directory, "out.ndjson")
    if os.path.exists(out):
        os.unlink(out)  # of a vaprod before this one
    daemon = jobs.start([VAPROD, "--exe", called, "--output", out, "--io", "off", "--window", 3, *options], "vaprod")
    hello = until(lambda: os.path.exists(out) and of_type(records(out), "hello"), 20)
    if not hello:
        raise RuntimeError("vaprod emits no hello: " + daemon.err())
    return daemon, out, hello[0]


def warned(lines, code):
    return [w["text"] for w in of_type(lines, "warning") if w["code"] == code]


def governed_share(lines):
    """Shares of the windows that are reported as governed, in percent."""
    return [sum(u["time_pct_of_job"] for u in w["uncovered"] if u["reason"] == "governed") for w in of_type(lines, "window")]


def valid(tap, out):
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                           text=True, check=False)
    tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))


def test_flat_out(tap, jobs):
    """Calls far over the budget, then few calls: probes are in a duty cycle at first, and stay open at the end."""
    program = own(jobs, "rounds", "rounds_flat_out")
    daemon, out, hello = watch(jobs, "rounds_flat_out")
    tap.ok(hello["tunables"]["overhead_budget"] == 1 and hello["tunables"]["overhead_cap"] == 2, "hello has budget and cap")
    job = jobs.start(j.mpirun(1, program, "--us", 40000, "--phase", "10000:12", "--phase", "1:45", "--delay", 5), "rounds")
    pid = ready_pid(job)
    attached(out, [pid])
    tap.equal(jobs.wait(job, 100), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    reported = [text for text in warned(lines, "governed") if "closed for" in text]
    tap.ok(reported, "a warning reports that probes are closed", warned(lines, "governed"))
    # the first one may be about the part of the budget that calls have
    tap.ok(any(all(words in text for words in (f"process {pid}", "calls/s", "MPI_Send", "over the budget of 1 %")) for text in reported),
           "the warning names process, rate, functions and budget", reported)
    calls = sum(phase["rounds"] + phase["short"] for phase in json.loads(job.out().splitlines()[-1])["phases"])
    hits = of_type(lines, "process")[-1]["hits"]
    tap.ok(0 < hits < calls, "some calls were not probed", (hits, calls))
    shares = governed_share(lines)
    tap.ok(max(shares) > 50, "the gaps are reported as governed", shares)
    tap.ok(any("stay open again" in text for text in warned(lines, "released")), "probes stay open when the rate has fallen",
           warned(lines, "released"))
    tap.equal(shares[-2:], [0, 0], "no time is governed at the end")
    valid(tap, out)


def test_own_time(tap, jobs):
    """A program with few calls, and vaprod on its only CPU: the CPU time of vaprod is reported as overhead."""
    program = own(jobs, "flat_out", "flat_out_slowly")
    daemon, out, hello = watch(jobs, "flat_out_slowly", "--cpus", 0, "--learn", 0)
    job = jobs.start(j.mpirun(1, program, "--rate", 0.5, "--seconds", 12, "--delay", 5, "--cpu", 0), "flat_out")
    pid = ready_pid(job)
    attached(out, [pid])
    tap.equal(jobs.wait(job, 60), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    costs = hello["costs"]
    hit = costs["entry_ns"] + costs["return_ns"] + max(p["entry_ns"] + p["return_ns"] for p in costs["pauses"])
    calls = 100 * 0.5 * hit * 1e-9  # percent of a second, each as expensive as the most expensive
    reported = [w["overhead_pct"]["max"] for w in of_type(lines, "window") if w["overhead_pct"]["max"]]
    tap.ok(reported and max(reported) > calls,
           "the overhead includes vaprod's own time: the calls alone cost less", (reported, calls))
    tap.ok(len(costs["pauses"]) == 12 and costs["pauses"][0]["from_ns"] == 4000, "hello has the cost that pauses add", costs)
    valid(tap, out)


def test_short_states(tap, jobs):
    """Many short calls a little over the budget: their returns are suppressed, and no probe is closed."""
    if not works("session"):
        return
    program = own(jobs, "rounds", "rounds_of_short_calls")
    capture = os.path.join(jobs.directory, "run.capture")
    for _ in range(8):  # what is calibrated in a disturbed moment may say that returns cost nothing: then none is suppressed
        daemon, out, hello = watch(jobs, "rounds_of_short_calls", "--capture", capture, "--overhead-budget", 2, "--overhead-cap", 8)
        costs = hello["costs"]
        if costs["return_ns"] > 0.4 * costs["entry_ns"]:  # else the rate below may keep the budget with all returns
            break
        jobs.interrupt(daemon)
    else:
        print(f"# test_short_states: a return costs {costs['return_ns']} ns beside {costs['entry_ns']} ns here: none is suppressed")
        return
    pair = costs["entry_ns"] + costs["return_ns"]
    # too expensive with their returns, cheap enough without; 0.85: the BPF program takes longer than in the calibration
    calls_s = 0.85 * 0.018 / pair * (pair / costs["entry_ns"]) ** 0.5 * 1e9
    short = 1000  # so many that the pause after them adds little to a call
    us = round((short + 1) / calls_s * 1e6)
    job = jobs.start(j.mpirun(1, program, "--us", us, "--phase", f"{short}:24", "--phase", f"0:26", "--delay", 5), "rounds")
    pid = ready_pid(job)
    attached(out, [pid])
    tap.equal(jobs.wait(job, 100), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    reported = [text for text in warned(lines, "governed") if "are no longer timed" in text]
    tap.ok(reported and f"process {pid}" in reported[0] and "saves" in reported[0],
           "a warning reports suppressed returns and what this saves",
           warned(lines, "governed"))
    tap.ok(any("all returns are seen again" in text for text in warned(lines, "released")),
           "returns are restored when the rate falls",
           warned(lines, "released"))
    tap.ok(losses(lines).get("governed", 0) > 0, "suppressed fragments are counted as lost", losses(lines))
    shares = governed_share(lines)
    tap.ok(max(shares) > 0, "their time is reported as governed", shares)
    tap.equal(shares[-2:], [0, 0], "no time is governed at the end")
    calls = 1 + sum(phase["rounds"] + phase["short"] for phase in json.loads(job.out().splitlines()[-1])["phases"])
    vertices = edges = 0
    for state in graph(jobs, capture):
        if "from" in state:
            edges += state["n"]
        else:
            vertices += state["n"]
    suppressed = losses(lines).get("governed", 0) // 2
    tap.ok(suppressed > 1000, "many calls were suppressed", (suppressed, vertices))
    valid(tap, out)
    closed = [text for text in warned(lines, "governed") if "are closed for" in text]
    if closed:  # vaprod's own time counts as well: on a slow host it may be a quarter of the budget
        print(f"# test_short_states: probes were closed, too, and these calls are a gap, not counted: {closed[0]}")
        return
    # where the daemon counts what it has emitted, some of the last second may be under way
    tap.ok(abs(calls - vertices - suppressed) <= 2, "each call is emitted or counted", (calls, vertices, suppressed))
    # an emitted call is followed by a computation; a suppressed one by none, or two would be joined
    tap.ok(abs(vertices - 1 - edges) <= 2, "no computation spans a suppressed call", (vertices, edges))


def label(state, key):
    return dict(pair.split("=", 1) for pair in state["labels"].split()).get(key)


def test_posts(tap, jobs, mode=None):
    """Many posts per completion, of one rank to itself: posts are removed first, and the labels of all states name them."""
    program = own(jobs, "busy_calls", "busy_posts")
    capture = os.path.join(jobs.directory, "run.capture")
    daemon, out, _ = watch(jobs, "busy_posts", "--capture", capture, "--overhead-budget", 0.2, "--overhead-cap", 2)
    job = jobs.start(j.mpirun(1, program, "--rate", 40000, "--seconds", 20, "--delay", 5, *([mode] if mode else [])), "busy_calls")
    attached(out, [ready_pid(job)])
    tap.equal(jobs.wait(job, 120), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    names = ("Start",) if mode else ("Irecv", "Isend")
    reported = warned(lines, "coarser")
    tap.ok(reported and "calls/s" in reported[0] and "never wait" in reported[0],
           "a warning reports that posts are not probed any more", reported)
    tap.ok(1 <= len(reported) <= 2, "the warning is emitted once, or twice where the first choice was too small", reported)
    states = graph(jobs, capture)
    without = [s for s in states if label(s, "without")]
    tap.ok(any(all(name in label(s, "without").split(",") for name in names) for s in without),
           "labels of states name the functions that are left out",
           [s["labels"] for s in states])
    tap.ok(not any(label(s, "function") in [f"MPI_{name}" for name in label(s, "without").split(",")] for s in without if "at" in s),
           "no state is of a function that is left out", [s["labels"] for s in without])
    completions = [s for s in without if "at" in s and label(s, "function") == "MPI_Waitall"]
    tap.ok(completions and all(label(s, "bytes") == "unknown" and label(s, "requests") == "8" for s in completions),
           "completions have unknown bytes and their number of requests", [s["labels"] for s in completions])
    tap.ok(any("from" in s and label(s, "from.bytes") == "unknown" for s in without),
           "the time between completions is computation")
    tap.ok(not losses(lines).get("unmatched"), "no request is counted as unmatched", losses(lines))
    valid(tap, out)


def test_persistent(tap, jobs):
    test_posts(tap, jobs, "--start")


def test_flushes(tap, jobs):
    """Many flushes that can wait and do not: they are left out, and other calls are seen, with labels that say so."""
    if not works("session") and not works("multi"):
        return  # perf links have the common functions only
    program = own(jobs, "busy_calls", "busy_flushes")
    capture = os.path.join(jobs.directory, "run.capture")
    daemon, out, _ = watch(jobs, "busy_flushes", "--capture", capture, "--overhead-budget", 0.2, "--overhead-cap", 2)
    job = jobs.start(j.mpirun(1, program, "--rate", 40000, "--seconds", 20, "--delay", 5, "--flush"), "busy_calls")
    attached(out, [ready_pid(job)])
    tap.equal(jobs.wait(job, 120), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    reported = warned(lines, "coarser")
    tap.ok(reported and all(words in reported[0] for words in ("calls/s", "hardly ever wait (Win_flush_local_all)", "is covered instead of")),
           "a warning names the function that is not probed any more, and what that brings", reported)
    without = [s for s in graph(jobs, capture) if label(s, "without")]
    tap.ok(any("at" in s and label(s, "function") == "MPI_Barrier" for s in without), "other calls are seen",
           [s["labels"] for s in without])
    tap.ok(not any(label(s, "function") == "MPI_Win_flush_local_all" for s in without if "at" in s),
           "no state is of the function that is left out", [s["labels"] for s in without])
    valid(tap, out)


def test_slow_caller(tap, jobs):
    program = own(jobs, "flat_out", "slow_flat_out")
    daemon, out, _ = watch(jobs, "slow_flat_out")
    job = jobs.start(j.mpirun(1, program, "--rate", 40, "--seconds", 13, "--delay", 5), "flat_out")
    attached(out, [ready_pid(job)])
    tap.equal(jobs.wait(job, 60), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    tap.equal(warned(lines, "governed") + warned(lines, "thinned"), [], "a program with few calls is never governed")
    tap.equal(set(governed_share(lines)), {0}, "none of its time is governed")
    tap.ok(not losses(lines).get("governed"), "none of its fragments is suppressed", losses(lines))


def test_no_cap(tap, jobs):
    program = own(jobs, "flat_out", "flat_out_without_cap")
    daemon, out, _ = watch(jobs, "flat_out_without_cap", "--overhead-cap", 0)
    job = jobs.start(j.mpirun(1, program, "--rate", 100000, "--seconds", 3, "--delay", 5), "flat_out")
    attached(out, [ready_pid(job)])
    tap.equal(jobs.wait(job, 60), 0, "the program ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    lines = records(out)
    calls = json.loads(job.out().splitlines()[-1])["calls"]
    tap.ok(of_type(lines, "process")[-1]["hits"] >= calls, "without a cap every call is probed")
    tap.equal(warned(lines, "governed"), [], "without a cap nothing is governed")


def test_io(tap, jobs):
    """System calls far over the budget: suppressed for that process and, since all processes pay for them, not traced on the node."""
    out = os.path.join(jobs.directory, "out.ndjson")
    job = jobs.start([tool("bystander"), "--mode", "read", "--seconds", 18], "bystander")
    pid = job.pid
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--io", "auto", "--window", 3], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(job, 60), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    lines = records(out)
    reported = [text for text in warned(lines, "governed") if "system calls" in text]
    tap.ok(reported and f"process {pid}" in reported[0],
           "a warning reports that system calls are suppressed", warned(lines, "governed"))
    tap.ok(losses(lines).get("governed", 0) > 1000, "suppressed system calls are counted", losses(lines))
    tap.ok(max(governed_share(lines)) > 50, "their time is reported as governed", governed_share(lines))
    io = [w["io"] for w in of_type(lines, "window")]
    tap.ok(any(w["node_tax_pct"] > 1 for w in io), "windows have the cost of tracing for the node", io)
    tap.ok(len(warned(lines, "io_not_worth")) == 1 and "system calls/s" in warned(lines, "io_not_worth")[0],
           "IO is not traced any more, since its cost is above the budget", warned(lines, "io_not_worth"))
    tap.equal(io[-1], {"traced_pct": 0, "node_tax_pct": 0}, "at the end tracing of IO costs nothing")
    valid(tap, out)


def test_io_at_once(tap, jobs):
    """The IO of a process that did IO before it was attached is traced at once: vaprod ends before its second check."""
    out = os.path.join(jobs.directory, "out.ndjson")
    job = jobs.start([tool("bystander"), "--mode", "read", "--seconds", 6], "bystander")
    tap.ok(j.until(lambda: reads_of(job.pid) > 1000, 5), "the program reads before it is watched")
    code, daemon = jobs.run([VAPROD, "--pid", job.pid, "--output", out, "--io", "auto", "--duration", "900ms"], "vaprod", 20)
    tap.equal(code, 0, f"vaprod ends well {daemon.err()[-200:]}")
    tap.ok(sum(w["fragments"] for w in of_type(records(out), "window")) > 0, "the IO of the process is emitted")
    tap.equal(jobs.wait(job, 20), 0, "the program ends well")


def reads_of(pid):
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return int(file.read().split("syscr:")[1].split()[0])


main(test_io, test_io_at_once, test_posts, test_persistent, test_flushes, test_flat_out, test_own_time, test_short_states, test_slow_caller, test_no_cap)
