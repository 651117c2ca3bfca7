# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the reported overhead right, does the cap hold, and is anything lost at the highest rate? Parts model, pauses, drain."""
import math
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import lammps, last_json, mean_over_windows, ready_pid, vaprod  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary
from bench_common import t  # noqa: E402

PAUSES = ((10, 4), (100, 4), (1000, 4), (1000, 512), (1000, 2048), (1000, 32768), (3000, 4), (3000, 8192))  # us, KiB
TIMES = (10, 30, 100, 300, 1000)  # the natural rate of calls: half a percent to half of the time


def natural_rate(jobs):
    """Calls a second and rank of a real program (lammps), as vaprod counts them."""
    ndjson = os.path.join(jobs.directory, "natural.ndjson")
    daemon = jobs.start([VAPROD, "--exe", "*/lmp", "--output", ndjson, "--io", "off"], "natural")
    if not until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson) > 0, 20, 0.02):
        raise RuntimeError("vaprod did not start: " + daemon.err().strip()[-300:])
    begin = time.monotonic()
    code, job = jobs.run(lammps(repeat(1500, 300), os.path.join(jobs.directory, "log.lammps")), "lammps", 240)
    seconds = time.monotonic() - begin
    well(code, job)
    well(jobs.interrupt(daemon), daemon)
    hits = {r["pid"]: hits_of(r) for r in of_type(t.load_records(ndjson), "process")}
    ranks = [n for n in hits.values() if n]
    if not ranks:
        raise RuntimeError("vaprod saw nothing of lammps")
    return statistics.mean(ranks) / seconds  # a call is a hit, with its return


def cost_of(records, period_ns):
    """Of a call, entry and return, that comes so long after the one before."""
    costs = of_type(records, "hello")[0]["costs"]
    after = [pause["entry_ns"] for pause in costs["pauses"] if period_ns >= pause["from_ns"]]
    return costs["entry_ns"] + costs["return_ns"] + (after[-1] if after else 0)


def paced(target, rate, seconds):
    """(calls of a batch, steps after each) that make so many calls a second, bare."""
    steps, step_ns = 1000, 0
    for _ in range(3):  # the first guess is far off
        each = target.request("send", 2000, 5, steps)["median_ns"]
        step_ns = each / steps
        steps = max(1, int(steps + (1e9 / rate - each) / step_ns))
    return max(1, int(rate * seconds)), steps


def part_model():
    rows = []
    with Jobs(scratch("model")) as jobs:
        natural = natural_rate(jobs)
        rows.append(row("natural rate: lammps, calls a second and rank", f"{natural:.0f}", calls_per_second=natural))
        target = start_calls(jobs)
        for times_over in TIMES:
            rate, predicted, measured = natural * times_over, [], []
            calls, steps = paced(target, rate, 0.1)
            for number in range(repeat(10, 2)):
                def run():
                    return target.request("send", calls, repeat(15, 8), steps)
                before = run()
                name = f"x{times_over}_{number}"
                with Watching(jobs, name, target.pid, "--overhead-cap", "0", "--io", "off", "--learn", "0") as watching:
                    watched = run()
                bare = (before["mean_ns"] + run()["mean_ns"]) / 2
                records = watching.records()
                hits = max(hits_of(r) for r in of_type(records, "process"))
                predicted.append(100 * hits * cost_of(records, 1e9 / rate) / (bare * watched["calls"]))
                measured.append(100 * (watched["mean_ns"] - bare) / bare)
            (said, _), (found, half) = interval(predicted), interval(trimmed(measured))
            rows.append(row(f"x{times_over} ({rate:.0f} calls/s), cap off: hits x cost, measured",
                            f"{said:.2f} %, {found:.2f} % +- {half:.2f}", "within a third, or the interval",
                            abs(found - said) <= max(found / 3, half), predicted_pct=predicted, measured_pct=measured))
            rows += governed(jobs, target, calls, steps, times_over)
        target.leave()
    return rows


def governed(jobs, target, calls, steps, times_over):
    """The same with the governor on: what vaprod says it costs, by the model above, and what is measured."""
    # 0.1 s each, bare; what the cap lets a process spend in advance is little of a minute
    batches, beside = repeat(600, 150), repeat(100, 50)
    before = target.request("send", calls, beside, steps, limit=300)["mean_ns"]
    with Watching(jobs, f"governed_x{times_over}", target.pid, "--io", "off", "--window", "7500ms") as watching:  # one each 5 s
        watched = target.request("send", calls, batches, steps, limit=300)["mean_ns"]
    bare = (before + target.request("send", calls, beside, steps, limit=300)["mean_ns"]) / 2
    over = 100 * (watched - bare) / bare
    records = watching.records()
    mean = mean_over_windows(records, lambda w: w["overhead_pct"]["mean"])
    worst = max((w["overhead_pct"]["max"] for w, s in window_weights(records) if s >= 5), default=math.nan)
    return [row(f"x{times_over}, governor on, {batches * 0.1:.0f} s: mean, worst 5 s, by hits x cost", f"{mean:.2f} %, {worst:.2f} %",
                "at most 1 %, 2 %", mean <= 1 and worst <= 2, mean_pct=mean, worst_pct=worst),
            row(f"x{times_over}, governor on: measured", f"{over:.2f} %", overhead_pct=over)]


def part_pauses():
    """The model for calls after pauses in which the program walks through memory, against the duration of these calls."""
    rows = []
    with Jobs(scratch("pauses")) as jobs:
        target, probes = start_calls(jobs), Talker(jobs, [PROBES], "probes")
        probes.request("costs")
        probes.request("track", target.pid)
        where = mapped(target.pid, r"libmpi\.so.*")
        for pause_us, kib in PAUSES:
            calls, said, found = max(30, min(1000, 50000 // pause_us)), [], []
            for number in range(repeat(8, 3)):
                times = {}
                for watched in (False, True) if number % 2 else (True, False):
                    if watched:
                        probes.request("pair", "ours", where, "MPI_Send", target.pid)
                        target.request("cold", "send", calls // 10, kib << 10, pause_us)
                        probes.request("counts")
                    times[watched] = target.request("cold", "send", calls, kib << 10, pause_us)["median_ns"]
                    if watched:
                        said.append(probes.request("counts")["cost_ns"] / calls)
                        probes.request("off")
                found.append(times[True] - times[False])
            cost, measured = statistics.median(said), statistics.median(found)
            rows.append(row(f"after {pause_us} us in {kib} KiB: cost of a call by the model, measured",
                            f"{cost / 1000:.1f} us, {measured / 1000:.1f} us", "within a factor of two", 0.5 <= cost / measured <= 2,
                            said_ns=said, measured_ns=found))
        probes.leave()
        target.leave()
    return rows


def rss_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024


def part_drain():
    seconds, rss = repeat(30, 8), []
    with Jobs(scratch("drain")) as jobs:
        job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 1000000, "--seconds", seconds, "--delay", 4, "--cpu", LAST_CPU), "flat_out")
        pid = ready_pid(job)
        daemon, ndjson = vaprod(jobs, "vapro", [pid], None, "--overhead-cap", "0", "--io", "off")
        if not until(lambda: attached(ndjson, pid), 3.5):
            raise RuntimeError("vaprod did not attach in time: " + daemon.err().strip())
        end = time.monotonic() + seconds + 60
        begin, spent = time.monotonic(), processor_seconds(daemon.pid)
        while job.process.poll() is None and time.monotonic() < end:
            rss.append(rss_mib(daemon.pid))
            used, took = processor_seconds(daemon.pid) - spent, time.monotonic() - begin
            time.sleep(0.5)
        well(jobs.wait(job, 1), job)
        time.sleep(1)
        well(jobs.interrupt(daemon), daemon)
    result, records = last_json(job.out()), t.load_records(ndjson)
    calls = result["calls"]
    fragments = sum(w["fragments"] for w in of_type(records, "window"))
    lost = sum(sum(w["lost"].values()) for w in of_type(records, "window"))
    third = max(1, len(rss) // 3)
    middle, last = statistics.median(rss[third:2 * third] or rss), statistics.median(rss[-third:])
    return [row("flat out on one core, governor off: calls a second", f"{result['rate']:.0f}",
                "1,000,000" if result["rate"] >= 990000 else "1,000,000: the traps alone take longer here", calls_per_second=result["rate"]),
            row("fragments and lost of 2 x calls", f"{fragments} + {lost} of {2 * calls}", "all but 4", abs(2 * calls - fragments - lost) <= 4,
                fragments=fragments, lost=lost, calls=calls),
            row("share lost", f"{lost / (2 * calls):.4%}", lost_share=lost / (2 * calls)),
            row("vaprod's CPU", f"{100 * used / took:.2f} % of a core", "under 5 %", used < 0.05 * took, cpu_pct=100 * used / took),
            row("vaprod's RSS, middle to last third", f"{middle:.1f} -> {last:.1f} MiB", "flat: at most 1 MiB or 2 % more",
                last - middle <= max(1, 0.02 * middle), rss_mib=rss)]
