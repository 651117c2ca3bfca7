#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""vaprod on running MPI processes: it sees every call, does no harm, and leaves no probe behind."""
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jited  # noqa: E402
from live import (VAPROD, ROOT, attached, j, main, of_type, rank_pids, ready_pid, records, select, text_of, tool,  # noqa: E402
                  until)

BPF, CLONE = ("280", "220") if platform.machine() == "aarch64" else ("321", "56")  # system calls


def own(jobs, name):
    """A copy of a program, for the selection by its path."""
    return shutil.copy(tool(name), os.path.join(jobs.directory, name))


def demo(jobs, seconds, program=None):
    job = jobs.start(j.mpirun(2, program or tool("demo_mpi"), "--seconds", seconds, "--log", jobs.directory, "--scratch", jobs.directory,
                              "--bind"), "demo_mpi")
    return job, rank_pids(job, jobs.directory, 2)


def test_sees_a_running_job(tap, jobs):
    program, pids = demo(jobs, 12)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--window", "3", "--io", "on"], "vaprod")
    attached(out, pids)
    windows = until(lambda: len(of_type(records(out), "window")) >= 2, 20)
    daemon.process.send_signal(signal.SIGINT)
    tap.equal(jobs.wait(daemon, 10), 0, "SIGINT ends it with exit code 0")
    tap.ok(windows, "windows are emitted while it runs")
    lines = records(out)
    tap.equal(lines[0]["type"], "hello", "hello comes first")
    tap.equal(lines[-1]["type"], "bye", "bye comes last")
    tap.equal(lines[0]["workload_source"], "arguments", "hello names the workload source")
    ranks = {r["rank"]: r for r in of_type(lines, "process") if r["state"] == "attached"}
    tap.equal(sorted(ranks), [0, 1], "both ranks are known by number")
    tap.equal({r["world_size"] for r in ranks.values()}, {2}, "the world's size is known")
    tap.ok(all(r["images"][0]["functions"] > 100 for r in ranks.values()), "functions of libmpi are probed", ranks)
    tap.ok(all(r["images"][0]["shifted"] > 0 for r in ranks.values()), "some functions are probed past their entry", ranks)
    maps = {m["class"] for m in of_type(lines, "heatmap")}
    tap.ok("computation" in maps, "there is a heat map of computation", maps)
    lost = {cause: n for w in of_type(lines, "window") for cause, n in w["lost"].items() if n}
    # requests that were under way when it attached are completed without having been posted
    tap.ok(not set(lost) - {"vanished", "unmatched"}, "nothing is lost", lost)
    tap.equal(jobs.wait(program, 30), 0, "the program ends well")
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                           text=True, check=False)
    tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))


def counts(tap, jobs, name, options=(), beside=lambda: None):
    """The records of a vaprod that watches a program that calls MPI_Send 200,000 times a second; all counted."""
    flat_out = own(jobs, "flat_out")
    program = jobs.start(j.mpirun(1, flat_out, "--rate", 200000, "--seconds", 3, "--delay", 2), name)
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, name + ".ndjson")
    daemon = jobs.start([VAPROD, "--exe", flat_out, "--output", out, "--overhead-cap", "0", "--io", "off", *options],
                        "vaprod_" + name)
    attached(out, [pid])
    beside()
    tap.equal(jobs.wait(program, 30), 0, f"{name}: the program ends well")
    daemon.process.send_signal(signal.SIGINT)
    tap.equal(jobs.wait(daemon, 20), 0, f"{name}: vaprod ends well")
    calls = int(program.out().rsplit('"calls":', 1)[1].split(",")[0])
    lines = records(out)
    fragments = sum(w["fragments"] for w in of_type(lines, "window"))
    lost = sum(sum(w["lost"].values()) for w in of_type(lines, "window"))
    # a vertex a call, an edge between two; and MPI_Finalize
    tap.equal(fragments + lost, 2 * calls + 1, f"{name}: every call is in a bundle or counted as lost")
    tap.equal(of_type(lines, "process")[-1]["state"], "exited", f"{name}: the end of the process is reported")
    return lines


def test_counts_every_call(tap, jobs):
    counts(tap, jobs, "merged")


def test_full_ring(tap, jobs):
    """Each fragment is a single, and the ring is full for most of the time; processes come and go beside it."""
    def come_and_go():
        for _ in range(300):
            subprocess.run(["/bin/true"], check=True)
    lines = counts(tap, jobs, "singles", ["--long-fragment", "0", "--ring-bytes", "262144"], come_and_go)
    bundles = sum(w["bundles"] for w in of_type(lines, "window"))
    tap.ok(bundles > 1000, "some fragments are emitted singly", bundles)
    tap.equal([w["text"] for w in of_type(lines, "warning") if w["code"] == "ring_full"], [],
              "no event of a process is lost in a full ring")


def test_kernel_stack(tap, jobs):
    """Programs at uprobes can be preempted, so none of them may have a stack that belongs to the CPU."""
    if platform.machine() != "x86_64":
        return
    add_cpu_offset = bytes.fromhex("654c030c25")  # add %gs:...,%r9: how code finds such a stack
    for rung in ("session", "multi", "perf"):
        out = os.path.join(jobs.directory, rung + ".ndjson")
        daemon = jobs.start([VAPROD, "--exe", "no_such_program", "--attach", rung, "--output", out], rung)
        until(lambda: daemon.process.poll() is not None or (os.path.exists(out) and of_type(records(out), "hello")), 20)
        if daemon.process.poll() is None:
            found = {name: add_cpu_offset in code for name, code in jited.programs() if name.startswith("invocation")}
            tap.ok(found and not any(found.values()), f"{rung}: the programs at uprobes use the kernel's stack", found)
            jobs.interrupt(daemon)


def test_kill_leaves_nothing(tap, jobs):
    program, pids = demo(jobs, 8)
    before = [text_of(pid) for pid in pids]
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out], "vaprod")
    attached(out, pids)
    tap.ok(any(set(text_of(pid)) - set(old) for pid, old in zip(pids, before)), "probes are in the text while it runs")
    daemon.process.send_signal(signal.SIGKILL)
    jobs.wait(daemon, 10)
    tap.ok(until(lambda: all(text_of(pid) == old for pid, old in zip(pids, before)), 5), "after kill -9 the text is as before")
    tap.equal(jobs.wait(program, 30), 0, "the program ends well")


def sets_probes(pid):
    """Whether a process is making links at this moment, by itself or by one that shares its descriptors; None: it ended."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="utf-8") as file:
            words = file.read().split()
    except OSError:
        return None
    return words[0] == CLONE or words[:2] == [BPF, "0x1c"]  # BPF_LINK_CREATE


def test_kill_while_probes_are_set(tap, jobs):
    """kill -9 while the kernel sets probes: it does not undo them for a process that is being killed."""
    program = jobs.start(j.mpirun(8, tool("sleepers"), "--seconds", 300, "--period", 1), "sleepers")
    ready_pid(program)
    pids = [pid for pid in j.descendants(program.pid) if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(tool("sleepers"))]
    before = [text_of(pid) for pid in pids]
    left, killed, leaked = [], 0, j.leaked_probes()
    for skip in range(12):
        daemon = jobs.start([VAPROD, *select(pids), "--output", os.devnull], f"vaprod{skip}")
        setting, seen, end = False, -1, time.monotonic() + 10
        while seen < skip and setting is not None and time.monotonic() < end:
            was, setting = setting, sets_probes(daemon.pid)
            seen += bool(setting and not was)
        killed += setting is True
        time.sleep(0.001 * (skip % 4))
        daemon.process.send_signal(signal.SIGKILL)
        jobs.wait(daemon, 10)
        if not until(lambda: all(text_of(pid) == old for pid, old in zip(pids, before)), 2):
            left.append(skip)
    tap.equal(len(pids), 8, "there are ranks to set probes in")
    tap.ok(killed >= 4, "vaprod was killed while it set probes", killed)
    tap.equal(left, [], "no probe is left")
    tap.equal(j.leaked_probes(), leaked, "the kernel's log has no probes that could not be removed")
    tap.ok(program.process.poll() is None and set(pids) <= set(j.descendants(program.pid)), "the program runs on")


def test_throw(tap, jobs):
    program = jobs.start(j.mpirun(1, tool("throw"), "--count", 300, "--seconds", 2, "--delay", 2), "throw")
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--no-return"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "exceptions pass through MPI calls with --no-return")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    tap.ok(of_type(records(out), "process")[-1]["hits"] >= 300, "the calls were seen")


def test_opt_out(tap, jobs):
    program = jobs.start(j.mpirun(1, tool("flat_out"), "--rate", 1000, "--seconds", 3), "flat_out", env={"VAPRO": "off"})
    pid = ready_pid(program)
    before = text_of(pid)
    out = os.path.join(jobs.directory, "out.ndjson")
    code, daemon = jobs.run([VAPROD, "--pid", pid, "--output", out, "--duration", "1"], "vaprod", 20)
    tap.equal(code, 1, "a process that opted out is refused, exit code 1")
    tap.ok("VAPRO=off" in daemon.err(), "the reason is named", daemon.err())
    tap.equal([r["state"] for r in of_type(records(out), "process")], ["refused"], "the refusal is reported")
    tap.equal(text_of(pid), before, "its text was not touched")


def test_starts_later(tap, jobs):
    out = os.path.join(jobs.directory, "out.ndjson")
    demo_mpi = own(jobs, "demo_mpi")
    daemon = jobs.start([VAPROD, "--exe", demo_mpi, "--output", out, "--duration", "9"], "vaprod")
    until(lambda: os.path.exists(out) and records(out), 20)
    program, pids = demo(jobs, 4, demo_mpi)
    tap.equal(jobs.wait(program, 30), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends after its duration")
    reported = {r["pid"] for r in of_type(records(out), "process") if r["state"] == "attached"}
    tap.equal(reported, set(pids), "processes that start later are found")


def test_hangs_already(tap, jobs):
    """Attached to a job that hangs, vaprod warns that no call begins, and names the call in which each rank sleeps."""
    fifo, out = os.path.join(jobs.directory, "fifo"), os.path.join(jobs.directory, "out.ndjson")
    os.mkfifo(fifo)
    peer = os.open(fifo, os.O_RDWR)  # opens, and writes nothing yet
    program = jobs.start(j.mpirun(2, tool("fifo_reader"), "--fifo", fifo, "--seconds", 1, "--log", jobs.directory), "fifo_reader")
    pids = rank_pids(program, jobs.directory, 2)
    daemon = jobs.start([VAPROD, *select(pids), "--output", out], "vaprod")
    attached(out, pids)

    def said():
        return {w["pid"]: w["text"] for w in of_type(records(out), "warning") if w["code"] == "no_calls"}
    until(lambda: len(said()) == 2, 30)
    tap.equal(sorted(said()), sorted(pids), "a warning says of each rank that no call was seen")
    tap.ok(f"sleeps in read of {fifo}" in said().get(pids[1], ""), "the warning names the call in which the rank sleeps", said())
    os.write(peer, b"x" * 65536)
    tap.equal(jobs.wait(program, 60), 0, "the program continues and ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its targets")
    os.close(peer)
    tap.equal(len([w for w in of_type(records(out), "warning") if w["code"] == "no_calls"]), 2, "each rank is warned of once")
    hits = {r["pid"]: r["hits"] for r in of_type(records(out), "process") if r["state"] == "exited"}
    tap.ok(all(hits.get(pid) for pid in pids), "the later calls are seen", hits)


main(test_sees_a_running_job, test_counts_every_call, test_full_ring, test_kernel_stack, test_kill_leaves_nothing,
     test_kill_while_probes_are_set, test_throw, test_opt_out, test_starts_later,
     test_hangs_already)
