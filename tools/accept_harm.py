# SPDX-License-Identifier: GPL-2.0-or-later
"""Does vaprod harm any process, and is its cost bounded? Checks correctness, bystander, throw, kill9, rate, cap."""
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402


def check_correctness():
    rows = []
    base = scratch("correctness")
    quiet, watched = (scratch("correctness", name) for name in ("hpcc", "hpcc_vapro"))
    for directory in (quiet, watched):
        hpcc_input(directory)
    steps = repeat(4000, 1000)
    with Jobs(base) as jobs:
        code, job = jobs.run(mpirun(2, "hpcc"), "hpcc", 60, cwd=quiet)
        well(code, job)
        ndjson = os.path.join(base, "hpcc_vapro.ndjson")
        code, job = jobs.run([VAPRO, "run", "--output", ndjson, "--", *mpirun(2, "hpcc")], "hpcc_vapro", 90, cwd=watched)
        rows.append(t.row("hpcc under vapro run: exit code", code, 0, code == 0))
        result = hpcc_result(watched)
        rows.append(t.row("hpcc: Success", result.get("Success"), "1", result.get("Success") == "1"))
        rows.append(t.row("hpcc: verdicts and residuals as undisturbed", f"{result['passed']} passed, {result['failed']} failed",
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
    rows.append(t.row("README states the limit and --no-return", said, True, said))
    return rows


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
    """New objects that belong to no living process but the killed daemon."""
    now = bpf_objects()
    return [key for key, owners in now.items() if key not in before and (not owners or pid in owners)]


def attach_seconds(jobs, ms):
    """How long vaprod takes on this machine from its start until it has attached to a running job."""
    log = scratch("kill9", "attach")
    job = jobs.start(mpirun(2, tool("iterate"), "--iterations", int(20 * 1000 / ms), "--log", log, "--bind"), "attach")
    pids = pids_of(job, log, 2)
    begin = time.monotonic()
    daemon, ndjson = vaprod(jobs, "attaching", pids)
    if not until(lambda: attached(ndjson, pids[0]), 20, 0.02):
        raise RuntimeError("vaprod did not attach: " + daemon.err().strip()[-300:])
    took = time.monotonic() - begin
    well(jobs.interrupt(daemon), daemon)
    jobs.stop(job)
    return took


def kill_once(jobs, pids, draw, latest):
    """
    One vaprod on a running job, killed at a random moment up to latest s; times in CLOCK_MONOTONIC ns. The job is not
    examined in the four seconds before and the two seconds after, whose iterations count.
    """
    before, text = bpf_objects(), [text_differs(pid) for pid in pids]  # Open MPI itself patches libc
    time.sleep(4.2)
    start_ns = time.monotonic_ns()
    daemon, ndjson = vaprod(jobs, "vapro", pids)
    time.sleep(draw.uniform(0.02, latest))
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
    moments, per_run, leaked = repeat(50, 4), repeat(5, 2), leaked_probes()
    draw = random.Random(20171)
    outcomes, wrong_results, ratios, control = [], 0, [], []
    directory = scratch("kill9")
    with Jobs(directory) as jobs:
        code, job = jobs.run(mpirun(2, tool("iterate"), "--iterations", 300, "--bind"), "calibrate", 30)
        well(code, job)
        ms = last_json(job.out())["ms_per_iteration"]
        latest = max(3.0, 2.5 * attach_seconds(jobs, ms))
        for number in range(moments // per_run):
            log = scratch("kill9", str(number))
            # 1.5 times as many: a machine that was slow during calibration may be fast now
            job = jobs.start(mpirun(2, tool("iterate"), "--iterations", int(1.5 * (per_run * (6.5 + latest) + 4) * 1000 / ms), "--log", log,
                                    "--bind"), f"iterate{number}")
            pids = pids_of(job, log, 2)
            trials = []
            for _ in range(per_run):
                trials.append(kill_once(jobs, pids, draw, latest))
            code = jobs.wait(job, 180)
            wrong_results += code != 0 or not last_json(job.out())["ok"]
            for rank, times in t.load_truth(log, "iterations").items():
                def iterations(begin, end, log=times.segments):
                    inside = sorted(d for _, start, d in log if start >= begin and start + d <= end)
                    return inside if len(inside) > 50 else None
                for trial in trials:
                    earlier = iterations(trial["start"] - 4 * 10**9, trial["start"] - 2 * 10**9)
                    before = iterations(trial["start"] - 2 * 10**9, trial["start"])
                    after = iterations(trial["end"], trial["end"] + 2 * 10**9)
                    if rank == 0:
                        outcomes.append(trial)
                    ratios.append((after[0] / before[0], statistics.median(after) / statistics.median(before))
                                  if after and before else None)
                    if earlier and before:
                        control.append((before[0] / earlier[0], statistics.median(before) / statistics.median(earlier)))
    missing = ratios.count(None)

    def beyond(pairs, which):
        off = [abs(pair[which] - 1) for pair in pairs if pair]
        return sum(o > 0.05 for o in off), max(off, default=1)

    # changes of this machine's own speed move the least or the median; harm would move both
    both, alone = (sum(all(abs(value - 1) > 0.05 for value in pair) for pair in pairs if pair) for pairs in (ratios, control))

    def summary(which):
        (count, worst), (usual, usual_worst) = beyond(ratios, which), beyond(control, which)
        return f"{count} of {len(ratios)}, worst {worst:.1%} (without vaprod: {usual}, worst {usual_worst:.1%})"
    middle = statistics.median(pair[1] for pair in ratios if pair)
    given_up = "its log cannot be read" if leaked is None else leaked_probes() - leaked
    return [t.row(f"kill -9 at {len(outcomes)} random moments: alive when killed, had attached",
                  f"{sum(o['running'] for o in outcomes)}, {sum(o['attached'] for o in outcomes)}", f"all {len(outcomes)}, at least half",
                  all(o["running"] for o in outcomes) and 2 * sum(o["attached"] for o in outcomes) >= len(outcomes)),
            t.row("kill -9: runs with wrong results", wrong_results, 0, wrong_results == 0),
            t.row("kill -9: text pages that differ from their file", sum(bool(o["text"]) for o in outcomes), 0,
                  not any(o["text"] for o in outcomes)),
            t.row("kill -9: probes that the kernel's log says it could not take out", given_up, 0, given_up == 0),
            t.row("kill -9: BPF links or programs left", sum(bool(o["bpf"]) for o in outcomes), 0,
                  not any(o["bpf"] for o in outcomes)),
            t.row("kill -9: child processes left", sum(bool(o["children"]) for o in outcomes), 0,
                  not any(o["children"] for o in outcomes)),
            t.row("kill -9: iteration times, 2 s after against 2 s before: least and median beyond 5 %",
                  f"{both} of {len(ratios)} (without vaprod: {alone})", "0", both == 0 and missing == 0),
            t.row("kill -9: least iteration beyond 5 % (information)", summary(0), "-", True),
            t.row("kill -9: median iteration beyond 5 % (information)", summary(1), "-", True),
            t.row("kill -9: those medians' ratio, over all moments", f"{middle:.3f}", "0.95 to 1.05", 0.95 <= middle <= 1.05)]


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
    # 30 s are required; every buffer has its size from the second window on, after 25 s
    seconds = repeat(60, 8)
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
    seconds = repeat(62, 20)
    result, records, _ = flat_out(scratch("cap"), 0, seconds, "--window", "7500ms")  # one each 5 s, over which the cap holds
    windows = [(w, s) for w, s in window_weights(records)]
    mean = mean_over_windows(records, lambda w: w["overhead_pct"]["mean"])
    worst = max((w["overhead_pct"]["max"] for w, s in windows if s >= 5), default=100)
    uncovered = [u for w, _ in windows for u in w.get("uncovered", []) if u.get("reason") == "governed"]
    return [t.row(f"flat out with the cap on, overhead over {sum(s for _, s in windows):.0f} s", f"{mean:.2f} %", "under 1 %",
                  mean < 1),
            t.row("flat out with the cap on, overhead of the worst 5 s", f"{worst:.2f} %", "under 2 %", worst < 2),
            t.row("flat out with the cap on: gap reported as governed", len(uncovered), "at least 1", bool(uncovered)),
            t.row("flat out: the program's own ns per call (information)", f"{result['ns_per_call']:.1f}", "-", True)]
