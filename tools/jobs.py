# SPDX-License-Identifier: GPL-2.0-or-later
"""
Runs programs for the measuring scripts: every one with a time limit and its output in files; all of
them (with the descendants they had) are ended by their ids when the script ends, however it ends.

    with Jobs(directory) as jobs:
        job = jobs.start(["mpirun", ...], "name")
        code = jobs.wait(job, 30)
        print(job.out(), job.err())
"""
import glob
import os
import signal
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))


class TimeLimit(Exception):
    """A job did not end in its time."""


def path(*parts):
    """A file below the build directory."""
    return os.path.join(BUILD, *parts)


def mpirun(ranks, *command):
    """Command line for an unbound MPI job as root; ranks bind themselves."""
    extra = ["--oversubscribe"] if ranks > (os.cpu_count() or 1) else []
    return ["mpirun", "--allow-run-as-root", "--bind-to", "none", *extra, "-n", str(ranks), *map(str, command)]


def _stat(pid):
    """(parent, start time) of a process, or None; a zombie counts as gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else (int(fields[1]), int(fields[19]))
    except (OSError, IndexError, ValueError):
        return None


def descendants(root):
    """{pid: start time} of a process and all below it."""
    parents = {}
    for entry in glob.glob("/proc/[0-9]*"):
        pid = int(entry[6:])
        stat = _stat(pid)
        if stat:
            parents[pid] = stat
    found, queue = {}, [root]
    while queue:
        pid = queue.pop()
        if pid in parents and pid not in found:
            found[pid] = parents[pid][1]
            queue.extend(p for p, (parent, _) in parents.items() if parent == pid)
    return found


def clocks(pid):
    """How many perf events of this process are open with a program: the sampled threads, and those of its finder."""
    found = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[perf_event]"
        except OSError:
            continue
    return found


def leaked_probes():
    """How often the kernel's log says that probes could not be removed from processes; None where it cannot be read."""
    done = subprocess.run(["dmesg"], capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.count("failed to unregister, leaking uprobe") if done.returncode == 0 else None


class Job:
    """A started program and where its output goes."""

    def __init__(self, process, name, out_path, err_path):
        self.process, self.name, self.out_path, self.err_path = process, name, out_path, err_path
        self.pid = process.pid

    @staticmethod
    def _read(file_path):
        with open(file_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def out(self):
        return self._read(self.out_path)

    def err(self):
        return self._read(self.err_path)


def forget(command):
    """Removes the files that a run of vaprod or vapro would add its lines to."""
    if os.path.basename(str(command[0])) not in ("vaprod", "vapro"):
        return
    for option, value in zip(command, command[1:]):
        if option in ("--output", "--capture") and os.path.isfile(value):
            os.unlink(value)


def take_interrupts():
    """A shell starts what runs in its background with SIGINT ignored, which programs inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Jobs:
    """All jobs of a measurement; a context manager that ends them."""

    def __init__(self, directory):
        self.directory = directory
        self.jobs = []
        os.makedirs(directory, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for job in reversed(self.jobs):
            self.stop(job)

    def start(self, command, name, cwd=None, env=None, user=None, add=False):
        """Starts a command; vaprod adds to its files: those of an earlier run are removed unless add is true."""
        if not add:
            forget(command)
        out_path = os.path.join(self.directory, name + ".out")
        err_path = os.path.join(self.directory, name + ".err")
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **(env or {}))
        as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
        with open(out_path, "wb") as out, open(err_path, "wb") as err:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       cwd=cwd, env=environment, start_new_session=True, preexec_fn=take_interrupts, **as_user)
        job = Job(process, name, out_path, err_path)
        self.jobs.append(job)
        return job

    def wait(self, job, limit):
        """Exit code (negative: the signal); ends the job and raises TimeLimit when it takes too long."""
        try:
            return job.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.stop(job)
            raise TimeLimit(f"{job.name} did not end within {limit:.0f} s") from None

    def run(self, command, name, limit, **more):
        job = self.start(command, name, **more)
        return self.wait(job, limit), job

    def interrupt(self, job, limit=30):
        """SIGINT and wait, as a person's ^C; exit code."""
        if job.process.poll() is None:
            job.process.send_signal(signal.SIGINT)
        return self.wait(job, limit)

    def stop(self, job):
        """Ends a job and what it started: SIGTERM, then SIGKILL to those still there."""
        if job.process.poll() is not None:
            return
        family = descendants(job.pid)
        job.process.terminate()
        try:
            job.process.wait(4)
        except subprocess.TimeoutExpired:
            family.update(descendants(job.pid))
        for pid, started in family.items():
            stat = _stat(pid)
            if stat and stat[1] == started:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        job.process.wait(10)


def calls_within_budget(costs):
    """
    Calls in a row of `many peers`, 50 times a second, whose probes cost a process .2 % of its time by the costs of a hello: each
    call is a new state, which costs more.
    """
    return max(5, min(50, int(0.002 / 50 / ((costs["entry_ns"] + costs["return_ns"]) * 1e-9))))


def until(condition, limit, step=0.05):
    """Waits for a condition; its last value."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)
