# SPDX-License-Identifier: GPL-2.0-or-later
"""
The MPI programs of the live part of make accuracy: how each is started, which process is which rank, what its own
log says of its time, and what the kernel says of its ranks meanwhile.
"""
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth as t  # noqa: E402
from jobs import ROOT, descendants, mpirun, path, until  # noqa: E402

RANKS = 2
LONG = 10**6  # iterations or rounds: more than any run lasts
THERMO = 20   # steps of lammps between two lines of its log
LAMMPS_STEPS = 10**6


class Program:
    """
    comm: the name of its processes; log: what kind of log of its time its ranks write; command: starts it for so many
    seconds; mpich: which MPI; ends: whether it ends by itself, with its log written then; options: vaprod's.
    """

    def __init__(self, name, comm, log, command, mpich=False, ends=False, options=()):
        self.name, self.comm, self.log, self.command, self.mpich, self.ends = name, comm, log, command, mpich, ends
        self.options = list(options)

    def start(self, jobs, directory, seconds, late_share=0):
        words = [str(word) for word in self.command(directory, seconds)]
        if late_share:
            words += ["--late-share", str(late_share)]
        command = ["mpirun.mpich", "-n", str(RANKS), *words] if self.mpich else mpirun(RANKS, *words)
        return jobs.start(command, self.name, cwd=directory)


def tool(name):
    return path("tools", name)


def demo(name):
    def command(directory, seconds):
        files = os.path.join(directory, "files")
        os.makedirs(files, exist_ok=True)
        return tool(name), "--seconds", seconds, "--log", directory, "--scratch", files, "--bind"
    return command


def iterate(name):
    def command(directory, _):
        return tool(name), "--iterations", LONG, "--log", directory, "--bind"
    return command


def rounds(name):
    def command(directory, _):
        return tool(name), "--rounds", LONG, "--log", directory
    return command


def lammps(directory, _):
    """Its log has the time of every so many steps."""
    with open(os.path.join(ROOT, "tools", "lammps.in"), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^thermo \d+$", f"thermo {THERMO}\nthermo_style custom step cpu\nthermo_modify flush yes", text, flags=re.M)
    script = os.path.join(directory, "in")
    with open(script, "w", encoding="utf-8") as file:
        file.write(text)
    return "lmp", "-in", script, "-var", "steps", LAMMPS_STEPS, "-log", os.path.join(directory, "log"), "-screen", "none"


# ft calls MPI so often that with the default budget vaprod sees less than a third of its time, and misses short injections.
PROGRAMS = {program.name: program for program in (
    Program("demo_mpi", "demo_mpi", "truth", demo("demo_mpi"), ends=True),
    Program("lammps", "lmp", "thermo", lammps),
    Program("mpich_iterate", "mpich_iterate", "truth", iterate("mpich_iterate"), mpich=True),
    Program("ft", "ft", None, rounds("ft"), options=("--overhead-cap", "0")),
    Program("mpich_demo_mpi", "mpich_demo_mpi", "truth", demo("mpich_demo_mpi"), mpich=True, ends=True),
    Program("iterate", "iterate", "truth", iterate("iterate")),
    Program("ep", "ep", None, rounds("ep")),
)}


def ranks_of(job, program):
    """The pids of a job's ranks, in their order, once all of them run the program."""
    def look():
        if job.process.poll() is not None:
            raise RuntimeError(f"{job.name} ended at once: {job.err().strip()[-500:]}")
        found = {}
        for pid in descendants(job.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    comm = file.read().strip()
                with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                    match = re.search(r"(?:^|\0)(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)\0", file.read())
            except OSError:
                continue
            if match and comm == program.comm[:15]:
                found[int(match.group(1))] = pid
        return [found[rank] for rank in range(RANKS)] if len(found) == RANKS else None
    pids = until(look, 20)
    if not pids:
        raise RuntimeError(f"{job.name} did not start its ranks: {job.err().strip()[-500:]}")
    return pids


def bind(pids, cpus):
    """Each rank, with the threads it has, to a CPU of its own; returns the CPUs."""
    chosen = [cpus[rank % len(cpus)] for rank in range(len(pids))]
    for pid, cpu in zip(pids, chosen):
        for thread in os.listdir(f"/proc/{pid}/task"):
            try:
                os.sched_setaffinity(int(thread), {cpu})
            except ProcessLookupError:
                pass
    return chosen


def steal_ns(cpu):
    """Time that the hypervisor stole from a CPU."""
    with open("/proc/stat", encoding="utf-8") as file:
        match = re.search(rf"^cpu{cpu} (.*)$", file.read(), re.M)
    return int(match.group(1).split()[7]) * 10**9 // os.sysconf("SC_CLK_TCK") if match else 0


class Kernel(threading.Thread):
    """
    Samples of the kernel's accounts of the ranks, stored in a file: time on the CPU, time that they were ready to run and
    did not, and time that the hypervisor stole from their CPUs. Also reads lammps' log: when each line was first seen.
    """

    def __init__(self, directory, pids, cpus, log=None, step=0.2):
        super().__init__(daemon=True)
        self.pids, self.cpus, self.step, self.log = pids, cpus, step, log
        self.path = os.path.join(directory, "schedstat.ndjson")
        self.samples, self.ahead = [], None
        self.over = threading.Event()

    def sample(self):
        now, ranks = time.monotonic_ns(), []
        for pid, cpu in zip(self.pids, self.cpus):
            try:
                with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
                    run, wait, _ = map(int, file.read().split())
            except (OSError, ValueError):
                return  # it has ended
            ranks.append({"run_ns": run, "wait_ns": wait, "steal_ns": steal_ns(cpu)})
        self.samples.append({"mono_ns": now, "ranks": ranks})

    def look_at_log(self):
        """How much the monotonic clock is ahead of lammps' own, by the line that was seen soonest."""
        try:
            last = thermo(self.log)[-1]
        except (OSError, IndexError):
            return
        ahead = time.monotonic_ns() - int(last[1] * 1e9)
        self.ahead = ahead if self.ahead is None else min(ahead, self.ahead)

    def run(self):
        while not self.over.wait(self.step):
            self.sample()
            if self.log:
                self.look_at_log()

    def finish(self):
        self.over.set()
        self.join()
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in self.samples)

    def _away_ns(self, rank, at):
        """Time without a CPU of a rank up to a time, ns: ready, or with its CPU stolen; between the samples around it."""
        before = after = None
        for one in self.samples:
            if one["mono_ns"] <= at:
                before = one
            elif after is None:
                after = one
        before, after = before or after, after or before
        span = after["mono_ns"] - before["mono_ns"]
        share = min(1, max(0, (at - before["mono_ns"]) / span)) if span else 0
        a, b = (sum(one["ranks"][rank][key] for key in ("wait_ns", "steal_ns")) for one in (before, after))
        return a + (b - a) * share

    def away_s(self, ranks, begin, end):
        """Seconds for which these ranks were ready without a CPU, or had theirs stolen, from begin to end."""
        if not self.samples:
            return 0.0
        return sum(self._away_ns(rank, end) - self._away_ns(rank, begin) for rank in ranks if rank < len(self.pids)) / 1e9

    def lost(self, begin, end):
        """Of each rank from begin to end: seconds on the CPU, ready but not on it, asleep or stopped, and stolen."""
        inside = [s for s in self.samples if begin - 0.3e9 <= s["mono_ns"] <= end + 0.3e9]
        if len(inside) < 2:
            return []
        first, last = inside[0], inside[-1]
        wall, found = last["mono_ns"] - first["mono_ns"], []
        for a, b in zip(first["ranks"], last["ranks"]):
            part = {key: b[key] - a[key] for key in a}
            found.append({"wall_s": round(wall / 1e9, 3), "run_s": round(part["run_ns"] / 1e9, 3),
                          "wait_s": round(part["wait_ns"] / 1e9, 3),
                          "asleep_s": round((wall - part["run_ns"] - part["wait_ns"]) / 1e9, 3),
                          "steal_s": round(part["steal_ns"] / 1e9, 3)})
        return found


def thermo(log):
    """[(step, seconds since the first)] of lammps' log."""
    found = []
    with open(log, encoding="utf-8") as file:
        for line in file:
            match = re.fullmatch(r"\s*(\d+)\s+([\d.e+-]+)\s*\n", line)
            if match:
                found.append((int(match.group(1)), float(match.group(2))))
    return found


def truths_of(program, directory, kernel):
    """{rank: Truth} by the program's own log, or None where it writes no log of its time."""
    if program.log == "truth":
        return t.load_truth(directory)
    if program.log != "thermo" or kernel.ahead is None:
        return None
    lines, found = thermo(os.path.join(directory, "log")), {}
    for rank in range(RANKS):  # all advance together
        truth = found[rank] = t.Truth(rank, kernel.pids[rank])
        truth.names[1] = f"{THERMO} steps"
        truth.segments = [(1, kernel.ahead + int(at * 1e9), int((following - at) * 1e9))
                          for (_, at), (_, following) in zip(lines, lines[1:])]
        truth.learn()
    return found
