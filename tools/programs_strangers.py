# SPDX-License-Identifier: GPL-2.0-or-later
"""
Check strangers: programs that vapro's authors did not write, and three that are built as such programs are
(strangers_list.py). Each has the same results as without vaprod; a quiet run, whose coverage is printed with the reason of each
uncovered 5 %; a run for the overhead by vaprod's model; and three runs with a hog, a stop, a quota and, where it applies, a late
rank at random times. The program of wrappers also runs beside a foreign load of 20 %, and through a stop of 1 s.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_causes as causes  # noqa: E402
import programs_coverage as coverage  # noqa: E402
import programs_inject as inject  # noqa: E402
import programs_overhead as overhead  # noqa: E402
import programs_score as score  # noqa: E402
from jobs import ROOT, Jobs, path  # noqa: E402
from programs_common import Unit, end_vaprod, of_type, rows_of_units, shielded, start_vaprod, t  # noqa: E402
from programs_kernel import is_quiet  # noqa: E402
from strangers_list import PROGRAMS  # noqa: E402

WRAPPERS = "sweeps"
LOAD_SHARE, COVERED_LEAST = 0.2, 0.5
REASON_LEAST = 0.05   # of the time: what is uncovered beyond it has a reason that is printed
FOUND_LEAST = 0.95
# beside other work callers are distinguished after 20 s of spread time and a trial
STOP = {"kind": "stop", "onset_s": 90.0, "length_s": 1.0, "cpu": 0}
RUN_LIMIT = 180


def install():
    """The packages, whose names deps.sh alone has."""
    done = subprocess.run([os.path.join(ROOT, "tools", "deps.sh"), "strangers"], capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        raise RuntimeError("deps.sh strangers: " + done.stderr.strip()[-300:])


def result_of(jobs, groups, directory, program, name):
    """The result of a fixed amount of work."""
    os.makedirs(directory)
    job = program.start(jobs, groups, directory, directory, name=name, work=program.work)
    code = jobs.wait(job, RUN_LIMIT)
    if code:
        raise RuntimeError(f"{program.name} failed with {code}: {(job.err() or job.out()).strip()[-300:]}")
    return program.result(directory, job.out())


def results_unit(program, options):
    def measure(directory, progress):
        with shielded(options) as groups, Jobs(directory) as jobs:
            if hasattr(program, "prepare"):
                program.prepare()
            bare = result_of(jobs, groups, os.path.join(directory, "bare"), program, "bare")
            daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern())
            watched = result_of(jobs, groups, os.path.join(directory, "watched"), program, "watched")
            end_vaprod(jobs, daemon)
        attached = {r["pid"] for r in of_type(t.load_records(ndjson), "process") if r["state"] == "attached"}
        same = bool(bare) and bare == watched and len(attached) >= program.ranks
        different = next((f"{b} for {a}" for a, b in zip(bare, watched) if a != b), f"{len(bare)} and {len(watched)} values")
        return {"rows": [t.row("results with and without vaprod; processes attached",
                               f"{len(bare)} values {'equal' if bare == watched else 'differ: ' + different[:100]}; {len(attached)}",
                               f"equal; at least {program.ranks}", same)],
                "brief": "equal" if same else different}
    return Unit(program.name, "results", 60, measure)


def explained(found):
    """Whether each 5 % of the time is covered or has a reason that vaprod gives."""
    return found["total"] + sum(found["reasons"].values()) >= 1 - REASON_LEAST


def reasons_of(found):
    big = [f"{share:.0%} {reason} ({state[:60]})" for share, reason, _, state in found["states"] if share >= REASON_LEAST]
    return "; ".join(big) or "no state has 5 %"


def quiet_unit(program, options):
    def measure(directory, progress):
        found = coverage.quietest(directory, program, options.repeat(coverage.LONG, 12), options, progress)
        wrong = found["unconfirmed"]
        rows = [t.row("coverage in 30 s", f"{coverage.in_words(found)}; {reasons_of(found)}{coverage.mark(found)}",
                      f"each 5 % covered or with its reason{f', {program.wanted:.0%} covered' if program.wanted else ''}",
                      explained(found) and (found["total"] >= program.wanted or not is_quiet(found["others"]))),
                t.row("alarms that neither schedstat nor the program's log confirms",
                      f"{len(wrong)} of {found['alarms']}{': ' + wrong[0] if wrong else ''}", 0, not wrong)]
        return {"rows": rows, "found": found, "noisy": not is_quiet(found["others"]), "brief": f"{found['total']:.1%} covered"}
    return Unit(program.name, "30s", 45, measure)


def is_named(entries, one):
    """Whether a cause of an alarm has the rank, kind, culprit and times of an injection, whatever else its region lost."""
    return any(e["cause"] == causes.CAUSES.get(one["kind"]) and e["ranks"] == [one["rank"]] and e["alarm"]
               and (one["kind"] != "hog" or e["culprit"] == "hog")
               and all(abs(e[which] - one[which]) / 1e6 <= score.BORDER_MS for which in ("begin", "end")) for e in entries)


def judge_run(records, injections, truths, delay_s):
    """As for other programs; in a region that other work disturbs, too, the cause counts."""
    result = score.score_run(records, injections, truths, delay_s)
    entries = causes.entries_of(records)
    for one in result["injections"]:
        if not (one["found"] and one["borders"]) and is_named(entries, one):
            one.update(found=True, borders=True, loss=None, why=None)
    return result


class Load(causes.Load):
    share = LOAD_SHARE


def judge_hops(records, injections, truths, delay_s):
    """Coverage of a run, and which hops were given up from a stop on."""
    offset, found = t.utc_offset(records), coverage.coverage_of(records)
    codes = {code: [t.parse_time(w["time"]) - offset for w in of_type(records, "warning") if w["code"] == code] for code in ("hopped", "hopped_back")}
    begin = injections[0]["begin"]
    before = sum(at < begin for at in codes["hopped"]) - sum(at < begin for at in codes["hopped_back"])
    return {"injections": [], "alarms": [], "covered": found, "hops_before": before, "given_up": sum(at >= begin for at in codes["hopped_back"])}


def noise_unit(program, options):
    """The program of wrappers beside a foreign load; in its midst a stop of a second."""
    def measure(directory, progress):
        result = inject.one_run(os.path.join(directory, "1"), program, [STOP], options, load=Load(), judge=judge_hops)
        found = result["covered"]
        rows = [t.row(f"coverage beside a foreign load of {LOAD_SHARE:.0%}", coverage.in_words(found), f"at least {COVERED_LEAST:.0%}",
                      found["total"] >= COVERED_LEAST),
                t.row("hops in force before a stop of 1 s, given up from then on", f"{result['hops_before']}, {result['given_up']}",
                      "at least 1, none", result["hops_before"] >= 1 and not result["given_up"])]
        return {"rows": rows, "found": found, "noise": True, "brief": f"{found['total']:.1%} covered, {result['given_up']} hops given up"}
    return Unit(program.name, "noise", 120, measure)


def units(options):
    install()
    found = []
    for program in PROGRAMS.values():
        found += [results_unit(program, options), quiet_unit(program, options), overhead.parts_unit(program, options)]
        found += [inject.unit_of(program, f"seed{options.seed}_run{run}", run, program.kinds, options, judge=judge_run)
                  for run in range(1, options.repeat(inject.RUNS, 1) + 1)]
        if program.name == WRAPPERS:
            found.append(noise_unit(program, options))
    return found


def table(joined, left):
    rows, all_of, alarms = rows_of_units(joined, left), [], []
    for program, entries in joined.items():
        results = [entry["result"] for entry in entries.values() if "result" in entry]
        mine = [one for result in results for one in result["injections"]]
        alarms += [(program, alarm) for result in results for alarm in result["alarms"]]
        all_of += mine
        kinds = [f"{kind} {sum(o['found'] for o in mine if o['kind'] == kind)}/{sum(o['kind'] == kind for o in mine)}" for kind in inject.LENGTHS
                 if any(o["kind"] == kind for o in mine)]
        if kinds:
            rows.append(t.row(f"{program}: found by kind", ", ".join(kinds), "all (information)", True))
        rows += [t.row(f"{program}: missed {inject.in_words(one)}", one["why"][:300], "found (information)", True) for one in mine if not one["found"]]
    right = [one for one in all_of if one["found"] and one["borders"]]
    wrong = [(program, alarm) for program, alarm in alarms if not alarm["ok"]]
    rows.append(t.row("injections with rank, cause and times", score.share(len(right), len(all_of)), f"{FOUND_LEAST:.0%}",
                      bool(all_of) and len(right) >= FOUND_LEAST * len(all_of)))
    rows.append(t.row("other alarms that neither schedstat nor a log confirms", inject.share_of(wrong, alarms), 0, not wrong))
    return rows + [t.row(f"{program}: alarm {alarm['id']}, ranks {alarm['ranks']}, {alarm['lost_s']:.2f} s lost", alarm["text"],
                         "half of it confirmed", False) for program, alarm in wrong[:20]]
