#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Usage: run.py [NAME...]. Runs the live tests, or those of these names ("attach", "tests/live/attach.t"), and lists what passed
only in its second try.

A test declares in a comment line what it needs of the machine:

    # NEEDS: quiet     no other test beside it: it judges speeds, or its vaprod has no selection
    # NEEDS: little    it waits for most of its time: two such tests count as one

Tests without `quiet` run two at a time (four of those with `little`), then the others one after the other. A test that fails
runs once more, alone, after all others; so does one whose record files contradict themselves (tools/contradictions.py). If it passes then, build/flaky.json has the first failure and how disturbed the machine was
during the first try: `steal_pct` is what the hypervisor took of the CPUs, `others_pct` what programs took that no test had
started, and which is why the threads of tests waited for a CPU (their run delay also has what tests do to each other on
purpose). Three of these fail the run; a first try with more than 10 % of either does not count.

The output of each try is in build/live/results; contradictions that are left are one more result there. What failed is said
again at the end, before the summary of the last tries by prove: of a long output, often only the end is at hand.
"""
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402
import jobs as j  # noqa: E402

SCRATCH, RESULTS = j.path("live"), j.path("live", "results")  # SCRATCH has a directory for each test
FLAKY, TIMES = j.path("flaky.json"), j.path("live", "times.json")
PLACES = 2.0  # tests side by side
DISTURBED_PCT = 10
FLAKES_ALLOWED = 2
LIMIT_S = 900
PARTS = {"quiet": PLACES, "little": 0.5}
PR_SET_CHILD_SUBREAPER = 36
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def needs_of(text):
    """The words of a test's NEEDS line."""
    line = re.search(r"^# NEEDS: (.*)$", text, re.M)
    words = set(line.group(1).replace(",", " ").split()) if line else set()
    if words - set(PARTS):
        raise ValueError(f"unknown need: {' '.join(sorted(words - set(PARTS)))}")
    return words


def room_of(needs):
    """How many of the PLACES a test takes."""
    return PARTS["quiet"] if "quiet" in needs else PARTS["little"] if "little" in needs else 1.0


def next_of(waiting, running):
    """The name of the test to start now, or None. waiting, running: {name: places}; waiting is in the order of their starts."""
    free = PLACES - sum(running.values())
    fits = [name for name, room in waiting.items() if room <= free + 1e-9]
    shared = [name for name in fits if waiting[name] < PLACES]
    if shared:
        return shared[0]
    # tests that need quiet come when all others have ended
    return fits[0] if fits and not running else None


def passed(tap, code):
    """Whether a test passed: all of its plan, and nothing failed."""
    plan = re.search(r"^1\.\.(\d+)", tap, re.M)
    results = re.findall(r"^(ok|not ok) \d+", tap, re.M)
    return bool(code == 0 and plan and len(results) == int(plan.group(1)) and "not ok" not in results)


def failure(tap, errors, code):
    """What a person reads of a failure: the names of failed assertions, and what was said about them."""
    failed = re.findall(r"^not ok \d+ - .*$", tap, re.M)
    said = [line for line in errors.splitlines() if line.startswith("# ")]
    return "\n".join(failed + said[-20:])[:4000] or f"exit code {code}, no complete plan: {errors[-400:]}"


def counts(flake):
    """Whether a second try counts: the machine was not disturbed during the first one."""
    return flake["steal_pct"] <= DISTURBED_PCT and flake["others_pct"] <= DISTURBED_PCT


class Load:
    """CPU time of the machine, of its hypervisor and of what this process has started, from one moment to another."""

    def __init__(self):
        self.begin = self.read()

    @staticmethod
    def read():
        """(all, busy, steal, own) in seconds."""
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, iowait, irq, soft_irq, steal = (int(word) for word in file.readline().split()[1:9])
        own = 0
        for pid in j.descendants(os.getpid()):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                    own += sum(int(word) for word in file.read().rpartition(")")[2].split()[11:15])
            except OSError:
                continue
        busy = user + nice + system + irq + soft_irq
        return tuple(TICK_S * value for value in (busy + idle + iowait + steal, busy, steal, own))

    def since(self):
        """(steal, what others used) since the begin, in percent of all CPUs' time."""
        whole, busy, steal, own = (now - then for now, then in zip(self.read(), self.begin))
        return (round(100 * steal / whole, 1), round(100 * max(0, busy - own) / whole, 1)) if whole > 0 else (0, 0)


class Try:
    """A test that runs, or has run; its output is in files."""

    def __init__(self, path):
        self.name = os.path.basename(path)[:-2]
        self.tap_path = os.path.join(RESULTS, self.name + ".t")
        self.err_path = os.path.join(RESULTS, f"{self.name}.err")
        self.load, self.begin, self.begin_s = Load(), time.monotonic(), time.time()
        with open(self.tap_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([path], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=j.take_interrupts)
        self.code, self.good = None, False

    def poll(self):
        """Whether it has ended; then all of it is known."""
        if self.process.poll() is None and time.monotonic() - self.begin > LIMIT_S:
            kill_all(self.process.pid)
        if self.process.poll() is None:
            return False
        self.code, self.seconds = self.process.returncode, time.monotonic() - self.begin
        self.steal_pct, self.others_pct = self.load.since()
        with open(self.tap_path, encoding="utf-8", errors="replace") as file:
            self.tap = file.read()
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            self.errors = file.read()
        self.files, self.contradictions = contradictions.below([os.path.join(SCRATCH, self.name)], self.begin_s - 1)
        by_itself = passed(self.tap, self.code)
        self.good = by_itself and not self.contradictions
        if not by_itself and not re.search("^not ok", self.tap, re.M):  # prove has the output only
            with open(self.tap_path, "a", encoding="utf-8") as file:
                file.write(f"not ok - the test ended with {self.code}\n")
        return True

    def failure(self):
        said = [f"contradiction: {sentence}" for sentence in self.contradictions]
        if not passed(self.tap, self.code):
            said.append(failure(self.tap, self.errors, self.code))
        return {"test": f"tests/live/{self.name}.t", "failure": "\n".join(said), "steal_pct": self.steal_pct,
                "others_pct": self.others_pct}

    def print(self):
        mark = "ok" if self.good else "FAILED"
        print(f"[{time.strftime('%H:%M:%S')}] {self.name + '.t ':.<20} {mark:7} {self.seconds:6.1f} s"
              f"  steal {self.steal_pct:.1f} %, others {self.others_pct:.1f} %, {self.files} record files", flush=True)
        if not self.good:
            print(self.failure()["failure"], flush=True)


def kill_all(pid):
    """Ends a process and all below it; this process stays."""
    for child in set(j.descendants(pid)) - {os.getpid()}:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


def reap(tests):
    """Collects what tests have left behind and what has ended since; their CPU time is this process's then."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            words = file.read().split()
    except FileNotFoundError:  # a kernel without lists of children
        return
    left = {int(word) for word in words} - {test.process.pid for test in tests}
    for pid in left:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def run(paths, number=1):
    """Runs tests; {path: Try}."""
    rooms = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rooms[path] = room_of(needs_of(file.read())) if number == 1 else PLACES
    waiting, running, done = dict(rooms), {}, {}
    while waiting or running:
        path = next_of(waiting, {path: rooms[path] for path in running})
        if path:
            del waiting[path]
            running[path] = Try(path)
            continue
        time.sleep(0.1)
        reap(running.values())
        for path in [path for path, test in running.items() if test.poll()]:
            done[path] = running.pop(path)
            done[path].print()
    return done


def in_order(paths):
    """The longest test first, as far as an earlier run has measured them."""
    try:
        with open(TIMES, encoding="utf-8") as file:
            times = json.load(file)
    except (OSError, ValueError):
        times = {}
    return sorted(paths, key=lambda path: (-times.get(os.path.basename(path), 60), path))


def store_times(done):
    times = {os.path.basename(path): round(test.seconds, 1) for path, test in done.items()}
    if len(times) > 20:
        with open(TIMES, "w", encoding="utf-8") as file:
            json.dump(times, file, indent=1)


def report(flakes):
    """Prints the second tries and writes them as a result of their own, which prove counts; build/flaky.json has all of it."""
    with open(FLAKY, "w", encoding="utf-8") as file:
        json.dump(flakes, file, indent=1)
    counted = [flake for flake in flakes if counts(flake)]
    for flake in flakes:
        why = "" if counts(flake) else ", which does not count: the machine was disturbed"
        print(f"== passed in its second try: {flake['test']} (steal {flake['steal_pct']} %, others {flake['others_pct']} %){why}\n"
              f"{flake['failure']}", flush=True)
    good = len(counted) <= FLAKES_ALLOWED
    with open(os.path.join(RESULTS, "second_tries.t"), "w", encoding="utf-8") as file:
        file.write(f"1..1\n{'ok' if good else 'not ok'} 1 - tests that passed in their second try on a quiet machine: {len(counted)}, "
                   f"at most {FLAKES_ALLOWED} (build/flaky.json)\n")


def report_failures(tests):
    """Prints what failed in the last tries again, and writes what their records contradict themselves in as a result of its own."""
    for test in tests:
        if not test.good:
            print(f"== failed: tests/live/{test.name}.t\n{test.failure()['failure']}", flush=True)
    files, found = sum(test.files for test in tests), [sentence for test in tests for sentence in test.contradictions]
    print(f"== {len(found)} contradictions in {files} record files of {len(tests)} tests", flush=True)
    with open(os.path.join(RESULTS, "contradictions.t"), "w", encoding="utf-8") as file:
        file.write(f"1..1\n{'not ok' if found else 'ok'} 1 - records contradict themselves nowhere: {len(found)} contradictions in "
                   f"{files} record files\n")


def main(words):
    paths = sorted(glob.glob(os.path.join(HERE, "*.t")))
    if words:
        wanted = {os.path.basename(word).removesuffix(".t") for word in words}
        paths = [path for path in paths if os.path.basename(path)[:-2] in wanted]
        if len(paths) != len(wanted):
            print(f"run.py: no such test among {' '.join(words)}", file=sys.stderr)
            return 2
    os.makedirs(RESULTS, exist_ok=True)
    for old in os.listdir(RESULTS):
        os.unlink(os.path.join(RESULTS, old))
    # what a test leaves behind is this process's, and counts as a test's
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    done = run(in_order(paths))
    store_times(done)
    failed = [path for path, test in done.items() if not test.good]
    flakes = []
    if failed:
        print(f"== once more, what failed: {len(failed)}", flush=True)
        for path, test in run(failed, 2).items():
            if test.good:
                flakes.append(done[path].failure())
            done[path] = test
    report(flakes)
    report_failures(done.values())
    return subprocess.run(["prove", "--QUIET", "--exec", "cat", *sorted(glob.glob(os.path.join(RESULTS, "*.t")))], check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        kill_all(os.getpid())
