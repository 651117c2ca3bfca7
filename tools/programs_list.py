# SPDX-License-Identifier: GPL-2.0-or-later
"""
The programs of `make accept WHAT=programs`: how each is started, for a time or for a fixed amount of work, which
injections apply to it, and what its coverage must be.
"""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live_programs  # noqa: E402
import truth as t  # noqa: E402
from accept_common import hpcc_input  # noqa: E402
from jobs import ROOT, descendants, mpirun, path, until  # noqa: E402
from programs_common import in_group  # noqa: E402

CPUS = os.cpu_count() or 1
TAKES_CPU = ("hog", "duty", "quota", "stop")
LATE_SHARE = 0.6


class Program:
    """
    name, and in the order of use: file, its executable; ranks; threads, of each rank; kinds, the injections that apply;
    work, rounds or steps of a run of some four seconds; wanted, its least coverage; log, what kind of log its ranks
    write ("truth", "thermo" or None); ends, whether a run ends by itself after its time; hot, whether it calls so often
    that within the budget only the account of threads may remain.
    """
    ranks, threads, mpi = 2, 1, True
    kinds, wanted, log, ends, env = TAKES_CPU + ("late",), 0.75, "truth", True, None
    needs_files, hot = False, False

    def __init__(self, name, work, **changes):
        self.name, self.work = name, work
        self.file = path("tools", name)
        for key, value in changes.items():
            if not hasattr(self, key):
                raise TypeError(key)
            setattr(self, key, value)

    def pattern(self):
        """What --exe selects: this file of this tree, so that no other process of the name is watched."""
        return self.file

    def words(self, directory, files, seconds=None, work=None, first=0):
        """Its command line without the launcher."""
        words = [self.file, *(("--rounds", work) if work else ("--seconds", seconds))]
        if not work:
            words += ["--log", directory]
        if self.needs_files:
            words += ["--scratch", files]
        if first:
            words += ["--first", first]
        if "late" in self.kinds:
            words += ["--late-share", LATE_SHARE]
        return words

    def environment(self):
        env = dict(self.env or {})
        if self.threads > 1:
            env.update(OMP_NUM_THREADS=str(self.threads), OMP_PROC_BIND="true", OMP_PLACES="cores")
        return env

    def command(self, words, ranks=None):
        """With the launcher; each rank on a CPU of its own where there are enough."""
        ranks = ranks or self.ranks
        if not self.mpi:
            return list(map(str, words))
        command = mpirun(ranks, *words)
        if ranks * self.threads <= CPUS and (ranks > 1 or self.threads == 1):
            command[command.index("none")] = "core"
            if self.threads > 1:
                command[1:1] = ["--map-by", f"slot:PE={self.threads}"]
        return command

    def start(self, jobs, groups, directory, files=None, name=None, ranks=None, **how):
        command = self.command(self.words(directory, files, **how), ranks)
        return jobs.start(in_group(groups, "job", command), name or self.name, cwd=directory, env=self.environment())

    def cost(self, job, usage_s):
        """CPU seconds of a fixed amount of work: by the program itself, else by the launcher's resource usage."""
        for line in reversed(job.out().splitlines()):
            if line.startswith("{"):
                result = json.loads(line)
                if result.get("wrong"):
                    raise RuntimeError(f"{self.name}: {result['wrong']} results are wrong")
                if "cpu_s" in result:
                    return result["cpu_s"] / result["rounds"]
                if "iterations" in result:
                    return usage_s / result["iterations"]
        return usage_s

    def check(self, job):
        """Raises where the results of a run that ended by itself are wrong."""
        self.cost(job, 0)


class Demo(Program):
    needs_files = True

    def words(self, directory, files, seconds=None, work=None, first=0):
        # its work depends on the time, and it prints how much it did
        return [self.file, "--seconds", seconds or 4, "--log", directory, "--scratch", files]


class RandomWork(Program):
    """The durations of its segments are random, so that its log confirms no alarm."""
    log = None

    def words(self, directory, files, seconds=None, work=None, first=0):
        return [self.file, "--seconds", seconds or 4, "--log", directory]


class Installed(Program):
    """A copy of a package's program, so that no other process of the machine has this executable."""
    source = None

    def prepare(self):
        source, self.file = os.path.realpath(shutil.which(self.source) or self.source), path("accept", "programs", "bin", self.name)
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        if not os.path.exists(self.file) or os.path.getsize(self.file) != os.path.getsize(source):
            shutil.copy2(source, self.file)


class Lammps(Installed):
    source, kinds, log, ends = "lmp", TAKES_CPU, "thermo", False

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        words = list(live_programs.lammps(directory, seconds))
        words[0] = self.file
        if work:
            words[words.index(live_programs.LAMMPS_STEPS)] = work
        return words


class Hpcc(Installed):
    """Its kernels differ, and each runs for a limited time: the order of its matrices sets the length of a run."""
    source, kinds, log, ends = "hpcc", TAKES_CPU, None, False
    ORDERS = ((2, 1500), (6, 3000), (12, 4000), (35, 5600), (1000, 8000))

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        hpcc_input(directory, work or next(order for most, order in self.ORDERS if seconds <= most))
        return [self.file]


class Mpi4py(Installed):
    source, kinds, wanted = "/usr/bin/python3", TAKES_CPU, 0.5
    env = {"PYTHONHOME": "/usr"}  # of the copy

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        script = os.path.join(ROOT, "tools", "workloads", "mpi4py_steps.py")
        return [self.file, script, *(("--rounds", work) if work else ("--seconds", seconds, "--log", directory))]


# The amount of work of a pair takes some four seconds on the machine that README's figures are from.
PROGRAMS = {program.name: program for program in (
    Program("omp_small", 1000, ranks=1, threads=min(CPUS, 2), mpi=False, hot=True),
    Program("hybrid_steps", 800, ranks=max(1, CPUS // 2), threads=min(CPUS, 2)),
    Program("posts", 4500),
    Program("sendrecv", 40000, hot=True),
    Program("wrapped_twice", 430),
    Program("kernels3", 450),
    Program("mpiio", 300, needs_files=True, kinds=TAKES_CPU + ("late", "freeze")),
    Mpi4py("mpi4py", 400),
    Lammps("lammps", 1400),
    Hpcc("hpcc", 2500),
    Demo("demo_mpi", 4, kinds=TAKES_CPU + ("freeze",)),
)}
RANDOM_WORK = RandomWork("random_work", 4, kinds=())


def ranks_of(job, program, ranks=None):
    """The pids of a job's ranks in their order, once all of them run the program."""
    wanted = ranks or program.ranks

    def look():
        if job.process.poll() is not None:
            raise RuntimeError(f"{job.name} ended at once: {job.err().strip()[-500:]}")
        found = {}
        for pid in descendants(job.pid):
            try:
                if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(program.file):
                    continue
                with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                    match = re.search(r"(?:^|\0)(?:OMPI_COMM_WORLD_RANK|RANK)=(\d+)\0", file.read())
            except OSError:
                continue
            if match or not program.mpi:
                found[int(match.group(1)) if match else 0] = pid
        return [found[rank] for rank in range(wanted)] if len(found) == wanted else None
    pids = until(look, 30, 0.02)
    if not pids:
        raise RuntimeError(f"{job.name} did not start its ranks: {job.err().strip()[-500:]}")
    return pids


def team_of(pids, cpus):
    """Once each of these CPUs has its rank or thread: {cpu: (rank, [(pid, tid)])} of what is bound to it alone."""
    def look():
        found = {}
        for rank, pid in enumerate(pids):
            for tid in map(int, os.listdir(f"/proc/{pid}/task")):
                try:
                    mask = os.sched_getaffinity(tid)
                except OSError:
                    continue
                if len(mask) == 1:
                    found.setdefault(next(iter(mask)), (rank, []))[1].append((pid, tid))
        return found if set(cpus) <= set(found) else None
    return until(look, 15, 0.05)


def truths_of(program, directory, sampler):
    """{rank: Truth} by the program's own log, or {} where it writes no log of its time."""
    if program.log == "truth":
        return t.load_truth(directory)
    if program.log == "thermo":
        return live_programs.truths_of(program, directory, sampler) or {}
    return {}
