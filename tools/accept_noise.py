# SPDX-License-Identifier: GPL-2.0-or-later
"""
Noise components of tasks against the kernel's own trace of the same run (check noise): each task that vaprod names as a
component, how often it ran while the watched program waited for its CPU, and for how long.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402

RUNS = repeat(5, 1)  # of each kind
SECONDS = 20
KINDS = ((200, 100), (5000, 10))  # microseconds, times a second
N_TOLERANCE, TIME_TOLERANCE = 0.01, 0.05
FEW = 3  # slices at the begin and the end of watching
SLICE_S = 40e-6  # of a slice: the kernel charges interrupts and the switch itself to neither
TICKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ticker.py")
SWITCH = re.compile(r"\s(\d+\.\d+): sched_switch: prev_comm=.* prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> "
                    r"next_comm=(.*) next_pid=(\d+) next_prio=\d+$")


class Trace:
    """The switches of a CPU, by an instance of the kernel's tracer."""

    def __init__(self, cpu):
        self.mount = tempfile.mkdtemp()
        subprocess.run(["mount", "-t", "tracefs", "nodev", self.mount], check=True)
        self.own = os.path.join(self.mount, "instances", f"vapro-{os.getpid()}")
        os.mkdir(self.own)
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", "65536")
        self.write("tracing_cpumask", f"{1 << cpu:x}")
        self.write("events/sched/sched_switch/enable", "1")

    def write(self, name, text):
        with open(os.path.join(self.own, name), "w", encoding="utf-8") as file:
            file.write(text)

    def stop(self):
        """(monotonic seconds, pid that left, its state, task that came, its pid) of each switch."""
        self.write("tracing_on", "0")
        with open(os.path.join(self.own, "trace"), encoding="utf-8", errors="replace") as file:
            found = [SWITCH.search(line.rstrip("\n")) for line in file if "sched_switch" in line]
        return [(float(m[1]), int(m[2]), m[3], m[4], int(m[5])) for m in found if m]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.write("events/sched/sched_switch/enable", "0")
        os.rmdir(self.own)
        subprocess.run(["umount", self.mount], check=True)
        os.rmdir(self.mount)


def summed(task):
    """The name under which vaprod sums up threads of the kernel: of all CPUs."""
    return re.sub(r"/.*", "", task) if re.match(r"\w+/u?\d", task) else task


def slices(switches, victim, begin, end):
    """{task: [slices, seconds]} of what ran while the victim could have run, from begin to end."""
    found, waits, running, since = collections.defaultdict(lambda: [0, 0.0]), False, None, 0
    for when, left, state, came, pid in switches:
        if waits and running and begin <= when <= end:
            found[summed(running)][0] += 1
            found[summed(running)][1] += when - since
        if left == victim:
            waits = state.startswith("R")
        if pid == victim:
            waits = False
        running, since = (came if waits else None), when
    return found


def one_run(number, us, hz):
    """(differences of what vaprod says, number of components)"""
    with Trace(0) as trace, Jobs(scratch("noise", f"{us}-{number}")) as jobs:
        victim = jobs.start([tool("hog"), "--cpu", 0, "--seconds", SECONDS + 40], "victim")
        daemon, ndjson = vaprod(jobs, "vapro", [victim.pid], None, "--window", "6", "--io", "off")
        if not until(lambda: attached(ndjson, victim.pid), 20):
            raise RuntimeError("vaprod did not attach: " + daemon.err().strip())
        time.sleep(1)
        ticker = jobs.start(["taskset", "-c", "1", sys.executable, TICKER, 0, us, hz, SECONDS], "ticker")
        well(jobs.wait(ticker, 4 * SECONDS), ticker)
        time.sleep(1)
        well(jobs.interrupt(daemon), daemon)
        switches = trace.stop()
    records = t.load_records(ndjson)
    offset = t.utc_offset(records)
    windows = [(t.parse_time(r["begin"]) - offset, t.parse_time(r["end"]) - offset) for r in records if r["type"] == "window"]
    truth = slices(switches, victim.pid, windows[0][0] / 1e9, windows[-1][1] / 1e9)
    # of tasks of one name there may be several with different relations to the job
    said = collections.defaultdict(lambda: [0, 0.0])
    for record in {r["id"]: r for r in records if r["type"] == "noise" and r["source"] == "scheduler"}.values():
        said[record["what"]][0] += record["n"]
        said[record["what"]][1] += record["lost_seconds"]
    wrong = []
    for task, (n, seconds) in said.items():
        true_n, true_s = truth[task]
        if abs(n - true_n) > max(FEW, N_TOLERANCE * true_n) or abs(seconds - true_s) > TIME_TOLERANCE * true_s + SLICE_S * true_n:
            wrong.append(f"{task}: {n} slices of {true_n}, {seconds:.4f} s of {true_s:.4f} s")
    if "ticker" not in said:
        wrong.append("the ticker is no component")
    return wrong, len(said), [(n / max(1, truth[task][0]), seconds / max(1e-9, truth[task][1]))
                              for task, (n, seconds) in said.items() if task == "ticker"]


def check_noise():
    rows = []
    for us, hz in KINDS:
        runs = [one_run(number, us, hz) for number in range(RUNS)]
        wrong = [text for found, _, _ in runs for text in found]
        ratios = [ratio for _, _, found in runs for ratio in found]
        rows.append(t.row(f"{us} us at {hz} Hz, {RUNS} runs: components; unlike the kernel's trace",
                          f"{sum(count for _, count, _ in runs)}; {len(wrong)} {wrong[:2]}", "0 unlike it", not wrong))
        rows.append(t.row("  the ticker's slices and time, of the trace's", f"{min(r[0] for r in ratios):.4f}-{max(r[0] for r in ratios):.4f}, "
                          f"{min(r[1] for r in ratios):.4f}-{max(r[1] for r in ratios):.4f}" if ratios else "none", "1 (+- 1 %, 5 %)", bool(ratios)))
    return rows


CHECKS = {"noise": check_noise}
