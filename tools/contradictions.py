#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Finds contradictions in the records of runs, without knowing what happened: contradictions.py FILE|FOLDER... prints one line
for each and returns 1 where there are any; of a folder, all *.ndjson in it and below are read. What two records, or two keys
of one record, say of the same thing must agree:

waiting     what a variance or a cause made others wait is at most (ranks of the job - 1) times what was lost to it
attributed  an alarm that the kernel attributes lost at least what is attributed to it, outside of calls
unnamed     a factor that cost --min-lost or more in an alarm is named in its verdict and has an entry among its causes
causes      the causes of a region add up to its loss, and the causes of a run to the losses of its regions
severity    is that of the rated share and the own loss, and no warning is below both bounds; the worst is listed first
performance is 1 - lost / judged, never outside 0 to 1, and not 1 while the account says that ranks had no CPU
advice      names no remedy for a factor that took nothing
times       lie inside the job, and begin before they end
text        of a cause has its seconds, its share, its ranks and its culprit
culprit     took half of its cause or more, but no more than all; a task is "almost entirely" to blame where it took nearly all
preempters  are listed only where a twentieth of the loss is preempted
nothing     no cause has lost nothing
key         no record lacks a key of its type that is read here
"""
import collections
import json
import os
import re
import sys

NAMES = {"stopped": ("stopped", "signal", "frozen"), "throttled": ("throttled", "quota"), "steal": ("hypervisor", "steal"),
         "preempted": ("preempted", "ran on", "oversubscribed", "had the CPU", "for a CPU"), "irq": ("interrupt",)}
REMEDIES = {"throttled": re.compile(r"raise its CPU quota|used up its CPU quota"), "steal": re.compile(r"other work on the virtual CPU"),
            "stopped": re.compile(r"who suspends or freezes"), "preempted": re.compile(r"move or stop|Other tasks ran on the CPU")}
ENTRIES = {"preempted": {"preempted", "wakeup_wait", "oversubscribed"}, "irq": {"irq", "hard_irq", "soft_irq"}}  # causes of a factor
ROUNDING_S = 0.0005
WAITED_LEAST, WAITED_LEAST_S = 0.001, 1e-4  # share of what was lost, and seconds, from which the text of a cause states the waiting
ROUNDING_SHARE = 1e-6  # of rated_pct, which has four digits
CAUSES_MOST = 64  # of all jobs, at the end of a run: the least ones are left out
BY_KERNEL = re.compile(r"^the kernel attributes")
ALONE_LEAST = 0.88  # of what tasks took: a task that "almost entirely" is about took nine tenths, in rounded seconds
PREEMPTED_LEAST = 0.05  # of the loss: the least part for which those that ran instead are listed
ACCOUNT_LEAST = 0.03  # of the ranks' time without a CPU, which no performance of 1 goes with
DEFAULTS = {"min-lost": 0.1, "critical-share": 0.05, "warning-share": 0.001}


def seconds(text):
    """Seconds since midnight of 1970 of a record's time."""
    hit = re.match(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):([\d.]+)Z", text)
    year, month, day, hour, minute = (int(part) for part in hit.groups()[:5])
    before = year - (month < 3)
    days = 365 * before + before // 4 - before // 100 + before // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 719468
    return days * 86400 + hour * 3600 + minute * 60 + float(hit[6])


def ranks_of(text):
    found = set()
    for part in str(text or "").split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found


class Job:
    """What the windows of one job say."""

    def __init__(self):
        self.rows, self.threads, self.world = set(), collections.defaultdict(set), 0
        self.begin, self.end, self.continued = None, None, False
        self.teams = False  # threads wait for others of their team
        self.variances, self.diagnoses, self.causes = {}, {}, []
        self.revisions = {}  # variances by id and revision

    def others(self):
        """
        Most that can wait for one: ranks and, where threads were seen to wait for others of their team, the threads of each. None: not
        known, without ranks.
        """
        threads = max([1] + [len(threads) for threads in self.threads.values()]) if self.teams else 1
        ranks = max(len(self.rows), self.world)
        return threads * ranks - 1 if threads * ranks > 1 else None

    def variance_of(self, diagnosis):
        """The variance as it was when a diagnosis was made; a later one may have lost more, to a further cause."""
        number = diagnosis["variance"]
        return self.revisions.get((number, diagnosis["revision"]), self.variances[number])


def check_waiting(job, record, name):
    if job.others() is None:
        return
    most, caused = job.others() * record["lost_seconds"], record["caused_seconds"]
    if caused > most * 1.001 + ROUNDING_S:
        yield "waiting", f"{name}: others waited {caused:.3f} s for {record['lost_seconds']:.3f} s, of at most {most:.3f} s"


def impacts(diagnosis):
    return {factor["name"]: factor["impact_seconds"] for factor in diagnosis["factors"] if not factor.get("implied")}


def check_attributed(variance, diagnosis, name):
    found = impacts(diagnosis)  # of sleep only what is beyond the usual sleep is attributed
    parts = [found[factor] for factor in ("preempted", "wakeup_wait", "throttled", "steal", "stopped", "irq") if factor in found]
    attributed = sum(parts) if len(parts) > 1 else found.get("suspension", 0)
    in_calls = variance.get("lost_by_class", {}).get("communication", 0) if variance["class"] != "communication" else 0
    if variance["alarm"] and BY_KERNEL.match(variance["evidence"]) and \
            variance["lost_seconds"] + in_calls < attributed - max(0.05, 0.05 * attributed):
        yield "attributed", f"{name}: {variance['lost_seconds']:.3f} s lost, {attributed:.3f} s of it attributed"


def check_names(variance, diagnosis, bounds, name):
    if not variance["alarm"] or variance["class"] == "communication":
        return
    found, verdict = impacts(diagnosis), diagnosis.get("verdict") or ""
    found["preempted"] = found.get("preempted", 0) + found.get("wakeup_wait", 0)
    for factor, words in NAMES.items():
        cost = found.get(factor, 0)
        if cost < bounds["min-lost"] + ROUNDING_S or cost < 0.01 * variance["lost_seconds"]:
            continue
        if not any(word in verdict for word in words):
            yield "unnamed", f"{name}: {factor} cost {cost:.3f} s, and the verdict does not say it"
        if "causes" in variance and not any(cause["cause"] in ENTRIES.get(factor, {factor}) for cause in variance["causes"]):
            yield "unnamed", f"{name}: {factor} cost {cost:.3f} s, and is none of its causes"


def check_sum(variance, name):
    if "causes" not in variance:
        return
    total = sum(cause["lost_seconds"] for cause in variance["causes"])
    if abs(total - variance["lost_seconds"]) > 0.01 * variance["lost_seconds"] + 2 * ROUNDING_S:
        yield "causes", f"{name}: its causes lost {total:.3f} s, it lost {variance['lost_seconds']:.3f} s"
    for cause in variance["causes"]:
        if not ranks_of(cause.get("ranks")) <= ranks_of(variance["ranks"]):
            yield "causes", f"{name}: {cause['cause']} has ranks {cause['ranks']}, the region {variance['ranks']}"
        if seconds(cause["begin"]) < seconds(variance["begin"]) - ROUNDING_S or \
                seconds(cause["end"]) > seconds(variance["end"]) + ROUNDING_S:
            yield "times", f"{name}: {cause['cause']} lies outside of its region"


def severity_of(record, bounds, rounding):
    """rounding: -1 or 1, to which side what the record says was rounded, if at all."""
    share = record["rated_pct"] / 100 + rounding * ROUNDING_SHARE
    if not record["alarm"]:
        return "info"
    if share >= bounds["critical-share"]:
        return "critical"
    return "warning" if share >= bounds["warning-share"] or record["lost_seconds"] + rounding * 1e-6 >= bounds["min-lost"] else "info"


def check_severity(record, bounds, name):
    if record.get("rated_pct") is not None:
        wanted = [severity_of(record, bounds, rounding) for rounding in (-1, 1)]
        if record["severity"] not in wanted:
            yield "severity", f"{name}: {record['severity']} at {record['rated_pct']} % and {record['lost_seconds']:.3f} s lost, not {wanted[0]}"
        cost = record["lost_seconds"] + record["caused_seconds"]
        if record["rated_pct"] / 100 * record["denominator_seconds"] > cost * 1.01 + 0.001 + 1e-6 * record["denominator_seconds"]:
            yield "severity", f"{name}: {record['rated_pct']} % of {record['denominator_seconds']} s is more than {cost:.3f} s"
    elif "rated_pct" not in record and record["severity"] == "critical" and record["cost_pct_of_job"] < 100 * bounds["critical-share"] - 1e-4:
        yield "severity", f"{name}: critical at {record['cost_pct_of_job']} %"
    rated = record.get("rated_pct", record["cost_pct_of_job"])
    if record["severity"] == "warning" and record["lost_seconds"] < bounds["min-lost"] - ROUNDING_S and \
            rated is not None and rated < 100 * bounds["warning-share"] - 1e-4:
        yield "severity", f"{name}: a warning at {rated} % and {record['lost_seconds']:.3f} s lost"


def check_performance(variance, name):
    performance = variance["performance"]
    if not 0 <= performance <= 1:
        yield "performance", f"{name}: a performance of {performance}"
    judged = variance.get("judged_seconds")
    if judged and not variance["slow_path"] and abs(performance - max(0, 1 - variance["lost_seconds"] / judged)) > 0.002 + 1e-6 / judged:
        yield "performance", f"{name}: a performance of {performance}, {variance['lost_seconds']:.3f} s lost of {judged:.3f} s"
    if performance >= 0.99995 and variance["lost_seconds"] > max(0.01, 1e-4 * (judged or 0)):
        yield "performance", f"{name}: a performance of 1 and {variance['lost_seconds']:.3f} s lost"


def check_window(window):
    account, length = window.get("account_seconds"), seconds(window["end"]) - seconds(window["begin"])
    ranks = len(ranks_of(window["ranks"]))
    if not account or not ranks or length <= 0 or window["performance"]["computation"] is None:
        return
    # of all threads, in calls and in fragments that have not ended, too: only what exceeds those is in the judged computation
    without = sum(account.get(name, 0) for name in ("preempted", "wakeup_wait", "throttled", "stopped")) / (length * ranks)
    threads = max(1, sum(account.values()) / (length * ranks))
    elsewhere = (1 - window["coverage"]["computation"]) * threads
    if without > ACCOUNT_LEAST + elsewhere and window["performance"]["computation"] >= 0.99995:
        yield "performance", f"the window until {window['end']}: a performance of 1 while ranks had no CPU for {100 * without:.1f} % of the time"


def own_tasks(diagnosis):
    """Names of the job's own threads that ran instead: several share one. Of many tasks not all are listed."""
    said = re.findall(r"(\S+) \(pid \d+, a (?:rank of the job|thread of the same process)\)", diagnosis.get("verdict") or "")
    return {task["comm"] for task in diagnosis["interferers"] if task.get("relation") in ("own_thread", "same_job")}.union(said)


def check_advice(variance, diagnosis, name):
    found, advice = impacts(diagnosis), diagnosis.get("advice") or ""
    found["preempted"] = found.get("preempted", 0) + found.get("wakeup_wait", 0)
    named = {cause["cause"] for cause in variance.get("causes") or []}
    for factor, remedy in REMEDIES.items():
        if named & ENTRIES.get(factor, {factor}):
            continue
        if remedy.search(advice) and found.get(factor, 0) <= 0 and variance["class"] != "communication":
            yield "advice", f"{name}: advice for {factor}, which took nothing"
    # of the job's own threads the advice is to bind them
    own = own_tasks(diagnosis)
    for cause in variance.get("causes") or []:
        if variance["alarm"] and cause["cause"] == "preempted" and cause["culprit"] and cause["culprit"] not in own and cause["culprit"] not in advice:
            yield "advice", f"{name}: none for {cause['culprit']}, to which {cause['lost_seconds']:.3f} s were lost"


def check_preempters(variance, diagnosis, name):
    found = impacts(diagnosis)
    preempted = found.get("preempted", 0) + found.get("wakeup_wait", 0)
    if diagnosis["interferers"] and preempted < PREEMPTED_LEAST * variance["lost_seconds"] - ROUNDING_S:
        yield "preempters", f"{name}: tasks that ran instead are listed, {preempted:.3f} s of {variance['lost_seconds']:.3f} s are preempted"


def is_said(text, wanted):
    """Whether a duration in a text, "45 ms", "1.45 s", "3 min 5 s", "2 h 1 min", is a number of seconds, as far as it is rounded."""
    units, parts = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}, re.findall(r"([\d.]+) (us|ms|s|min|h)\b", text)
    if not parts:
        return False
    number, unit = parts[-1]
    digit = units[unit] * 10 ** -len(number.partition(".")[2])
    return abs(sum(float(number) * units[unit] for number, unit in parts) - wanted) <= (1.01 if " h" in text else 0.51) * digit + 1e-6


def check_text(cause, name):
    text, culprit, ranks = cause.get("text"), cause.get("culprit"), ranks_of(cause["ranks"])
    if not text:
        return
    lost = re.search(r": ([\d.]+ \w+(?: \d+ \w+)?) lost", text)
    waited = re.search(r"others waited ([\d.]+ \w+(?: \d+ \w+)?) for it", text)
    rated = re.search(r"\(([\d.]+) % [^()]*\)(?:;|$| \()", text)
    if not lost or not is_said(lost[1], cause["lost_seconds"]):
        yield "text", f"{name}: {cause['lost_seconds']:.6f} s lost, its text says: {text}"
    least, caused = max(WAITED_LEAST_S, WAITED_LEAST * cause["lost_seconds"]), cause["caused_seconds"]
    if not waited and caused > 1.01 * least + 1e-6 or waited and (caused < 0.99 * least - 1e-6 or not is_said(waited[1], caused)):
        yield "text", f"{name}: others waited {caused:.6f} s, its text says: {text}"
    if rated and cause.get("rated_pct") is not None and abs(float(rated[1]) - cause["rated_pct"]) > 0.5 + 0.005 * cause["rated_pct"]:
        yield "text", f"{name}: rated at {cause['rated_pct']} %, its text says: {text}"
    if len(ranks) == 1 and not re.search(rf"\brank {min(ranks)}\b", text):
        yield "text", f"{name}: of rank {min(ranks)}, its text says: {text}"
    if cause["cause"] == "preempted" and (culprit["comm"] not in text if culprit else not text.startswith("other tasks")):
        yield "text", f"{name}: {'to blame is ' + culprit['comm'] if culprit else 'no task is to blame'}, its text says: {text}"


def check_culprits(variance, diagnosis, name):
    waits = [cause for cause in variance.get("causes") or [] if cause["cause"] in ("preempted", "oversubscribed")]
    for cause in waits:
        took = cause.get("culprit_seconds")
        if took is not None and cause["culprit"] not in own_tasks(diagnosis) and not 0.499 * cause["lost_seconds"] <= took + 1e-6 <= cause["lost_seconds"] + 3e-6:
            yield "culprit", f"{name}: {cause['culprit']} took {took:.3f} of {cause['lost_seconds']:.3f} s of its cause"
    alone = re.search(r"almost entirely because (.{1,15}?) \(pid", diagnosis.get("verdict") or "")
    own = sum(cause["lost_seconds"] for cause in waits if alone and cause["culprit"] == alone[1])
    if own and own < ALONE_LEAST * sum(cause["lost_seconds"] for cause in waits):
        yield "culprit", f"{name}: almost entirely {alone[1]}, of which its causes have {own:.3f} s"


def check_times(job, record, name):
    begin, end = seconds(record["begin"]), seconds(record["end"])
    if begin >= end:
        yield "times", f"{name}: ends before it begins"
    if job.begin is not None and ((begin < job.begin - 0.2001 and not job.continued) or end > job.end + 0.2001):
        yield "times", f"{name}: lies outside of the job"


def lacks_records(records):
    """
    (midst, lost): whether the records begin in the midst of a run, as after a rotation of logs or where a worker took a job over,
    and whether others are missing.
    """
    first = next((record for record in records if record.get("type") in ("hello", "judging")), None)
    begun = first is not None and not (first["type"] == "judging" and first.get("from"))
    lost = any(record.get("code") == "output_stalled" or (record.get("totals") or {}).get("lost_lines") for record in records
               if record.get("type") in ("warning", "bye"))
    return not begun, lost


def read(records):
    """Jobs by name and uid, and the bounds of the run."""
    jobs, bounds, found, finals = {}, dict(DEFAULTS), [], collections.Counter()
    midst, lost = lacks_records(records)
    for record in records:
        kind = record.get("type")
        if kind == "hello":
            tunables = record.get("tunables") or {}
            for key in bounds:
                value = tunables.get(key, tunables.get(key.replace("-", "_")))
                if isinstance(value, (int, float)):
                    bounds[key] = float(value)
        if kind not in ("window", "heatmap", "variance", "diagnosis", "cause"):
            continue
        job = jobs.setdefault((record.get("job"), record.get("uid")), Job())
        if kind == "window":
            job.begin = seconds(record["begin"]) if job.begin is None else min(job.begin, seconds(record["begin"]))
            job.end = max(job.end or 0, seconds(record["end"]))
            job.world = max(job.world, record["world_size"])
            found += check_window(record)
        elif kind == "heatmap":
            for row in record["rows"]:
                process = (row.get("rank"), row.get("pid"))
                job.rows.add(process)
                if row.get("thread") is not None:
                    job.threads[process].add(row["thread"])
                    job.teams |= row["thread"] > 0 and record["class"] == "communication" and any(v is not None for v in row["values"])
        elif kind == "variance":
            # a worker that took a job over has no windows of the time before
            job.continued |= record["id"] not in job.variances and record.get("revision", 0) > 0
            job.variances[record["id"]] = record
            job.revisions[record["id"], record.get("revision", 0)] = record
        elif kind == "diagnosis" and record["variance"]:
            job.diagnoses[record["variance"]] = record
        elif kind == "cause" and record["final"]:
            job.causes.append(record)
            finals[record["time"]] += 1
    for job in jobs.values():
        job.cut = {cause["time"] for cause in job.causes if midst or lost or finals[cause["time"]] >= CAUSES_MOST}
        job.continued |= midst
    return jobs, bounds, found


def check_causes(job, bounds):
    """The causes at the end, and the losses of the regions that they sum up."""
    worst, at = 2, None
    for cause in job.causes:
        worst, at = worst if cause["time"] == at else 2, cause["time"]
        name = f"cause {cause['number']} ({cause['cause']})"
        yield from check_waiting(job, cause, name)
        yield from check_text(cause, name)
        yield from check_severity(cause, bounds, name)
        yield from check_times(job, cause, name)
        if cause["lost_seconds"] <= 0:
            yield "nothing", f"{name}: nothing was lost to it"
        rank = ("info", "warning", "critical").index(cause["severity"]) if cause["confirmed"] else 0
        if rank > worst:
            yield "severity", f"{name}: a worse cause after a milder one"
        worst = min(worst, rank)
    # a name that several jobs have one after the other has the causes of each
    before = None
    for at in sorted({cause["time"] for cause in job.causes}):
        regions = [variance for variance in job.variances.values()
                   if not variance["effect_of"] and variance["end"] <= at and (before is None or variance["end"] > before)]
        lost, total = (sum(item["lost_seconds"] for item in items) for items in (regions, [c for c in job.causes if c["time"] == at]))
        if at not in job.cut and abs(lost - total) > 0.01 * lost + 0.01:
            yield "causes", f"the causes lost {total:.3f} s, the regions {lost:.3f} s"
        before = at


def contradictions(records):
    """[(kind, sentence)] of the records of one run."""
    jobs, bounds, found = read(records)
    for job in jobs.values():
        for number, variance in job.variances.items():
            name, diagnosis = f"variance {number}", job.diagnoses.get(number)
            found += check_waiting(job, variance, name)
            found += check_severity(variance, bounds, name)
            found += check_performance(variance, name)
            found += check_times(job, variance, name)
            if variance["effect_of"]:
                continue
            found += check_sum(variance, name)
            if diagnosis is None:
                continue
            variance = job.variance_of(diagnosis)
            for check in (check_attributed, check_advice, check_preempters, check_culprits):
                found += check(variance, diagnosis, name)
            found += check_names(variance, diagnosis, bounds, name)
        found += check_causes(job, bounds)
    return found


def records_in(lines):
    """Records of a file: one a line; other lines are none of ours."""
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def runs_of(records):
    """Lists of the records of each run in a file to which several were added, without those of passes of a worker that do not count."""
    runs, judged = [], False
    for record in records:
        kind = record.get("type")
        judged |= kind == "judging"
        # in the output of a worker, whose jobs begin with "judging", a hello is that of a node
        if not runs or (kind == "hello" and not judged):
            runs.append([])
        if kind == "judging":
            runs[-1] = [other for other in runs[-1] if other.get("job") != record["job"] or other["time"] <= (record.get("from") or "")]
        runs[-1].append(record)
    return runs


def in_file(path):
    """[(kind, sentence)] of all runs of a file; None where it holds no result of a run."""
    with open(path, encoding="utf-8", errors="replace") as file:
        runs = [run for run in runs_of(records_in(file)) if any(record.get("type") == "window" for record in run)]
    found = []
    for run in runs:
        try:
            found += contradictions(run)
        except (KeyError, TypeError, AttributeError) as error:
            found.append(("key", f"a record lacks what its type has: {type(error).__name__}: {error}"))
    return found if runs else None


def demand_none(path):
    """Raises AssertionError where the records of a file contradict themselves, or it holds no result of a run."""
    found = in_file(path)
    assert found is not None, f"{path}: it holds no result of a run"
    assert not found, f"{path}: " + "; ".join(": ".join(one) for one in found)


def below(folders, since=0):
    """(files with results, [sentence]) of the record files in folders and below them that were changed after a time of time.time()."""
    files, found = 0, []
    for folder in folders:
        for place, _, names in os.walk(folder):
            for path in sorted(os.path.join(place, name) for name in names if name.endswith(".ndjson")):
                if not os.path.isfile(path) or os.path.getmtime(path) < since:
                    continue
                said = in_file(path)
                files += said is not None
                found += [f"{path}: {kind}: {sentence}" for kind, sentence in said or []]
    return files, found


def main(paths):
    files, found = 0, []
    for path in paths:
        if os.path.isdir(path):
            count, sentences = below([path])
        else:
            said = in_file(path)
            count, sentences = said is not None, [f"{path}: {kind}: {sentence}" for kind, sentence in said or []]
        files += count
        found += sentences
    for sentence in found:
        print(sentence)
    print(f"{files} record files with results, {len(found)} contradictions", file=sys.stderr)
    return len(found) > 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(len(sys.argv) < 2)
    sys.exit(main(sys.argv[1:]))
