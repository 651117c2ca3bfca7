# SPDX-License-Identifier: GPL-2.0-or-later
"""What the live tests share: TAP lines for prove, and programs started, watched and ended by their ids."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import jobs as j  # noqa: E402
from jobs import clocks  # noqa: E402,F401

VAPROD, VAPRO = j.path("vaprod"), j.path("vapro")
SCRATCH = j.path("live")
OWN = os.path.join(SCRATCH, os.path.basename(sys.argv[0]).removesuffix(".t"))  # the directory of this file's tests
RUNGS = ("session", "multi", "perf")


def tool(name):
    return j.path("tools", name)


def works(rung):
    """Whether this kernel has a rung of the ladder."""
    check = subprocess.run([VAPRO, "check"], capture_output=True, text=True, check=False)
    return f"attach by {rung}" in check.stdout and check.stdout.split(f"attach by {rung}")[1].split()[0] == "yes"


def of_rung(test, rung):
    """A test for each attach mode, which it gets as an argument."""
    def on_rung(tap, jobs):
        test(tap, jobs, rung)
    on_rung.__name__ = f"{rung}_{test.__name__}"
    return on_rung


def until(look, limit):
    """The first true answer of look within limit seconds, else None."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        answer = look()
        if answer:
            return answer
        time.sleep(0.05)
    return None


def library(name):
    """The path of the copy of an MPI library that programs of this file's tests map."""
    return os.path.join(OWN, "lib", name)


def own_libraries():
    """
    Copies the MPI libraries of this machine, and programs that start from now on map the copies: vaprod treats a library that
    also processes map which it does not watch in another way, and such processes other tests have.
    """
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    shutil.rmtree(os.path.dirname(library("")), ignore_errors=True)  # of an earlier run, whose processes may map them
    os.makedirs(os.path.dirname(library("")))
    for name, path in re.findall(r"^\t(libmpi\S*\.so\.\d+) .* => (\S+)$", cache, re.M):
        file = os.path.realpath(path)
        if not os.path.exists(library(os.path.basename(file))):
            shutil.copy(file, library(os.path.basename(file)))
        if not os.path.exists(library(name)):
            os.symlink(os.path.basename(file), library(name))
    os.environ["LD_LIBRARY_PATH"] = os.path.dirname(library(""))


class Tap:
    """Counts and prints results."""

    def __init__(self):
        self.count = 0

    def ok(self, good, name, why=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good:
            # where prove shows it, whose log otherwise has a number only
            print("\n".join(f"# {self.count} - {name}: {line}" for line in str(why).splitlines()[-20:] or ["-"]), file=sys.stderr, flush=True)

    def equal(self, found, wanted, name):
        self.ok(found == wanted, name, f"found {found!r}, wanted {wanted!r}")


SIGNS = []  # files that workloads wait for


class Jobs(j.Jobs):
    """Workloads with a --delay wait for go() instead, each for its own file."""

    def start(self, *args, **kwargs):
        if os.environ.get("VAPRO_GO"):
            os.environ["VAPRO_GO"] = os.path.join(self.directory, f"go.{time.monotonic_ns()}")
            SIGNS.append(os.environ["VAPRO_GO"])
        return super().start(*args, **kwargs)


def main(*tests, held=True):
    """Runs the tests of a file, each with its own directory and its own jobs; held: workloads with a --delay wait for go()."""
    tap = Tap()
    own_libraries()
    for test in tests:
        directory = os.path.join(OWN, test.__name__)
        os.makedirs(directory, exist_ok=True)
        for name in os.listdir(directory):
            if not os.path.isdir(os.path.join(directory, name)):
                os.unlink(os.path.join(directory, name))
        try:
            os.environ["VAPRO_GO"] = os.path.join(directory, "go") if held else ""
            with Jobs(directory) as jobs:
                test(tap, jobs)
        except Exception:  # a failure of the test itself is a failure
            tap.ok(False, test.__name__, traceback.format_exc())
    shutil.rmtree(os.path.dirname(library("")), ignore_errors=True)  # MPICH's takes 40 MB
    print(f"1..{tap.count}")


def records(path):
    """The records of an NDJSON file; a last line that is still being written is left out."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


def ready_pid(job):
    """The pid that a workload prints as {"ready":true,"pid":P}."""
    match = until(lambda: re.search(r'"ready":true,"pid":(\d+)', job.out()), 20)
    if not match:
        raise RuntimeError(f"{job.name} did not start: {job.err()}")
    return int(match.group(1))


def rank_pids(job, directory, ranks):
    """The pids of ranks, from the first line of their truth logs."""
    def look():
        found = []
        for rank in range(ranks):
            try:
                with open(os.path.join(directory, f"truth.{rank}"), encoding="utf-8") as file:
                    match = re.search(r"pid (\d+)\n", file.readline())
            except OSError:
                return None
            if not match:
                return None
            found.append(int(match.group(1)))
        return found
    pids = until(look, 20)
    if not pids:
        raise RuntimeError(f"{job.name} did not start its ranks: {job.err()}")
    return pids


def select(pids):
    return [word for pid in pids for word in ("--pid", str(pid))]


def attached(path, pids):
    """Waits until vaprod has reported all these processes."""
    def look():
        if not os.path.exists(path):
            return False
        reported = {r["pid"] for r in of_type(records(path), "process") if r["state"] == "attached"}
        return set(pids) <= reported
    if not until(look, 60):
        lines = records(path) if os.path.exists(path) else []
        raise RuntimeError(f"vaprod did not attach to {pids}: {[(r['pid'], r['state'], r.get('reason')) for r in of_type(lines, 'process')]}"
                           f" after {len(lines)} records")
    go()


def go():
    """Workloads that wait for attachment continue."""
    while SIGNS:
        with open(SIGNS.pop(), "w", encoding="utf-8"):
            pass


def text_of(pid):
    """{(file, address): bytes} of the executable pages of a process that differ from their file."""
    different = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/"):
                continue
            first, last = (int(x, 16) for x in fields[0].split("-"))
            with open(fields[5].rstrip("\n"), "rb") as file:
                file.seek(int(fields[2], 16))
                for page in range(first, last, 4096):
                    wanted = file.read(4096)
                    found = os.pread(memory.fileno(), len(wanted), page)
                    if found != wanted:
                        different[fields[5].strip(), page] = found
    return different


def capture_run(tap, jobs, program, *options, ranks=2, mpich=None):
    """
    Runs a workload that takes --seconds and --log, watched from before its first call to its end.
    Returns (capture, records, directory of its logs).
    """
    mpich = program.startswith("mpich_") if mpich is None else mpich
    logs = os.path.join(jobs.directory, program + "".join(options))
    os.makedirs(logs, exist_ok=True)
    for name in os.listdir(logs):
        os.unlink(os.path.join(logs, name))
    command = ["mpirun.mpich", "-n", str(ranks), tool(program)] if mpich else j.mpirun(ranks, tool(program))
    job = jobs.start([*command, "--seconds", "3", "--log", logs], program)
    pids = rank_pids(job, logs, ranks)
    out, capture = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0",
                         *options], program + "_vaprod")
    attached(out, pids)
    tap.equal(jobs.wait(job, 60), 0, f"{program}: the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, f"{program}: vaprod ends with its targets")
    return capture, records(out), logs


def losses(lines):
    """{cause: n} over all windows, causes that happened."""
    found = {}
    for window in of_type(lines, "window"):
        for cause, n in window["lost"].items():
            if n:
                found[cause] = found.get(cause, 0) + n
    return found


def freezer(pid):
    """Moves a process to a frozen cgroup of its own; returns how to thaw and remove it, or None where there is no freezer."""
    v1, name = "/sys/fs/cgroup/freezer", f"vapro_live_{os.getpid()}"
    root = v1 if os.path.exists(v1 + "/cgroup.procs") else "/sys/fs/cgroup"
    own, file, words = os.path.join(root, name), *(("freezer.state", ("FROZEN", "THAWED")) if root == v1 else ("cgroup.freeze", ("1", "0")))

    def write(path, text):
        with open(path, "w", encoding="utf-8") as out:
            out.write(str(text))

    def thaw():
        write(os.path.join(own, file), words[1])
        write(os.path.join(root, "cgroup.procs"), pid)
        until(lambda: not os.rmdir(own) if os.path.isdir(own) else True, 5)
    try:
        os.mkdir(own)
        write(os.path.join(own, "cgroup.procs"), pid)
        write(os.path.join(own, file), words[0])
    except OSError:
        if os.path.isdir(own):
            os.rmdir(own)
        return None
    return thaw


def graph(jobs, capture, *options):
    """The states of a capture."""
    code, job = jobs.run([VAPRO, "stg", "--json", *options, capture], "stg", 30)
    if code:
        raise RuntimeError(job.err())
    return [json.loads(line) for line in job.out().splitlines()]
