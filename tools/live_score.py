# SPDX-License-Identifier: GPL-2.0-or-later
"""
Judges a run of the live part of make accuracy: whether vaprod named the disturbed rank and the cause, and what is missing
where it did not; and for runs without a disturbance, whether the program's own log or the kernel confirms each alarm.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth as t  # noqa: E402

LEAST_OVERLAP = 0.3    # of the times of a variance and its disturbance: both together over either
CONFIRMED_SHARE = 0.5  # of a loss: the time without a CPU that confirms it


def overlap(variance, offset, begin, end):
    first, last = t.parse_time(variance["begin"]) - offset, t.parse_time(variance["end"]) - offset
    either = max(last, end) - min(first, begin)
    return max(0, min(last, end) - max(first, begin)) / either if either > 0 else 0.0


def majors_of(factors):
    return sorted(name for name, factor in factors.items() if factor.get("major"))


def meets(variance, offset, begin, end):
    return t.parse_time(variance["begin"]) - offset < end and t.parse_time(variance["end"]) - offset > begin


def about(records, variance, offset, begin, end):
    """The facts of one variance that show why it counts as found or not."""
    factors, interferers = t.diagnosis(records, variance["id"])
    verdicts = [r.get("verdict") for r in records if r.get("type") == "diagnosis" and r["variance"] == variance["id"]]
    return {"id": variance["id"], "class": variance["class"], "also": variance.get("also"), "ranks": variance["ranks"],
            "alarm": bool(variance.get("alarm")), "severity": variance.get("severity"),
            "confidence": variance.get("confidence"), "evidence": variance.get("evidence"),
            "effect_of": variance.get("effect_of"), "lost_seconds": variance["lost_seconds"],
            "begin_off_s": round((t.parse_time(variance["begin"]) - offset - begin) / 1e9, 3),
            "end_off_s": round((t.parse_time(variance["end"]) - offset - end) / 1e9, 3),
            "overlap": round(overlap(variance, offset, begin, end), 3), "majors": majors_of(factors),
            "interferers": [{"comm": i["comm"], "seconds": i["seconds"]} for i in interferers[:4]],
            "culprits": [c["rank"] for c in variance.get("culprits") or []],
            "verdict": variance.get("verdict") or (verdicts[-1] if verdicts else None)}


def wrong_with(kind, rank, said):
    """What a variance lacks to be the finding of a disturbance: [] where nothing."""
    missing = []
    if said["overlap"] < LEAST_OVERLAP:
        missing.append(f"overlap of time {said['overlap']:.2f}")
    if kind == "late" and said["culprits"][:1] == [rank] and t.parse_ranks(said["ranks"]) != [rank]:
        return missing  # others' waiting, with the late rank named
    if t.parse_ranks(said["ranks"]) != [rank]:
        missing.append(f"ranks {said['ranks']}")
    if not said["alarm"]:
        missing.append(f"no alarm ({said['confidence']})")
    if kind in ("hog", "duty"):
        if not set(said["majors"]).intersection(t.CAUSES):
            missing.append("cause " + (", ".join(said["majors"]) or "unknown"))
        if not any(i["comm"] == "hog" for i in said["interferers"]):
            missing.append("the hog is not named")
    elif kind == "quota" and "throttled" not in said["majors"]:
        missing.append("cause " + (", ".join(said["majors"]) or "unknown"))
    return missing


def score_injection(records, truth):
    """
    {hit, parts, found, why, seen}: found is the best variance, parts the number of those that count, why says what the
    best lacks where none counts, seen has all that meet the disturbance.
    """
    offset, begin, end = t.utc_offset(records), truth["begin_mono_ns"], truth["end_mono_ns"]
    seen = [about(records, v, offset, begin, end) for v in t.variances(records).values() if meets(v, offset, begin, end)]
    judged = sorted(((wrong_with(truth["kind"], truth["rank"], said), said) for said in seen),
                    key=lambda pair: (len(pair[0]), -pair[1]["overlap"], -pair[1]["lost_seconds"]))
    hits = [said for missing, said in judged if not missing]
    why = None
    if not hits:
        why = f"variance {judged[0][1]['id']}: " + "; ".join(judged[0][0]) if judged else "no variance meets its time"
    return {"hit": bool(hits), "parts": len([said for said in hits if said["alarm"]]),
            "found": judged[0][1] if judged else None, "why": why, "seen": seen}


def score_quiet(records, truths, away_s):
    """
    [{what, measured, wanted, ok}] of every alarm. Where the program's log does not confirm it, the kernel's account of the same
    run may: away_s(ranks, begin, end), seconds without a CPU, of at least half of what was lost.
    """
    if truths is None:
        raise RuntimeError("this program writes no log of its time")
    rows, offset = t.judge(records, truths), t.utc_offset(records)
    alarms = [variance for variance in t.variances(records).values() if variance.get("alarm")]
    for one, alarm in zip(rows, alarms):
        away = away_s(t.parse_ranks(str(alarm["ranks"])), t.parse_time(alarm["begin"]) - offset, t.parse_time(alarm["end"]) - offset)
        one["measured"] += f"; {away:.2f} s without a CPU"
        one["wanted"] += f", or {CONFIRMED_SHARE:.0%} of it without a CPU"
        one["ok"] = one["ok"] or away >= CONFIRMED_SHARE * alarm["lost_seconds"]
    return rows


def explain(entry, out=sys.stdout):
    """Prints why a disturbance was missed: what the record has of it, and what the kernel says the ranks lost."""
    for run in entry["runs"]:
        print(f"    run {run['run']}: {run.get('error') or run.get('why') or 'found'}", file=out)
        for rank, lost in enumerate(run.get("kernel", [])):
            print(f"      the kernel on rank {rank}: {lost['wait_s']:.2f} s ready without a CPU, {lost['asleep_s']:.2f} s asleep or "
                  f"stopped, {lost['steal_s']:.2f} s stolen, of {lost['wall_s']:.2f} s", file=out)
        if run.get("others", 0) > 0.1:
            print(f"      other work of the machine took {run['others']:.0%} of the time of a rank that was not disturbed", file=out)
        if run.get("truth", {}).get("throttled_s") is not None:
            print(f"      the kernel throttled its cgroup for {run['truth']['throttled_s']:.2f} s", file=out)
        for said in run.get("seen", []):
            print(f"      variance {said['id']}: {said['class']}, ranks {said['ranks']}, {said['confidence']}"
                  f"{', alarm' if said['alarm'] else ''}, {said['lost_seconds']:.2f} s lost, begins {said['begin_off_s']:+.2f} s, "
                  f"ends {said['end_off_s']:+.2f} s, {', '.join(said['majors']) or 'no major factor'}"
                  f"{', effect of ' + str(said['effect_of']) if said['effect_of'] else ''}", file=out)
            print(f"        evidence: {said['evidence']}; verdict: {said['verdict']}", file=out)
            if said["interferers"] or said["culprits"]:
                print("        ran instead: " + (", ".join(f"{i['comm']} {i['seconds']:.2f} s" for i in said["interferers"]) or "unknown")
                      + "; culprits: " + (", ".join(map(str, said["culprits"])) or "none"), file=out)


def made_up(kind, **changes):
    """Records of a run whose disturbance was found, with changes to its variance."""
    base, offset = 5_000_000_000_000, 1_790_000_000_000_000_000
    factor, interferers = {"hog": ("preempted", [{"comm": "hog", "seconds": 1.0}]), "quota": ("throttled", []),
                           "late": ("blocked_other", [])}[kind]
    variance = {"type": "variance", "id": 3, "revision": 1, "class": "computation", "ranks": "1", "alarm": True,
                "confidence": "confirmed", "evidence": "", "effect_of": None, "lost_seconds": 1.5, "culprits": [],
                "begin": t.format_time(base + offset + 10**9), "end": t.format_time(base + offset + 4 * 10**9), **changes}
    return [{"type": "hello", "clock": {"mono_ns": base, "utc": t.format_time(base + offset)}}, variance,
            {"type": "diagnosis", "variance": 3, "factors": [{"name": factor, "major": True}], "interferers": interferers}], \
           {"kind": kind, "rank": 1, "begin_mono_ns": base + 10**9, "end_mono_ns": base + 4 * 10**9}


def self_test():
    def verdict(kind, **changes):
        result = score_injection(*made_up(kind, **changes))
        return result["hit"], result["why"] or ""
    for kind in ("hog", "quota", "late"):
        assert verdict(kind) == (True, ""), (kind, verdict(kind))
        for changes, word in (({"ranks": "0"}, "ranks 0"), ({"ranks": "0-1"}, "ranks 0-1"), ({"alarm": False}, "no alarm"),
                              ({"end": t.format_time(t.parse_time(made_up(kind)[0][1]["end"]) + 10**10)}, "overlap"),
                              ({"begin": made_up(kind)[0][1]["end"]}, "no variance meets")):
            assert verdict(kind, **changes)[0] is False and word in verdict(kind, **changes)[1], (kind, changes)
    records, truth = made_up("hog")
    records[2]["interferers"] = []
    assert score_injection(records, truth)["why"] == "variance 3: the hog is not named"
    assert not score_injection(records, {**truth, "kind": "quota"})["hit"]
    # others' waiting is a finding where its culprit is the late rank
    waiting = {"class": "communication", "ranks": "0", "alarm": False, "confidence": "unconfirmed"}
    assert verdict("late", **waiting, culprits=[{"rank": 1}])[0]
    assert not verdict("late", **waiting, culprits=[{"rank": 0}])[0]
    assert not verdict("hog", **waiting, culprits=[{"rank": 1}])[0]
    for away, ok in ((0.8, True), (0.7, False)):
        assert [one["ok"] for one in score_quiet(made_up("hog")[0], {}, lambda *unused, seconds=away: seconds)] == [ok], away
