# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the parts of `make accept WHAT=programs` share: options, results that are stored per commit, units of work that can be
resumed, and runs in a cgroup whose large share of the CPUs excludes other work of the machine.

A unit is the smallest part that is measured and stored, one file build/accept/programs/COMMIT/PART/PROGRAM/UNIT.json, COMMIT
being the last one that changed what is measured. A part measures the units that its commit lacks until its time is over; the
table is made of all units of the commit, whichever invocation measured them.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "live")]
import truth as t  # noqa: E402
from cgroups import Cgroups, NoCgroups  # noqa: E402
from jobs import ROOT, Jobs, TimeLimit, path, until  # noqa: E402,F401

FAILURES = (RuntimeError, OSError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, TimeLimit, NoCgroups,
            subprocess.SubprocessError)
MINUTES_MOST = 40


class Busy(Exception):
    """Another run measures: a sentence."""


@contextlib.contextmanager
def only_run(directory):
    """
    Holds the lock of a directory of results while it is measured: two runs at a time would measure each other. Raises Busy where
    another process has it. The kernel releases it when its owner ends, however that ends.
    """
    os.makedirs(directory, exist_ok=True)
    name = os.path.join(directory, "lock")
    with open(name, "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Busy(f"another run{file.read()} writes its results to {directory}, and each would disturb the other's figures: "
                       "start this one when that has ended") from None
        file.truncate(0)
        file.write(f" (pid {os.getpid()}, since {time.strftime('%H:%M:%S')})")
        file.flush()
        yield


class Options:
    """
    programs: names of the only programs to measure, or None; again: also measure known units; noisy: also measure known
    units whose runs were disturbed by other work; capture: keep captures.
    """

    def __init__(self, programs=None, minutes=MINUTES_MOST, seed=1, again=False, noisy=False, shield=True, reference=None, quick=False,
                 capture=False):
        self.noisy, self.programs, self.minutes, self.seed = noisy, programs, min(minutes, MINUTES_MOST), seed
        self.again, self.shield, self.reference, self.quick, self.capture = again, shield, reference, quick, capture

    def repeat(self, times, quick):
        return quick if self.quick else times

    def is_enough(self, known):
        """Whether a unit that was measured need not be measured again."""
        return not self.again and (self.quick or not known["quick"]) and not (self.noisy and known.get("noisy"))


MEASURED = ("user", "bpf", "include", "vmlinux", "tools/workloads", "tools/inject")


def version_name(root=ROOT, build=None):
    """The last commit that changed what is measured, and a digest of vaprod where the files differ from it."""
    def git(*words):
        command = ["git", "-C", root, *words, "--", *MEASURED]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    try:
        commit, changed = git("log", "-1", "--abbrev=10", "--format=%h"), git("status", "--porcelain")
    except (OSError, subprocess.SubprocessError):
        commit, changed = "unknown", True
    if changed or not commit:
        with open(build or path("vaprod"), "rb") as file:
            commit += "+" + hashlib.sha1(file.read()).hexdigest()[:8]
    return commit


class Store:
    """The units of one version that were measured."""

    def __init__(self, directory):
        self.directory = directory

    def _file(self, part, program, unit):
        return os.path.join(self.directory, part, program, unit + ".json")

    def get(self, part, program, unit):
        """A unit that was measured, or None; one that failed counts as not measured."""
        entry = self.read(self._file(part, program, unit))
        return None if entry is None or "error" in entry else entry

    @staticmethod
    def read(name):
        try:
            with open(name, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def put(self, part, program, unit, entry):
        name = self._file(part, program, unit)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name + ".new", "w", encoding="utf-8") as file:
            json.dump(entry, file, indent=1)
            file.write("\n")
        os.replace(name + ".new", name)

    def scratch(self, part, program, unit):
        """An empty directory for what the runs of a unit leave."""
        directory = os.path.join(self.directory, part, program, unit)
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        return directory

    def joined(self, part):
        """{program: {unit: entry}} of all invocations."""
        found, top = {}, os.path.join(self.directory, part)
        for program in sorted(os.listdir(top)) if os.path.isdir(top) else []:
            for name in sorted(os.listdir(os.path.join(top, program))):
                entry = self.read(os.path.join(top, program, name)) if name.endswith(".json") else None
                if entry is not None:
                    found.setdefault(program, {})[name[:-5]] = entry
        return found

    def join(self, parts):
        """Writes all of them into one file and returns its name."""
        name = os.path.join(self.directory, "results.json")
        everything = {"version": os.path.basename(self.directory), "kernel": os.uname().release, "machine": os.uname().machine,
                      "cpus": os.cpu_count(), "parts": {part: self.joined(part) for part in parts}}
        os.makedirs(self.directory, exist_ok=True)
        with open(name + ".new", "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
            file.write("\n")
        os.replace(name + ".new", name)
        return name


class Progress:
    """Prints the progress of a part, and knows when its time is over."""

    def __init__(self, part, minutes, out=sys.stderr):
        self.part, self.limit, self.begun, self.out = part, minutes * 60, time.monotonic(), out

    def took(self):
        return time.monotonic() - self.begun

    def over(self, expected_s):
        """Whether a unit of so many seconds does not fit any more."""
        return self.took() + expected_s > self.limit

    def say(self, text):
        took = int(self.took())
        print(f"[{self.part} {took // 60:02d}:{took % 60:02d}] {text}", file=self.out, flush=True)


class Unit:
    """
    measure(directory, progress) returns the entry: {"rows": [...]} and whatever the table needs; noisy: whether other
    work disturbed it.
    """

    def __init__(self, program, name, expected_s, measure):
        self.program, self.name, self.expected_s, self.measure = program, name, expected_s, measure


def interleaved(units):
    """The first unit of each program, then the second of each, so that an interrupted part has units of every program."""
    rank, ordered = {}, []
    for unit in units:
        rank[unit.program] = rank.get(unit.program, -1) + 1
        ordered.append((rank[unit.program], len(ordered), unit))
    return [unit for _, _, unit in sorted(ordered, key=lambda item: item[:2])]


def do_units(store, part, units, options, progress):
    """Measures the units that the version lacks while there is time; returns how many are left."""
    units = [u for u in interleaved(units) if options.programs is None or u.program in options.programs]
    left, done = 0, 0
    for unit in units:
        done += 1
        place = f"{done}/{len(units)} {unit.program} {unit.name}"
        known = store.get(part, unit.program, unit.name)
        if known and options.is_enough(known):
            progress.say(place + ": known")
            continue
        if progress.over(unit.expected_s):
            left += 1
            progress.say(place + ": no time left in this invocation")
            continue
        begin = time.monotonic()
        directory = store.scratch(part, unit.program, unit.name)
        try:
            entry = unit.measure(directory, progress)
        except FAILURES as error:
            entry = {"error": f"{type(error).__name__}: {error}", "rows": []}
            with open(os.path.join(directory, "error"), "w", encoding="utf-8") as file:
                traceback.print_exc(file=file)
        entry.update(time=t.format_time(time.time_ns()), seconds=round(time.monotonic() - begin, 1), quick=options.quick,
                     seed=options.seed)
        store.put(part, unit.program, unit.name, entry)
        progress.say(f"{place}: {entry.get('error') or entry.get('brief', 'done')} ({entry['seconds']:.0f} s)")
    return left


def rows_of_units(joined, left):
    """The rows of all units, each with its program before it; what failed or is missing is a row too."""
    rows = []
    for program, units in joined.items():
        for name, entry in units.items():
            if "error" in entry:
                rows.append(t.row(f"{program} {name}: could not be measured", entry["error"][:120], "a measurement", False))
            rows += [dict(row, what=f"{program}: {row['what']}") for row in entry["rows"]]
    if left:
        rows.append(t.row("units that were not measured for lack of time", left, "0: run again, known units stay", False))
    return rows


@contextlib.contextmanager
def shielded(options, *names):
    """
    Cgroups of this run with a large share of the CPUs: `job` for all of it and one for each name, or None. The measuring
    process is also in `job`: its times and samples must not be late where the machine has other work.
    """
    if not options.shield:
        yield None
        return
    with Cgroups(f"vapro-programs-{os.getpid()}", "job", *names) as groups:
        groups.move("job", os.getpid())  # until they are removed
        yield groups


def in_group(groups, name, command):
    """A command line that runs in a cgroup from its first instruction on."""
    if groups is None:
        return list(map(str, command))
    return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{groups.top}/{name}/cgroup.procs", *map(str, command)]


VAPROD = path("vaprod")


def start_vaprod(jobs, groups, name, pattern, *options, binary=None):
    """vaprod, ready for processes of that executable; (job, its NDJSON file)."""
    ndjson = os.path.join(jobs.directory, name + ".ndjson")
    if os.path.exists(ndjson):
        os.unlink(ndjson)
    command = [binary or VAPROD, "--exe", pattern, "--output", ndjson, *options]
    daemon = jobs.start(in_group(groups, "job", command), name)
    if not until(lambda: daemon.process.poll() is not None or (os.path.exists(ndjson) and os.path.getsize(ndjson) > 0), 30, 0.02) \
            or daemon.process.poll() is not None:
        raise RuntimeError("vaprod did not start: " + daemon.err().strip()[-300:])
    time.sleep(0.3)
    return daemon, ndjson


def end_vaprod(jobs, daemon):
    code = jobs.interrupt(daemon)
    if code:
        raise RuntimeError(f"vaprod ended with {code}: {daemon.err().strip()[-300:]}")


def of_type(records, kind):
    return [r for r in records if r.get("type") == kind]


def weights(records):
    """[(window, seconds)]"""
    return [(w, (t.parse_time(w["end"]) - t.parse_time(w["begin"])) / 1e9) for w in of_type(records, "window")]
