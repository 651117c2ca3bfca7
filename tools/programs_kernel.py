# SPDX-License-Identifier: GPL-2.0-or-later
"""
The kernel's own figures, by which vaprod is judged: how long each thread ran and waited for its CPU (schedstat), what the
hypervisor stole from each CPU, whether breakpoints are set in a process, and how often vaprod's BPF programs ran.
"""
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live_programs  # noqa: E402

QUIET = 0.01          # share of the ranks' time that other work may take in a quiet run
BPF_STATS = "/proc/sys/kernel/bpf_stats_enabled"


class Sampler(threading.Thread):
    """
    Samples of the threads of some processes: {mono_ns, threads: {tid: [run_ns, wait_ns]}, steal: {cpu: ns}}. On request
    it also samples lammps' log, and whether breakpoints are set.
    """

    def __init__(self, pids, cpus, daemon=None, log=None, step=0.1):
        super().__init__(daemon=True)
        self.pids, self.cpus, self.vaprod, self.log, self.step = pids, cpus, daemon, log, step
        self.samples, self.files, self.owners, self.ahead = [], {}, {}, None
        self.text = None        # a function that says whether probes are set; it may come later
        self.set = []           # [(mono_ns, bool)]
        self.lock, self.over = threading.Lock(), threading.Event()
        self._find()

    def _find(self):
        """Opens the files of new threads."""
        for pid in self.pids:
            try:
                for tid in map(int, os.listdir(f"/proc/{pid}/task")):
                    if tid not in self.files:
                        self.files[tid] = os.open(f"/proc/{pid}/task/{tid}/schedstat", os.O_RDONLY)
                        self.owners[tid] = pid
            except OSError:
                pass

    def sample(self):
        with self.lock:
            now, threads = time.monotonic_ns(), {}
            for tid, file in self.files.items():
                try:
                    run, wait, _ = os.pread(file, 128, 0).split()
                except (OSError, ValueError):  # the thread has ended: its last values remain valid
                    if self.samples and tid in self.samples[-1]["threads"]:
                        threads[tid] = self.samples[-1]["threads"][tid]
                    continue
                threads[tid] = [int(run), int(wait)]
            steal = {cpu: live_programs.steal_ns(cpu) for cpu in self.cpus} if len(self.samples) % 5 == 0 else self.samples[-1]["steal"]
            self.samples.append({"mono_ns": now, "threads": threads, "steal": steal, "vaprod_ns": self._vaprod_ns()})
            return now

    def _vaprod_ns(self):
        """CPU time of vaprod's threads and of its children so far."""
        if self.vaprod is None:
            return 0
        try:
            with open(f"/proc/{self.vaprod}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) * 10**9 // os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            return self.samples[-1]["vaprod_ns"] if self.samples else 0

    def _look_at_log(self):
        """How much the monotonic clock is ahead of lammps' own, by the line that was seen soonest."""
        try:
            last = live_programs.thermo(self.log)[-1]
        except (OSError, IndexError):
            return
        ahead = time.monotonic_ns() - int(last[1] * 1e9)
        self.ahead = ahead if self.ahead is None else min(ahead, self.ahead)

    def run(self):
        while not self.over.wait(self.step):
            self.sample()
            if len(self.samples) % 10 == 0:
                self._find()
            if self.log:
                self._look_at_log()
            if self.text and len(self.samples) % 2 == 0:
                self.set.append((time.monotonic_ns(), self.text()))

    def finish(self):
        self.over.set()
        self.join()
        for file in self.files.values():
            os.close(file)
        self.files = {}

    def between(self, at):
        """{tid: (run_ns, wait_ns)} at a time, between the samples around it."""
        before = after = None
        for one in self.samples:
            if one["mono_ns"] <= at:
                before = one
            elif after is None:
                after = one
        before, after = before or after, after or before
        if before is None:
            return {}
        span = after["mono_ns"] - before["mono_ns"]
        share = min(1, max(0, (at - before["mono_ns"]) / span)) if span else 0
        return {tid: tuple(a + (b - a) * share for a, b in zip(values, after["threads"].get(tid, values)))
                for tid, values in before["threads"].items()}

    def waited_s(self, tids, begin, end):
        """Seconds for which these threads were ready and did not run, from begin to end."""
        first, last = self.between(begin), self.between(end)
        return sum(last[tid][1] - first.get(tid, (0, 0))[1] for tid in tids if tid in last) / 1e9

    def stolen_s(self, cpus, begin, end):
        inside = [s for s in self.samples if begin - 0.6e9 <= s["mono_ns"] <= end + 0.6e9]
        return sum(inside[-1]["steal"][cpu] - inside[0]["steal"][cpu] for cpu in cpus) / 1e9 if inside else 0.0

    def delay_s(self, variance):
        """Run delay and steal of what a variance names (programs_score.py), in its time: of its threads, or of all of its ranks."""
        ranks = [rank for rank in variance["ranks"] or range(len(self.pids)) if rank < len(self.pids)]
        pids = {self.pids[rank] for rank in ranks}
        tids = variance["tids"] or [tid for tid, pid in self.owners.items() if pid in pids]
        cpus = [self.cpus[rank] for rank in ranks] if len(self.cpus) == len(self.pids) else self.cpus
        return self.waited_s(tids, variance["begin"], variance["end"]) + self.stolen_s(cpus, variance["begin"], variance["end"])

    def others(self):
        """Share of the processes' time that other work took: run delay not caused by vaprod, and steal."""
        if len(self.samples) < 2:
            return 0.0
        begin, end = self.samples[0]["mono_ns"], self.samples[-1]["mono_ns"]
        tids = {tid for sample in self.samples for tid in sample["threads"]}
        waited = self.waited_s(tids, begin, end)
        vaprod = (self.samples[-1]["vaprod_ns"] - self.samples[0]["vaprod_ns"]) / 1e9
        wall = (end - begin) / 1e9 * max(1, len(self.cpus))
        return (max(0.0, waited - vaprod) + self.stolen_s(self.cpus, begin, end)) / wall

    def others_beside(self, injections):
        """The same share outside the times of injections, where all run delay is caused by other work."""
        tids = {tid for sample in self.samples for tid in sample["threads"]}
        borders = [self.samples[0]["mono_ns"], *(ns for one in injections for ns in (one["begin"], one["end"])), self.samples[-1]["mono_ns"]]
        waited = wall = 0
        for begin, end in zip(borders[::2], borders[1::2]):
            waited += self.waited_s(tids, begin, end)
            wall += (end - begin) / 1e9
        return waited / (wall * max(1, len(self.cpus))) if wall > 0 else 0.0

    def closed_share(self, begin, end):
        """Share of the samples from begin to end that found no probe set, or None without a sample."""
        sampled = [is_set for at, is_set in self.set if begin <= at <= end]
        return sum(not is_set for is_set in sampled) / len(sampled) if sampled else None


def is_quiet(others):
    return others < QUIET


def ranges_of(file, functions):
    """[(offset, size)] of functions in an executable or a library; without names all of its functions."""
    table = ["--dyn-syms"] if functions else ["--syms", "--dyn-syms"]
    out = subprocess.run(["readelf", "-W", *table, file], capture_output=True, text=True, timeout=20, check=True).stdout
    segments = subprocess.run(["readelf", "-W", "-l", file], capture_output=True, text=True, timeout=20, check=True).stdout
    moved = [(int(virtual, 16), int(offset, 16), int(size, 16)) for offset, virtual, size in
             re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", segments)]
    found = set()
    for value, size, name in re.findall(r"^ *\d+: (\w+) +(\d+) FUNC +\w+ +\w+ +\d+ (\S+)", out, re.M):
        if int(size) and (not functions or name.split("@")[0] in functions):
            at = int(value, 16)
            found.update((at - virtual + offset, int(size)) for virtual, offset, length in moved if virtual <= at < virtual + length)
    return sorted(found)


def text_watch(pid, places):
    """
    A function that says whether a probe is set in a process: whether bytes of its code differ from those of its files.
    places: [(part of a file's name, names of functions or None for all)].
    """
    pieces = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        mapped = [line.rstrip("\n").split(None, 5) for line in maps]
    for name, functions in places:
        for fields in mapped:
            if len(fields) < 6 or "x" not in fields[1] or name not in os.path.basename(fields[5]):
                continue
            first, last = (int(x, 16) for x in fields[0].split("-"))
            begin = int(fields[2], 16)
            with open(fields[5], "rb") as file:
                for offset, size in ranges_of(fields[5], functions):
                    if begin <= offset < begin + last - first:
                        file.seek(offset)
                        pieces.append((first + offset - begin, file.read(size)))
    if not pieces:
        raise RuntimeError(f"process {pid} has none of {places}")
    memory = open(f"/proc/{pid}/mem", "rb", buffering=0)

    def is_set():
        try:
            return any(os.pread(memory.fileno(), len(wanted), first) != wanted for first, wanted in pieces)
        except OSError:
            return False
    return is_set


@contextlib.contextmanager
def bpf_stats():
    """Lets the kernel count how often BPF programs run; the setting is restored."""
    with open(BPF_STATS, encoding="utf-8") as file:
        before = file.read().strip()

    def write(value):
        with open(BPF_STATS, "w", encoding="utf-8") as file:
            file.write(value)
    write("1")
    try:
        yield
    finally:
        write(before)


def program_runs(pid):
    """{name: (runs, ns)} of the BPF programs that a process holds."""
    out = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, timeout=20, check=True).stdout
    names, found, seen = {one["id"]: one.get("name", "") for one in json.loads(out or b"[]")}, {}, set()
    for file in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{file}", encoding="utf-8") as info:
                fields = dict(line.split(":", 1) for line in info if ":" in line)
        except OSError:
            continue
        if "run_cnt" not in fields or int(fields["prog_id"]) in seen:
            continue
        number = int(fields["prog_id"])
        seen.add(number)
        name = names.get(number, "?")
        runs, spent = found.get(name, (0, 0))
        found[name] = (runs + int(fields["run_cnt"]), spent + int(fields["run_time_ns"]))
    return found
