#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make accept: measures every figure that vaprod promises and prints what was measured beside what is
wanted. Needs a finished build, root, two cores and an otherwise idle machine.

  accept.py all | CHECK...      CHECK: demo quiet random coverage correctness slowpeer sites bystander
                                throw kill9 rate cap badinput
  --quick                       fewer repetitions, to try the measuring itself (says so in the table)

Results go to build/accept/accept.json ({"checks": {CHECK: {time, seconds, quick, rows [{what, measured,
wanted, ok}]}}}; other checks' earlier rows stay), what each run left to build/accept/CHECK/. Exit code
1 where a row is not ok. Every run has a time limit; nothing that was started here stays.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth as t  # noqa: E402
from jobs import ROOT, Jobs, TimeLimit, descendants, mpirun, path, until  # noqa: E402

VAPROD, VAPRO = path("vaprod"), path("vapro")
QUICK = False


def tool(name):
    return path("tools", name)


def scratch(*parts):
    """An empty directory below build/accept."""
    directory = path("accept", *parts)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def repeat(times, quick):
    return quick if QUICK else times


def rows_of(rows, prefix):
    return [dict(r, what=prefix + r["what"]) for r in rows]


def pids_of(job, directory, ranks, name="truth"):
    """The pids of a workload's ranks, from the first line of their logs."""
    def look():
        if job.process.poll() is not None:
            raise RuntimeError(f"{job.name} ended at once: {job.err().strip()}")
        found = []
        for rank in range(ranks):
            try:
                with open(os.path.join(directory, f"{name}.{rank}"), encoding="utf-8") as file:
                    match = re.search(r"pid (\d+)\n", file.readline())
            except OSError:
                match = None
            if match:
                found.append(int(match.group(1)))
        return found if len(found) == ranks else None
    pids = until(look, 20)
    if not pids:
        raise RuntimeError(f"{job.name} did not start its ranks")
    return pids


def ready_pid(job):
    """The pid that a program prints as {"ready":true,"pid":P}."""
    match = until(lambda: re.search(r'"ready":true,"pid":(\d+)', job.out()), 20)
    if not match:
        raise RuntimeError(f"{job.name} did not start: {job.err().strip()}")
    return int(match.group(1))


def last_json(text):
    """The last line of a program's output that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError("no JSON in the output: " + text[-300:])


def select(pids):
    return [word for pid in pids for word in ("--pid", str(pid))]


def vaprod(jobs, name, pids, duration=None, *options, **more):
    """Starts vaprod; its NDJSON goes to NAME.ndjson of the jobs' directory, which is also returned."""
    ndjson = os.path.join(jobs.directory, name + ".ndjson")
    command = [VAPROD, *select(pids), "--output", ndjson, *options]
    if duration:
        command += ["--duration", str(duration)]
    return jobs.start(command, name, **more), ndjson


def attached(ndjson, pid):
    """Whether vaprod has told of this process."""
    try:
        return any(r.get("type") == "process" and r.get("pid") == pid for r in t.load_records(ndjson))
    except (OSError, ValueError):
        return False


def well(code, job):
    if code != 0:
        raise RuntimeError(f"{job.name} ended with {code}: {job.err().strip()[-500:]}")


def of_type(records, kind):
    return [r for r in records if r.get("type") == kind]


def window_weights(records):
    """[(window, seconds)]"""
    return [(w, (t.parse_time(w["end"]) - t.parse_time(w["begin"])) / 1e9) for w in of_type(records, "window")]


def mean_over_windows(records, value):
    pairs = [(value(w), s) for w, s in window_weights(records) if value(w) is not None]
    total = sum(s for _, s in pairs)
    return sum(v * s for v, s in pairs) / total if total else float("nan")


def overlaps(record, offset, begin, end):
    return t.parse_time(record["begin"]) - offset < end and t.parse_time(record["end"]) - offset > begin


# --- the demo's program with and without a hog --------------------------------------------------------------

def watch_demo(directory, hog_seconds=0, hog_after=14, watch=30):
    """One run of demo_mpi under vaprod: (records, truths, hog or None)."""
    files = os.path.join(directory, "files")
    os.makedirs(files)
    with Jobs(directory) as jobs:
        demo = jobs.start(mpirun(2, tool("demo_mpi"), "--seconds", watch + 5, "--log", directory, "--scratch", files,
                                 "--bind"), "demo_mpi")
        pids = pids_of(demo, directory, 2)
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, watch)
        if hog_seconds:
            hog_log = os.path.join(directory, "hog.json")
            jobs.start([tool("hog"), "--cpu", 0, "--start-after", hog_after, "--seconds", hog_seconds, "--log", hog_log], "hog")
        well(jobs.wait(daemon, watch + 30), daemon)
        well(jobs.wait(demo, 30), demo)
    shutil.rmtree(files)
    hog = t.load_events(hog_log)[0] if hog_seconds else None
    return t.load_records(ndjson), t.load_truth(directory), hog


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


# --- coverage ----------------------------------------------------------------------------------------------

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
        big = [u for u in window.get("uncovered", []) if u["share_pct"] > 2]
        entries += len(big)
        nameless += sum(1 for u in big if not u.get("reason"))
        unexplained.append(1 - window["coverage"]["total"] - sum(u["share_pct"] / 100 for u in window.get("uncovered", [])))
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


# --- correct results under vaprod --------------------------------------------------------------------------

def lammps(steps, log):
    return mpirun(2, "lmp", "-in", os.path.join(ROOT, "tools", "lammps.in"), "-var", "steps", steps,
                  "-log", log, "-screen", "none")


def rank_pids(job, comm, ranks):
    """Pids of a job's processes of one name, when there are enough."""
    found = []
    for pid in descendants(job.pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read().strip() == comm:
                    found.append(pid)
        except OSError:
            pass
    return sorted(found) if len(found) == ranks else None


def thermo(log):
    """The thermodynamic lines of a lammps log: all numbers that do not tell time."""
    lines, inside = [], False
    with open(log, encoding="utf-8") as file:
        for line in file:
            if line.startswith("Step "):
                inside = True
            elif line.startswith("Loop time"):
                inside = False
            elif inside:
                lines.append(line.rstrip())
    return lines


def hpcc_directory(name):
    directory = scratch("correctness", name)
    with open("/usr/share/doc/hpcc/examples/_hpccinf.txt", encoding="utf-8") as file:
        text = file.read()
    # the default process grid is 2 x 2; 1 x 2 for two ranks, all else as it comes
    text = re.sub(r"^2(\s+Ps)$", r"1\1", text, flags=re.M)
    with open(os.path.join(directory, "hpccinf.txt"), "w", encoding="utf-8") as file:
        file.write(text)
    return directory


def hpcc_result(directory):
    """{name: value} of what does not tell time, and counts of the verdicts."""
    with open(os.path.join(directory, "hpccoutf.txt"), encoding="utf-8") as file:
        text = file.read()
    result = {key: value for key, value in re.findall(r"^(\w+)=(\S+)$", text, re.M)
              if re.search(r"Success|Errors|residual|_N$|_NB$|fail", key, re.I)}
    result["PASSED"], result["FAILED"] = text.count("PASSED"), text.count("FAILED")
    return result


def check_correctness():
    rows = []
    base = scratch("correctness")
    quiet, watched = hpcc_directory("hpcc"), hpcc_directory("hpcc_vapro")
    steps = repeat(4000, 1000)
    with Jobs(base) as jobs:
        code, job = jobs.run(mpirun(2, "hpcc"), "hpcc", 60, cwd=quiet)
        well(code, job)
        ndjson = os.path.join(base, "hpcc_vapro.ndjson")
        code, job = jobs.run([VAPRO, "run", "--output", ndjson, "--", *mpirun(2, "hpcc")], "hpcc_vapro", 90, cwd=watched)
        rows.append(t.row("hpcc under vapro run: exit code", code, 0, code == 0))
        result = hpcc_result(watched)
        rows.append(t.row("hpcc: Success", result.get("Success"), "1", result.get("Success") == "1"))
        rows.append(t.row("hpcc: verdicts and residuals as undisturbed", f"{result['PASSED']} passed, {result['FAILED']} failed",
                          "equal", result == hpcc_result(quiet)))
        rows.append(attached_ranks(ndjson, "hpcc"))
        logs = [os.path.join(base, name) for name in ("lammps.log", "lammps_vapro.log")]
        code, job = jobs.run(lammps(steps, logs[0]), "lammps", 60)
        well(code, job)
        ndjson = os.path.join(base, "lammps_vapro.ndjson")
        code, job = jobs.run([VAPRO, "run", "--output", ndjson, "--", *lammps(steps, logs[1])], "lammps_vapro", 90)
        rows.append(t.row("lammps under vapro run: exit code", code, 0, code == 0))
        lines = [thermo(log) for log in logs]
        rows.append(t.row("lammps: thermo lines equal to undisturbed", sum(a == b for a, b in zip(*lines)),
                          f"all {len(lines[0])}", lines[0] == lines[1] and len(lines[0]) > 5))
        rows.append(attached_ranks(ndjson, "lammps"))
    return rows


def attached_ranks(ndjson, name):
    records = t.load_records(ndjson)
    ranks = {r["rank"] for r in of_type(records, "process") if r.get("rank") is not None and hits_of(r)}
    fragments = sum(w["fragments"] for w in of_type(records, "window"))
    return t.row(f"{name}: ranks attached with hits, fragments", f"{sorted(ranks)}, {fragments}", "[0, 1], more than 0",
                 ranks == {0, 1} and fragments > 0)


def hits_of(record):
    """Hits of a `process` record: a number, or numbers by function."""
    hits = record.get("hits", 0)
    if isinstance(hits, dict):
        hits = sum(hits.values())
    return hits or 0


# --- a slow peer behind an IO call -------------------------------------------------------------------------

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
            t.row("slow peer: told while it hangs", f"{len(seen)} variances, {opens} open fragments"
                  f" (read {(event['end'] - read_ns) / 1e9:.1f} s before the end)",
                  "at least 1 of each", bool(seen) and opens > 0 and read_ns < event["end"]),
            t.row("slow peer: seconds lost in it (information)", f"{lost:.2f}",
                  f"{(event['end'] - event['begin']) / 1e9:.2f}", True)]


# --- others and limits -------------------------------------------------------------------------------------

def check_sites():
    script = os.path.join(ROOT, "tests", "sites", "compare.py")
    directory = scratch("sites")
    with Jobs(directory) as jobs:
        command = ["/usr/bin/python3", script, "--print-sites", path("tests", "print_sites")]
        older = os.path.join(ROOT, "..", "shared", "reference", "site_scan.py")
        if os.path.exists(older):
            command += ["--reference", older]
        code, job = jobs.run(command, "compare", 600, cwd=ROOT)
        lines = [line for line in (job.out() + job.err()).splitlines() if line.strip()]
    return [t.row("probe sites against the independent script", lines[-1] if lines else "no output", "agreement, exit code 0",
                  code == 0)]


def check_bystander():
    cpus = os.cpu_count() or 1
    if cpus < 2:
        return [t.row("bystander", "one CPU", "two CPUs", False)]
    rows, pairs = [], repeat(20, 3)
    directory = scratch("bystander")
    files = scratch("bystander", "files")

    def measure(jobs, mode):
        code, job = jobs.run([tool("bystander"), "--mode", mode, "--seconds", 1, "--cpu", cpus - 1], "bystander", 30)
        well(code, job)
        return last_json(job.out())["median"]
    with Jobs(directory) as jobs:
        demo = jobs.start(mpirun(1, tool("demo_mpi"), "--seconds", 3600, "--log", directory, "--scratch", files, "--bind"),
                          "demo_mpi")
        pid = pids_of(demo, directory, 1)[0]
        for mode, io, unit in (("read", "off", "ns"), ("exec", "off", "us"), ("read", "on", "ns")):
            without, with_it = [measure(jobs, mode)], []
            for _ in range(pairs):
                daemon, ndjson = vaprod(jobs, "vapro", [pid], None, "--io", io)
                if not until(lambda: attached(ndjson, pid), 15):
                    raise RuntimeError("vaprod did not attach: " + daemon.err().strip())
                time.sleep(0.3)
                with_it.append(measure(jobs, mode))
                well(jobs.interrupt(daemon), daemon)
                os.unlink(ndjson)
                without.append(measure(jobs, mode))
            spread = sorted(abs(b - a) for a, b in zip(without, without[1:]))
            spread = spread[min(len(spread) - 1, len(spread) * 9 // 10)]
            extra = statistics.median(w - (a + b) / 2 for w, a, b in zip(with_it, without, without[1:]))
            text = f"{extra:+.2f} {unit} of {statistics.median(without):.1f}, A/A spread {spread:.2f}"
            if io == "off":
                rows.append(t.row(f"bystander's {mode}, no IO tracing, {pairs} pairs", text, "inside the A/A spread",
                                  abs(extra) <= spread))
            else:
                rows.append(t.row(f"bystander's {mode}, IO tracing, {pairs} pairs", text, "at most 80 ns", extra <= 80))
    return rows


def check_throw():
    rows = []
    directory = scratch("throw")
    with Jobs(directory) as jobs:
        results = []
        for watched in (False, True):
            job = jobs.start(mpirun(1, tool("throw"), "--count", 100, "--seconds", 4, "--delay", 3), f"throw{int(watched)}")
            pid = ready_pid(job)
            if watched:
                daemon, ndjson = vaprod(jobs, "vapro", [pid], None, "--no-return")
                if not until(lambda: attached(ndjson, pid), 2.5):
                    raise RuntimeError("vaprod did not attach in time: " + daemon.err().strip())
            code = jobs.wait(job, 30)
            results.append((code, last_json(job.out()) if code == 0 else {}))
            if watched:
                well(jobs.interrupt(daemon), daemon)
                records = t.load_records(ndjson)
                hits = sum(hits_of(r) for r in of_type(records, "process"))
        (bare, _), (code, result) = results
        rows.append(t.row("throw out of an MPI error handler, bare: exit code", bare, 0, bare == 0))
        rows.append(t.row("the same under --no-return: exit code, caught of thrown",
                          f"{code}, {result.get('caught')} of {result.get('thrown')}", "0, all",
                          code == 0 and result.get("caught") == result.get("thrown")))
        rows.append(t.row("its calls were probed: hits", hits, "at least the calls", hits >= result.get("thrown", 1)))
    try:
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            said = "--no-return" in file.read()
    except OSError:
        said = False
    rows.append(t.row("README tells the limit and --no-return", said, True, said))
    return rows


# --- kill -9 -----------------------------------------------------------------------------------------------

def text_differs(pid):
    """{(file, address)} of the bytes in executable pages of a process that differ from their files."""
    different = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) < 6 or "x" not in fields[1] or not fields[5].startswith("/"):
                continue
            first, last = (int(x, 16) for x in fields[0].split("-"))
            name = fields[5].rstrip("\n")
            with open(name, "rb") as file:
                file.seek(int(fields[2], 16))
                for page in range(first, last, 4096):
                    wanted = file.read(4096)
                    found = os.pread(memory.fileno(), len(wanted), page)
                    if found != wanted:
                        different.update((name, page + i) for i in range(len(wanted)) if found[i:i + 1] != wanted[i:i + 1])
    return different


def bpf_objects():
    """{(kind, id): [owner pids]} of all BPF links and programs."""
    objects = {}
    for kind in ("link", "prog"):
        out = subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, timeout=20, check=True).stdout
        for item in json.loads(out or b"[]"):
            objects[kind, item["id"]] = [p["pid"] for p in item.get("pids", [])]
    return objects


def leftover_bpf(before, pid):
    """Objects that are there now, were not before, and belong to nobody alive but the killed daemon."""
    now = bpf_objects()
    return [key for key, owners in now.items() if key not in before and (not owners or pid in owners)]


def kill_once(jobs, pids, draw):
    """
    One vaprod on a running job, killed at a random moment; times in CLOCK_MONOTONIC ns. Looks at the
    job only before and after the four seconds before and the two seconds after, whose iterations count.
    """
    before, text = bpf_objects(), [text_differs(pid) for pid in pids]  # Open MPI itself patches libc
    time.sleep(4.2)
    start_ns = time.monotonic_ns()
    daemon, ndjson = vaprod(jobs, "vapro", pids)
    time.sleep(draw.uniform(0.02, 3.0))
    family = descendants(daemon.pid)
    running = daemon.process.poll() is None
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait(10)
    end_ns = time.monotonic_ns()
    time.sleep(2.1)
    alive = {child: started for child, started in family.items() if descendants(child).get(child) == started}
    for child in alive:
        os.kill(child, signal.SIGKILL)
    return {"start": start_ns, "end": end_ns, "running": running, "children": sorted(alive),
            "text": sorted(set().union(*(text_differs(pid) - old for pid, old in zip(pids, text)))),
            "bpf": leftover_bpf(before, daemon.pid), "attached": attached(ndjson, pids[0])}


def check_kill9():
    moments, per_run = repeat(50, 4), repeat(5, 2)
    draw = random.Random(20171)
    outcomes, wrong_results, ratios, control = [], 0, [], []
    directory = scratch("kill9")
    with Jobs(directory) as jobs:
        code, job = jobs.run(mpirun(2, tool("iterate"), "--iterations", 300, "--bind"), "calibrate", 30)
        well(code, job)
        ms = last_json(job.out())["ms_per_iteration"]
        for number in range(moments // per_run):
            log = scratch("kill9", str(number))
            job = jobs.start(mpirun(2, tool("iterate"), "--iterations", int((per_run * 9.5 + 4) * 1000 / ms), "--log", log,
                                    "--bind"), f"iterate{number}")
            pids = pids_of(job, log, 2)
            trials = []
            for _ in range(per_run):
                trials.append(kill_once(jobs, pids, draw))
            code = jobs.wait(job, 120)
            wrong_results += code != 0 or not last_json(job.out())["ok"]
            for rank, times in t.load_truth(log, "iterations").items():
                def typical(begin, end, iterations=times.segments):
                    inside = [d for _, start, d in iterations if start >= begin and start + d <= end]
                    return statistics.median(inside) if len(inside) > 50 else None
                for trial in trials:
                    earlier = typical(trial["start"] - 4 * 10**9, trial["start"] - 2 * 10**9)
                    before = typical(trial["start"] - 2 * 10**9, trial["start"])
                    after = typical(trial["end"], trial["end"] + 2 * 10**9)
                    if rank == 0:
                        outcomes.append(trial)
                    ratios.append(after / before if after and before else None)
                    if earlier and before:
                        control.append(before / earlier)
    missing = ratios.count(None)
    off = [abs(r - 1) for r in ratios if r]
    slow = sum(o > 0.05 for o in off)
    return [t.row(f"kill -9 at {len(outcomes)} random moments: alive when killed, had attached",
                  f"{sum(o['running'] for o in outcomes)}, {sum(o['attached'] for o in outcomes)}", f"all {len(outcomes)}, at least half",
                  all(o["running"] for o in outcomes) and 2 * sum(o["attached"] for o in outcomes) >= len(outcomes)),
            t.row("kill -9: runs with wrong results", wrong_results, 0, wrong_results == 0),
            t.row("kill -9: text pages that differ from their file", sum(bool(o["text"]) for o in outcomes), 0,
                  not any(o["text"] for o in outcomes)),
            t.row("kill -9: BPF links or programs left", sum(bool(o["bpf"]) for o in outcomes), 0,
                  not any(o["bpf"] for o in outcomes)),
            t.row("kill -9: child processes left", sum(bool(o["children"]) for o in outcomes), 0,
                  not any(o["children"] for o in outcomes)),
            t.row("kill -9: median iteration, 2 s after against 2 s before: beyond 5 %",
                  f"{slow} of {len(ratios)}, worst {max(off, default=1):.1%}"
                  f" (without vaprod: {sum(abs(c - 1) > 0.05 for c in control)}, worst {max((abs(c - 1) for c in control), default=0):.1%})",
                  "0", slow == 0 and missing == 0)]


# --- call rates --------------------------------------------------------------------------------------------

def rss_kib(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1))
    except (OSError, AttributeError):
        return None


def flat_out(directory, rate, seconds, *options):
    """flat_out under vaprod: (its own result, records, [RSS of vaprod in KiB each second])."""
    with Jobs(directory) as jobs:
        job = jobs.start(mpirun(1, tool("flat_out"), "--rate", rate, "--seconds", seconds, "--delay", 4,
                                "--cpu", (os.cpu_count() or 1) - 1), "flat_out")
        pid = ready_pid(job)
        daemon, ndjson = vaprod(jobs, "vapro", [pid], None, *options)
        if not until(lambda: attached(ndjson, pid), 3.5):
            raise RuntimeError("vaprod did not attach in time: " + daemon.err().strip())
        rss, end = [], time.monotonic() + seconds + 60
        while job.process.poll() is None and time.monotonic() < end:
            rss.append(rss_kib(daemon.pid))
            time.sleep(1)
        well(jobs.wait(job, 1), job)
        time.sleep(1)
        well(jobs.interrupt(daemon), daemon)
    return last_json(job.out()), t.load_records(ndjson), [r for r in rss if r]


def lost_of(window):
    lost = window.get("lost", 0)
    return sum(lost.values()) if isinstance(lost, dict) else lost


def check_rate():
    seconds = repeat(30, 8)
    result, records, rss = flat_out(scratch("rate"), 300000, seconds, "--overhead-cap", "0")
    calls = result["calls"]
    fragments = sum(w["fragments"] for w in of_type(records, "window"))
    lost = sum(lost_of(w) for w in of_type(records, "window"))
    hits = max((hits_of(r) for r in of_type(records, "process")), default=0)
    # each call is a vertex and closes a computation fragment; MPI_Finalize and the first call lack one
    missing = 2 * calls - fragments - lost
    third = max(1, len(rss) // 3)
    first, last = statistics.median(rss[third:2 * third] or [0]), statistics.median(rss[-third:] or [0])
    return [t.row("300,000 calls/s: the program's own rate", f"{result['rate']:.0f}", "at least 290,000",
                  result["rate"] >= 290000),
            t.row("300,000 calls/s: fragments and lost against 2 x calls",
                  f"{fragments} + {lost} of {2 * calls} (missing {missing})", "all but 4", abs(missing) <= 4),
            t.row("300,000 calls/s: share lost (information)", f"{lost / (2 * calls):.3%}", "-", True),
            t.row("300,000 calls/s: hits that vaprod counted (information)", hits, calls, True),
            t.row("300,000 calls/s: RSS of vaprod, middle to last third", f"{first / 1024:.1f} -> {last / 1024:.1f} MiB",
                  "flat: at most 1 MiB or 2 % more", bool(rss) and last - first <= max(1024, first * 0.02))]


def check_cap():
    seconds = repeat(32, 12)
    result, records, _ = flat_out(scratch("cap"), 0, seconds)
    windows = [(w, s) for w, s in window_weights(records)]
    mean = mean_over_windows(records, lambda w: w["overhead_pct"]["mean"])
    uncovered = [u for w, _ in windows for u in w.get("uncovered", []) if u.get("reason") == "governed"]
    return [t.row(f"flat out with the cap on, overhead over {sum(s for _, s in windows):.0f} s", f"{mean:.2f} %", "under 2 %",
                  mean < 2),
            t.row("flat out with the cap on: gap told as governed", len(uncovered), "at least 1", bool(uncovered)),
            t.row("flat out: the program's own ns per call (information)", f"{result['ns_per_call']:.1f}", "-", True)]


# --- bad input ---------------------------------------------------------------------------------------------

def check_badinput():
    rows = []
    directory = scratch("badinput")

    def file_of(name, data):
        where = os.path.join(directory, name)
        with open(where, "wb") as file:
            file.write(data)
        return where

    def case(jobs, what, command, codes, names, limit=20, **more):
        """Runs a command that must fail in a given way and name the thing on stderr."""
        try:
            code, job = jobs.run(command, "case", limit, **more)
            err = job.err()
        except TimeLimit as error:
            code, err = "none", str(error)
        told = all(name in err for name in names)
        first = err.strip().splitlines()[-1] if err.strip() else "(nothing)"
        rows.append(t.row(what, f"{code}: {first[:110]}", f"{' or '.join(map(str, codes))}, names {', '.join(names)}",
                          code in codes and told))

    with Jobs(directory) as jobs:
        with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
            nobody = int(file.read()) - 1
        while os.path.exists(f"/proc/{nobody}"):
            nobody -= 1
        case(jobs, "unknown PID", [VAPROD, "--pid", nobody, "--duration", 2], [1], [str(nobody)])
        for option, value in (("--pid", "banana"), ("--pid", "-3"), ("--window", "banana"), ("--window", "-1"),
                              ("--duration", "nan"), ("--overhead-cap", "lots"), ("--overhead-cap", "-5"), ("--io", "maybe"),
                              ("--config", "/nonexistent/vapro.conf")):
            codes = [1, 2] if option == "--config" else [2]
            case(jobs, f"option {option} {value}", [VAPROD, option, value, "--duration", 1], codes, [value])
        case(jobs, "unknown option", [VAPROD, "--frobnicate"], [2], ["--frobnicate"])
        case(jobs, "unknown command", [VAPRO, "frobnicate"], [2], ["frobnicate"])
        case(jobs, "command that does not exist", [VAPRO, "run", "--", "/nonexistent/program"], [127], ["/nonexistent/program"])

        # without privileges
        with_others = os.path.join("/tmp", f"vapro-accept-{os.getpid()}")
        shutil.copy(VAPROD, with_others)
        os.chmod(with_others, 0o755)
        try:
            case(jobs, "missing privileges", [with_others, "--output", "-", "--duration", 1], [3], ["privilege"], user=65534,
                 cwd="/")
        finally:
            os.unlink(with_others)

        # analyze
        missing = os.path.join(directory, "missing.capture")
        case(jobs, "capture that is not there", [VAPRO, "analyze", missing], [1], [missing])
        case(jobs, "capture of noise", [VAPRO, "analyze", file_of("noise.capture", random.Random(1).randbytes(50000))], [1],
             ["noise.capture"])
        case(jobs, "empty capture", [VAPRO, "analyze", file_of("empty.capture", b"")], [1], ["empty.capture"])
        good = (b'{"rank":0,"thread":0,"class":"computation","from":"a@1+0x1","to":"a@1+0x2","start_ns":1000,'
                b'"duration_ns":52000,"workload":{"instructions":100000}}\n')
        later = good.replace(b'"start_ns":1000', b'"start_ns":90000')
        lines = file_of("lines.ndjson", good + b'{"rank":0,"class":\n' + later)
        case(jobs, "bad NDJSON line", [VAPRO, "analyze", "--format", "ndjson", lines], [0], ["lines.ndjson", "2"])
        case(jobs, "bad NDJSON line, --strict", [VAPRO, "analyze", "--format", "ndjson", "--strict", lines], [1],
             ["lines.ndjson", "2"])

        # a PID that exits during attach: never worse than a clear answer
        worst = []
        for number in range(repeat(12, 3)):
            job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 1000, "--seconds", 0.1 + 0.04 * number), "victim")
            victim = ready_pid(job)
            ndjson = os.path.join(directory, "exits.ndjson")
            code, daemon = jobs.run([VAPROD, "--pid", victim, "--output", ndjson, "--duration", 2], "exits", 20)
            told = daemon.err()
            if os.path.exists(ndjson):
                with open(ndjson, encoding="utf-8") as file:
                    told += file.read()
                os.unlink(ndjson)
            if code not in (0, 1) or str(victim) not in told or jobs.wait(job, 20) != 0:
                worst.append((code, daemon.err().strip()[-80:]))
        rows.append(t.row("PID that exits during attach", worst[0] if worst else "named each time", "0 or 1, names the PID",
                          not worst))
        for part in (lambda: unreadable_binary(jobs, directory), lambda: full_disk(jobs, directory, file_of)):
            rows += measured("badinput", part)
    return rows


def unreadable_binary(jobs, directory):
    """A program whose libmpi runs but whose section table is damaged."""
    libraries = os.path.join(directory, "lib")
    os.makedirs(libraries)
    listing = subprocess.run(["ldd", tool("flat_out")], capture_output=True, text=True, check=True).stdout
    real = os.path.realpath(re.search(r"libmpi\.so\S* => (\S+)", listing).group(1))
    damaged = os.path.join(libraries, re.search(r"libmpi\.so\S*", listing).group(0))
    with open(real, "rb") as file:
        data = bytearray(file.read())
    struct.pack_into("<Q", data, 40, 0x7fffffffffff)  # e_shoff
    with open(damaged, "wb") as file:
        file.write(data)
    job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 1000, "--seconds", 8), "damaged", env={"LD_LIBRARY_PATH": libraries})
    pid = ready_pid(job)
    ndjson = os.path.join(directory, "damaged.ndjson")
    code, daemon = jobs.run([VAPROD, "--pid", pid, "--output", ndjson, "--duration", 3], "damaged_vapro", 30)
    text = daemon.err()
    if os.path.exists(ndjson):
        with open(ndjson, encoding="utf-8") as file:
            text += "".join(line for line in file if '"process"' in line or '"warning"' in line)
    target = jobs.wait(job, 30)
    return [t.row("unreadable binary (damaged libmpi): exit code, target's exit code", f"{code}, {target}", "0 or 1, 0",
                  code in (0, 1) and target == 0),
            t.row("unreadable binary: named", damaged in text, True, damaged in text)]


def full_disk(jobs, directory, file_of):
    """Output and capture on a full disk, each with the other intact; then a capture cut short."""
    rows = []
    files = os.path.join(directory, "files")
    os.makedirs(files)
    demo = jobs.start(mpirun(2, tool("demo_mpi"), "--seconds", 25, "--log", directory, "--scratch", files, "--bind"), "demo_mpi")
    pids = pids_of(demo, directory, 2)

    def analyze(capture):
        code, job = jobs.run([VAPRO, "analyze", capture], "analyze", 30)
        windows = sum('"type":"window"' in line.replace(" ", "") for line in job.out().splitlines())
        return code, windows, job.err().strip()
    capture = os.path.join(directory, "good.capture")
    code, daemon = jobs.run([VAPROD, *select(pids), "--output", "/dev/full", "--capture", capture, "--duration", 6], "full_output", 40)
    replay = analyze(capture)
    rows.append(t.row("output on a full disk", f"{code}: {daemon.err().strip()[-90:]}", "1, names /dev/full",
                      code == 1 and "/dev/full" in daemon.err()))
    rows.append(t.row("output on a full disk: windows in the capture", replay[1], "at least 1", replay[0] == 0 and replay[1] > 0))
    code, daemon = jobs.run([VAPROD, *select(pids), "--capture", "/dev/full", "--duration", 6], "full_capture", 40)
    rows.append(t.row("capture on a disk that is full at the start", f"{code}: {daemon.err().strip()[-90:]}",
                      "1, names /dev/full", code == 1 and "/dev/full" in daemon.err()))
    small = os.path.join(directory, "small")
    os.makedirs(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        ndjson, filled = os.path.join(directory, "good.ndjson"), os.path.join(small, "filled.capture")
        code, daemon = jobs.run([VAPROD, *select(pids), "--output", ndjson, "--capture", filled, "--duration", 6], "filled", 40)
        kept = len(of_type(t.load_records(ndjson), "window"))
        rows.append(t.row("capture on a disk that fills up: exit code, windows in the output",
                          f"{code}, {kept}: {daemon.err().strip()[-90:]}", "1, at least 1, names it",
                          code == 1 and kept > 0 and filled in daemon.err()))
        replay = analyze(filled)
        rows.append(t.row("what it got is analysed", f"{replay[0]}, {replay[1]} windows", "1, at least 1",
                          replay[0] == 1 and replay[1] > 0))
    finally:
        subprocess.run(["umount", small], check=True)
    jobs.stop(demo)
    with open(capture, "rb") as file:
        data = file.read()
    cut = analyze(file_of("cut.capture", data[:len(data) * 6 // 10]))
    rows.append(t.row("capture cut short", f"{cut[0]}, {cut[1]} windows: {cut[2][-80:]}", "0 or 1, names it, keeps the windows",
                      cut[0] in (0, 1) and cut[1] > 0 and "cut.capture" in cut[2]))
    draw, crashes = random.Random(7), []
    for number in range(repeat(50, 5)):
        broken = bytearray(data)
        for _ in range(8):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        code, _, _ = analyze(file_of("broken.capture", broken))
        if code not in (0, 1):
            crashes.append((number, code))
    rows.append(t.row("captures with 8 random bytes changed: exit codes other than 0 and 1", crashes or 0, 0, not crashes))
    return rows


CHECKS = {name: globals()["check_" + name] for name in (
    "demo", "quiet", "random", "coverage", "correctness", "slowpeer", "sites", "bystander", "throw", "kill9", "rate", "cap",
    "badinput")}


def measured(name, function):
    """The rows of a check, or one that says why it could not be measured."""
    try:
        return function()
    except (RuntimeError, OSError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, TimeLimit,
            subprocess.SubprocessError) as error:
        with open(path("accept", name + ".error"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        return [t.row(f"{name} could not be measured", f"{type(error).__name__}: {error}", "a measurement", False)]


def save(name, rows, seconds):
    """Puts one check's rows into accept.json beside those of the others."""
    where = path("accept", "accept.json")
    try:
        with open(where, encoding="utf-8") as file:
            everything = json.load(file)
    except (OSError, ValueError):
        everything = {"checks": {}}
    uname = os.uname()
    everything.update(kernel=uname.release, machine=uname.machine, cpus=os.cpu_count())
    everything["checks"][name] = {"time": t.format_time(time.time_ns()), "seconds": round(seconds, 1), "quick": QUICK,
                                  "ok": all(r["ok"] for r in rows), "rows": rows}
    with open(where + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(where + ".new", where)


def main():
    global QUICK
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="+", choices=["all", *CHECKS], metavar="CHECK")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    QUICK = args.quick
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    names = list(CHECKS) if "all" in args.checks else args.checks
    if os.geteuid() != 0:
        print("accept: vaprod needs root", file=sys.stderr)
        return 3
    missing = [p for p in (VAPROD, VAPRO, tool("demo_mpi"), tool("hog")) if not os.access(p, os.X_OK)]
    if missing:
        print("accept: missing, run make first: " + " ".join(missing), file=sys.stderr)
        return 1
    os.makedirs(path("accept"), exist_ok=True)
    failed = 0
    for name in names:
        begin = time.monotonic()
        rows = measured(name, CHECKS[name])
        seconds = time.monotonic() - begin
        save(name, rows, seconds)
        bad = sum(not r["ok"] for r in rows)
        failed += bad
        print(f"\n{name}{' (quick: fewer repetitions)' if QUICK else ''}: "
              f"{'ok' if not bad else f'{bad} of {len(rows)} not ok'}, {seconds:.0f} s")
        t.table(rows)
        sys.stdout.flush()
    print(f"\n{'all ok' if not failed else f'{failed} rows are not ok'}; {path('accept', 'accept.json')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
