#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""vapro top: what a person sees of jobs while they run, on a pseudo-terminal; and that other users see nothing."""
import atexit
import fcntl
import json
import os
import pty
import re
import select as polling
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))
KEYS = {"up": "\033OA", "down": "\033OB", "right": "\033OC", "end": "\033OF", "enter": "\r", "escape": "\033", "tab": "\t"}
SEQUENCE = re.compile(r"\033\[([?>]?)([\d;]*)([@-~])|\033[()].|\033([=>78MH])|\033")


class Screen:
    """A program on a pseudo-terminal, and what a terminal of this size shows of it: as much of a vt220 as xterm's entry uses."""

    def __init__(self, command, columns=80, rows=24, term="xterm-256color", **environment):
        self.columns, self.rows, self.raw, self.rest, self.code = columns, rows, "", "", None
        self.master, slave = pty.openpty()
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.clear()
        self.size(columns, rows)
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        env.update(TERM=term, LC_ALL="C.UTF-8", **environment)
        self.process = subprocess.Popen([str(word) for word in command], stdin=slave, stdout=slave, stderr=slave, env=env, cwd="/",
                                        start_new_session=True)
        atexit.register(lambda process=self.process: process.poll() is None and process.kill())  # after a failure

    def clear(self):
        self.lines = [[" "] * self.columns for _ in range(self.rows)]
        self.x = self.y = 0
        self.region = (0, self.rows - 1)
        self.insert = False

    def size(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def scroll(self, count):
        """Moves the lines of the scrolling region up, or down where count is negative."""
        top, bottom = self.region
        for _ in range(abs(count)):
            line = self.lines.pop(top if count > 0 else bottom)
            line[:] = [" "] * self.columns
            self.lines.insert(bottom if count > 0 else top, line)

    def control(self, private, numbers, kind):
        """A control sequence; attributes and modes have no place here."""
        values = [int(n) if n else 0 for n in numbers.split(";")]
        first = values[0] or 1
        if private or kind in "mt":
            return
        line = self.lines[self.y]
        if kind in "Hf":
            self.y, self.x = first - 1, (values[1] or 1) - 1 if len(values) > 1 else 0
        elif kind == "d":
            self.y = first - 1
        elif kind == "G":
            self.x = first - 1
        elif kind in "ABCD":
            self.y += {"A": -first, "B": first}.get(kind, 0)
            self.x += {"C": first, "D": -first}.get(kind, 0)
        elif kind == "K":
            begin, end = {0: (self.x, self.columns), 1: (0, self.x + 1), 2: (0, self.columns)}[values[0]]
            line[begin:end] = [" "] * (end - begin)
        elif kind == "J" and values[0] == 0:
            line[self.x:] = [" "] * (self.columns - self.x)
            for below in self.lines[self.y + 1:]:
                below[:] = [" "] * self.columns
        elif kind == "J":
            for each in self.lines:
                each[:] = [" "] * self.columns
        elif kind == "X":
            line[self.x:self.x + first] = [" "] * min(first, self.columns - self.x)
        elif kind == "P":
            line[self.x:] = (line[self.x + first:] + [" "] * self.columns)[:self.columns - self.x]
        elif kind == "@":
            line[self.x:] = ([" "] * first + line[self.x:])[:self.columns - self.x]
        elif kind == "b":
            for _ in range(first):
                self.put(self.last)
        elif kind == "r":
            self.region = (first - 1, values[1] - 1) if len(values) > 1 else (0, self.rows - 1)
            self.x = self.y = 0
        elif kind in "LM":
            saved, self.region = self.region, (self.y, self.region[1])
            self.scroll(first if kind == "M" else -first)
            self.region = saved
        elif kind in "hl" and values == [4]:
            self.insert = kind == "h"
        elif kind in "ST":
            self.scroll(first if kind == "S" else -first)
        else:
            raise RuntimeError(f"a control sequence that this terminal does not know: {numbers}{kind}")
        self.x, self.y = max(0, min(self.x, self.columns - 1)), max(0, min(self.y, self.rows - 1))

    def put(self, character):
        if self.x >= self.columns:
            self.x, self.y = 0, min(self.y + 1, self.rows - 1)
        if self.insert:
            self.lines[self.y].insert(self.x, " ")
            self.lines[self.y].pop()
        self.lines[self.y][self.x] = self.last = character
        self.x += 1

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\033":
                found = SEQUENCE.match(text, at)
                if found.group() == "\033":
                    if len(text) - at < 24:
                        self.rest = text[at:]
                        return
                elif found.group(3):
                    self.control(found.group(1), found.group(2), found.group(3))
                elif found.group(4) == "M":
                    if self.y == self.region[0]:
                        self.scroll(-1)
                    else:
                        self.y -= 1
                at = found.end()
                continue
            at += 1
            if character == "\r":
                self.x = 0
            elif character == "\n":
                if self.y == self.region[1]:
                    self.scroll(1)
                elif self.y < self.rows - 1:
                    self.y += 1
            elif character == "\b":
                self.x = max(0, self.x - 1)
            elif character >= " ":
                self.put(character)

    def read(self, seconds=0.1):
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0 or not polling.select([self.master], [], [], left)[0]:
                return
            text = os.read(self.master, 65536).decode("utf-8", "replace")
            self.raw += text
            self.feed(text)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def press(self, *keys):
        for key in keys:
            os.write(self.master, KEYS.get(key, key).encode())

    def shows(self, *parts, limit=20):
        """Whether the screen shows all of these within the limit."""
        def look():
            self.read()
            return all(part in self.text() for part in parts)
        return bool(until(look, limit))

    def hides(self, part, limit=20):
        def look():
            self.read()
            return part not in self.text()
        return bool(until(look, limit))

    def end(self, limit=20):
        """Reads to the end; its exit code, or None where it had to be killed."""
        def look():
            self.read()
            return self.process.poll() is not None
        if not until(look, limit):
            self.process.kill()
            self.process.wait()
            return None
        self.read()
        return self.process.returncode

    def restored(self):
        """Whether the terminal is as before: its modes, its cursor, and the screen that was there."""
        after = termios.tcgetattr(self.slave)
        return after == self.before and self.raw.rfind("\033[?1049l") > self.raw.rfind("\033[?1049h") and \
            self.raw.rfind("\033[?25l") < max(self.raw.rfind("\033[?25h"), self.raw.rfind("\033[?12l\033[?25h"), self.raw.rfind("\033[?12;25h"))

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def program(jobs, ranks, seconds, name="demo_mpi"):
    logs = os.path.join(jobs.directory, name)
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    job = jobs.start(j.mpirun(ranks, tool("demo_mpi"), "--seconds", seconds, "--log", logs, "--scratch", logs, "--bind"), name)
    return job, rank_pids(job, logs, ranks)


def start_daemon(jobs, where, pids, name="vaprod"):
    out = os.path.join(jobs.directory, name + ".ndjson")
    if os.path.exists(out):
        os.unlink(out)
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--window", "3", "--socket", where], name)
    attached(out, pids)
    return daemon, out


def directory_for_all():
    """A directory for sockets that other users reach, unlike the one of the tests perhaps."""
    where = f"/tmp/vapro-top-{os.getpid()}/"
    shutil.rmtree(where, ignore_errors=True)
    return where


def snapshot(path, text=b"vapro/1 status\ninterval_ms 0\n\n"):
    """What the status socket answers, to its end."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(20)
    client.connect(path)
    client.sendall(text)
    got = b""
    while True:
        part = client.recv(65536)
        if not part:
            client.close()
            return got.decode()
        got += part


def test_usage(tap, jobs):
    nowhere = os.path.join(jobs.directory, "nowhere")
    for words, code, named in ((["more"], 2, "unknown argument"), (["--interval", "0.1"], 2, "expected 500ms to 1h"), (["--user", "no-such-user-x"], 2, "user"),
                               (["--count", "0", "--batch"], 2, "from 1 on"), (["--count", "2"], 2, "--batch"), (["--socket", ""], 2, "path"),
                               (["--once", "--socket", nowhere], 1, "waiting for vaprod"), (["--once", "--socket", nowhere + "/"], 1, "no socket"),
                               (["--socket", nowhere], 1, "use --once or --batch")):
        found, job = jobs.run([VAPRO, "top", *words], "usage", 20)
        tap.ok(found == code and named in job.err(), "top " + " ".join(words)[-50:] + " is refused", f"{found} {job.err()}")
    screen = Screen([VAPRO, "top", "--socket", nowhere])
    tap.ok(screen.shows("waiting for vaprod"), "it waits for vaprod", screen.text())
    screen.close()
    tap.ok(until(lambda: screen.process.poll() is not None, 10), "it ends with its terminal")
    screen = Screen([VAPRO, "top", "--socket", nowhere], term="no-such-terminal")
    tap.ok(screen.end() == 1 and "no-such-terminal" in screen.raw, "an unknown terminal is named", screen.raw)
    screen.close()


def test_pages(tap, jobs):
    """A job with a hog on the CPU of one rank: jobs, ranks, the region; sizes, orders, filters; vaprod restarted under it."""
    where = directory_for_all()
    screen = Screen([VAPRO, "top", "--socket", where])
    tap.ok(screen.shows("waiting for vaprod", "q quit"), "without a vaprod it waits for one", screen.text())
    mpi, pids = program(jobs, 2, 150)
    daemon, out = start_daemon(jobs, where, pids)
    tap.ok(screen.shows(f"vaprod {daemon.pid}", "1 job, 2 processes", "root"), "it finds vaprod by itself", screen.text())
    hog = jobs.start([tool("hog"), "--cpu", CPUS[1 % len(CPUS)], "--start-after", 4, "--seconds", 12], "hog")
    tap.ok(screen.shows("lasts preempted by ", "slow region", limit=30), "a slow region that lasts is shown, with its cause and culprit", screen.text())
    job = of_type(records(out), "process")[0]["job"]["identity"]
    tap.ok(job[:12] in screen.text(), "the job has its name", screen.text())

    screen.press("enter")
    tap.ok(screen.shows(f"jobs > {job}", *[str(pid) for pid in pids]), "Enter leads to the ranks of a job", screen.text())
    screen.press("s")
    tap.ok(screen.shows("by rank"), "s orders by rank", screen.text())

    def places():
        text = screen.text()
        return [text.index(f" {pid} ") for pid in pids]
    tap.ok(places() == sorted(places()), "the ranks are in order", screen.text())
    screen.press("r")
    tap.ok(screen.shows("by rank, reversed") and places() == sorted(places(), reverse=True), "r reverses it", screen.text())
    screen.press("/", "rank 1")
    tap.ok(screen.hides(f" {pids[0]} ") and f" {pids[1]} " in screen.text(), "/ filters the ranks", screen.text())
    screen.press("enter", "enter")
    tap.ok(screen.shows("> rank 1"), "Enter leads to a rank", screen.text())
    tap.ok(screen.shows("preempted by "), "the slow region is one of this rank", screen.text())
    screen.press("enter")
    tap.ok(screen.shows("> slow region", "verdict", "preempted by", "(pid "), "Enter leads to all of a region", screen.text())
    screen.resize(200, 50)
    tap.ok(screen.shows("> slow region", "verdict") and max(map(len, screen.text().split("\n"))) > 80, "after a resize the room is used",
           screen.text())
    screen.press("escape")
    tap.ok(screen.shows("> rank 1", "PROGRAM", "demo_mpi", "HOST"), "at 200x50 ranks have further columns", screen.text())
    screen.press("escape")
    screen.shows("filter: rank 1")
    screen.press("escape")  # the filter
    tap.ok(screen.hides("filter:") and screen.shows(f" {pids[0]} "), "Esc ends the filter", screen.text())
    screen.press("escape")
    tap.ok(screen.shows("COVER", "SLOW", "LOST") and screen.hides(f"jobs > {job}"), "and leads back to the jobs", screen.text())
    screen.press("?")
    tap.ok(screen.shows("freeze, and go on"), "? lists the keys", screen.text())
    screen.press("x")
    screen.resize(80, 24)
    screen.press(" ")
    tap.ok(screen.shows("FROZEN"), "Space freezes it", screen.text())
    clock = re.search(r"\d\d:\d\d:\d\d UTC", screen.text()).group()
    screen.read(2.5)
    tap.ok(clock in screen.text(), "a frozen picture stays", screen.text())
    screen.press(" ")
    tap.ok(screen.hides(clock) and "FROZEN" not in screen.text(), "Space goes on", screen.text())

    tap.equal(jobs.wait(hog, 30), 0, "the hog has ended")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well while a client looks at it")
    tap.ok(screen.shows("waiting for vaprod", job[:12]), "its end is shown, with the last state", screen.text())
    second, _ = start_daemon(jobs, where, pids, "second")
    tap.ok(screen.shows(f"vaprod {second.pid}", "2 processes"), "the next vaprod is found", screen.text())
    os.kill(second.pid, signal.SIGKILL)
    jobs.wait(second, 10)
    third, _ = start_daemon(jobs, where, pids, "third")
    tap.ok(screen.shows(f"vaprod {third.pid}"), "and the one after a vaprod that was killed", screen.text())
    for columns, rows in ((3, 2), (20, 5), (80, 24)):
        screen.resize(columns, rows)
        screen.read(0.5)
    tap.ok(screen.shows(f"vaprod {third.pid}", "q quit"), "small sizes do it no harm", screen.text())
    screen.press("q")
    tap.equal(screen.end(), 0, "q quits")
    tap.ok(screen.restored(), "the terminal is as before", repr(screen.raw[-200:]))
    tap.ok("\033[31" in screen.raw or "\033[32" in screen.raw or "\033[33" in screen.raw, "it was in colours")
    screen.close()

    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV):
        screen = Screen([VAPRO, "top", "--socket", where])
        good = screen.shows(f"vaprod {third.pid}")
        screen.process.send_signal(name)
        code = screen.end()
        tap.ok(good and code == (-name if name == signal.SIGSEGV else 0) and screen.restored(), f"{name.name} restores the terminal",
               f"{code} {screen.raw[-200:]!r}")
        screen.close()
    screen = Screen([VAPRO, "top", "--socket", where], NO_COLOR="1")
    tap.ok(screen.shows(f"vaprod {third.pid}") and not re.search(r"\033\[[\d;]*3[0-7]m", screen.raw), "NO_COLOR: no colours", repr(screen.raw[:500]))
    screen.press("q")
    screen.end()
    screen.close()
    screen = Screen([VAPRO, "top", "--socket", where], term="vt100")
    tap.ok(screen.shows(f"vaprod {third.pid}") and not re.search(r"\033\[[\d;]*3[0-7]m", screen.raw), "a vt100 gets no colours", screen.text())
    screen.press("q")
    tap.equal(screen.end(), 0, "and can quit")
    screen.close()

    code, once = jobs.run([VAPRO, "top", "--once", "--socket", where], "once", 20)
    tap.ok(code == 0 and all(str(pid) in once.out() for pid in pids) and "\033" not in once.out(), "--once is plain text", once.out() + once.err())
    code, batch = jobs.run([VAPRO, "top", "--batch", "--count", "3", "--interval", "0.5", "--socket", where], "batch", 20)
    tap.ok(code == 0 and batch.out().count(f"vaprod {third.pid}") == 3, "--batch --count 3 prints three snapshots", batch.out() + batch.err())
    code, none = jobs.run([VAPRO, "top", "--once", "--user", "nobody", "--socket", where], "none", 20)
    tap.ok(code == 0 and str(pids[0]) not in none.out() and "no process is watched" in none.out(), "--user shows that user's jobs only", none.out())
    fourth, _ = start_daemon(jobs, where, pids, "fourth")
    code, several = jobs.run([VAPRO, "top", "--once", "--socket", where], "several", 20)
    tap.ok(code == 0 and all(several.out().count(str(pid)) == 1 for pid in pids), "of several vaprods each process is shown once", several.out() + several.err())
    page = os.path.join(where, "page.html")
    code, several = jobs.run([VAPRO, "report", "--html", page, "--socket", where], "reported", 60)
    tap.ok(code == 0 and os.path.exists(page), "and they have one report", several.err())
    code, chosen = jobs.run([VAPRO, "top", "--once", "--socket", f"{where}vaprod.{fourth.pid}"], "chosen", 20)
    tap.ok(code == 0 and f"vaprod {fourth.pid}" in chosen.out(), "one can be chosen", chosen.out() + chosen.err())
    tap.equal([jobs.interrupt(d) for d in (third, fourth)], [0, 0], "both end well")
    jobs.interrupt(mpi)
    shutil.rmtree(where, ignore_errors=True)


def test_users(tap, jobs):
    """A user sees that user's job, and nothing of root's; clients that mean harm change nothing."""
    where = directory_for_all()
    home = where.rstrip("/") + "-home"
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    os.chown(home, 65534, 65534)
    for file in (VAPRO, tool("crew"), tool("hog")):
        shutil.copy(file, home)
        os.chmod(os.path.join(home, os.path.basename(file)), 0o755)
    top = os.path.join(home, "vapro")
    mpi, pids = program(jobs, 2, 40)
    daemon, out = start_daemon(jobs, where, pids)
    path = f"{where}vaprod.{daemon.pid}.status"
    tap.equal([os.stat(f"{where}vaprod.{daemon.pid}").st_mode & 0o777, os.stat(path).st_mode & 0o777, os.stat(where).st_mode & 0o777],
              [0o600, 0o666, 0o755], "all users reach the status socket, root alone the other")
    answer = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); "
              "s.sendall(b'vapro/1 status\\ninterval_ms 0\\n\\n')\nwhile True:\n g=s.recv(65536)\n if not g: break\n sys.stdout.write(g.decode())")

    def windows():
        return [r for r in map(json.loads, snapshot(path).split("\n")[1:-1]) if r["type"] == "window"]
    tap.ok(until(windows, 30), "root gets the window of the job")
    lines = snapshot(path)
    root = [json.loads(line) for line in lines.split("\n")[1:-1]]
    job = of_type(root, "job_status")[0]
    tap.ok(lines.startswith(f"ok {len(lines.encode()) - lines.index(chr(10)) - 1}\n") and sorted(p["pid"] for p in job["processes"]) == sorted(pids),
           "root gets the processes of the job", lines)
    records_file = os.path.join(jobs.directory, "snapshot.ndjson")
    with open(records_file, "w", encoding="utf-8") as file:
        file.write(lines.split("\n", 1)[1])
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), records_file], capture_output=True, text=True, check=False)
    tap.equal((check.returncode, check.stdout[-500:] if check.returncode else ""), (0, ""), "the records are those of the schema")

    code, raw = jobs.run(["/usr/bin/python3", "-c", answer, path], "other_raw", 30, user=65534, cwd="/")
    # digits of a pid may also be those of a time
    secrets = [job["job"], "demo_mpi", *[f'"pid":{pid},' for pid in pids], *[f" {pid} " for pid in pids]]
    tap.ok(code == 0 and raw.out().count("\n") == 2 and not any(secret in raw.out() for secret in secrets),
           "another user gets nothing of the job", raw.out() + raw.err())
    code, seen = jobs.run([top, "top", "--once", "--socket", where], "other_top", 30, user=65534, cwd="/")
    tap.ok(code == 0 and "no process of yours is watched" in seen.out() and not any(secret in seen.out() for secret in secrets),
           "vapro top of another user shows none of it", seen.out() + seen.err())
    code, refused = jobs.run([top, "diagnose", "--socket", where, "all@.."], "other_diagnose", 30, user=65534, cwd="/")
    tap.ok(code == 1 and refused.err() and not any(secret in refused.out() + refused.err() for secret in secrets),
           "vapro diagnose of another user shows none of it", f"{code} {refused.out()} {refused.err()}")

    # clients that mean harm
    reported = len(of_type(records(out), "window"))
    clients = []
    for text in (b"", b"vapro/1 status\ninter", b"x" * 4096, b"vapro/1 status\ninterval_ms 500\n\n"):
        for _ in range(8):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.settimeout(1)
            try:
                client.connect(path)
                client.sendall(text)
            except OSError:
                pass
            clients.append(client)
    tap.ok(until(lambda: len(of_type(records(out), "window")) >= reported + 2, 30), "windows are still emitted")
    tap.ok(until(lambda: "job_status" in snapshot(path), 20), "and snapshots")
    for client in clients:
        client.close()
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    tap.ok(not os.path.exists(path), "and removes the status socket")
    jobs.interrupt(mpi)

    # the user's own job
    own = jobs.start([os.path.join(home, "crew"), "--seconds", "60"], "crew", user=65534, cwd=home)
    out = os.path.join(jobs.directory, "own.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "crew", "--output", out, "--window", "3", "--socket", where], "own_vaprod")
    watched = until(lambda: os.path.exists(out) and of_type(records(out), "process"), 30)
    tap.ok(watched and watched[0]["pid"] == own.pid, "a job of the user is watched", f"{watched} {own.err()}")
    code, seen = jobs.run([top, "top", "--once", "--socket", where], "own_top", 30, user=65534, cwd="/")
    tap.ok(code == 0 and str(own.pid) in seen.out() and "your jobs" in seen.out(), "the user sees it", seen.out() + seen.err())
    # a third user's task on the CPU of the job: its name is for root and not for the job's user
    path = f"{where}vaprod.{daemon.pid}.status"
    hog = jobs.start([os.path.join(home, "hog"), "--cpu", CPUS[0], "--start-after", 0, "--seconds", 20], "hog", user=65533, cwd="/")
    tap.ok(until(lambda: '"comm":"hog"' in snapshot(path), 30), "root sees the task of another user that disturbs the job", snapshot(path)[-3000:])
    code, raw = jobs.run(["/usr/bin/python3", "-c", answer, path], "own_raw", 30, user=65534, cwd="/")
    tap.ok(code == 0 and '"comm":"(another user)"' in raw.out() and "hog" not in raw.out() and f'"pid":{hog.pid},' not in raw.out(),
           "the job's user sees that there is one, but neither its name nor its pid", raw.out() + raw.err())
    jobs.stop(hog)
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.interrupt(own)
    for left in (where, home):
        shutil.rmtree(left, ignore_errors=True)


def test_many(tap, jobs):
    """At 64 processes; what it costs there is measured by `make bench WHAT=top`."""
    where = os.path.join(jobs.directory, "run") + "/"
    os.makedirs(where, mode=0o755, exist_ok=True)
    out = os.path.join(jobs.directory, "out.ndjson")
    mpi = jobs.start(j.mpirun(64, tool("sleepers"), "--seconds", 60, "--period", 1), "sleepers")
    daemon = jobs.start([VAPROD, "--exe", "sleepers", "--output", out, "--window", "3", "--socket", where], "vaprod")
    screen = Screen([VAPRO, "top", "--socket", where], 200, 50)
    tap.ok(screen.shows("64 processes", limit=60), "64 processes are shown", screen.text())
    screen.process.send_signal(signal.SIGSTOP)
    screen.read(8)  # vaprod drops it
    screen.process.send_signal(signal.SIGCONT)
    tap.ok(screen.shows("64 processes", f"vaprod {daemon.pid}", "speeds"), "it goes on after a stop", screen.text())
    screen.press("q")
    tap.ok(screen.end() == 0 and screen.restored(), "it ends well")
    screen.close()
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    jobs.interrupt(mpi)


main(*[test for test in (test_usage, test_pages, test_users, test_many) if not sys.argv[1:] or test.__name__ in sys.argv[1:]], held=False)
