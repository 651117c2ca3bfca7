#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Where vaprod writes its lines: several runs in a file, rotated logs, readers that have stopped, the systemd unit."""
import fcntl
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, main, of_type, records, until  # noqa: E402

IDLE = ["--exe", "no_program_of_this_name", "--io", "off", "--socket", ""]
UNIT = os.path.join(ROOT, "deploy", "vaprod.service")


def has(path, kind):
    return os.path.exists(path) and of_type(records(path), kind)


def test_runs(tap, jobs):
    out, capture, again = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture", "again.ndjson"))
    for run in range(2):
        code, job = jobs.run([VAPROD, *IDLE, "--window", 3 + run, "--duration", "0.5", "--output", out, "--capture", capture],
                             f"run{run}", 30, add=run > 0)
        tap.equal(code, 0, f"run {run + 1} of one file " + job.err())
    tap.equal([(r["type"], r.get("tunables", {}).get("window")) for r in records(out) if r["type"] in ("hello", "bye")],
              [("hello", 3), ("bye", None), ("hello", 4), ("bye", None)], "the second run erased nothing")
    tap.equal([stat.S_IMODE(os.stat(path).st_mode) for path in (out, capture)], [0o640, 0o600], "modes of the files")
    for options, window in (([], 4), (["--run", 1], 3), (["--run=-2"], 3), (["--run", 2], 4)):
        code, job = jobs.run([VAPRO, "analyze", *options, "--output", again, capture], "analyze", 30)
        tap.ok(code == 0 and of_type(records(again), "hello")[0]["tunables"]["window"] == window and "holds 2 runs" in job.err(),
               f"vapro analyze {options}", f"{code} {job.err()}")
    code, job = jobs.run([VAPRO, "view", out], "view", 30)
    tap.ok("holds 2 runs; this is run 2, the last" in job.err(), "vapro view says which run it shows", job.err())
    for command in (["view", "--run", 3, out], ["analyze", "--run", 3, capture]):
        code, job = jobs.run([VAPRO, *command], "none", 30)
        tap.ok(code == 1 and "no " in job.err() and "run" in job.err(), f"vapro {command[0]}: there is no third run", f"{code} {job.err()}")
    for command in (["view", "--run", 0, out], ["analyze", "--run", "x", capture]):
        code, job = jobs.run([VAPRO, *command], "wrong", 30)
        tap.equal(code, 2, f"vapro {command[0]} --run {command[2]} is wrong usage")


def test_in_the_way(tap, jobs):
    """vaprod follows no symbolic link to a file of root, and does not wait for a reader of a FIFO."""
    victim, link, fifo = (os.path.join(jobs.directory, name) for name in ("victim", "link", "fifo"))
    with open(victim, "w", encoding="utf-8") as file:
        file.write("of root")
    os.symlink(victim, link)
    os.mkfifo(fifo)
    for path, words in ((link, "symbolic link"), (fifo, "no process reads"), (jobs.directory, "directory")):
        for option in ("--output", "--capture"):
            code, job = jobs.run([VAPROD, *IDLE, option, path], "refused", 20, add=True)
            tap.ok(code == 1 and words in job.err(), f"{option}: {words}", f"{code} {job.err()}")
    with open(victim, encoding="utf-8") as file:
        tap.equal(file.read(), "of root", "the target of the link is unchanged")


def test_rotation(tap, jobs):
    out, moved = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "out.ndjson.1"))
    daemon = jobs.start([VAPROD, *IDLE, "--window", 3, "--output", out], "vaprod")
    tap.ok(until(lambda: has(out, "hello"), 30), "vaprod has begun", daemon.err())
    os.rename(out, moved)
    daemon.process.send_signal(signal.SIGHUP)
    tap.ok(until(lambda: os.path.exists(out), 20), "SIGHUP opens the file by its name again", daemon.err())
    # a name that cannot be opened
    os.rename(out, out + ".2")
    os.mkdir(out)
    daemon.process.send_signal(signal.SIGHUP)
    tap.ok(until(lambda: "it is a directory" in daemon.err(), 20), "a file that cannot be opened again is reported", daemon.err())
    os.rmdir(out)
    daemon.process.terminate()
    tap.equal(jobs.wait(daemon, 30), 0, "vaprod ends well")
    first, second = records(moved), records(out + ".2")
    tap.ok(of_type(first, "hello") and not of_type(first, "bye"), "the file that was moved away has whole lines")
    tap.ok([w["code"] for w in of_type(second, "warning")] == ["reopen_failed"] and of_type(second, "bye"),
           "later lines are in the file that was open", second)


def full_pipe():
    """Both ends of a full pipe."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        pass
    fcntl.fcntl(writer, fcntl.F_SETFL, 0)
    return reader, writer


def stopped_terminal():
    """Both ends of a terminal whose output was stopped, as by ^S."""
    reader, writer = pty.openpty()
    termios.tcflow(writer, termios.TCOOFF)
    return reader, writer


def test_stopped_readers(tap, jobs):
    for name, ends in (("pipe", full_pipe), ("terminal", stopped_terminal)):
        out = os.path.join(jobs.directory, name + ".ndjson")
        reader, writer = ends()
        with subprocess.Popen([VAPROD, *IDLE, "--window", "3", "--output", out, "--output", "-"], stdin=subprocess.DEVNULL,
                              stdout=writer, stderr=writer, start_new_session=True) as daemon:
            try:
                tap.ok(until(lambda out=out: has(out, "hello"), 30), f"{name}: the run continues without a reader")
                daemon.send_signal(signal.SIGTERM)
                tap.equal(daemon.wait(20), 1, f"{name}: SIGTERM ends vaprod with exit code 1, since lines were lost")
            finally:
                if daemon.poll() is None:
                    daemon.kill()
        tap.ok(has(out, "bye"), f"{name}: the file has every line")
        tap.equal(fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK, 0, f"{name}: the flags of the descriptor are unchanged")
        os.close(reader)
        os.close(writer)


def test_unit(tap, jobs):
    """The unit's own command starts on a machine that has no configuration."""
    with open(UNIT, encoding="utf-8") as file:
        text = file.read()
    command = re.search(r"^ExecStart=\S*/vaprod (.*)$", text, re.M).group(1).split()
    logs = "/var/log/" + re.search(r"^LogsDirectory=(.*)$", text, re.M).group(1)
    command = [word.replace(logs, jobs.directory).replace("/var/lib/vapro", jobs.directory) for word in command]
    # of all processes others run tests
    code, job = jobs.run([VAPROD, *command, "--exe", "no_program_of_this_name", "--duration", "0.3"], "unit", 30, env={"LOGS_DIRECTORY": jobs.directory})
    tap.equal(code, 0, "vaprod " + " ".join(command) + job.err())
    tap.ok(has(os.path.join(jobs.directory, "vapro.ndjson"), "bye"), "the lines are in the unit's directory")
    if not shutil.which("systemd-analyze"):
        return
    copy = os.path.join(jobs.directory, "vaprod.service")
    with open(copy, "w", encoding="utf-8") as file:
        file.write(text.replace("/usr/local/sbin/vaprod", VAPROD))
    code, job = jobs.run(["systemd-analyze", "verify", "--man=no", copy], "verify", 30)
    tap.ok(code == 0 and not job.err(), "systemd accepts the unit", f"{code} {job.err()}")


main(test_runs, test_in_the_way, test_rotation, test_stopped_readers, test_unit)
