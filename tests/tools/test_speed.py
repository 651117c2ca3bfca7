#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The instructions that `vapro analyze` takes for five inputs, beside those that tests/data/speed.json has stored. The
count of valgrind is the same in each run, whatever else the machine does; compilers and libraries change it by some
percent. It fails from 1.3 times on, and mentions a figure that is out of date below 0.7 times.

    tests/tools/test_speed.py build            counts and compares
    tests/tools/test_speed.py build --store    stores what it counts; the commit says why it changed
"""
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
STORE = "--store" in sys.argv and not sys.argv.remove("--store")
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
STORED = os.path.join(ROOT, "tests", "data", "speed.json")
MOST, STALE = 1.3, 0.7  # times the stored figure
HOW = "`tests/tools/test_speed.py build --store` stores what it counts"

# Options of make_capture; each input takes 1 to 10 s under valgrind.
CAPTURES = {
    "one host": "--ranks 64 --ranks-per-host 64 --seconds 35 --bundles 100",
    "64 hosts": "--ranks 64 --ranks-per-host 1 --seconds 26 --bundles 20 --states 2",
    "counters": "--ranks 64 --ranks-per-host 64 --seconds 35 --bundles 50 --counters",
    "10 % noise": "--ranks 256 --ranks-per-host 256 --seconds 35 --bundles 20 --fragments 20 --noise 0.1",
}
LINES = "NDJSON"
INPUTS = (*CAPTURES, LINES)


def write_lines(path, ranks=16, seconds=26, pairs=50):
    """Computations and calls of MPI_Allreduce in turn, a fragment a line, the same bytes in each run."""
    scatter = 1
    with open(path, "w", encoding="utf-8") as file:
        for pair in range(seconds * pairs):
            for rank in range(ranks):
                start = 1_800_000_000_000_000_000 + pair * (1_000_000_000 // pairs)
                scatter = (scatter * 6364136223846793005 + 1442695040888963407) % 2**64
                computing = 15_000_000 + (scatter >> 33) % 300_000
                site = f"sim@0123456789ab+0x{4096 + 16 * (pair % 4):x}"
                last = f"sim@0123456789ab+0x{4096 + 16 * ((pair - 1) % 4):x}"
                common = f'{{"job":"sim:1","host":"sim0","rank":{rank},"thread":0,"pid":{1000 + rank},'
                file.write(f'{common}"class":"computation","from":"{last}","to":"{site}","start_ns":{start},"duration_ns":{computing},'
                           f'"workload":{{}},"factors":{{"minor_faults":{(scatter >> 40) % 2}}}}}\n')
                file.write(f'{common}"class":"communication","at":"{site}","start_ns":{start + computing},"duration_ns":{4_000_000 - computing % 300_000},'
                           '"workload":{"function":"MPI_Allreduce","bytes":64,"comm":"0"}}\n')


def run(*command):
    """Standard output; the command's own settings and the environment change nothing."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def count(folder, name):
    """The instructions that the analysis of an input takes."""
    path, log = os.path.join(folder, "input"), os.path.join(folder, "log")
    if name == LINES:
        write_lines(path)
    else:
        run(os.path.join(BUILD, "tests", "make_capture"), *CAPTURES[name].split(), path)
    lines = run("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}",
                os.path.join(BUILD, "vapro"), "analyze", *(["--format", "ndjson", "--strict"] if name == LINES else []), path)
    windows = sum('"type":"window"' in line for line in lines.splitlines())
    assert windows >= 2, f"{name}: {windows} windows were analysed"
    with open(log, encoding="utf-8") as file:
        return int(re.search(r"I\s+refs:\s+([\d,]+)", file.read())[1].replace(",", ""))


def judge(name, counted, stored):
    """(whether it is fast enough, a sentence or None where there is nothing to say)."""
    if not stored:
        return False, f"{name}: no figure is stored. {HOW}."
    ratio = counted / stored
    measured = f"{name}: {counted:,} instructions are {ratio:.2f} times the stored {stored:,}"
    if ratio >= MOST:
        return False, f"{measured}; fewer than {MOST} times are demanded. If the new cost is worth it, {HOW}, and the commit says why."
    if ratio < STALE:
        return True, f"{measured}: the stored figure is out of date, and would hide a slowdown. {HOW}."
    return True, None


def stored_figures():
    with open(STORED, encoding="utf-8") as file:
        return json.load(file)


def count_all():
    with tempfile.TemporaryDirectory(prefix="vapro-speed-") as folder:
        for name in INPUTS:
            yield name, count(folder, name)


class Speed(unittest.TestCase):
    def test_analysis(self):
        self.assertTrue(shutil.which("valgrind"), "valgrind is missing: `make deps` installs it")
        figures = stored_figures().get(platform.machine())
        if not figures:
            self.skipTest(f"no figures are stored for {platform.machine()}: {HOW}")
        for name, counted in count_all():
            fast, sentence = judge(name, counted, figures.get(name))
            if fast:
                print(sentence or f"{name}: {counted:,} instructions, {counted / figures[name]:.3f} times the stored figure", flush=True)
            with self.subTest(name):
                self.assertTrue(fast, sentence)


class Decisions(unittest.TestCase):
    """What is a slowdown, without counting."""

    def test_limits(self):
        for counted, fast, says in ((1000, True, None), (1299, True, None), (701, True, None), (1300, False, "1.30 times"),
                                    (1304, False, "the commit says why"), (5000, False, "5.00 times the stored 1,000"), (699, True, "out of date"),
                                    (1, True, "--store")):
            with self.subTest(counted):
                passed, sentence = judge("x", counted, 1000)
                self.assertEqual(passed, fast)
                self.assertIn(says or "", sentence or "")
                self.assertEqual(sentence is None, says is None)
                self.assertTrue((sentence or "x: ").startswith("x: "))

    def test_a_missing_figure_fails(self):
        for stored in (None, 0):
            self.assertEqual(judge("x", 1000, stored)[0], False)

    def test_each_input_is_stored(self):
        for machine, figures in stored_figures().items():
            self.assertEqual(sorted(figures), sorted(INPUTS), machine)

    def test_lines_repeat(self):
        with tempfile.TemporaryDirectory(prefix="vapro-speed-") as folder:
            texts = []
            for name in ("a", "b"):
                write_lines(os.path.join(folder, name), ranks=2, seconds=1, pairs=3)
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    texts.append(file.read())
            self.assertEqual(texts[0], texts[1])
            self.assertEqual([json.loads(line)["class"] for line in texts[0].splitlines()], ["computation", "communication"] * 6)


def store():
    figures = stored_figures() if os.path.exists(STORED) else {}
    figures[platform.machine()] = dict(count_all())
    with open(STORED, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")
    print(json.dumps(figures[platform.machine()], indent=1))


if __name__ == "__main__":
    if STORE:
        store()
    else:
        unittest.main(verbosity=int("-v" in sys.argv) + 1)
