#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""States of a process that pass: a tracer, a frozen cgroup; an executable with a long path; code that was moved."""
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, attached, freezer, main, of_type, ready_pid, records, tool, until  # noqa: E402


def test_traced(tap, jobs):
    """A process that is traced when it is found is attached once the tracer has gone."""
    program = jobs.start([tool("sleepers"), "--seconds", "30", "--period", "0.2"], "sleepers")
    pid = ready_pid(program)
    tracer = jobs.start([sys.executable, "-c", TRACER, str(pid)], "tracer")
    until(lambda: "attached" in tracer.out(), 10)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", str(pid), "--output", out, "--io", "off"], "vaprod")
    refused = until(lambda: os.path.exists(out) and [r for r in of_type(records(out), "process") if r["state"] == "refused"], 20)
    tap.ok(refused and "ptrace" in refused[0]["reason"], "a traced process is refused", refused)
    tracer.process.send_signal(signal.SIGTERM)
    jobs.wait(tracer, 10)
    found = until(lambda: [r for r in of_type(records(out), "process") if r["state"] == "attached"], 10)
    tap.ok(found, "and attached when the tracer has gone")
    tap.equal(len([r for r in of_type(records(out), "process") if r["state"] == "refused"]), 1, "it was reported once")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.stop(program)


def test_frozen(tap, jobs):
    """A process that was frozen before it was attached makes no call, and does not sleep."""
    program = jobs.start([tool("sleepers"), "--seconds", "40", "--period", "0.2"], "sleepers")
    pid = ready_pid(program)
    thaw = freezer(pid)
    if not thaw:
        tap.ok(True, "# SKIP no freezer")
        return
    try:
        out = os.path.join(jobs.directory, "out.ndjson")
        daemon = jobs.start([VAPROD, "--pid", str(pid), "--output", out, "--io", "off"], "vaprod")
        said = until(lambda: os.path.exists(out) and [w for w in of_type(records(out), "warning") if w["code"] == "no_calls"], 30)
        tap.ok(said and "is frozen by its cgroup" in said[0]["text"], "a frozen process is said to be frozen", said)
    finally:
        thaw()
    jobs.interrupt(daemon)
    code, view = jobs.run([VAPRO, "view", out], "view", 20)
    tap.ok(code == 0 and "is frozen by its cgroup" in " ".join(view.out().split()), "in the summary as well", view.out())
    jobs.stop(program)


def test_long_path(tap, jobs):
    """A padded path is selected by its end, whole in records, and called by its name in what people read."""
    directory = os.path.join(jobs.directory, *("padding" * 12 for _ in range(10)))
    shutil.rmtree(os.path.join(jobs.directory, "padding" * 12), ignore_errors=True)
    os.makedirs(directory)
    path = shutil.copy(tool("sleepers"), os.path.join(directory, "of_a_padded_path"))
    program = jobs.start([path, "--seconds", "4", "--period", "0.2"], "sleepers")
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "of_a_padded_path", "--output", out, "--io", "off", "--window", "2"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "a program with a long path ends well")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    found = of_type(records(out), "process")[0]
    tap.ok(len(path) > 800 and found["exe"] == path and found["build_id"], "its path is whole in records, and it has a build-id", found)
    code, view = jobs.run([VAPRO, "view", out], "view", 20)
    text = " ".join(view.out().split())
    tap.ok(code == 0 and "of_a_padded_path (" in text and path not in text, "and its name alone in the summary", view.out())


def test_moved_code(tap, jobs):
    """No probe takes effect in code that lies in memory of the process's own: that is said, and the process is watched otherwise."""
    program = jobs.start([tool("sleepers"), "--seconds", "9", "--period", "0.2"], "sleepers", env={"LD_PRELOAD": tool("libmoved.so")})
    pid = ready_pid(program)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--pid", str(pid), "--output", out, "--io", "off", "--window", "3"], "vaprod")
    attached(out, [pid])
    tap.equal(jobs.wait(program, 30), 0, "a program whose MPI library's code was moved ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with it")
    lines = records(out)
    first = of_type(lines, "process")[0]
    tap.ok("memory of its own" in (first["reason"] or "") and not any("libmpi" in image["path"] for image in first["images"]),
           "no probe is set in it", first)
    said = [w for w in of_type(lines, "warning") if w["code"] == "code_moved"]
    tap.ok(len(said) == 1 and "libmpi.so" in said[0]["text"], "the reason is a warning", said)
    code, view = jobs.run([VAPRO, "view", out], "view", 20)
    tap.ok(code == 0 and "without huge pages for the code" in " ".join(view.out().split()), "and in the summary", view.out())


# PTRACE_SEIZE does not stop the process; the end of the tracer ends it
TRACER = """
import ctypes, sys, time
if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), None, None):
    sys.exit(1)
print("attached", flush=True)
time.sleep(60)
"""

main(test_traced, test_frozen, test_long_path, test_moved_code)
