#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""
vapro diff of two runs of a program, in the second of which one rank does a tenth more: its captures name that rank and no
other. Ranks that only wait longer for it are not named. What the machine's other programs took of the CPUs is reported
as such and not judged here. The runs have a fixed number of rounds: on a busy machine they are longer and not shorter.

The processor itself may be faster in one run than in the other, which vapro reports rightly as a change of all ranks. The
ratios of vapro are therefore compared with those of the ranks' own logs, and a pair of runs in which the logs show more
than the tenth of one rank is repeated. Where the processor was never the same in both, only the ratios are judged.
A ratio agrees where its 95 % interval holds the log's: on a noisy machine it is wide.
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cgroups import Cgroups, NoCgroups  # noqa: E402
from live import ROOT, VAPRO, VAPROD, attached, j, main, rank_pids, select, tool  # noqa: E402
from truth import load_truth  # noqa: E402

LATE = 1
TRIES = 4
STEADY = 0.015  # the ranks' own logs differ less than this from what the runs were to do


@contextlib.contextmanager
def preferred():
    """A function that moves a process to a cgroup that other work on the machine does not slow much, where there are any."""
    with contextlib.ExitStack() as stack:
        try:
            groups = stack.enter_context(Cgroups(f"vapro-test-{os.getpid()}", "ranks", "vaprod"))
        except NoCgroups:
            groups = None
        yield groups.move if groups else lambda name, pid: None


def capture(tap, jobs, name, options, slow):
    """A run, watched from its begin; with `slow` rank LATE does a tenth more from then on."""
    logs = os.path.join(jobs.directory, f"{name}_{slow}")
    shutil.rmtree(logs, ignore_errors=True)
    os.makedirs(logs)
    with preferred() as move:
        program = jobs.start(j.mpirun(2, tool(name), "--log", logs, "--bind", "--late-share", 0.1, *options), name)
        pids = rank_pids(program, logs, 2)
        if slow:
            os.kill(pids[LATE], signal.SIGUSR1)
        out, path = os.path.join(logs, "out.ndjson"), os.path.join(logs, "run.capture")
        profiles = os.path.join(logs, "profiles")
        os.mkdir(profiles, 0o755)
        daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", path, "--profiles", profiles, "--io", "off",
                             "--overhead-cap", "0"], name + "_vaprod")
        move("vaprod", daemon.pid)
        for pid in pids:
            move("ranks", pid)
        attached(out, pids)
        tap.equal(jobs.wait(program, 120), 0, f"{name}: the program ends well")
        tap.equal(jobs.wait(daemon, 60), 0, f"{name}: vaprod ends with it")
        stored = glob.glob(os.path.join(profiles, str(os.getuid()), "*", "*.profile"))
        tap.equal([os.stat(file).st_mode & 0o777 for file in stored], [0o600], f"{name}: its profile is a file of its user alone")
        compared = subprocess.run([VAPRO, "diff", "--json", path, path], capture_output=True, text=True, check=False)
        again = subprocess.run([VAPRO, "diff", "--json", *stored, *stored], capture_output=True, text=True, check=False)
        tap.equal((compared.returncode, again.returncode), (0, 0), f"{name}: the profile is compared as its capture is")
    return path


def logged_ratios(a, b):
    """Per rank: how much longer its work between calls took in run b than in run a, by its own log."""
    def works(path):
        return {rank: sum(truth.expected.values()) for rank, truth in load_truth(os.path.dirname(path)).items()}
    before, after = works(a), works(b)
    return {rank: after[rank] / before[rank] for rank in before}


def pair(tap, jobs, name, options):
    """Two captures, the ratios of the logs, and whether the processor was the same in both, as far as these show."""
    for number in range(TRIES):
        a, b = capture(tap, jobs, name, options, False), capture(tap, jobs, name, options, True)
        ratios = logged_ratios(a, b)
        if all(abs(ratio - (1.1 if rank == LATE else 1)) < STEADY for rank, ratio in ratios.items()):
            return a, b, ratios, True
        print(f"# {name}: pair {number + 1}: the logs themselves differ by {ratios}", file=sys.stderr, flush=True)
    return a, b, ratios, False


def diff(*arguments):
    return subprocess.run([VAPRO, "diff", *arguments], capture_output=True, text=True, timeout=60, check=False)


def compare(name, *options):
    def test(tap, jobs):
        a, b, ratios, steady = pair(tap, jobs, name, options)
        done = diff("--json", "--fail-on", "slower", a, b)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        text = diff(a, b).stdout
        named = [line for line in lines if line["what"] not in ("run", "cause")]
        found = {line["rank"]: line["ratio"] for line in named if line["what"] == "rank"}
        bounds = {line["rank"]: (line["ratio_low"], line["ratio_high"]) for line in named if line["what"] == "rank"}
        job = next((line["ratio"] for line in named if line["what"] == "job"), 1)

        def agrees(rank, ratio):
            low, high = bounds.get(rank, (job, job))
            return low <= ratio <= high or abs(found.get(rank, job) - ratio) < 0.04
        tap.ok(all(agrees(rank, ratio) for rank, ratio in ratios.items()),
               f"{name}: the ratios {found}, or their bounds {bounds}, are those of the logs: {ratios}", text)
        if steady:
            tap.equal(done.returncode, 7, f"{name}: the exit status says that something is slower {done.stderr}")
            tap.equal([(line["rank"], line["change"]) for line in named if line["what"] == "rank"], [(LATE, "slower")],
                      f"{name}: rank {LATE} became slower, and no other rank slower or faster\n{text}")
            tap.ok(all(line.get("rank") == LATE for line in named), f"{name}: no state of another rank, and not the job", text)
            tap.ok(f"Rank {LATE} became" in " ".join(text.split()), f"{name}: the text says so", text)
        else:
            print(f"# {name}: the processor was not the same in {TRIES} pairs of runs: who is named is not judged", flush=True)
        schema = subprocess.run([os.path.join(ROOT, "tests", "schema_check.py"), "-"], input=done.stdout, capture_output=True,
                                text=True, timeout=60, check=False)
        tap.equal(schema.returncode, 0, f"{name}: the records agree with the schema {schema.stdout}")
        same = diff(b, b)
        tap.ok(same.returncode == 0 and "Nothing that was compared became" in same.stdout, f"{name}: a run equals itself",
               same.stdout)
    test.__name__ = name
    return test


main(compare("sendrecv", "--rounds", 60000), compare("posts", "--rounds", 6000), compare("iterate", "--iterations", 900))
