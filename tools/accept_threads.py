# SPDX-License-Identifier: GPL-2.0-or-later
"""One thread of eight is disturbed: is it named, and no other thread? pthreads, libgomp, libomp. Check threads."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402

THREADS = 8
VICTIM = THREADS - 1
LOST_TOLERANCE = 0.25
PROGRAMS = (("pthread", "crew"), ("libgomp", "crew_omp"), ("libomp", "crew_llvm"))
# eight OpenMP threads that spin while they wait leave no CPU free where there are two
ASLEEP = {"OMP_WAIT_POLICY": "passive"}


def watch_crew(directory, program, hog_seconds=0, hog_after=10, watch=24, env=None):
    """One run of a crew under vaprod: (records, truths by thread, tids by thread, hog or None)."""
    with Jobs(directory) as jobs:
        crew = jobs.start([tool(program), "--threads", THREADS, "--seconds", watch + 5, "--log", directory], program,
                          env=ASLEEP if env is None else env)
        pid = ready_pid(crew)
        tids = json.loads(crew.out().splitlines()[0])["tids"]
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", [pid], watch)
        log = os.path.join(directory, "hog.json")
        if hog_seconds:
            jobs.start([tool("hog"), "--cpu", 0, "--start-after", hog_after, "--seconds", hog_seconds, "--log", log], "hog")
        well(jobs.wait(daemon, watch + 30), daemon)
        well(jobs.wait(crew, 30), crew)
    hog = t.load_events(log)[0] if hog_seconds else None
    return t.load_records(ndjson), t.load_truth(directory), tids, hog


def named(variance, tids):
    """The program's own numbers of the threads that a variance names."""
    found = [tids.index(thread["tid"]) if thread["tid"] in tids else thread["tid"] for thread in variance.get("threads", [])]
    return sorted(found)


def judge_others(alarms, truths, tids, offset):
    """Alarms beside the hog: right where the threads' own logs show a slowdown, by other work on the machine."""
    rows = []
    for alarm in alarms:
        begin, end = (t.parse_time(alarm[side]) - offset for side in ("begin", "end"))
        slow = {who: truths[who].slowness(begin, end) for who in named(alarm, tids) if who in truths}
        ok = bool(slow) and all(ratio is not None and ratio >= t.SLOW for ratio in slow.values())
        rows.append(t.row(f"other alarm {alarm['id']}: {alarm['class']}, {alarm['who']}, {alarm['lost_seconds']:.2f} s lost",
                          ", ".join(f"thread {who} {ratio or 0:.2f} x" for who, ratio in slow.items()) or "no thread",
                          f"at least {t.SLOW} x in the truth log", ok))
    return rows


def judge_crew(records, truths, tids, hog=None):
    offset, last = t.utc_offset(records), t.variances(records)
    for truth in truths.values():
        truth.learn(hog["begin"] if hog else None, hog["end"] if hog else None)
    alarms = [v for v in last.values() if v.get("alarm")]
    if not hog:
        rows = judge_others(alarms, truths, tids, offset)
        return [t.row("alarms not confirmed", sum(not r["ok"] for r in rows), 0, all(r["ok"] for r in rows))] + rows
    hits = [v for v in alarms if overlaps(v, offset, hog["begin"], hog["end"])]
    rows = judge_others([v for v in alarms if v not in hits], truths, tids, offset)
    rows.append(t.row("alarms that overlap the hog", len(hits), 1, len(hits) == 1))
    for alarm in hits:
        rows.append(t.row("threads", f"{named(alarm, tids)} ({alarm['who']})", [VICTIM], named(alarm, tids) == [VICTIM]))
        rows.append(t.row("class", alarm["class"], "computation", alarm["class"] == "computation"))
        for side in ("begin", "end"):
            off = (t.parse_time(alarm[side]) - offset - hog[side]) / 1e6
            rows.append(t.row(f"{side}, off by", f"{off:+.0f} ms", f"within {t.BORDER_MS} ms", abs(off) <= t.BORDER_MS))
        true, said = truths[VICTIM].lost_ns(hog["begin"], hog["end"]) / 1e9, alarm["lost_seconds"]
        rows.append(t.row("lost seconds", f"{said:.3f}", f"{true:.3f} within {LOST_TOLERANCE:.0%}",
                          true > 0 and abs(said - true) <= LOST_TOLERANCE * true))
        factors, interferers = t.diagnosis(records, alarm["id"])
        majors = [f for f in factors.values() if f.get("major")]
        rows.append(t.row("major factors", ", ".join(f"{m['name']} {m['contribution_pct_of_level']:.0f} %" for m in majors) or "none",
                          " or ".join(t.CAUSES), any(m["name"] in t.CAUSES for m in majors)))
        rows.append(t.row("interferers", ", ".join(f"{i['comm']} {i['seconds']:.2f} s" for i in interferers[:4]) or "none",
                          "hog first", bool(interferers) and interferers[0]["comm"] == "hog"))
        effects = [v for v in last.values() if v.get("effect_of") == alarm["id"]]
        waiting = sorted({who for v in effects for who in named(v, tids)})
        rows.append(t.row("waiting reported as its effect, threads", waiting or "none", "some, not the victim",
                          bool(waiting) and VICTIM not in waiting))
    return rows


def check_threads():
    rows = []
    for name, program in PROGRAMS:
        for number in range(1, repeat(3, 1) + 1):
            rows += rows_of(judge_crew(*watch_crew(scratch("threads", f"{program}{number}"), program, 3)), f"{name} {number}: ")
        rows += rows_of(judge_crew(*watch_crew(scratch("threads", f"{program}_quiet"), program)), f"{name} quiet: ")
        if program != "crew":
            spinning = watch_crew(scratch("threads", f"{program}_spins"), program, env={})
            rows += rows_of(judge_crew(*spinning), f"{name} quiet, spinning: ")
    return rows
