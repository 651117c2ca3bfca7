# SPDX-License-Identifier: GPL-2.0-or-later
"""
Judges the findings of vaprod on injected disturbances: right rank, cause and culprit, begin and end, lost seconds; and
whether its other alarms are confirmed. Pure: records, injections, truth logs and a function of the kernel's samples come in.

An injection is a dict: kind, rank, begin and end (CLOCK_MONOTONIC ns), tids (of the victim's threads, where the program has
a team; else empty), ranks (all that it can hold up), lost_s (the truth, or [least, most]).
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live_score  # noqa: E402
import truth as t  # noqa: E402

BORDER_MS = 400
LOSS_TOLERANCE = 0.10
OVERLAP_LEAST = 0.3  # of the times of an injection and its variances: intersection over union
FOUND_SHARE = 0.95
NEAR_NS = 400_000_000  # an alarm that touches an injection so closely may be about it
CAUSES = {"hog": {"preempted", "wakeup_wait"}, "duty": {"preempted", "wakeup_wait"}, "quota": {"throttled"},
          "stop": {"stopped"}, "freeze": {"blocked_io", "blocked_other"}, "late": None}
CLASSES = {"freeze": "io"}  # a rank sleeps in a call of IO until the file system is thawed, and not for a device
CULPRITS = {"hog": "hog", "duty": "hog"}
WITHOUT_CPU = ("hog", "duty", "quota", "stop")  # their truth is time without a CPU


def variances_of(records):
    """The last revisions of the variances of a run, with times in CLOCK_MONOTONIC ns."""
    offset, found, numbers = t.utc_offset(records), [], {}
    for record in records:
        if record.get("type") == "variance":
            numbers.update({(thread["rank"], thread["thread"]): thread["tid"] for thread in record.get("threads") or []})
    for variance in t.variances(records).values():
        factors, interferers = t.diagnosis(records, variance["id"])
        text = str(variance["ranks"])
        found.append({
            "id": variance["id"], "class": variance["class"], "alarm": bool(variance.get("alarm")),
            "team_unseen": bool(variance.get("team_unseen")), "confidence": variance.get("confidence"), "effect_of": variance.get("effect_of"),
            "ranks": t.parse_ranks(text) if text[:1].isdigit() else [],
            "tids": [thread["tid"] for thread in variance.get("threads") or []],
            "begin": t.parse_time(variance["begin"]) - offset, "end": t.parse_time(variance["end"]) - offset,
            "lost_s": sum((variance.get("lost_by_class") or {"": variance["lost_seconds"]}).values())
                      + variance.get("whole_lost_seconds", variance["lost_seconds"]) - variance["lost_seconds"], "caused_s": variance.get("caused_seconds", 0),
            "evidence": variance.get("evidence"), "majors": live_score.majors_of(factors),
            "descheduled_s": factors["suspension"]["impact_seconds"] if "suspension" in factors else None,
            "interferers": [i["comm"] for i in interferers],
            "culprits": [{"rank": c["rank"], "tid": numbers.get((c["rank"], c.get("thread")))} for c in variance.get("culprits") or []]})
    return found


def loss_to(variance, kind):
    """
    The loss that a variance attributes to an injection of a kind. While a rank has no CPU for a part of the time the CPU itself
    may be slower, which the diagnosis separates: the impact of suspension, in seconds.
    """
    if kind not in WITHOUT_CPU or variance["descheduled_s"] is None:
        return variance["lost_s"]
    return variance["descheduled_s"]


def meets(variance, one, near=0):
    return variance["begin"] < one["end"] + near and variance["end"] > one["begin"] - near


def at_place(variance, one):
    """
    Whether a variance is where the injection was. Threads of one rank may wait for each other where no probe shows it: then
    the first culprit counts.
    """
    if one["kind"] == "freeze":
        return bool(variance["ranks"]) and set(variance["ranks"]) <= set(one["ranks"])
    if one["kind"] == "late" and variance["team_unseen"] and variance["ranks"] == [one["rank"]]:
        return True  # "slower on the CPU, or waiting for another of its threads, whose work is not seen"
    if one["tids"] and variance["tids"]:
        first = variance["culprits"][0]["tid"] if variance["culprits"] else None
        return set(variance["tids"]) <= set(one["tids"]) or (variance["ranks"] == [one["rank"]] and first in one["tids"])
    return variance["ranks"] == [one["rank"]]


def names_late(variance, one):
    """Whether other ranks or threads wait, with the late one as first culprit."""
    if at_place(variance, one) or not variance["culprits"]:
        return False
    first = variance["culprits"][0]
    return first["tid"] in one["tids"] if one["tids"] and first["tid"] else first["rank"] == one["rank"]


def missing_of(variance, one):
    """What a variance lacks to be the finding of an injection: [] where nothing."""
    missing, kind = [], one["kind"]
    if kind == "late" and names_late(variance, one):
        return missing
    if kind == "late" and variance["class"] == "io":
        missing.append("class computation or communication")
    if not at_place(variance, one):
        missing.append("place")
    # more work of the program's own is no interference: without counts a late rank is named, and rightly unconfirmed
    if not variance["alarm"] and kind != "late":
        missing.append("alarm")
    if CAUSES[kind] and not CAUSES[kind].intersection(variance["majors"]):
        missing.append("cause")
    if kind in CLASSES and variance["class"] != CLASSES[kind]:
        missing.append("class " + CLASSES[kind])
    if kind in CULPRITS and CULPRITS[kind] not in variance["interferers"]:
        missing.append("culprit")
    return missing


def loss_of_cpu_time(kernel_s, logged_s):
    """
    The true loss of a rank that had no CPU for a while: a number, or [least, most]. The kernel counts the time that it waited for
    its CPU or was throttled; that its work is slower right after, when its data is in no cache, and that its completed IO had to
    wait for it is a loss to the same cause. The program's own log of equal pieces of work has all.
    """
    return kernel_s if logged_s is None or logged_s <= kernel_s else [kernel_s, logged_s]


def loss_is_right(said, true):
    least, most = true if isinstance(true, (list, tuple)) else (true, true)
    return (1 - LOSS_TOLERANCE) * least <= said <= (1 + LOSS_TOLERANCE) * most


def score(variances, one):
    """
    {found, parts, begin_off_ms, end_off_ms, borders, said_s, whole_s, loss, why}: borders and loss are verdicts on all variances
    that count together, None where none does; why says what the best lacks then. said_s: loss_to, whole_s: all of their loss.
    """
    near = [v for v in variances if meets(v, one)]
    counted = [v for v in near if not missing_of(v, one)]
    if not counted:
        judged = sorted(((missing_of(v, one), v) for v in near), key=lambda pair: (len(pair[0]), -pair[1]["lost_s"]))
        why = "no variance meets its time"
        if judged:
            best = judged[0][1]
            why = (f"variance {best['id']} lacks {', '.join(judged[0][0])}: {best['class']}, ranks {best['ranks']}, {best['confidence']}, "
                   f"{', '.join(best['majors']) or 'no major factor'}, {best['lost_s']:.2f} s")
        return {"found": False, "parts": 0, "borders": None, "loss": None, "why": why}
    begin, end = min(v["begin"] for v in counted), max(v["end"] for v in counted)
    both = min(end, one["end"]) - max(begin, one["begin"])
    if both < OVERLAP_LEAST * (max(end, one["end"]) - min(begin, one["begin"])):
        why = f"variance {counted[0]['id']} is of {(begin - one['begin']) / 1e9:+.1f} s to {(end - one['end']) / 1e9:+.1f} s around it"
        return {"found": False, "parts": len(counted), "borders": None, "loss": None, "why": why}
    begin_off, end_off = (begin - one["begin"]) / 1e6, (end - one["end"]) / 1e6
    # the late work and the wait of others for it, also of threads of the same rank, are the same seconds
    own = [v for v in counted if at_place(v, one)] or counted
    own = [v for v in own if v["effect_of"] not in {cause["id"] for cause in own}]
    lost = sum(loss_to(v, one["kind"]) for v in own)
    return {"found": True, "parts": len(counted), "begin_off_ms": round(begin_off), "end_off_ms": round(end_off),
            "borders": abs(begin_off) <= BORDER_MS and abs(end_off) <= BORDER_MS, "said_s": round(lost, 3),
            "whole_s": round(sum(v["lost_s"] for v in own), 3),
            "loss": None if one["lost_s"] is None else loss_is_right(lost, one["lost_s"]), "why": None}


def is_explained(variance, injections):
    """Whether an alarm is about an injection: of its victim, or of ranks that wait for it."""
    for one in injections:
        if meets(variance, one, NEAR_NS) and (at_place(variance, one) or names_late(variance, one)):
            return True
    return False


def confirm(variance, truths, delay_s):
    """
    (ok, text): whether the kernel's samples or the program's own log confirm half of what an alarm says was lost.
    delay_s(variance): run delay and steal of its threads in its time.
    """
    delay = delay_s(variance)
    if delay >= 0.5 * variance["lost_s"]:
        return True, f"run delay and steal {delay:.2f} s"
    logged = []
    for rank in variance["ranks"] or truths:  # a program without ranks has one log
        if rank in truths:
            truth = truths[rank]
            logged.append(truth.lost_ns(variance["begin"], variance["end"], fastest=True) / 1e9)
            calls = [(sid, at, took) for sid, at, took in truth.calls()
                     if at < variance["end"] and at + took > variance["begin"] and (variance["class"] != "io" or sid in truth.io)]
            if variance["class"] != "computation":
                logged[-1] += sum(took - truth.expected_call.get(sid, took) for sid, _, took in calls) / 1e9
    lost = sum(logged)
    text = f"run delay and steal {delay:.2f} s, " + (f"by the program's log {lost:.2f} s" if logged else "no log of its time")
    return bool(logged) and lost >= 0.5 * variance["lost_s"], text


def score_run(records, injections, truths, delay_s):
    """{injections: [...], alarms: [{id, ok, text}]}: each injection with its score, each alarm that none explains."""
    variances = variances_of(records)
    scored = [{**one, **score(variances, one)} for one in injections]
    others = []
    for variance in variances:
        if variance["alarm"] and not is_explained(variance, injections):
            ok, text = confirm(variance, truths, delay_s)
            others.append({"id": variance["id"], "class": variance["class"], "ranks": variance["ranks"], "begin": variance["begin"],
                           "end": variance["end"], "lost_s": variance["lost_s"], "majors": variance["majors"],
                           "interferers": variance["interferers"][:3], "ok": ok, "text": text})
    return {"injections": scored, "alarms": others}


def share(good, of):
    return f"{good} of {of}" + (f" ({good / of:.0%})" if of else "")


def group_rows(name, scored, least=1):
    """The rows of a group of injections."""
    found = [one for one in scored if one["found"]]
    borders = [one for one in found if one["borders"]]
    losses = [one for one in found if one["loss"] is not None]
    right = [one for one in losses if one["loss"]]
    enough = len(scored) >= least
    return [t.row(f"{name}: right rank, cause and culprit", share(len(found), len(scored)),
                  f"{FOUND_SHARE:.0%} of at least {least}", enough and len(found) >= FOUND_SHARE * len(scored)),
            t.row(f"{name}: of these begin and end within {BORDER_MS} ms", share(len(borders), len(found)), f"{FOUND_SHARE:.0%}",
                  enough and len(borders) >= FOUND_SHARE * len(found)),
            t.row(f"{name}: of these loss within {LOSS_TOLERANCE:.0%}", share(len(right), len(losses)), f"{FOUND_SHARE:.0%}",
                  enough and len(right) >= FOUND_SHARE * len(losses))]
