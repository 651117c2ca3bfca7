# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part overhead: what vaprod costs the programs. By vaprod's own model, mean and worst 5 s, the first included; by what the
kernel counts of the parts of that model (hits of probes, context switches, vaprod's time on the ranks' CPUs); and by the CPU
time of a fixed amount of work, in rounds of three runs: bare, watched, and watched with a budget ten times as large. The last
is the control: where the model says that it costs more than 3 % and the rounds do not show that, they are too noisy to refute
anything, and are repeated.

The first attachment of an image on a node may cost 100 ms once: so much of what vaprod reports as attach_cpu_ms is no part of
the first 5 s. The table has the figures with it as well. In the rounds a short run before the measured one has it.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench_common import shift  # noqa: E402
from programs_common import (Jobs, TimeLimit, Unit, end_vaprod, of_type, rows_of_units, shielded, start_vaprod, t, until,  # noqa: E402
                             weights)
from programs_kernel import Sampler, bpf_stats, program_runs  # noqa: E402
from programs_list import CPUS, PROGRAMS, ranks_of  # noqa: E402

MEAN_MOST, WORST_MOST = 1.0, 2.0     # percent
ROUNDS, ROUNDS_MOST = 10, 20
CONTROL = ("--overhead-budget", "10", "--overhead-cap", "20")
CONTROL_LEAST = 3.0                  # percent
LIMIT = 60
SLIDE_S = 5
FIRST_ATTACH_MS = 100                # CPU time that the first attachment of an image on a node may cost
HITS_TOLERANCE = 0.02
START_TOLERANCE_NS = 20_000_000       # start times are in ticks of 10 ms
FIRST_SHARE = 0.4                    # of the work of a run, that of the run before it under the same vaprod
PROBES = ("invocation", "invocation_entry", "invocation_return")
SWITCHES = ("task_switch", "task_switch_before_5_18", "task_wakeup")


def worst_of(pairs, length=SLIDE_S):
    """The largest mean over `length` seconds of [(percent, seconds)], or over all where that is shorter."""
    worst = None
    for first in range(len(pairs)):
        cost = wall = 0.0
        for percent, seconds in pairs[first:]:
            cost, wall = cost + percent * seconds, wall + seconds
            if wall >= length - 0.01:
                break
        if wall and (wall >= length - 0.01 or worst is None):
            worst = max(worst or 0.0, cost / wall)
    return worst


def attached_s(records):
    """[(window, seconds of it in which a process was attached)]: a window's percentages are of that time."""
    begins = [t.parse_time(r["time"]) for r in of_type(records, "process") if r["state"] == "attached"]
    ends = {}
    for record in of_type(records, "process"):
        ends[record["pid"]] = None if record["state"] == "attached" else t.parse_time(record["time"])
    last = None if not ends or None in ends.values() else max(ends.values())
    found = []
    for window, seconds in weights(records):
        begin, end = t.parse_time(window["begin"]), t.parse_time(window["end"])
        if begins:
            begin = max(begin, min(begins))
        if last is not None:
            end = min(end, last)
        found.append((window, min(seconds, max(0.0, (end - begin) / 1e9))))
    return found


def first_attach_ms(records):
    """
    CPU time that the first attachment of each image cost, but at most what it may cost; of all images. It is what is reported
    in the end of the first process of an image, and what the others of it read after their own attachment: who meets a
    library first reads it for all.
    """
    images, spent, at_first = {}, {}, {}
    for record in of_type(records, "process"):
        images.setdefault((record["exe"], record["build_id"]), []).append(record["pid"])
        at_first.setdefault(record["pid"], record["attach_cpu_ms"])
        spent[record["pid"]] = record["attach_cpu_ms"]
    allowed = 0
    for first, *others in images.values():
        cost = spent[first] + sum(spent[pid] - at_first[pid] for pid in set(others) - {first})
        allowed += min(FIRST_ATTACH_MS, cost)
    return allowed


def without(pairs, allowed_ms):
    """[(percent, seconds)] without so many ms of cost in the first 5 s, from the beginning on."""
    left, begun, found = allowed_ms / 1000, 0.0, []
    for percent, seconds in pairs:
        inside = min(seconds, max(0.0, SLIDE_S - begun))
        taken = min(left, percent / 100 * inside)
        left, begun = left - taken, begun + seconds
        found.append((percent - 100 * taken / seconds if seconds else percent, seconds))
    return found


def model_of(records):
    """
    What vaprod says it cost, in percent; windows come each second or so: {mean, worst (5 s): without the first attachment of
    the image as far as it is allowed, all_mean, all_worst: with it, attach_ms: what was allowed}.
    """
    windows = [(w["overhead_pct"], s) for w, s in attached_s(records) if w["overhead_pct"]["mean"] is not None and s > 0]
    if not windows:
        raise RuntimeError("no window says what it cost")
    ranks = len({r["pid"] for r in of_type(records, "process")}) or 1
    allowed = first_attach_ms(records)
    mean, most = ([(cost[which], s) for cost, s in windows] for which in ("mean", "max"))

    def mean_of(pairs):
        return sum(percent * seconds for percent, seconds in pairs) / sum(seconds for _, seconds in pairs)
    return {"mean": mean_of(without(mean, allowed / ranks)), "worst": worst_of(without(most, allowed)), "all_mean": mean_of(mean),
            "all_worst": worst_of(most), "attach_ms": round(allowed, 1)}


def model_row(found):
    """The row of the table about what model_of() found."""
    return t.row("overhead by the model: mean, worst 5 s; with the image's first attachment",
                 f"{found['mean']:.2f} %, {found['worst']:.2f} %; {found['all_mean']:.2f} %, {found['all_worst']:.2f} % "
                 f"({found['attach_ms']:.0f} ms allowed)",
                 f"at most {MEAN_MOST:g} %, {WORST_MOST:g} %", found["mean"] <= MEAN_MOST and found["worst"] <= WORST_MOST)


def watch_parts(directory, program, seconds, options, budget=()):
    """One run with the kernel's counts of BPF programs: {mean, worst, hits, runs, ...}"""
    with shielded(options) as groups, Jobs(directory) as jobs, bpf_stats():
        if hasattr(program, "prepare"):
            program.prepare()
        daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern(), "--window", "1500ms", *budget)
        before = program_runs(daemon.pid)
        job = program.start(jobs, groups, directory, directory, seconds=seconds)
        pids = ranks_of(job, program)
        cpus = list(range(min(CPUS, len(pids) * program.threads)))
        sampler = Sampler(pids, cpus, daemon.pid)
        sampler.start()
        if program.ends:
            code = jobs.wait(job, seconds * 3 + 60)
            if code:
                raise RuntimeError(f"{program.name} failed with {code}: {job.err().strip()[-300:]}")
        else:
            time.sleep(seconds)
            jobs.stop(job)
        sampler.finish()

        def ended():
            return all(any(r["pid"] == pid and r["state"] != "attached" for r in of_type(t.load_records(ndjson), "process")) for pid in pids)
        until(ended, 10, 0.1)
        after = program_runs(daemon.pid)
        end_vaprod(jobs, daemon)
    records = t.load_records(ndjson)
    model = model_of(records)
    spent = {name: tuple(b - a for a, b in zip(before.get(name, (0, 0)), values)) for name, values in after.items()}
    wall = (sampler.samples[-1]["mono_ns"] - sampler.samples[0]["mono_ns"]) / 1e9 * len(cpus)
    vaprod = (sampler.samples[-1]["vaprod_ns"] - sampler.samples[0]["vaprod_ns"]) / 1e9
    hits, returns = {}, {}
    for record in of_type(records, "process"):
        hits[record["pid"]], returns[record["pid"]] = record["hits"], record["returns"]
    untracked = sum(record["totals"]["untracked_hits"] for record in of_type(records, "bye"))
    return {**model, "hits": sum(hits.values()), "returns": sum(returns.values()), "untracked": untracked,
            "runs": sum(spent.get(name, (0, 0))[0] for name in PROBES),
            "switches": sum(spent.get(name, (0, 0))[0] for name in SWITCHES),
            "switches_pct": 100 * sum(spent.get(name, (0, 0))[1] for name in SWITCHES) / 1e9 / wall,
            "probes_bpf_pct": 100 * sum(spent.get(name, (0, 0))[1] for name in PROBES) / 1e9 / wall,
            "vaprod_pct": 100 * vaprod / wall, "others": sampler.others(),
            "programs": {name: list(values) for name, values in spent.items() if values[0]}}


def hits_agree(found):
    """Whether the hits that the model counts are the runs of the BPF programs, at entries and at returns."""
    hits = found["hits"] + found["returns"] + found["untracked"]
    return found["runs"] == 0 if not hits else abs(found["runs"] - hits) <= hits * HITS_TOLERANCE


def parts_unit(program, options):
    def measure(directory, progress):
        found = watch_parts(directory, program, options.repeat(20, 8), options)
        rows = [model_row(found),
                t.row("hits by the model, runs of BPF programs by the kernel",
                      f"{found['hits']} at entries, {found['returns']} at returns, {found['untracked']} before the process was tracked, "
                      f"{found['runs']}", "equal within 2 %",
                      hits_agree(found)),
                t.row("context switches' programs; vaprod on the ranks' CPUs, at most", f"{found['switches_pct']:.3f} %; {found['vaprod_pct']:.2f} %",
                      "in the model (information)", True)]
        return {"rows": rows, "found": found, "brief": f"{found['mean']:.2f} %, worst 5 s {found['worst']:.2f} %"}
    return Unit(program.name, "model", 30, measure)


def run_of(jobs, groups, directory, program, name, work):
    """(the job, its user and system seconds)"""
    job = program.start(jobs, groups, directory, directory, name=name, work=work)
    usage = wait4(job, LIMIT)
    if job.process.returncode:
        raise RuntimeError(f"{program.name} failed with {job.process.returncode}: {job.err().strip()[-300:]}")
    return job, usage


def said_of(records, first_ns):
    """What vaprod says that it cost processes that were started from then on, UTC in ns, in percent."""
    watched = {r["job"]["identity"] for r in of_type(records, "process") if t.parse_time(r["start_time"]) >= first_ns}
    pairs = [(w["overhead_pct"]["mean"], s) for w, s in weights(records)
             if w["job"] in watched and w["overhead_pct"]["mean"] is not None]
    wall = sum(s for _, s in pairs)
    return sum(p * s for p, s in pairs) / wall if wall else 0.0


def cpu_of_run(jobs, groups, directory, program, name, options=None):
    """(CPU seconds of the program's work, what vaprod says it cost or None). vaprod knows the program's image."""
    daemon = ndjson = said = None
    os.makedirs(directory, exist_ok=True)
    if options is not None:
        daemon, ndjson = start_vaprod(jobs, groups, name + ".vaprod", program.pattern(), *options)
        run_of(jobs, groups, directory, program, name + ".first", max(1, int(program.work * FIRST_SHARE)))
    first_ns = time.time_ns()
    job, usage = run_of(jobs, groups, directory, program, name, program.work)
    cost = program.cost(job, usage)
    if daemon:
        end_vaprod(jobs, daemon)
        said = said_of(t.load_records(ndjson), first_ns - START_TOLERANCE_NS)
    return cost, said


def wait4(job, limit):
    """User and system seconds of a job and of what it has waited for."""
    def look():
        pid, status, usage = os.wait4(job.pid, os.WNOHANG)
        if not pid:
            return None
        job.process.returncode = os.waitstatus_to_exitcode(status)
        return (usage.ru_utime + usage.ru_stime,)
    found = until(look, limit, 0.02)
    if not found:
        raise TimeLimit(f"{job.name} did not end within {limit} s")
    return found[0]


def judge_rounds(rounds):
    """
    rounds: [{bare, watched, control, said, control_said}]. {shift, lower, upper of watched and control in percent, refuted,
    sensitive, applicable}. Where the reported cost of the control is below what it must show, a larger budget changes
    nothing for the program: then the interval itself must be so narrow that such a cost would have been seen.
    """
    def percents(name):
        return [100 * (one[name] / one["bare"] - 1) for one in rounds]
    found = {"turns": len(rounds)}
    for name in ("watched", "control"):
        found[name] = [round(value, 3) for value in shift(percents(name))]
    found["said"] = round(statistics.fmean(one["said"] for one in rounds), 3)
    found["control_said"] = round(statistics.fmean(one["control_said"] for one in rounds), 3)
    found["applicable"] = found["control_said"] > CONTROL_LEAST
    found["sensitive"] = (found["control"][0] > CONTROL_LEAST if found["applicable"] else
                          found["watched"][2] - found["watched"][1] <= 2 * (CONTROL_LEAST - MEAN_MOST))
    found["refuted"] = found["watched"][1] > MEAN_MOST
    return found


def in_words(interval):
    middle, lower, upper = interval
    return f"{middle:+.2f} % ({lower:+.2f} .. {upper:+.2f})"


def rounds_unit(program, options):
    def measure(directory, progress):
        rounds, least = [], options.repeat(ROUNDS, 3)
        order = (("bare", None), ("watched", ()), ("control", CONTROL))
        with shielded(options) as groups, Jobs(directory) as jobs:
            if hasattr(program, "prepare"):
                program.prepare()
            cpu_of_run(jobs, groups, os.path.join(directory, "warm"), program, "warm")
            while True:
                one = {}
                for name, how in order if len(rounds) % 2 == 0 else order[::-1]:
                    where = os.path.join(directory, f"{len(rounds) + 1}{name}")
                    one[name], said = cpu_of_run(jobs, groups, where, program, f"{len(rounds) + 1}{name}", how)
                    if said is not None:
                        one["said" if name == "watched" else "control_said"] = said
                rounds.append(one)
                if len(rounds) < least:
                    continue
                found = judge_rounds(rounds)
                if found["sensitive"] or len(rounds) >= options.repeat(ROUNDS_MOST, least) or progress.over(30):
                    break
                progress.say(f"  {program.name}: {len(rounds)} rounds are too noisy, one more")
        wanted = f"over {CONTROL_LEAST:g} %" if found["applicable"] else \
            f"said to cost too little to show: interval of the rounds at most {2 * (CONTROL_LEAST - MEAN_MOST):g} points wide"
        rows = [t.row(f"CPU time of {len(rounds)} rounds, watched against bare",
                      f"{in_words(found['watched'])}, said {found['said']:.2f} %",
                      f"lower bound at most {MEAN_MOST:g} %", not found["refuted"]),
                t.row("the control, budget 10 against bare", f"{in_words(found['control'])}, said {found['control_said']:.2f} %", wanted,
                      found["sensitive"])]
        return {"rows": rows, "found": found, "values": rounds, "noisy": not found["sensitive"],
                "brief": in_words(found["watched"])}
    return Unit(program.name, "turns", 210, measure)


def units(options):
    return [make(program, options) for program in PROGRAMS.values() for make in (parts_unit, rounds_unit)]


def table(joined, left):
    return rows_of_units(joined, left)
