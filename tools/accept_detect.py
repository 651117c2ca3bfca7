# SPDX-License-Identifier: GPL-2.0-or-later
"""Does vaprod find disturbances, and nothing else? Checks demo, quiet, random, coverage, slowpeer."""
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402


def check_demo():
    rows = []
    runs = repeat(5, 1)
    directory = scratch("demo")
    for number in range(1, runs + 1):
        if number == 1:  # the first one is the command itself
            with Jobs(directory) as jobs:
                begin = time.monotonic()
                code, job = jobs.run(["sh", os.path.join(ROOT, "tools", "demo.sh")], "demo.sh", 120)
                rows.append(t.row("tools/demo.sh, seconds", f"{time.monotonic() - begin:.0f}", "under 90",
                                  time.monotonic() - begin < 90))
            if not os.path.exists(path("demo", "vapro.ndjson")):
                raise RuntimeError(f"demo.sh ended with {code}: {job.err().strip()[-500:]}")
            records = t.load_records(path("demo", "vapro.ndjson"))
            truths, hog = t.load_truth(path("demo", "truth")), t.load_events(path("demo", "hog.json"))[0]
        else:
            records, truths, hog = watch_demo(scratch("demo", str(number)), 3)
        rows += rows_of(t.judge(records, truths, hog), f"run {number}: ")
    return rows


def check_quiet():
    rows = []
    for number in range(1, repeat(10, 1) + 1):
        records, truths, _ = watch_demo(scratch("quiet", f"quiet{number}"))
        verdict = t.judge(records, truths)
        wrong = [r for r in verdict if not r["ok"]]
        confirmed = len(verdict) - len(wrong)
        rows.append(t.row(f"quiet run {number}, alarms not confirmed",
                          f"{len(wrong)} (and {confirmed} confirmed)", 0, not wrong))
        rows += rows_of(verdict, f"quiet run {number}: ")
    for number in range(1, repeat(3, 1) + 1):
        records, truths, hog = watch_demo(scratch("quiet", f"hog{number}"), 1)
        offset = t.utc_offset(records)
        alarms = [v for v in t.variances(records).values() if v.get("alarm")]
        found = [v for v in alarms if overlaps(v, offset, hog["begin"], hog["end"]) and 0 in t.parse_ranks(v["ranks"])]
        rows.append(t.row(f"hog of 1 s, run {number}: found on rank 0", len(found), "1", len(found) == 1))
        rows += rows_of([r for r in t.judge(records, truths, hog) if r["what"].startswith("other alarm")],
                        f"hog of 1 s, run {number}: ")
    return rows


def check_random():
    directory = scratch("random")
    watch = repeat(30, 10)
    with Jobs(directory) as jobs:
        work = jobs.start(mpirun(2, tool("random_work"), "--seconds", watch + 4, "--log", directory, "--bind"), "random_work")
        pids = pids_of(work, directory, 2)
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, watch)
        well(jobs.wait(daemon, watch + 30), daemon)
        well(jobs.wait(work, 30), work)
    records = t.load_records(ndjson)
    total = mean_over_windows(records, lambda w: w["coverage"]["total"])
    computation = mean_over_windows(records, lambda w: w["coverage"]["computation"])
    alarms = [v for v in t.variances(records).values() if v.get("alarm")]
    return [t.row("random work: coverage", f"{total:.1%} (computation {computation:.1%})", "under 10 %", total < 0.10),
            t.row("random work: alarms", len(alarms), 0, not alarms)]


def judge_coverage(records, name):
    total = mean_over_windows(records, lambda w: w["coverage"]["total"])
    rows = [t.row(f"{name}: coverage of wall time", f"{total:.1%}", "at least 50 %", total >= 0.5)]
    nameless, unexplained, entries = 0, [], 0
    for window, _ in window_weights(records):
        big = [u for u in window.get("uncovered", []) if u["time_pct_of_job"] > 2]
        entries += len(big)
        nameless += sum(1 for u in big if not u.get("reason"))
        unexplained.append(1 - window["coverage"]["total"] - sum(u["time_pct_of_job"] / 100 for u in window.get("uncovered", [])))
    rows.append(t.row(f"{name}: uncovered states over 2 % without a reason", f"{nameless} of {entries}", 0, nameless == 0))
    worst = max(unexplained, default=1)
    rows.append(t.row(f"{name}: uncovered time that no entry explains, worst window", f"{worst:.1%}", "at most 5 %", worst <= 0.05))
    return rows


def check_coverage():
    watch = repeat(30, 10)
    records, _, _ = watch_demo(scratch("coverage", "demo"), watch=watch)
    rows = judge_coverage(records, "demo")
    directory = scratch("coverage", "lammps")
    with Jobs(directory) as jobs:
        job = jobs.start(lammps(watch * 700, os.path.join(directory, "log")), "lammps", cwd=directory)
        pids = until(lambda: rank_pids(job, "lmp", 2), 20)
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, watch)
        well(jobs.wait(daemon, watch + 30), daemon)
    return rows + judge_coverage(t.load_records(ndjson), "lammps")


def check_slowpeer():
    directory = scratch("slowpeer")
    fifo, log = os.path.join(directory, "fifo"), os.path.join(directory, "stall.json")
    stall_after, stall, watch = 12, 10, 32
    with Jobs(directory) as jobs:
        writer = jobs.start([tool("fifo_writer"), "--fifo", fifo, "--seconds", watch + 20, "--stall-after", stall_after,
                             "--stall", stall, "--log", log], "fifo_writer")
        if not until(lambda: os.path.exists(fifo), 5):
            raise RuntimeError("no FIFO: " + writer.err())
        reader = jobs.start(mpirun(2, tool("fifo_reader"), "--fifo", fifo, "--seconds", watch + 5, "--log", directory,
                                   "--bind"), "fifo_reader")
        pids = pids_of(reader, directory, 2)
        opened = time.monotonic()
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, watch, "--io", "on", "--window", "6")
        time.sleep(max(0, opened + stall_after + stall - 0.7 - time.monotonic()))
        during = t.load_records(ndjson)  # what an operator sees while it hangs
        read_ns = time.monotonic_ns()
        well(jobs.wait(daemon, watch + 30), daemon)
        well(jobs.wait(reader, 30), reader)
        jobs.interrupt(writer)
    event = t.load_events(log)[0]
    records = t.load_records(ndjson)
    offset = t.utc_offset(records)

    def stalled(some):
        return [v for v in t.variances(some).values() if overlaps(v, offset, event["begin"], event["end"])]
    io = [v for v in stalled(records) if v["class"] == "io"]
    seen = [v for v in stalled(during) if v["class"] == "io" and t.parse_ranks(v["ranks"]) == [1]]
    opens = max((w["open"] for w in of_type(during, "window")), default=0)
    computation = [v for v in stalled(records) if v["class"] == "computation" or "computation" in (v.get("also") or [])]
    lost = sum(v["lost_seconds"] for v in io)
    return [t.row("slow peer: variance of class io", ", ".join(f"ranks {v['ranks']}, alarm {v['alarm']}" for v in io) or "none",
                  "rank 1", bool(io) and all(t.parse_ranks(v["ranks"]) == [1] for v in io)),
            t.row("slow peer: variances of class computation", len(computation), 0, not computation),
            t.row("slow peer: reported while it hangs", f"{len(seen)} variances, {opens} open fragments"
                  f" (read {(event['end'] - read_ns) / 1e9:.1f} s before the end)",
                  "at least 1 of each", bool(seen) and opens > 0 and read_ns < event["end"]),
            t.row("slow peer: seconds lost in it (information)", f"{lost:.2f}",
                  f"{(event['end'] - event['begin']) / 1e9:.2f}", True)]
