# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part coverage: which share of a program's time is evaluated or attributed, in runs of 30, 5 and 1 s, and beside a hog
that takes the CPU in bursts. A run counts as quiet where other work took less than 1 % of its time by the kernel's
account; one that was not quiet is repeated at most twice, and the quietest counts, marked.
"""
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_floor  # noqa: E402
import programs_score as score  # noqa: E402
from programs_overhead import first_attach_ms, model_of  # noqa: E402
from programs_common import (Jobs, Unit, end_vaprod, in_group, of_type, rows_of_units, shielded, start_vaprod, t, weights)  # noqa: E402
from programs_kernel import QUIET, Sampler, is_quiet  # noqa: E402
from programs_list import CPUS, PROGRAMS, RANDOM_WORK, ranks_of, truths_of  # noqa: E402
from jobs import path  # noqa: E402

TRIES = 3
LONG, MIDDLE, SHORT = 30, 5, 1
APART = 0.5  # s; processes of one run start within a shorter time
HOG_SHARE, HOG_POINTS = 0.4, 0.10
WATCHED_LEAST = 0.6
MEAN_MOST = 1.0  # percent of a run's time that vaprod may say it cost
ALLOWED = ("few_fragments", "not_seen", "rare", "no_return")
OTHER_REASONS_MOST = 0.02  # of the time, where coverage is below its bar
UNSEEN = ("not_seen", "governed")  # reasons of time in which vaprod had no fragment at all
# programs with bursts of calls beyond the budget
BURSTS = ("hpcc",)
BURST_LEAST = 5  # % of a process's time that calls would cost: no budget of 1 % shows much of such seconds
RANDOM_MOST = 0.10


def coverage_of(records):
    """{total, computation, communication, io, wall_s, reasons: {reason: share}, by_state: [(share, reason, state)]}"""
    pairs = weights(records)
    wall = sum(seconds for _, seconds in pairs)
    if not wall:
        raise RuntimeError("vaprod wrote no window")
    found = {name: sum(w["coverage"][name] * s for w, s in pairs) / wall for name in ("total", "computation", "communication", "io")}
    reasons, states = {}, {}
    for window, seconds in pairs:
        for one in window.get("uncovered", []):
            share = one["time_pct_of_job"] / 100 * seconds / wall
            reasons[one["reason"]] = reasons.get(one["reason"], 0) + share
            key = (one["reason"], one.get("class") or "", one.get("state") or "not known")
            states[key] = states.get(key, 0) + share
    worst = sorted(((share, *key) for key, share in states.items()), key=lambda item: -item[0])[:5]
    return {**{name: round(value, 4) for name, value in found.items()}, "wall_s": round(wall, 2),
            "reasons": {k: round(v, 4) for k, v in sorted(reasons.items(), key=lambda item: -item[1])},
            "states": [[round(item[0], 4), *item[1:]] for item in worst]}


def said_overhead(records):
    """Percent of its time that vaprod says it cost the job, or None."""
    pairs = [(w["overhead_pct"]["mean"], s) for w, s in weights(records) if w["overhead_pct"]["mean"] is not None]
    wall = sum(s for _, s in pairs)
    return sum(p * s for p, s in pairs) / wall if wall else None


def judge(found, program):
    """
    Whether coverage is sufficient: by its total, or because the rest has reasons that cannot be avoided. Of a program that
    calls too often for its probes to stay open the kernel's account of its threads is enough, where vaprod says so.
    """
    allowed = (*ALLOWED, "governed") if program.hot and {"governed", "thinned"} & set(found["warnings"]) else ALLOWED
    others = sum(share for reason, share in found["reasons"].items() if reason not in allowed)
    return found["total"] >= program.wanted or (others <= OTHER_REASONS_MOST and found["accounted"] >= program.wanted)


def in_words(found):
    reasons = ", ".join(f"{reason} {share:.0%}" for reason, share in found["reasons"].items() if share >= 0.005)
    return (f"{found['total']:.1%} (computation {found['computation']:.0%}, communication {found['communication']:.0%}, "
            f"io {found['io']:.0%}); {reasons or 'nothing left'}")


def one_run(directory, program, seconds, options, hog=False):
    """One run under a vaprod that was started before: what is covered, and the share that other work took."""
    with shielded(options) as groups, Jobs(directory) as jobs:
        if hasattr(program, "prepare"):
            program.prepare()
        daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern())
        job = program.start(jobs, groups, directory, directory, seconds=seconds)
        pids = ranks_of(job, program)
        log = os.path.join(directory, "log") if program.log == "thermo" else None
        sampler = Sampler(pids, list(range(min(CPUS, len(pids) * program.threads))), daemon.pid, log)
        sampler.start()
        if hog:
            log = os.path.join(directory, "hog.json")
            hog = jobs.start(in_group(groups, "job", [path("tools", "hog"), "--cpu", 0, "--share", HOG_SHARE, "--start-after", 3,
                                                      "--seconds", seconds, "--log", log]), "hog")
        if program.ends:
            code = jobs.wait(job, seconds * 3 + 60)
            if code:
                raise RuntimeError(f"{program.name} failed with {code}: {job.err().strip()[-300:]}")
            program.check(job)
        else:
            time.sleep(seconds)
            jobs.stop(job)
        sampler.finish()
        if hog:
            jobs.interrupt(hog)
        end_vaprod(jobs, daemon)
    records = t.load_records(ndjson)
    alarms = score.score_run(records, [], {} if hog else truths_of(program, directory, sampler), sampler.delay_s)["alarms"]
    cost, times = model_of(records), times_of(records)
    accounted = min((1 - min(1, (lived if after is None else after) / lived) for _, lived, after in times), default=0)
    return {**coverage_of(records), "accounted": round(accounted, 3), "overhead_pct": cost["mean"], "worst_pct": cost["worst"],
            "with_attach_pct": cost["all_mean"],
            "others": round(sampler.others(), 4), "alarms": len(alarms),
            "unconfirmed": [f"{a['class']}, ranks {a['ranks']}, {a['lost_s']:.2f} s lost: {a['text']}" for a in alarms if not a["ok"]],
            "warnings": sorted({w["code"] for w in of_type(records, "warning")})}


def quietest(directory, program, seconds, options, progress):
    """The first of at most three runs that is quiet, else the quietest."""
    best = None
    for number in range(1, options.repeat(TRIES, 1) + 1):
        found = one_run(os.path.join(directory, str(number)), program, seconds, options)
        found["run"] = number
        if best is None or found["others"] < best["others"]:
            best = found
        if is_quiet(found["others"]) or progress.over(seconds + 10):
            break
        progress.say(f"  {program.name}: others took {found['others']:.1%} of its time, not quiet")
    return best


def mark(found):
    return "" if is_quiet(found["others"]) else f" [not quiet: others took {found['others']:.1%}]"


def long_unit(program, options):
    def measure(directory, progress):
        found = quietest(directory, program, options.repeat(LONG, 12), options, progress)
        wanted = f"at least {program.wanted:.0%}, or the rest only for {', '.join(ALLOWED)}{', or accounted, and said so' if program.hot else ''}"
        rows = [t.row("coverage in 30 s", f"{in_words(found)}; accounted {found['accounted']:.0%}{mark(found)}", wanted, judge(found, program)),
                t.row("overhead by the model in 30 s; with the image's first attachment",
                      f"{found['overhead_pct']:.2f} %; {found['with_attach_pct']:.2f} %", f"at most {MEAN_MOST:g} %",
                      found["overhead_pct"] <= MEAN_MOST)]
        wrong = found["unconfirmed"]
        rows.append(t.row("alarms that neither schedstat nor the program's log confirms",
                          f"{len(wrong)} of {found['alarms']}{': ' + wrong[0] if wrong else ''}", 0, not wrong))
        return {"rows": rows, "found": found, "noisy": not is_quiet(found["others"]), "brief": f"{found['total']:.1%} covered"}
    return Unit(program.name, "30s", 45, measure)


def hog_unit(program, options):
    def measure(directory, progress):
        found = one_run(directory, program, options.repeat(LONG, 12), options, hog=True)
        return {"rows": [], "found": found, "brief": f"{found['total']:.1%} covered beside a hog in bursts"}
    return Unit(program.name, "30s_hog", 45, measure)


def times_of(records):
    """[(start in ns, seconds that a process lived, seconds until it was attached)], in the order of their starts."""
    processes = {}
    for record in of_type(records, "process"):
        processes.setdefault(record["pid"], []).append(record)
    found = []
    for several in processes.values():
        start = t.parse_time(several[0]["start_time"])
        attached = next((t.parse_time(r["time"]) for r in several if r["state"] == "attached"), None)
        ended = next((t.parse_time(r["time"]) for r in several if r["state"] not in ("attached",)), None)
        if ended is not None:
            found.append((start, (ended - start) / 1e9, None if attached is None else (attached - start) / 1e9))
    return sorted(found)


def runs_of(times):
    """The same in groups of processes that were started together: [[(seconds, seconds)]], in the order of time."""
    runs, last = [], None
    for start, lived, after in times:
        if last is None or start > last + APART * 10 ** 9:
            runs.append([])
        runs[-1].append((lived, after))
        last = start
    return runs


def short_unit(program, options):
    """Two runs of 5 s and one of 1 s under one vaprod, which knows the program from the second run on."""
    def measure(directory, progress):
        with shielded(options) as groups, Jobs(directory) as jobs:
            if hasattr(program, "prepare"):
                program.prepare()
            daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern())
            for number, seconds in enumerate((MIDDLE, MIDDLE, SHORT), 1):
                where = os.path.join(directory, f"run{number}")
                os.makedirs(where)
                job = program.start(jobs, groups, where, where, name=f"run{number}", seconds=seconds)
                if program.ends:
                    code = jobs.wait(job, seconds * 3 + 60)
                    if code:
                        raise RuntimeError(f"{program.name} failed with {code}: {job.err().strip()[-300:]}")
                else:
                    ranks_of(job, program)
                    time.sleep(seconds)
                    jobs.stop(job)
            end_vaprod(jobs, daemon)
        return short_entry(t.load_records(ndjson), program)
    return Unit(program.name, "short", 25, measure)


def burst_in_first_run(records, times):
    """
    The most expensive calls of the first run, by vaprod's warnings, where their cost is so far above the budget that they are
    judged as those of programs that are hot all the time: "197480 calls/s would cost 17 %", or None.
    """
    end = max(start + lived * 1e9 for start, lived, _ in times if start <= times[0][0] + APART * 1e9)
    bursts = [match for warning in of_type(records, "warning") if t.parse_time(warning["time"]) <= end
              for match in re.findall(r"(\d+) calls/s cost ([\d.]+) % of its time", warning["text"])]
    rate, percent = max(bursts, key=lambda burst: float(burst[1]), default=(0, 0))
    return f"{rate} calls/s would cost {percent} %" if float(percent) >= BURST_LEAST else None


def short_entry(records, program):
    times = times_of(records)
    short = sum(w["code"] == "too_short" for w in of_type(records, "warning"))
    if len(times) + short < 3 * program.ranks:
        raise RuntimeError(f"{len(times)} processes were reported as ended and {short} as too short, not {3 * program.ranks}")
    jobs, rows, found = [], [], {}
    for window, _ in weights(records):
        if window["job"] not in jobs:
            jobs.append(window["job"])
    for what, job, mine in zip(("first of 5 s", "second of 5 s", "of 1 s"), jobs, runs_of(times)):
        covered = coverage_of([w for w in of_type(records, "window") if w["job"] == job])
        lived = max(lived for lived, _ in mine)
        late = max((lived if after is None else after) for lived, after in mine)
        accounted = 1 - min(1, late / lived)  # the kernel's account needs no fragment: it runs from the attachment on
        seen = accounted * (1 - sum(covered["reasons"].get(reason, 0) for reason in UNSEEN))  # coverage is of watched time
        found[what] = {**covered, "seen": round(seen, 3), "accounted": round(accounted, 3), "attached_after_s": round(late, 3)}
        wanted, good = "-", True
        if what == "first of 5 s":
            burst = burst_in_first_run(records, times) if program.name in BURSTS else None
            wanted = f"{'accounted' if program.hot or burst else 'seen'} at least {WATCHED_LEAST:.0%}{f': {burst}' if burst else ''}"
            good = (accounted if program.hot or burst else seen) >= WATCHED_LEAST
        elif what == "second of 5 s":
            wanted, good = "attached within its first second", late <= 1
        rows.append(t.row(f"run {what}: seen in fragments, accounted, attached after, coverage",
                          f"{seen:.0%}, {accounted:.0%}, {late:.2f} s, {in_words(covered)}", wanted, good))
        # of the whole run: late attachment must not raise the cost per time, and vaprod's figure is of the watched one
        said = said_overhead([w for w in of_type(records, "window") if w["job"] == job])
        watched = sum(max(0, one - (one if after is None else after)) for one, after in mine) / sum(one for one, _ in mine)
        with_attach = None if said is None else said * watched
        # an image's first attachment on the node may cost some time once
        allowed = first_attach_ms(records) / 10 / lived / program.ranks if what == "first of 5 s" else 0
        cost = found[what]["overhead_pct"] = None if said is None else max(0.0, with_attach - allowed)
        rows.append(t.row(f"run {what}: overhead by the model; with the image's first attachment",
                          "unknown" if cost is None else f"{cost:.2f} %; {with_attach:.2f} %", f"at most {MEAN_MOST:g} %",
                          cost is not None and cost <= MEAN_MOST))
    return {"rows": rows, "found": found, "brief": f"attached after {found['first of 5 s']['attached_after_s']:.2f} s"}


def random_unit(options):
    def measure(directory, progress):
        found = one_run(directory, RANDOM_WORK, options.repeat(LONG, 12), options)
        rows = [t.row("coverage of random work", f"{found['total']:.1%}", f"under {RANDOM_MOST:.0%}", found["total"] < RANDOM_MOST),
                t.row("alarms of random work", f"{found['alarms']}{mark(found)}", "0, or confirmed by schedstat",
                      not found["alarms"] or not found["unconfirmed"])]
        return {"rows": rows, "found": found, "brief": f"{found['total']:.1%} covered, {found['alarms']} alarms"}
    return Unit(RANDOM_WORK.name, "30s", 40, measure)


def units(options):
    found = []
    for program in PROGRAMS.values():
        found += [long_unit(program, options), hog_unit(program, options), short_unit(program, options)]
        if program.name in programs_floor.MEASURED:
            found.append(programs_floor.unit(program, options, coverage_of, in_words))
    return found + [random_unit(options)]


def table(joined, left):
    """Rows of all units, and the comparison of the runs with and without the hog."""
    rows = rows_of_units(joined, left)
    for program, entries in joined.items():
        floor, covered = entries.get("floor", {}).get("found"), entries.get("30s", {}).get("found")
        # of a program that would not be covered without a budget either the floor says nothing
        if floor and covered and floor["share"] < PROGRAMS[program].wanted <= floor["covered"]:
            ratio = covered["total"] / floor["share"]
            rows.append(t.row(f"{program}: coverage of what the machine's floor allows", f"{ratio:.0%}", f"at least {PROGRAMS[program].wanted:.0%}",
                              ratio >= PROGRAMS[program].wanted))
        quiet, beside = (entries.get(name, {}).get("found") for name in ("30s", "30s_hog"))
        if quiet and beside:
            less = quiet["total"] - beside["total"]
            # threads that are not seen wait for longer in regions that cannot be probed: the kernel accounts for them
            known = PROGRAMS[program].hot and judge(beside, PROGRAMS[program])
            rows.append(t.row(f"{program}: coverage beside a hog in bursts",
                              f"{in_words(beside)}; accounted {beside['accounted']:.0%}: {100 * less:+.1f} points less",
                              f"at most {100 * HOG_POINTS:.0f} points less{', or accounted, and said so' if PROGRAMS[program].hot else ''}",
                              less <= HOG_POINTS or known))
    runs = [entries["30s"]["found"]["others"] for entries in joined.values() if "found" in entries.get("30s", {})]
    rows.append(t.row("runs of 30 s that were quiet", f"{sum(map(is_quiet, runs))} of {len(runs)}", f"others under {QUIET:.0%} (information)",
                      True))
    return rows
