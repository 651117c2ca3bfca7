# SPDX-License-Identifier: GPL-2.0-or-later
"""
The disturbances of the live part of make accuracy, drawn by a seed: a CPU hog, one that takes the CPU in bursts, a CPU
quota of a cgroup, and a rank that is late, because it is stopped for a part of the time or has more work.
"""
import os
import random
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "live")]
import truth as t  # noqa: E402
from live_programs import PROGRAMS, RANKS, tool  # noqa: E402

KINDS = ("hog", "duty", "quota", "late")
CAN_WORK_MORE = ("iterate", "mpich_iterate")
ONSET = (8.0, 13.0)   # seconds after vaprod has attached
LENGTH = (1.0, 8.0)   # seconds
QUOTA_PERIOD_US = 100000


def plan(count, seed, only=None):
    """The injections of all runs, as dicts. The shorter of two plans of one seed is the begin of the longer one."""
    draw = random.Random(seed)
    programs, injections = list(PROGRAMS), []
    draw.shuffle(programs)
    number = 0
    while len(injections) < count:
        kind = KINDS[number % len(KINDS)]
        # each kind meets each program: the numbers of kinds and of programs have no common factor
        program = programs[number % len(programs)]
        one = {"number": number + 1, "kind": kind, "program": program, "mpi": "mpich" if PROGRAMS[program].mpich else "openmpi",
               "rank": draw.randrange(RANKS), "onset_s": round(draw.uniform(*ONSET), 2),
               "length_s": round(LENGTH[0] * (LENGTH[1] / LENGTH[0]) ** draw.random(), 2)}
        share, period, work = draw.uniform(0.25, 0.6), draw.uniform(40, 200), draw.random() < 0.5
        if kind == "duty":
            one["share"] = round(share, 2)
        elif kind == "quota":
            one["quota_us"] = int(QUOTA_PERIOD_US * (1 - share))
        elif kind == "late" and program in CAN_WORK_MORE and work:
            one["late_share"] = round(share / (1 - share), 2)
        elif kind == "late":
            one["pause_ms"], one["period_ms"] = round(period * share, 1), round(period, 1)
        number += 1
        if only in (None, kind):
            injections.append(one)
    return injections


def in_words(one):
    more = {"duty": lambda: f" of {one['share']:.0%}", "quota": lambda: f" of {one['quota_us'] / QUOTA_PERIOD_US:.0%}",
            "late": lambda: (f" by {one['late_share']:.0%} more work" if "late_share" in one else
                             f" by {one['pause_ms']:.0f} of {one['period_ms']:.0f} ms")}.get(one["kind"], str)()
    return f"{one['kind']}{more}, {one['program']}, rank {one['rank']}, {one['length_s']:.1f} s from {one['onset_s']:.1f} s"


class Injection:
    """One disturbance of a run: prepared at once, active from its onset on; truth() afterwards."""

    def __init__(self, one, jobs, directory, pids, cpus, groups):
        self.one, self.jobs, self.groups = one, jobs, groups
        self.pid, self.cpu = pids[one["rank"]], cpus[one["rank"]]
        self.log = os.path.join(directory, "injector.json")
        self.armed = time.monotonic()
        self.job, self.throttled_s, self.begin, self.end = None, None, None, None
        if one["kind"] in ("hog", "duty"):
            share = ["--share", one["share"]] if one["kind"] == "duty" else []
            self._start("hog", "--cpu", self.cpu, *share)
            if groups:
                groups.move("job", self.job.pid)
        elif "pause_ms" in one:
            self._start("pauser", "--pid", self.pid, "--pause-ms", one["pause_ms"], "--period-ms", one["period_ms"])

    def _start(self, name, *options):
        self.job = self.jobs.start([tool(name), *options, "--start-after", self.one["onset_s"], "--seconds",
                                    self.one["length_s"], "--log", self.log], name)

    def run(self):
        """Returns when the disturbance has ended."""
        if self.job:
            code = self.jobs.wait(self.job, self.one["onset_s"] + self.one["length_s"] + 20)
            if code:
                raise RuntimeError(f"{self.job.name} ended with {code}: {self.job.err().strip()}")
            event = t.load_events(self.log)[0]
            self.begin, self.end = event["begin"], event["end"]
            return
        time.sleep(max(0, self.armed + self.one["onset_s"] - time.monotonic()))
        self.begin = time.monotonic_ns()
        if self.one["kind"] == "quota":
            before = self.groups.throttled_s("rank")
            self.groups.limit("rank", self.one["quota_us"], QUOTA_PERIOD_US)
            time.sleep(self.one["length_s"])
            self.groups.limit("rank")
            self.end = time.monotonic_ns()
            self.throttled_s = self.groups.throttled_s("rank") - before
        else:
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(self.one["length_s"])
            os.kill(self.pid, signal.SIGUSR2)
            self.end = time.monotonic_ns()

    def truth(self):
        more = {} if self.throttled_s is None else {"throttled_s": round(self.throttled_s, 3)}
        return {**self.one, "pid": self.pid, "cpu": self.cpu, "begin_mono_ns": self.begin, "end_mono_ns": self.end, **more}
