# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part causes: a hog, a stop and a quota at random times, one of each in a run, in six programs that the other parts do not
have, while a foreign load of 30 % runs on one CPU all the time. Each disturbance must be an entry among the causes of a region,
with its rank, cause, begin and end, and seconds, though the foreign load lies in the same region. What vaprod says beside them
is confirmed by schedstat of the same run, and tools/contradictions.py must find nothing in the records.
"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contradictions  # noqa: E402
import programs_inject as inject  # noqa: E402
import programs_score as score  # noqa: E402
from jobs import path  # noqa: E402
from programs_common import Unit, rows_of_units, t  # noqa: E402
from programs_kernel import Sampler  # noqa: E402
from programs_list import CPUS, Installed, Program  # noqa: E402

RUNS, KINDS = 3, ("hog", "stop", "quota")
LOAD_SHARE, LOAD_CPU = 0.3, 0
LOSS_TOLERANCE = 0.15
COMPUTING_LEAST = 0.6  # of the time of a rank that waits for the one beside the load: what it loses in calls may be none
FOUND_LEAST, OF = 51, 54
CAUSES = {"hog": "preempted", "stop": "stopped", "quota": "throttled"}
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests/xdlu"


class Rounds(Program):
    """Runs until it is ended."""
    kinds, log, ends, option = KINDS, None, False, "--rounds"

    def words(self, directory, files, seconds=None, work=None, first=0):
        return [self.file, self.option, 1000000]


class Scalapack(Installed):
    """LU factorisations of one size, one after the other: Fortran on BLACS, of Debian's scalapack-mpi-test."""
    source, kinds, log, ends, env = SCALAPACK, KINDS, None, False, {"OPENBLAS_NUM_THREADS": "1"}
    SIZE, BLOCK, TIMES, GRIDS = 700, 32, 20, 4  # at most 20 of each, and sizes of a few MB

    def words(self, directory, files, seconds=None, work=None, first=0):
        self.prepare()
        sizes, blocks = (" ".join([str(size)] * self.TIMES) for size in (self.SIZE, self.BLOCK))
        rows, columns = (" ".join([str(ranks)] * self.GRIDS) for ranks in (1, 2))
        with open(os.path.join(directory, "LU.dat"), "w", encoding="utf-8") as file:
            file.write(f"'LU'\n'MPI'\n'LU.out'\n6\n{self.TIMES}\n{sizes}\n{sizes}\n{self.TIMES}\n{blocks}\n1\n1\n1\n1\n{self.GRIDS}\n{rows}\n{columns}\n1.0\nF\n")
        return [self.file]


class Iterate(Rounds):
    option = "--iterations"


PROGRAMS = (Rounds("cg", 0), Rounds("ft", 0), Rounds("pagerank", 0), Rounds("stencil", 0), Iterate("iterate", 0), Scalapack("scalapack_lu", 0))


class Load:
    """The foreign load, and how long it ran."""
    share = LOAD_SHARE

    def __init__(self):
        self.file, self.job, self.sampler = path("accept", "programs", "bin", "foreign"), None, None

    def start(self, jobs, seconds):
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        shutil.copy2(path("tools", "hog"), self.file)
        self.job = jobs.start([self.file, "--cpu", LOAD_CPU, "--seconds", seconds + 60, "--share", self.share], "foreign")
        self.sampler = Sampler([self.job.pid], [LOAD_CPU])
        self.sampler.start()

    def finish(self, jobs):
        self.sampler.finish()
        jobs.stop(self.job)

    def ran_s(self, begin, end):
        first, last = self.sampler.between(begin), self.sampler.between(end)
        return sum(last[tid][0] - first.get(tid, (0, 0))[0] for tid in last) / 1e9


def entries_of(records):
    """The causes of the regions, by the last revision of each variance, with times in CLOCK_MONOTONIC ns."""
    offset, found = t.utc_offset(records), []
    for variance in t.variances(records).values():
        for entry in variance.get("causes") or []:
            ranks = str(entry["ranks"])
            found.append({"cause": entry["cause"], "culprit": entry["culprit"], "ranks": t.parse_ranks(ranks) if ranks[:1].isdigit() else [],
                          "begin": t.parse_time(entry["begin"]) - offset, "end": t.parse_time(entry["end"]) - offset,
                          "lost_s": entry["lost_seconds"], "variance": variance["id"], "alarm": bool(variance.get("alarm"))})
    return found


def in_words(entry, one):
    return (f"variance {entry['variance']}: {entry['cause']} ({entry['culprit']}), ranks {entry['ranks']}, "
            f"{(entry['begin'] - one['begin']) / 1e9:+.2f} s, {(entry['end'] - one['end']) / 1e9:+.2f} s, lost {entry['lost_s']:.2f} s")


def judge(entries, one, load_s):
    """
    {found, why}: whether an entry has an injection's rank, cause, begin, end and seconds. The foreign load that shares the
    CPU with a hog may be an entry of its own or not: load_s, how long it ran in that time.
    """
    if one["kind"] == "hog":
        most = one["kernel_s"]
        truth = [max(0, most - load_s) if LOAD_CPU == one["cpu"] else most, most]
    else:
        truth = one["lost_s"] if isinstance(one["lost_s"], list) else [one["lost_s"]] * 2
    if one["kind"] in ("hog", "quota") and one["cpu"] != LOAD_CPU:
        truth = [COMPUTING_LEAST * truth[0], truth[1]]
    near = [e for e in entries if e["begin"] < one["end"] and e["end"] > one["begin"]]
    best = [e for e in near if e["cause"] == CAUSES[one["kind"]] and e["ranks"] == [one["rank"]] and e["alarm"]
            and (one["kind"] != "hog" or e["culprit"] == "hog")
            and abs(e["begin"] - one["begin"]) / 1e6 <= score.BORDER_MS and abs(e["end"] - one["end"]) / 1e6 <= score.BORDER_MS
            and (1 - LOSS_TOLERANCE) * truth[0] <= e["lost_s"] <= (1 + LOSS_TOLERANCE) * truth[1]]
    why = "; ".join(in_words(e, one) for e in near) or "no entry meets its time"
    return {"found": bool(best), "truth_s": [round(s, 3) for s in truth], "why": None if best else why}


def score_of(load):
    def score_run(records, injections, truths, delay_s):
        entries = entries_of(records)
        scored = [{**one, **judge(entries, one, load.ran_s(one["begin"], one["end"]))} for one in injections]
        alarms = []
        for variance in score.variances_of(records):
            if variance["alarm"]:
                ok, text = score.confirm(variance, truths, delay_s)
                stopped = sum(max(0, min(variance["end"], one["end"]) - max(variance["begin"], one["begin"])) / 1e9
                              for one in injections if one["kind"] == "stop" and one["rank"] in variance["ranks"])
                throttled = sum(one["lost_s"] for one in injections if one["kind"] == "quota" and one["rank"] in variance["ranks"]
                                and variance["begin"] < one["end"] and variance["end"] > one["begin"])
                ok = ok or delay_s(variance) + stopped + throttled >= 0.5 * variance["lost_s"]
                alarms.append({"id": variance["id"], "ranks": variance["ranks"], "class": variance["class"], "lost_s": variance["lost_s"],
                               "ok": ok, "text": text})
        return {"injections": scored, "alarms": alarms, "contradictions": [sentence for _, sentence in contradictions.contradictions(records)]}
    return score_run


def unit_of(program, run, options):
    injections = inject.plan(options.seed, f"{program.name}causes", run, KINDS, list(range(min(CPUS, program.ranks))))

    def measure(directory, progress):
        load = Load()
        result = inject.one_run(os.path.join(directory, "1"), program, injections, options, load=load, judge=score_of(load))
        for one in result["injections"]:
            progress.say(f"  {program.name}: {inject.in_words(one)}: {'found' if one['found'] else 'missed: ' + one['why']}")
        found = sum(one["found"] for one in result["injections"])
        wrong = sum(not alarm["ok"] for alarm in result["alarms"])
        return {"rows": [], "result": result, "group": None, "noisy": False,
                "brief": f"{found} of {len(injections)} found, {wrong} of {len(result['alarms'])} alarms not confirmed"}
    return Unit(program.name, f"seed{options.seed}_run{run}", inject.length_of(injections) + 12, measure)


def units(options):
    return [unit_of(program, run, options) for program in PROGRAMS for run in range(1, options.repeat(RUNS, 1) + 1)]


def table(joined, left):
    rows, all_of, alarms, against = rows_of_units(joined, left), [], [], []
    for program, entries in joined.items():
        results = [entry["result"] for entry in entries.values() if "result" in entry]
        mine = [one for result in results for one in result["injections"]]
        all_of += mine
        alarms += [(program, alarm) for result in results for alarm in result["alarms"]]
        against += [(program, text) for result in results for text in result["contradictions"]]
        kinds = [f"{kind} {sum(o['found'] for o in mine if o['kind'] == kind)}/{sum(o['kind'] == kind for o in mine)}" for kind in KINDS]
        rows.append(t.row(f"{program}: found by kind", ", ".join(kinds), "all (information)", True))
        rows += [t.row(f"{program}: missed {inject.in_words(one)}, {one['truth_s']} s", one["why"][:300], "found (information)", True)
                 for one in mine if not one["found"]]
    found = sum(one["found"] for one in all_of)
    wrong = [(program, alarm) for program, alarm in alarms if not alarm["ok"]]
    rows.append(t.row("beside a foreign load: right rank, cause, culprit, begin, end and loss", score.share(found, len(all_of)),
                      f"{FOUND_LEAST} of {OF}", len(all_of) > 0 and found * OF >= FOUND_LEAST * len(all_of)))
    rows.append(t.row("alarms that schedstat does not confirm", inject.share_of(wrong, alarms), 0, not wrong))
    rows.append(t.row("contradictions in the records", len(against), 0, not against))
    return rows + [t.row(f"{program}: contradiction", json.dumps(text)[:200], "none", False) for program, text in against[:20]]
