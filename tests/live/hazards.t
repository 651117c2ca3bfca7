#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Programs whose actions could fail with probes in their text behave as they do without vaprod."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPROD, attached, graph, j, main, of_type, ready_pid, records, tool  # noqa: E402


def outcome(job, code):
    """What must not depend on vaprod: exit code, and the lines that are not about time or pids."""
    return code, [re.sub(r"=\d{4,}", "=N", line) for line in job.out().splitlines() if not line.startswith('{"ready"')]


def release(directory):
    """The watched program continues; returns the name of the file that it waits for."""
    go = os.path.join(directory, "go")
    with open(go, "w", encoding="utf-8"):
        pass
    return go


def seen(jobs, capture):
    """{function: calls} of the vertices in a capture."""
    found = {}
    for state in graph(jobs, capture):
        match = re.search(r"(?:^| )function=(\w+)", state["labels"])
        if "at" in state and match:
            found[match.group(1)] = found.get(match.group(1), 0) + state["n"]
    return found


def hazard(tap, jobs, name, command, vanish=None, more=()):
    """
    Runs a program bare and watched. vanish: {function: most calls whose return may be missing}; every
    other call that the program logs is in a state.
    """
    bare = jobs.start(command(None), name)
    wanted = outcome(bare, jobs.wait(bare, 30))
    tap.ok(any(line.startswith("result ") for line in wanted[1]), f"{name}: the program runs", bare.out() + bare.err())
    go = os.path.join(jobs.directory, "go")
    job = jobs.start(command(go), name + "_watched")
    pid = ready_pid(job)
    out, capture = os.path.join(jobs.directory, name + ".ndjson"), os.path.join(jobs.directory, name + ".capture")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--capture", capture, "--overhead-cap", "0", "--io", "on",
                         *more], name + "_vaprod")
    attached(out, [pid])
    release(jobs.directory)
    tap.equal(outcome(job, jobs.wait(job, 30)), wanted, f"{name}: exit code and output as without vaprod")
    tap.equal(jobs.wait(daemon, 20), 0, f"{name}: vaprod ends with its target")
    os.unlink(go)
    lines = records(out)
    tap.equal([r["code"] for r in of_type(lines, "warning")], [], f"{name}: no warning")
    tap.equal(lines[-1]["type"], "bye", f"{name}: the last record is bye")
    reported = re.search(r"^result .* calls (.*)$", job.out(), re.M)
    calls = {f: int(n) for f, n in (word.split("=") for word in reported.group(1).split())} if reported else {}
    found = seen(jobs, capture)
    lost = {}
    for window in of_type(lines, "window"):
        for cause, n in window["lost"].items():
            lost[cause] = lost.get(cause, 0) + n
    vanish = vanish or {}
    for function, n in calls.items():
        least = n - vanish.get(function, 0)
        tap.ok(least <= found.get(function, 0) <= n, f"{name}: calls of {function} are seen", f"{found} of {calls}")
    # a system call in which a process or thread ended never returns: there are a few
    tap.ok(lost.get("vanished", 0) <= sum(vanish.values()) + 4 and not any(n for c, n in lost.items() if c != "vanished"),
           f"{name}: only calls that vanished are lost", lost)
    valid = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), out], capture_output=True,
                           text=True, check=False)
    tap.equal(valid.returncode, 0, f"{name}: every line is valid" + ("" if valid.returncode == 0 else valid.stdout[-600:]))
    return lines, found


def of_mpi(name, *arguments):
    def command(go):
        return j.mpirun(1, tool("hazards"), name, go or "/dev/null", *arguments)
    return command


def test_throw_inside(tap, jobs):
    program = jobs.start(j.mpirun(1, tool("throw"), "--count", 300, "--seconds", 1, "--delay", 2, "--inside"), "throw")
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--io", "off", "--overhead-cap", "0"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "exceptions inside a callback work with return probes")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its target")
    lines = records(out)
    # an entry and a return each
    tap.ok(of_type(lines, "process")[-1]["hits"] >= 600, "the calls were seen", of_type(lines, "process")[-1])
    tap.equal(sum(sum(w["lost"].values()) for w in of_type(lines, "window")), 0, "nothing is lost")


def test_cancel(tap, jobs):
    hazard(tap, jobs, "cancel", of_mpi("cancel"), {"MPI_Allreduce": 0, "read": 20})


def test_longjmp(tap, jobs):
    hazard(tap, jobs, "longjmp", of_mpi("longjmp"), {"MPI_Send": 200})


def test_contexts(tap, jobs):
    hazard(tap, jobs, "contexts", of_mpi("contexts"))


def test_switch_inside_a_call(tap, jobs):
    hazard(tap, jobs, "below", of_mpi("below"), {"MPI_Comm_dup": 200})
    hazard(tap, jobs, "above", of_mpi("above"), {"MPI_Comm_dup": 400})


def test_unmap(tap, jobs):
    hazard(tap, jobs, "unmap", lambda go: [tool("unmap"), tool("unmapped/libmpi.so.40"), *([go] if go else [])])


def test_processes(tap, jobs):
    hazard(tap, jobs, "vfork", of_mpi("vfork"))
    hazard(tap, jobs, "fork", of_mpi("fork"))
    lines, _ = hazard(tap, jobs, "exec", of_mpi("exec"))
    tap.ok("exec" in of_type(lines, "process")[-1]["reason"],
           "exec: the reason of the end is exec", of_type(lines, "process")[-1])


def test_setuid(tap, jobs):
    # a directory that an unprivileged user can reach
    directory = os.path.join("/tmp", f"vapro-hazards-{os.getpid()}")
    os.mkdir(directory, 0o755)
    try:
        program = os.path.join(directory, "hazards")
        shutil.copy(tool("hazards"), program)
        os.chmod(program, 0o4755)
        hazard(tap, jobs, "setuid", of_mpi("setuid", program))
    finally:
        shutil.rmtree(directory)


def test_signals(tap, jobs):
    hazard(tap, jobs, "signals", of_mpi("signals"))


def test_seccomp(tap, jobs):
    hazard(tap, jobs, "seccomp", of_mpi("seccomp"))
    hazard(tap, jobs, "filtered", of_mpi("filtered"))


main(test_throw_inside, test_cancel, test_longjmp, test_contexts, test_switch_inside_a_call, test_unmap, test_processes,
     test_setuid, test_signals, test_seccomp)
