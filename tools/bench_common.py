# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the parts of `make bench` share: programs that answer line by line, and the statistics of pairs.

Machines drift and others use them, so nothing is measured alone: runs with and without alternate
(A B B A ...), and the result is the difference or the ratio of neighbours with its confidence interval.
"""
import json
import math
import os
import re
import select
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth as t  # noqa: E402
from accept_common import QUICK, VAPROD, attached, hits_of, of_type, repeat, save, tool, well, window_weights  # noqa: E402,F401
from jobs import Job, Jobs, TimeLimit, descendants, mpirun, path, until  # noqa: E402,F401

CALLS, PROBES, SHIM = (path("tests", "bench", name) for name in ("calls", "probes", "shim.so"))
LAST_CPU = (os.cpu_count() or 1) - 1
ALONE = {"OMPI_MCA_ess_singleton_isolated": "1"}  # a rank without mpirun, and nothing beside it


def scratch(*parts):
    """An empty directory below build/bench."""
    directory = path("bench", *parts)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def row(what, measured, wanted="-", ok=None, **values):
    """One line of the table; values are for the JSON. ok None: information, nothing is wanted."""
    return {"what": what, "measured": measured, "wanted": wanted, "ok": ok, **values}


def table(rows, out=sys.stdout):
    cells = [("what", "measured", "wanted", "")]
    cells += [(r["what"], str(r["measured"]), str(r["wanted"]), {None: "", True: "ok", False: "not reached"}[r["ok"]])
              for r in rows]
    widths = [max(len(c[i]) for c in cells) for i in range(3)]
    for cell in cells:
        print(("  " + "  ".join(text.ljust(width) for text, width in zip(cell, widths)) + "  " + cell[3]).rstrip(), file=out)


class Talker:
    """A program that answers each line with one of JSON; belongs to the Jobs it was started with."""

    def __init__(self, jobs, command, name, env=None):
        self.err_path = os.path.join(jobs.directory, name + ".err")
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **(env or {}))
        with open(self.err_path, "wb") as err:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err,
                                       env=environment, start_new_session=True)
        self.name, self.process, self.pid, self.buffer = name, process, process.pid, b""
        jobs.jobs.append(Job(process, name, os.devnull, self.err_path))

    def _line(self, limit):
        end = time.monotonic() + limit
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeLimit(f"{self.name} did not answer within {limit} s")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                with open(self.err_path, encoding="utf-8", errors="replace") as file:
                    raise RuntimeError(f"{self.name} ended: {file.read().strip()[-300:]}")
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace")

    def hear(self, limit=20):
        """The next answer."""
        answer = json.loads(self._line(limit))
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def request(self, *words, limit=60):
        """Sends a line and returns its answer."""
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return self.hear(limit)

    def leave(self):
        """Ends it as it ends by itself: with its input."""
        self.process.stdin.close()
        self.process.wait(30)


def start_calls(jobs, name="calls", env=None):
    """The target that times its own calls, pinned to the last CPU; not tracked yet."""
    target = Talker(jobs, [CALLS, "--cpu", LAST_CPU], name, {**ALONE, **(env or {})})
    if not target.hear().get("ready"):
        raise RuntimeError("the target did not start")
    return target


def mapped(pid, pattern):
    """Path of a file that a process maps, by a pattern of its base name."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        for line in file:
            name = line.split(maxsplit=5)[-1].strip()
            if name.startswith("/") and re.fullmatch(pattern, os.path.basename(name)):
                return os.path.realpath(name)
    raise RuntimeError(f"process {pid} maps no {pattern}")


def t_quantile(p, degrees):
    """Quantile of Student's t (Cornish-Fisher; exact for 1 and 2 degrees)."""
    if degrees == 1:
        return math.tan(math.pi * (p - 0.5))
    if degrees == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = statistics.NormalDist().inv_cdf(p)
    return (z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3))


def interval(values, confidence=0.95):
    """(mean, half width of its two-sided confidence interval)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, float("inf")
    return mean, t_quantile((1 + confidence) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def shift(values, confidence=0.95):
    """
    (Hodges-Lehmann estimate, lower and upper end of its interval by Wilcoxon's signed ranks) of differences.
    As good as the mean where those are normal, and not led astray by spells in which other work had the
    machine during one half of a pair.
    """
    n = len(values)
    walsh = sorted((values[i] + values[j]) / 2 for i in range(n) for j in range(i, n))
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    cut = math.floor(n * (n + 1) / 4 - 0.5 - z * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    if cut < 0:  # too few to say
        return statistics.median(walsh), -math.inf, math.inf
    return statistics.median(walsh), walsh[cut], walsh[-1 - cut]


def trimmed(values):
    """Without the furthest tenth on both sides: spells in which other work had the machine."""
    cut = len(values) // 10
    return sorted(values)[cut:len(values) - cut]


def ns(values):
    mean, half = interval(trimmed(values))
    return f"{statistics.median(values):.0f} ns (mean {mean:.0f} +- {half:.0f}, least {min(values):.0f})"


def times(values):
    mean, half = interval(trimmed(values))
    return f"{statistics.median(values):.3f} (mean {mean:.3f} +- {half:.3f})"


def processor_seconds(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watching:
    """vaprod on one process while the block lasts; attached when it begins."""

    def __init__(self, jobs, name, pid, *options):
        self.jobs, self.pid = jobs, pid
        self.ndjson = os.path.join(jobs.directory, name + ".ndjson")
        self.command, self.name = [VAPROD, "--pid", pid, "--output", self.ndjson, *options], name

    def __enter__(self):
        if os.path.exists(self.ndjson):
            os.remove(self.ndjson)  # of the block before: no process is attached yet
        self.daemon = self.jobs.start(self.command, self.name)
        if not until(lambda: self.daemon.process.poll() is not None or attached(self.ndjson, self.pid), 20, 0.02) or \
                self.daemon.process.poll() is not None:
            raise RuntimeError("vaprod did not attach: " + self.daemon.err().strip()[-300:])
        return self

    def __exit__(self, *unused):
        well(self.jobs.interrupt(self.daemon), self.daemon)

    def records(self):
        return t.load_records(self.ndjson)
