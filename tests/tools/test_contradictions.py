#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The checker of records (tools/contradictions.py) accepts a run without contradictions and finds one of each kind that is planted."""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402


def at(second):
    return f"2026-03-01T10:00:{second:012.9f}Z"


def factor(name, parent, seconds):
    return {"name": name, "stage": 1 if parent is None else 2, "parent": parent, "impact_seconds": seconds, "major": True}


def sound():
    """A job of four ranks: rank 0 is preempted for 2 s of 4 s and stopped for 1 s within, and three ranks wait for it."""
    parts = [{"cause": "preempted", "culprit": "hog", "ranks": "0", "begin": at(10), "end": at(15), "lost_seconds": 2.0, "caused_seconds": 6.0},
             {"cause": "stopped", "culprit": None, "ranks": "0", "begin": at(12), "end": at(13), "lost_seconds": 1.0, "caused_seconds": 2.5}]
    weight = {"severity": "critical", "alarm": True, "cost_pct_of_job": 8.7, "rated_pct": 7.1875, "denominator_seconds": 160.0}
    cause = {"type": "cause", "time": at(40), "job": "j", "final": True, "confirmed": True, "begin": at(10), "end": at(15), "alarm": True}
    return [
        {"type": "hello", "tunables": {"min-lost": 0.1, "critical-share": 0.05, "warning-share": 0.001}},
        {"type": "window", "job": "j", "begin": at(0), "end": at(40), "ranks": "0-3", "world_size": 4, "coverage": {"computation": 0.95},
         "performance": {"computation": 0.97, "total": 0.97},
         "account_seconds": {"on_cpu": 150.0, "preempted": 2.1, "wakeup_wait": 0, "throttled": 0, "stopped": 1.0}},
        {"type": "heatmap", "job": "j", "class": "communication", "rows": [{"rank": rank, "pid": 100 + rank} for rank in range(4)]},
        {"type": "variance", "job": "j", "id": 7, "revision": 1, "class": "computation", "ranks": "0", "begin": at(10), "end": at(15),
         "lost_seconds": 3.0, "judged_seconds": 5.0, "performance": 0.4, "caused_seconds": 8.5, "effect_of": None, "slow_path": False,
         "evidence": "the kernel attributes 100 % of the loss (off the CPU)", "causes": parts, **weight},
        {"type": "diagnosis", "job": "j", "variance": 7, "revision": 1, "interferers": [{"comm": "hog", "pid": 9, "seconds": 2.0}],
         "factors": [factor("suspension", None, 3.0), factor("preempted", "suspension", 2.0), factor("stopped", "suspension", 1.0)],
         "verdict": "rank 0 lost 3.00 s: hog (pid 9) ran on its CPU for 2.00 s; it was stopped for 1.00 s",
         "advice": "hog ran on the CPU of rank 0: move or stop it."},
        {**cause, "number": 1, "cause": "preempted", "culprit": {"comm": "hog"}, "ranks": "0",
         "text": "hog preempted rank 0 from 10.0 to 15.0 s: 2.00 s lost, 1.25 % of the job (5.00 % with the waiting); others waited 6.00 s for it", "lost_seconds": 2.0, "caused_seconds": 6.0, "severity": "critical", "cost_pct_of_job": 5.0,
         "rated_pct": 5.0, "denominator_seconds": 160.0},
        {**cause, "number": 2, "cause": "stopped", "culprit": None, "ranks": "0", "lost_seconds": 1.0, "caused_seconds": 2.5, "severity": "warning", "cost_pct_of_job": 2.1875,
         "rated_pct": 2.1875, "denominator_seconds": 160.0, "begin": at(12), "end": at(13)},
    ]


HELLO, WINDOW, HEATMAP, VARIANCE, DIAGNOSIS, FIRST, SECOND = range(7)


def no_cpu(records):
    records[WINDOW]["performance"]["computation"] = 1
    records[WINDOW]["account_seconds"]["throttled"] = 12.0


def threads(records):
    """Lines of threads, of which none was seen to wait for another one: ranks wait for the region."""
    records[HEATMAP]["rows"] += [{"rank": 0, "pid": 100, "thread": thread, "values": [None]} for thread in range(3)]
    records[VARIANCE].update(caused_seconds=20.0, severity="critical")


def two_tasks(records):
    """What is said of the greater of two tasks is not true of it alone."""
    records[VARIANCE]["causes"][0].update(lost_seconds=1.5)
    records[VARIANCE]["causes"].append({**records[VARIANCE]["causes"][0], "culprit": "cron", "lost_seconds": 0.5})
    records[DIAGNOSIS].update(verdict="rank 0 lost 3.00 s: almost entirely because hog (pid 9) ran on its CPU; 1.00 s of it stopped",
                              advice="hog and cron ran on the CPU of rank 0: move or stop them.")


# name: the kind that is found, and how it is planted
PLANTED = {
    "threads that wait for nothing": ("waiting", threads),
    "a text of other seconds": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].replace("2.00 s lost", "2.10 s lost"))),
    "a text of another waiting": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].replace("6.00 s", "5.00 s"))),
    "a text without its waiting": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].partition(";")[0])),
    "a text of another share": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].replace("5.00 %", "7.00 %"))),
    "a text of another rank": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].replace("rank 0", "rank 1"))),
    "a text of another task": ("text", lambda r: r[FIRST].update(text=r[FIRST]["text"].replace("hog", "cron"))),
    "a text of a task where none is to blame": ("text", lambda r: r[FIRST].update(culprit=None)),
    "a task that took too little": ("culprit", lambda r: r[VARIANCE]["causes"][0].update(culprit_seconds=0.9)),
    "a task that took more than all": ("culprit", lambda r: r[VARIANCE]["causes"][0].update(culprit_seconds=2.1)),
    "a task that is not alone": ("culprit", two_tasks),
    "a task without advice": ("advice", lambda r: r[DIAGNOSIS].update(advice="rank 0: stopped by a signal")),
    "a region that others wait for too long": ("waiting", lambda r: r[VARIANCE].update(caused_seconds=9.5)),
    "a cause that others wait for too long": ("waiting", lambda r: r[SECOND].update(caused_seconds=3.2, rated_pct=2.625)),
    "less lost than is attributed": ("attributed", lambda r: r[DIAGNOSIS]["factors"][1].update(impact_seconds=2.4)),
    "a factor in no sentence": ("unnamed", lambda r: r[DIAGNOSIS].update(verdict="rank 0 lost 3.00 s: hog (pid 9) ran on its CPU")),
    "a factor among no causes": ("unnamed", lambda r: r[VARIANCE]["causes"][1].update(cause="unknown")),
    "causes that do not add up in a region": ("causes", lambda r: r[VARIANCE]["causes"][0].update(lost_seconds=1.6)),
    "a cause of other ranks than its region": ("causes", lambda r: r[VARIANCE]["causes"][1].update(ranks="0-1")),
    "causes that do not add up in the run": ("causes", lambda r: r[SECOND].update(lost_seconds=1.5, rated_pct=2.0)),
    "critical below the bound": ("severity", lambda r: r[FIRST].update(rated_pct=4.9)),
    "critical without a rated share": ("severity", lambda r: (r[FIRST].pop("rated_pct"), r[FIRST].update(cost_pct_of_job=4.2))),
    "critical just below the bound": ("severity", lambda r: r[FIRST].update(rated_pct=4.9998)),
    "info above the bound": ("severity", lambda r: r[SECOND].update(severity="info")),
    "a rated share of more than was lost": ("severity", lambda r: r[FIRST].update(rated_pct=7.0)),
    "a warning below both bounds": ("severity", lambda r: (r[SECOND].pop("rated_pct"), r[SECOND].update(cost_pct_of_job=0.05, lost_seconds=0.05, caused_seconds=0))),
    "a milder cause first": ("severity", lambda r: (r[FIRST].update(number=2), r[SECOND].update(number=1), r.insert(FIRST, r.pop(SECOND)))),
    "a performance beside another loss": ("performance", lambda r: r[VARIANCE].update(performance=0.6)),
    "a performance above 1": ("performance", lambda r: r[VARIANCE].update(performance=1.2)),
    "a performance of 1 with a loss": ("performance", lambda r: (r[VARIANCE].pop("judged_seconds"), r[VARIANCE].update(performance=1))),
    "a performance of 1 without a CPU": ("performance", no_cpu),
    "advice for what took nothing": ("advice", lambda r: r[DIAGNOSIS].update(advice="rank 0: throttled by the cgroup; raise its CPU quota")),
    "a region before the job": ("times", lambda r: (r[VARIANCE].update(revision=0), r[WINDOW].update(begin=at(12)))),
    "advice against stops that were none": ("advice", lambda r: r[DIAGNOSIS].update(
        factors=r[DIAGNOSIS]["factors"][:2], advice="rank 0: stopped by a signal (SIGSTOP); look at who suspends or freezes jobs",
        verdict="rank 0 lost 3.00 s: hog (pid 9) ran on its CPU, was stopped") or r[VARIANCE].update(causes=r[VARIANCE]["causes"][:1])),
    "a region after the job": ("times", lambda r: r[VARIANCE].update(end=at(45))),
    "a cause that ends before it begins": ("times", lambda r: r[FIRST].update(begin=at(20))),
    "a cause outside of its region": ("times", lambda r: r[VARIANCE]["causes"][0].update(begin=at(8))),
    "preempters where nothing was preempted": ("preempters", lambda r: r[DIAGNOSIS]["factors"][1].update(impact_seconds=0.1)),
    "a record without a key": ("key", lambda r: r[FIRST].pop("lost_seconds")),
    "a cause of nothing": ("nothing", lambda r: r.append({**r[SECOND], "number": 3, "lost_seconds": 0, "caused_seconds": 0, "rated_pct": 0,
                                                          "severity": "info", "alarm": False})),
}


def hybrid(records):
    """Ranks of three threads each, which wait for each other: lines of threads are there for the rank of a region only."""
    threads(records)
    for row in records[HEATMAP]["rows"][-3:]:
        row["values"] = [0.5]


def stopped_at_the_border(records):
    """A fragment in which a rank of three threads was stopped has not ended with its window: what has ended lost nothing."""
    records[WINDOW]["performance"]["computation"] = 1
    records[WINDOW]["account_seconds"] = {"on_cpu": 150.0, "blocked": 320.0, "preempted": 0.1, "wakeup_wait": 0, "throttled": 0, "stopped": 9.0}


def diagnosed_before(records):
    """The diagnosis is of an earlier revision, in which a stop was just long enough to be a cause."""
    then = copy.deepcopy(records[VARIANCE])
    then["causes"][0].update(lost_seconds=1.89)
    then["causes"][1].update(lost_seconds=0.11)
    then.update(lost_seconds=2.0, judged_seconds=4.0, performance=0.5, caused_seconds=6.0, revision=0)
    records[DIAGNOSIS].update(revision=0, verdict="rank 0 lost 2.00 s: hog (pid 9) ran on its CPU; 0.11 s of it stopped", factors=[
        factor("suspension", None, 2.0), factor("preempted", "suspension", 1.89), factor("stopped", "suspension", 0.11)])
    records[VARIANCE]["causes"] = [{**records[VARIANCE]["causes"][0], "lost_seconds": 3.0}]
    records.insert(VARIANCE, then)


def switched(records):
    """Many switches cost time on the CPU, without much time off it."""
    records[VARIANCE]["causes"][0].update(cause="involuntary_switches", culprit=None)
    records[DIAGNOSIS].update(interferers=[], verdict="rank 0 lost 3.00 s: 67 % involuntary switches; 1.0 s of it stopped",
                              advice="rank 0: were switched out more often; bind ranks and daemons apart",
                              factors=[factor("kernel", None, 2.0), factor("suspension", None, 1.0), factor("stopped", "suspension", 1.0)])


def half_of_a_run(records):
    """After a rotation of logs: no begin of the run, and regions that are known from their causes alone."""
    del records[VARIANCE], records[HELLO]
    records[0]["begin"] = at(12)


def taken_over(records):
    """The causes at the end are of all regions of the job, and those of before are in the output of another worker."""
    del records[VARIANCE]
    records[HELLO] = {"type": "judging", "job": "j", "time": at(0), "reason": "taken_over", "from": at(0)}


def a_node_begins_later(records):
    """The output of a worker has what each node says of itself, at whatever time it comes."""
    late = {**records[HELLO], "host": "node2"}
    window, heatmap = copy.deepcopy(records[WINDOW]), copy.deepcopy(records[HEATMAP])
    records.insert(HELLO, {"type": "judging", "job": "j", "time": at(0), "reason": "new"})
    records[FIRST + 1:FIRST + 1] = [late, window, heatmap]


# what is no contradiction, though it looks like one
ALLOWED = {
    "a node that begins later": a_node_begins_later,
    "threads wait": hybrid,
    "stopped at the end of a window": stopped_at_the_border,
    "a diagnosis of an earlier revision": diagnosed_before,
    "half of a run": half_of_a_run,
    "the other half of a job": taken_over,
    "lines that the output lost": lambda r: (r.pop(VARIANCE), r.append({"type": "bye", "totals": {"lost_lines": 3}})),
    "a share that was rounded to the bound": lambda r: (r[SECOND].update(severity="critical", rated_pct=5.0, denominator_seconds=70.0)),
    "a share that was rounded below the bound": lambda r: (r[SECOND].update(rated_pct=5.0, denominator_seconds=70.0)),
    "a share that is not known": lambda r: r[SECOND].update(rated_pct=None, denominator_seconds=None),
    "advice on switches": switched,
    "a rank of the job that is not listed": lambda r: (
        [cause.update(culprit="app") for cause in r[VARIANCE]["causes"] if cause["culprit"] == "hog"],
        r[DIAGNOSIS].update(interferers=[], verdict=r[DIAGNOSIS]["verdict"].replace("hog (pid 9)", "app (pid 9, a rank of the job)"),
                            advice="Threads of the job ran on each other's CPUs: bind them")),
}


def write(path, records):
    with open(path, "w", encoding="utf-8") as file:
        file.write("no record\n" + "".join(json.dumps(record) + "\n" for record in records))


def in_a_file(records):
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "records.ndjson"), records)
        return contradictions.in_file(os.path.join(folder, "records.ndjson"))


class Contradictions(unittest.TestCase):
    def test_a_folder(self):
        """Runs that share a file are judged each for itself; files without results and older files are not counted."""
        planted = copy.deepcopy(sound())
        PLANTED["critical below the bound"][1](planted)
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "below"))
            write(os.path.join(folder, "two_runs.ndjson"), sound() + sound())
            write(os.path.join(folder, "below", "planted.ndjson"), sound() + planted)
            write(os.path.join(folder, "truth.ndjson"), [{"rank": 0}])
            write(os.path.join(folder, "old.ndjson"), planted)
            os.utime(os.path.join(folder, "old.ndjson"), (1000, 1000))
            files, found = contradictions.below([folder], 2000)
        self.assertEqual((files, len(found)), (2, 1), found)
        self.assertIn("planted.ndjson: severity: ", found[0])

    def test_keys_are_those_of_records(self):
        """Each key that is looked up by `get` is one of the table of records: a key that was renamed would be found nowhere."""
        with open(os.path.join(ROOT, "tools", "contradictions.py"), encoding="utf-8") as file:
            keys = set(re.findall(r"""(?:record|window|variance|diagnosis|cause|row|factor)\.get\("(\w+)"\)""", file.read()))
        with open(os.path.join(ROOT, "user", "records", "records.def"), encoding="utf-8") as file:
            known = set(re.findall(r"^KEY\(\w+, (\w+),", file.read(), re.M))
        self.assertGreater(len(keys), 5)
        self.assertEqual(keys - known, set())

    def test_a_sound_run(self):
        self.assertEqual(contradictions.contradictions(sound()), [])

    def test_each_planted_one_is_found(self):
        for name, (kind, plant) in PLANTED.items():
            with self.subTest(name):
                records = copy.deepcopy(sound())
                plant(records)
                self.assertIn(kind, [found for found, _ in in_a_file(records)])

    def test_what_is_allowed(self):
        for name, change in ALLOWED.items():
            with self.subTest(name):
                records = copy.deepcopy(sound())
                change(records)
                self.assertEqual(in_a_file(records), [])

    def test_rounding(self):
        """Of six microseconds a loss of 2 % is none in seconds of six digits."""
        variance = {"performance": 0.977, "lost_seconds": 0, "judged_seconds": 6e-06, "slow_path": False}
        self.assertEqual(list(contradictions.check_performance(variance, "1")), [])
        variance.update(judged_seconds=6e-03)
        self.assertEqual(len(list(contradictions.check_performance(variance, "1"))), 1)

    def test_remedies_are_those_of_advice(self):
        """Each expression finds a sentence in the sources: of a text that was changed it would find nothing any more."""
        texts = ""
        for name in ("advice.c", "factor_table.c"):
            with open(os.path.join(ROOT, "user", "diagnose", name), encoding="utf-8") as file:
                texts += re.sub(r'"\s*\n\s*"', "", file.read())
        for factor_name, expression in contradictions.REMEDIES.items():
            for part in expression.pattern.split("|"):
                self.assertRegex(texts, part, factor_name)

    def test_every_kind_is_planted(self):
        listed = re.findall(r"^([a-z]+) +\S", contradictions.__doc__.partition("agree:")[2], re.M)
        self.assertEqual({kind for kind, _ in PLANTED.values()}, set(listed))

    def test_a_job_that_was_taken_over(self):
        """A worker that goes on with a job has no windows of the time in which its regions began."""
        records = sound()
        records[WINDOW].update(begin=at(12))
        self.assertEqual(list(contradictions.contradictions(records)), [])

    def test_times(self):
        self.assertEqual(contradictions.seconds("1970-01-02T00:00:01.500000000Z"), 86401.5)
        self.assertEqual(contradictions.seconds("2024-03-01T00:00:00.000000000Z") - contradictions.seconds("2024-02-28T00:00:00.000000000Z"),
                         2 * 86400)

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.ndjson")
            for plant, status in ((None, 0), (PLANTED["critical below the bound"][1], 1)):
                records = copy.deepcopy(sound())
                if plant:
                    plant(records)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("no record\n" + "".join(json.dumps(record) + "\n" for record in records))
                run = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "contradictions.py"), path], capture_output=True, text=True,
                                     check=False)
                self.assertEqual(run.returncode, status, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("\n"), status, run.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
