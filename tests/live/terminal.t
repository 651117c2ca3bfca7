#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a person at a terminal sees of vaprod and vapro run: sentences, a summary, and no line torn by another."""
import os
import pty
import re
import select as polling
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, j, main, rank_pids, select, tool, until  # noqa: E402

PROGRESS = re.compile(r"vaprod: +\d+ s, \d+ process")


class Terminal:
    """A program on a pseudo-terminal of its own, as its standard input, output and error."""

    def __init__(self, command, columns=100):
        self.text, self.code = "", None
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.pop("COLUMNS", None)
            try:
                os.execv(str(command[0]), [str(word) for word in command])
            finally:
                os._exit(127)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def read(self, seconds):
        """Reads for so long, or until the program closes its terminal."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not polling.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return False
            self.text += got.decode("utf-8", "replace")
        return True

    def wait(self, seconds):
        """Reads to the end; the exit code, or None where the program had to be killed."""
        if self.read(seconds):
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else None

    def lines(self):
        """The lines as they stay on the screen: what was cleared before they ended is left out."""
        return [line.rsplit("\r\033[K", 1)[-1].rstrip("\r") for line in self.text.split("\r\n")]


def check_screen(tap, terminal, name):
    lines = terminal.lines()
    tap.equal([line for line in lines if "{" in line or '"schema"' in line], [], f"{name}: no JSON")
    tap.equal([line for line in lines if PROGRESS.search(line)], [], f"{name}: no line of progress was torn or stays")
    tap.equal([line for line in lines if len(line) > 100], [], f"{name}: no line is wider than the terminal")


def start_program(jobs):
    program = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 6, "--log", jobs.directory, "--scratch", jobs.directory,
                                  "--bind"), "demo_mpi")
    return program, rank_pids(program, jobs.directory, 2)


def test_sentences(tap, jobs):
    program, pids = start_program(jobs)
    terminal = Terminal([VAPROD, *select(pids), "--window", "3"])
    jobs.wait(program, 40)
    tap.equal(terminal.wait(30), 0, "vaprod on a terminal ends with its targets")
    text = " ".join(" ".join(terminal.lines()).split())
    tap.ok("watching host" in text, "it says what it does", terminal.text)
    tap.ok("attached to 2 processes of job" in text and "demo_mpi" in text, "it says what it watches", terminal.text)
    tap.ok("ended: 2 processes of job" in text, "it says that they ended", terminal.text)
    tap.ok(re.search(r"2 ranks on host \S+ watched for", text) and "overhead" in text, "it ends with a summary", terminal.text)
    check_screen(tap, terminal, "vaprod")


def test_json_on_request(tap, jobs):
    program, pids = start_program(jobs)
    terminal = Terminal([VAPROD, *select(pids), "--window", "3", "--json"])
    jobs.wait(program, 40)
    tap.equal(terminal.wait(30), 0, "vaprod --json on a terminal ends with its targets")
    lines = [line for line in terminal.lines() if line and not line.startswith(("vaprod: ", "  "))]  # a message goes on indented
    tap.ok('"type":"bye"' in terminal.text and all(line.startswith("{") for line in lines),
           "--json writes NDJSON, and nothing else stands on its lines", terminal.text[-2000:])
    tap.equal(PROGRESS.findall(terminal.text), [], "there is no progress beside it")


def test_interrupt(tap, jobs):
    other = jobs.start([VAPROD, "--exe", "/nonexistent/other", "--output", os.path.join(jobs.directory, "other.ndjson")], "other")
    terminal = Terminal([VAPROD, "--exe", "/nonexistent/program-of-no-one"])
    tap.ok(until(lambda: terminal.read(0.2) and "watching host" in terminal.text, 30), "vaprod without a target says that it runs",
           terminal.text)
    os.write(terminal.fd, b"\x03")
    tap.equal(terminal.wait(20), 0, "^C ends it, and not the other vaprod")
    tap.ok(other.process.poll() is None, "which is there still", other.err())
    jobs.interrupt(other, 20)
    tap.ok("no MPI or multi-threaded process was found" in terminal.text, "and the summary says that there was nothing", terminal.text)


def test_run(tap, jobs):
    terminal = Terminal([VAPRO, "run", "--window", "3", "--", *j.mpirun(2, tool("demo_mpi"), "--seconds", 5, "--log", jobs.directory,
                                                                       "--scratch", jobs.directory, "--bind")])
    tap.equal(terminal.wait(60), 0, "vapro run on a terminal gives the exit code")
    text = " ".join(" ".join(terminal.lines()).split())
    tap.ok("attached to 2 processes of job" in text and "overhead" in text, "it says what it watches, and ends with a summary",
           terminal.text)
    tap.equal(PROGRESS.findall(terminal.text), [], "it has no line of progress, which the command would tear")
    terminal = Terminal([VAPRO, "run", "--", "true"])
    tap.equal(terminal.wait(30), 0, "a command without ranks ends well")
    tap.ok("no MPI or multi-threaded process was found in: true" in terminal.text, "and the summary names it", terminal.text)


if __name__ == "__main__":
    main(test_sentences, test_json_on_request, test_interrupt, test_run)
