#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The judges of make accept WHAT=programs on made-up runs, right and wrong ones. Starts no program of vapro."""
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import live_score  # noqa: E402
import programs_bystanders as bystanders  # noqa: E402
import programs_common as common  # noqa: E402
import programs_coverage as coverage  # noqa: E402
import programs_floor as floor  # noqa: E402
import programs_inject as inject  # noqa: E402
import programs_kernel as kernel  # noqa: E402
import programs_overhead as overhead  # noqa: E402
import programs_score as score  # noqa: E402
import programs_sentences as sentences  # noqa: E402
import truth as t  # noqa: E402
from programs_list import PROGRAMS  # noqa: E402

BASE, OFFSET = 5_000_000_000_000, 1_790_000_000_000_000_000


def at(seconds):
    """CLOCK_MONOTONIC of a made-up run."""
    return BASE + int(seconds * 1e9)


def utc(seconds):
    return t.format_time(at(seconds) + OFFSET)


def hello():
    return {"type": "hello", "clock": {"mono_ns": BASE, "utc": utc(0)}}


def variance(number, begin, end, **changes):
    return {"type": "variance", "id": number, "revision": 1, "class": "computation", "ranks": "1", "threads": [], "alarm": True,
            "confidence": "confirmed", "evidence": "", "effect_of": None, "lost_seconds": 1.0, "culprits": [], "begin": utc(begin),
            "end": utc(end), **changes}


def diagnosis(number, factor, *interferers, **more):
    return {"type": "diagnosis", "variance": number, "factors": [{"name": factor, "major": True}],
            "interferers": [{"comm": comm, "seconds": 1.0} for comm in interferers], **more}


def injection(kind, begin=10, end=12, lost=1.0, **changes):
    return {"kind": kind, "rank": 1, "ranks": [0, 1], "tids": [], "begin": at(begin), "end": at(end), "lost_s": lost, **changes}


def verdict(records, one):
    return score.score(score.variances_of([hello(), *records]), one)


class Live(unittest.TestCase):
    def test_scores(self):
        live_score.self_test()


class Scores(unittest.TestCase):
    def test_hog(self):
        found = verdict([variance(3, 10.1, 12.2), diagnosis(3, "preempted", "hog")], injection("hog"))
        self.assertTrue(found["found"] and found["borders"] and found["loss"])
        self.assertEqual((found["begin_off_ms"], found["end_off_ms"]), (100, 200))
        for changes, word in (({"ranks": "0"}, "place"), ({"ranks": "0-1"}, "place"), ({"ranks": "?"}, "place"), ({"alarm": False}, "alarm")):
            found = verdict([variance(3, 10.1, 12.2, **changes), diagnosis(3, "preempted", "hog")], injection("hog"))
            self.assertFalse(found["found"])
            self.assertIn(word, found["why"])
        self.assertIn("culprit", verdict([variance(3, 10, 12), diagnosis(3, "preempted", "other")], injection("hog"))["why"])
        self.assertIn("cause", verdict([variance(3, 10, 12), diagnosis(3, "on_cpu", "hog")], injection("hog"))["why"])
        self.assertEqual(verdict([variance(3, 13, 14)], injection("hog"))["why"], "no variance meets its time")

    def test_borders_and_loss(self):
        late = verdict([variance(3, 10.5, 12), diagnosis(3, "throttled")], injection("quota"))
        self.assertTrue(late["found"] and not late["borders"])
        self.assertFalse(verdict([variance(3, 10, 12, lost_seconds=1.2), diagnosis(3, "throttled")], injection("quota"))["loss"])
        self.assertTrue(verdict([variance(3, 10, 12, lost_seconds=1.9), diagnosis(3, "stopped")], injection("stop", lost=[1, 2]))["loss"])
        self.assertIsNone(verdict([variance(3, 10, 12), diagnosis(3, "stopped")], injection("stop", lost=None))["loss"])

    def test_logged_loss(self):
        truth = t.Truth(0)
        truth.io, truth.expected = {1}, {1: 10}
        # a segment of 10 and IO of 10 and 30 by turns; from 400 on a segment takes 15 and IO 40
        at = 0
        for i in range(20):
            took, io = (10, 10 + 20 * (i % 2)) if at < 400 else (15, 40)
            truth.segments.append((1, at, took))
            at += took + io
        begin = next(s for _, s, took in truth.segments if took == 15)
        inside = sum(s >= begin for _, s, _ in truth.segments)
        one = {"begin": begin, "end": at}
        self.assertAlmostEqual(inject.logged_loss_s(truth, one, [one]) * 1e9, inside * 5 + (inside - 1) * (40 - 20), delta=25)

    def test_loss_of_cpu_time(self):
        self.assertEqual(score.loss_of_cpu_time(1.0, None), 1.0)
        self.assertEqual(score.loss_of_cpu_time(1.0, 0.9), 1.0)
        self.assertEqual(score.loss_of_cpu_time(1.0, 1.1), [1.0, 1.1])
        hog = [variance(3, 10, 12, lost_seconds=1.15), diagnosis(3, "preempted", "hog")]
        self.assertFalse(verdict(hog, injection("hog", lost=score.loss_of_cpu_time(1.0, None)))["loss"])
        self.assertTrue(verdict(hog, injection("hog", lost=score.loss_of_cpu_time(1.0, 1.1)))["loss"])
        self.assertFalse(verdict(hog, injection("hog", lost=score.loss_of_cpu_time(1.0, 1.02)))["loss"])
        # a third of the loss is a slower CPU, which the diagnosis separates
        hog[1]["factors"].append({"name": "suspension", "major": True, "contribution_pct_of_level": 70, "impact_seconds": 0.99})
        hog[0]["lost_seconds"] = 1.5
        found = verdict(hog, injection("hog"))
        self.assertEqual((found["loss"], found["said_s"], found["whole_s"]), (True, 0.99, 1.5))
        self.assertFalse(verdict(hog, injection("hog", lost=1.5))["loss"])
        entry = {"rows": [], "group": None, "result": {"alarms": [], "others": 0, "injections": [
            {**injection("hog"), "kernel_s": 1.0, **verdict(hog, injection("hog", lost=[1.0, 1.1]))}]}}
        rows = {row["what"]: row["measured"] for row in inject.table({"lammps": {"run1": entry}}, 0)}
        self.assertEqual(rows["hog, duty, quota: loss as it is judged, by the kernel's time alone, and with what the CPU was slower"],
                         "1 of 1 (100%), 1 of 1 (100%), 0 of 1 (0%)")

    def test_overlap(self):
        for begin, end, found in ((11.7, 11.9, False), (11, 12, True), (5, 20, False)):
            records = [variance(3, begin, end), diagnosis(3, "stopped")]
            self.assertEqual(verdict(records, injection("stop"))["found"], found, (begin, end))

    def test_parts_count_together(self):
        records = [variance(3, 10, 11, lost_seconds=0.6), diagnosis(3, "stopped"), variance(4, 11.2, 12, lost_seconds=0.4), diagnosis(4, "stopped")]
        found = verdict(records, injection("stop"))
        self.assertEqual((found["parts"], found["said_s"], found["borders"], found["loss"]), (2, 1.0, True, True))

    def test_last_revision_counts(self):
        withdrawn = variance(3, 10, 12, revision=2, alarm=False)
        self.assertFalse(verdict([variance(3, 10, 12), withdrawn, diagnosis(3, "stopped")], injection("stop"))["found"])

    def test_threads(self):
        one = injection("hog", tids=[71], rank=0)
        for tids, found in (([71], True), ([70, 71], False), ([70], False)):
            threads = [{"rank": -1, "thread": tid - 70, "tid": tid} for tid in tids]
            records = [variance(3, 10, 12, ranks="?", threads=threads), diagnosis(3, "preempted", "hog")]
            self.assertEqual(verdict(records, one)["found"], found, tids)

    def test_late(self):
        waiting = variance(3, 10, 12, **{"class": "communication"}, ranks="0", alarm=False, culprits=[{"rank": 1}])
        self.assertTrue(verdict([waiting], injection("late"))["found"])
        self.assertFalse(verdict([dict(waiting, culprits=[{"rank": 0}])], injection("late"))["found"])
        self.assertTrue(verdict([variance(3, 10, 12)], injection("late"))["found"])
        self.assertTrue(verdict([variance(3, 10, 12, alarm=False)], injection("late"))["found"])
        self.assertFalse(verdict([variance(3, 10, 12, alarm=False, ranks="0")], injection("late"))["found"])
        self.assertEqual(verdict([waiting, variance(4, 10, 12)], injection("late"))["said_s"], 1.0)
        # slow IO of that rank afterwards is another matter
        self.assertTrue(verdict([variance(3, 10, 12), variance(4, 12, 14, **{"class": "io"})], injection("late"))["borders"])

    def test_late_thread(self):
        one = injection("late", tids=[71], rank=0)
        known = variance(2, 1, 2, threads=[{"rank": -1, "thread": 1, "tid": 71}])
        waiting = variance(3, 10, 12, ranks="?", alarm=False, threads=[{"rank": -1, "thread": 0, "tid": 70}], culprits=[{"rank": -1, "thread": 1}])
        self.assertTrue(verdict([known, waiting], one)["found"])
        self.assertFalse(verdict([known, dict(waiting, culprits=[{"rank": -1, "thread": 0}])], one)["found"])
        # no probe shows what the threads of the team do
        main = variance(3, 10, 12, alarm=False, ranks="0", threads=[{"rank": 0, "thread": 0, "tid": 70}])
        self.assertFalse(verdict([main], one)["found"])
        self.assertTrue(verdict([dict(main, team_unseen=True)], one)["found"])
        self.assertFalse(verdict([dict(main, team_unseen=True, ranks="1")], one)["found"])
        # its own work, and another thread of the rank that waits for it
        team = [{"rank": 0, "thread": 0, "tid": 70}, {"rank": 0, "thread": 1, "tid": 71}]
        own = variance(3, 10, 12, ranks="0", threads=team[1:])
        effect = variance(4, 10, 12, ranks="0", threads=team[:1], effect_of=3, culprits=[{"rank": 0, "thread": 1}])
        self.assertEqual(verdict([own, effect], one)["said_s"], 1.0)

    def test_thread_of_a_rank(self):
        """Where a variance has all threads of the rank, the first culprit is the one that counts."""
        one = injection("hog", tids=[71], rank=0)
        threads = [{"rank": 0, "thread": 0, "tid": 70}, {"rank": 0, "thread": 1, "tid": 71}]
        both = variance(3, 10, 12, ranks="0", threads=threads, culprits=[{"rank": 0, "thread": 1}, {"rank": 0, "thread": 0}])
        said = diagnosis(3, "preempted", "hog")
        self.assertTrue(verdict([both, said], one)["found"])
        self.assertFalse(verdict([dict(both, culprits=both["culprits"][::-1]), said], one)["found"])
        self.assertFalse(verdict([dict(both, ranks="0-1"), said], one)["found"])

    def test_freeze(self):
        io = {"class": "io", "ranks": "0-1"}
        self.assertTrue(verdict([variance(3, 10, 12, **io), diagnosis(3, "blocked_io")], injection("freeze"))["found"])
        self.assertIn("cause", verdict([variance(3, 10, 12, **io), diagnosis(3, "preempted")], injection("freeze"))["why"])
        self.assertIn("class", verdict([variance(3, 10, 12), diagnosis(3, "blocked_other")], injection("freeze"))["why"])

    def test_other_alarms(self):
        truth = t.Truth(0)
        truth.segments = [(1, at(i * 0.01), 9_000_000) for i in range(2000)]
        truth.learn()
        records = [hello(), variance(3, 10, 12), diagnosis(3, "preempted", "hog"), variance(4, 15, 16, ranks="0", lost_seconds=0.4)]
        scored = score.score_run(records, [injection("hog")], {0: truth}, lambda v: 0.0)
        self.assertEqual([(a["id"], a["ok"]) for a in scored["alarms"]], [(4, False)])
        self.assertTrue(score.score_run(records, [injection("hog")], {0: truth}, lambda v: 0.3)["alarms"][0]["ok"])
        truth.segments = [(sid, start, took + (5_000_000 if at(15) < start < at(16) else 0)) for sid, start, took in truth.segments]
        self.assertTrue(score.score_run(records, [injection("hog")], {0: truth}, lambda v: 0.0)["alarms"][0]["ok"])
        self.assertTrue(score.score_run([hello(), variance(4, 15, 16, ranks="?", lost_seconds=0.4)], [], {0: truth}, lambda v: 0.0)["alarms"][0]["ok"])
        # the machine was slow for most of the run: the log's fastest pieces show it, its median does not
        slow = [(sid, start, 9_000_000 + (5_000_000 if start > at(5) else 0)) for sid, start, _ in truth.segments]
        truth.segments = slow
        truth.learn()
        self.assertEqual(truth.lost_ns(at(15), at(16)), 0)
        self.assertTrue(score.score_run([hello(), variance(4, 15, 16, ranks="0", lost_seconds=0.5)], [], {0: truth}, lambda v: 0.0)["alarms"][0]["ok"])
        # an alarm of another rank at the time of an injection is about it where it names the victim, and only there
        beside = variance(5, 10, 12, ranks="0")
        self.assertEqual(len(score.score_run([hello(), beside], [injection("hog")], {}, lambda v: 0.0)["alarms"]), 1)
        beside["culprits"] = [{"rank": 1}]
        self.assertEqual(score.score_run([hello(), beside], [injection("hog")], {}, lambda v: 0.0)["alarms"], [])

    def test_groups(self):
        good = {"found": True, "borders": True, "loss": True}
        bad = {"found": False, "borders": None, "loss": None}
        self.assertTrue(all(row["ok"] for row in score.group_rows("x", [good] * 10, 10)))
        self.assertFalse(any(row["ok"] for row in score.group_rows("x", [good] * 9, 10)))
        self.assertEqual([row["ok"] for row in score.group_rows("x", [good] * 18 + [bad] * 2, 10)], [False, True, True])
        self.assertTrue(score.group_rows("x", [good] * 19 + [bad])[0]["ok"])


class Joining(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.store = common.Store(os.path.join(self.directory.name, "abc"))
        self.measured = []

    def tearDown(self):
        self.directory.cleanup()

    def units(self, failing=()):
        def unit(program, name):
            def measure(directory, progress):
                self.measured.append((program, name))
                if (program, name) in failing:
                    raise RuntimeError("it failed")
                return {"rows": [t.row("figure", name, "-", True)]}
            return common.Unit(program, name, 10, measure)
        return [unit(program, name) for program in ("one", "two") for name in ("a", "b")]

    def go(self, units, minutes=1, **options):
        return common.do_units(self.store, "part", units, common.Options(**options), common.Progress("part", minutes, io.StringIO()))

    def test_programs_alternate(self):
        self.go(self.units())
        self.assertEqual(self.measured, [("one", "a"), ("two", "a"), ("one", "b"), ("two", "b")])

    def test_resumes(self):
        self.assertEqual(self.go(self.units(failing=[("two", "a")])), 0)
        self.measured.clear()
        self.go(self.units())
        self.assertEqual(self.measured, [("two", "a")])  # what failed, and nothing else
        self.measured.clear()
        self.go(self.units(), again=True, programs=["one"])
        self.assertEqual(self.measured, [("one", "a"), ("one", "b")])

    def test_time(self):
        self.assertEqual(self.go(self.units(), minutes=0.1), 4)
        self.assertEqual(self.measured, [])
        rows = common.rows_of_units(self.store.joined("part"), 4)
        self.assertEqual([row["ok"] for row in rows], [False])

    def test_quick_ones_are_measured_again(self):
        self.go(self.units(), quick=True)
        self.measured.clear()
        self.go(self.units())
        self.assertEqual(len(self.measured), 4)

    def test_noisy_ones_are_measured_again_on_request(self):
        self.go(self.units())
        entry = self.store.get("part", "one", "b")
        self.store.put("part", "one", "b", {**entry, "noisy": True})
        self.measured.clear()
        self.go(self.units())
        self.assertEqual(self.measured, [])
        self.go(self.units(), noisy=True)
        self.assertEqual(self.measured, [("one", "b")])

    def test_joined(self):
        self.go(self.units(failing=[("one", "b")]), programs=["one"])
        self.go(self.units(), programs=["two"])
        rows = common.rows_of_units(self.store.joined("part"), 0)
        self.assertEqual([(row["what"], row["ok"]) for row in rows],
                         [("one: figure", True), ("one b: could not be measured", False), ("two: figure", True), ("two: figure", True)])
        name = self.store.join(["part", "other"])
        self.assertEqual(set(common.Store.read(name)["parts"]["part"]["two"]), {"a", "b"})


class Lock(unittest.TestCase):
    def test_one_at_a_time(self):
        with tempfile.TemporaryDirectory() as directory:
            with common.only_run(directory):
                with self.assertRaisesRegex(common.Busy, f"pid {os.getpid()}, since .* start this one when that has ended"):
                    with common.only_run(directory):
                        self.fail("two runs at a time")
            with common.only_run(directory):
                pass


class Coverage(unittest.TestCase):
    @staticmethod
    def window(begin, end, total, **uncovered):
        return {"type": "window", "begin": utc(begin), "end": utc(end), "overhead_pct": {"mean": 0.5, "max": 0.6},
                "coverage": {"total": total, "computation": total, "communication": 0, "io": 0},
                "uncovered": [{"reason": reason, "time_pct_of_job": share, "class": None, "state": None} for reason, share in uncovered.items()]}

    def test_weights(self):
        found = coverage.coverage_of([self.window(0, 10, 0.5, spread=50), self.window(10, 40, 0.9, rare=10)])
        self.assertAlmostEqual(found["total"], 0.8)
        self.assertAlmostEqual(found["reasons"]["spread"], 0.125)
        program = types.SimpleNamespace(wanted=0.75, hot=False)
        found.update(accounted=0.95, warnings=[])
        self.assertTrue(coverage.judge(found, program))
        program.wanted = 0.85
        self.assertFalse(coverage.judge(found, program))
        found = coverage.coverage_of([self.window(0, 10, 0.5, few_fragments=49, spread=1)])
        found.update(accounted=0.95, warnings=[])
        self.assertTrue(coverage.judge(found, program))

    def test_hot(self):
        found = {**coverage.coverage_of([self.window(0, 10, 0.1, governed=90)]), "accounted": 0.95, "warnings": ["governed"]}
        program = types.SimpleNamespace(wanted=0.75, hot=True)
        self.assertTrue(coverage.judge(found, program))
        self.assertFalse(coverage.judge({**found, "warnings": []}, program))
        self.assertFalse(coverage.judge({**found, "accounted": 0.5}, program))
        self.assertFalse(coverage.judge(found, types.SimpleNamespace(wanted=0.75, hot=False)))

    def test_nothing(self):
        with self.assertRaises(RuntimeError):
            coverage.coverage_of([hello()])

    def test_beside_a_hog(self):
        def entry(total, accounted=0.9, warnings=(), **reasons):
            found = coverage.coverage_of([self.window(0, 10, total, **(reasons or {"spread": 100 * (1 - total)}))])
            return {"rows": [], "found": {**found, "others": 0, "accounted": accounted, "warnings": warnings}}
        for beside, ok in ((0.71, True), (0.69, False)):
            rows = coverage.table({"posts": {"30s": entry(0.8), "30s_hog": entry(beside)}}, 0)
            self.assertEqual(rows[0]["ok"], ok)
        # regions that cannot be probed: the wait in them for a disturbed thread is accounted, where vaprod says so
        for program, accounted, warnings, ok in (("omp_small", 0.9, ["thinned"], True), ("omp_small", 0.5, ["thinned"], False), ("posts", 0.9, ["thinned"], False)):
            beside = entry(0.45, accounted, warnings, not_seen=55)
            rows = coverage.table({program: {"30s": entry(0.6), "30s_hog": beside}}, 0)
            self.assertEqual(rows[0]["ok"], ok, (program, accounted, warnings))

    def test_floor(self):
        self.assertEqual([floor.share_of([(cost, 10)]) for cost in (0, 0.5, 2.0)], [1.0, 1.0, 0.5])
        self.assertEqual(floor.share_of([(0.1, 10), (4, 10)]), 0.625)  # what a cheap window leaves is of no use in another
        self.assertEqual(floor.share_of([(4, 10)], traps=0.5), 0.5)
        self.assertEqual(floor.share_of([]), 1.0)
        own = {"probes_bpf_pct": 0.5, "switches_pct": 0.1, "vaprod_pct": 0.4}
        self.assertAlmostEqual(floor.traps_share({**own, "all_mean": 2.0}), 0.5)
        self.assertEqual([floor.traps_share({**own, "all_mean": mean}) for mean in (0.5, 0)], [0, 0])
        self.assertEqual([unit.name for unit in coverage.units(common.Options(["posts"]))].count("floor"), len(floor.MEASURED))

        def rows(total, share, covered=0.95):
            found = {**coverage.coverage_of([self.window(0, 10, total, governed=100 * (1 - total))]), "others": 0}
            return coverage.table({"posts": {"30s": {"rows": [], "found": found}, "floor": {"rows": [], "found": {"share": share, "covered": covered}}}}, 0)
        self.assertTrue(rows(0.42, 0.5)[0]["ok"])
        self.assertFalse(rows(0.3, 0.5)[0]["ok"])
        self.assertFalse(any("floor" in row["what"] for row in rows(0.3, 0.9)))  # the machine allows for enough
        self.assertFalse(any("floor" in row["what"] for row in rows(0.05, 0.5, covered=0.07)))  # it is not the budget that hides it

    def test_short_runs(self):
        records, program = [], PROGRAMS["kernels3"]
        for number, (begin, length, after) in enumerate(((0, 5, 0.5), (10, 5, 0.2), (20, 1, 0.2))):
            for rank in range(program.ranks):
                same = {"type": "process", "pid": 10 * number + rank, "start_time": utc(begin), "exe": "a", "build_id": "b",
                        "attach_cpu_ms": 9 if rank == 0 and not number else 0}
                records += [{**same, "state": "attached", "time": utc(begin + after)}, {**same, "state": "exited", "time": utc(begin + length)}]
            # a window has no part in the run's length
            records.append({**self.window(begin + after - number, begin + length + number, 0.5, not_seen=20), "job": str(number)})
        entry = coverage.short_entry(records, program)
        self.assertTrue(all(row["ok"] for row in entry["rows"]))
        self.assertAlmostEqual(entry["found"]["first of 5 s"]["seen"], 0.72)
        self.assertAlmostEqual(entry["found"]["first of 5 s"]["accounted"], 0.9)
        self.assertAlmostEqual(entry["found"]["first of 5 s"]["overhead_pct"], 0.9 * records[4]["overhead_pct"]["mean"] - 100 * 0.009 / 5 / 2)
        records[-1]["uncovered"][0]["time_pct_of_job"] = 90
        records[4]["uncovered"][0]["time_pct_of_job"] = 90
        records[-1]["overhead_pct"]["mean"] = 1.5  # of the 0.8 s of 1 s in which it was attached
        self.assertEqual([row["ok"] for row in coverage.short_entry(records, program)["rows"]], [False, True, True, True, True, False])


class Overhead(unittest.TestCase):
    def test_worst(self):
        self.assertAlmostEqual(overhead.worst_of([(1, 1)] * 5 + [(6, 1)] * 5 + [(1, 1)] * 5), 6)
        self.assertAlmostEqual(overhead.worst_of([(11, 1)] + [(1, 1)] * 9), 3)  # the first included
        self.assertAlmostEqual(overhead.worst_of([(2, 1), (4, 1)]), 3)
        self.assertIsNone(overhead.worst_of([]))

    @staticmethod
    def run_of(costs, attach_ms, begin=0.0, later_ms=0):
        """
        A run of two ranks of one image, in windows of 1 s; costs: [(mean, max)] in percent; later_ms: what of the second rank's
        cost came after its attachment.
        """
        same = {"type": "process", "exe": "a", "build_id": "b"}
        records = [{**same, "pid": pid, "state": "attached", "time": utc(begin), "attach_cpu_ms": ms - later_ms if pid else ms / 2}
                   for pid, ms in enumerate(attach_ms)]
        records += [{"type": "window", "begin": utc(i), "end": utc(i + 1), "overhead_pct": {"mean": mean, "max": most}}
                    for i, (mean, most) in enumerate(costs)]
        return records + [{**same, "pid": pid, "state": "exited", "time": utc(len(costs)), "attach_cpu_ms": ms}
                          for pid, ms in enumerate(attach_ms)]

    def test_first_attachment(self):
        # 40 ms of a rank's first second, which is 20 ms of the mean of two ranks; the second rank's 3 ms are not allowed
        found = overhead.model_of(self.run_of([(3, 6)] + [(1, 1)] * 9, (40, 3)))
        self.assertAlmostEqual(found["all_worst"], 2)
        self.assertAlmostEqual(found["worst"], 2 - 40 / 50)
        self.assertAlmostEqual(found["all_mean"], 1.2)
        self.assertAlmostEqual(found["mean"], 1.2 - 20 / 100)
        self.assertAlmostEqual(found["attach_ms"], 40)
        self.assertTrue(overhead.model_row(found)["ok"])
        for figure in ("1.00 %, 1.20 %", "1.20 %, 2.00 %", "40 ms"):
            self.assertIn(figure, overhead.model_row(found)["measured"])
        # the second rank was the first to read a library
        self.assertAlmostEqual(overhead.first_attach_ms(self.run_of([(1, 1)], (40, 13), later_ms=12)), 52)
        # no more than 100 ms, however much was reported
        found = overhead.model_of(self.run_of([(10, 20)] + [(1, 1)] * 9, (150, 3)))
        self.assertAlmostEqual(found["worst"], 4.8 - 2)
        self.assertFalse(overhead.model_row(found)["ok"])
        # no more than what was reported, and nothing of what comes after the first 5 s
        found = overhead.model_of(self.run_of([(1, 1)] * 5 + [(9, 9)] * 5, (2, 0)))
        self.assertAlmostEqual(found["worst"], 9)
        self.assertAlmostEqual(found["all_mean"] - found["mean"], 1 / 100)

    def test_without_is_bounded_by_the_cost(self):
        self.assertEqual(overhead.without([(1, 1), (0, 1), (2, 4)], 1000), [(0, 1), (0, 1), (0.5, 4)])

    def test_attached_time(self):
        # attached at 0.6 s of the first window of 1 s: its 5 % are 20 ms
        found = overhead.model_of(self.run_of([(5, 5)] + [(1, 1)] * 4, (0, 0), begin=0.6))
        self.assertAlmostEqual(found["mean"], (5 * 0.4 + 4) / 4.4)

    def test_hits(self):
        found = {"hits": 900, "returns": 400, "untracked": 100, "runs": 1410}
        self.assertTrue(overhead.hits_agree(found))
        self.assertFalse(overhead.hits_agree({**found, "runs": 1500}))
        self.assertFalse(overhead.hits_agree({**found, "runs": 1300}))
        self.assertTrue(overhead.hits_agree({"hits": 0, "returns": 0, "untracked": 0, "runs": 0}))

    @staticmethod
    def rounds(watched, control, control_said, noise=0.0):
        return [{"bare": 4.0, "watched": 4.0 * (1 + watched / 100 + noise * (-1) ** i), "control": 4.0 * (1 + control / 100), "said": watched,
                 "control_said": control_said} for i in range(10)]

    def test_rounds(self):
        good = overhead.judge_rounds(self.rounds(0.5, 5, 5))
        self.assertTrue(good["sensitive"] and not good["refuted"])
        self.assertTrue(overhead.judge_rounds(self.rounds(2, 5, 5))["refuted"])
        # the control is said to cost 5 %, and that does not show
        self.assertFalse(overhead.judge_rounds(self.rounds(0.5, 0.1, 5))["sensitive"])
        # nothing to spend a larger budget on: then the interval decides
        self.assertTrue(overhead.judge_rounds(self.rounds(0.5, 0.5, 0.5))["sensitive"])
        self.assertFalse(overhead.judge_rounds(self.rounds(0.5, 0.5, 0.5, noise=0.1))["sensitive"])


class Kernel(unittest.TestCase):
    def test_samples(self):
        sampler = kernel.Sampler([], [0, 1])
        sampler.samples = [{"mono_ns": at(s), "threads": {7: [int(s * 1e9), int(max(0, min(s, 12) - 10) * 5e8)]}, "steal": {0: 0, 1: int(s * 1e7)},
                            "vaprod_ns": 0} for s in range(21)]
        self.assertAlmostEqual(sampler.waited_s([7], at(9), at(13)), 1.0)
        self.assertAlmostEqual(sampler.waited_s([7], at(10.5), at(11.5)), 0.5)
        self.assertEqual(sampler.waited_s([8], at(9), at(13)), 0)
        self.assertAlmostEqual(sampler.stolen_s([1], at(5), at(10)), 0.05)
        self.assertAlmostEqual(sampler.others(), (1.0 + 0.2) / 40)
        sampler.pids, sampler.owners = [70], {7: 70}
        self.assertAlmostEqual(sampler.delay_s({"ranks": [0], "tids": [], "begin": at(9), "end": at(13)}), 1.04, places=2)
        self.assertTrue(kernel.is_quiet(0.009) and not kernel.is_quiet(0.01))
        self.assertIsNone(sampler.closed_share(at(0), at(1)))
        sampler.set = [(at(1), True), (at(2), False), (at(3), False)]
        self.assertAlmostEqual(sampler.closed_share(at(1), at(3)), 2 / 3)

    def test_what_has_ended_keeps_its_counts(self):
        process = subprocess.Popen(["sleep", "60"])
        sampler = kernel.Sampler([process.pid], [0])
        sampler.sample()
        process.kill()
        process.wait()
        sampler.sample()
        self.assertEqual([list(one["threads"]) for one in sampler.samples], [[process.pid], [process.pid]])
        for file in sampler.files.values():
            os.close(file)


class Plans(unittest.TestCase):
    def test_same_seed_same_plan(self):
        program = PROGRAMS["mpiio"]
        first = inject.plan(1, program.name, 1, program.kinds, [0, 1])
        self.assertEqual(first, inject.plan(1, program.name, 1, program.kinds, [0, 1]))
        self.assertNotEqual(first, inject.plan(2, program.name, 1, program.kinds, [0, 1]))
        self.assertEqual(sorted(one["kind"] for one in first), sorted(program.kinds))
        for one, following in zip(first, first[1:]):
            self.assertGreaterEqual(following["onset_s"] - one["onset_s"] - one["length_s"], inject.GAP[0] - 0.02)

    def test_numbers(self):
        runs = [unit for unit in inject.units(common.Options())]
        for program in PROGRAMS.values():
            self.assertEqual(sum(unit.program == program.name and "_run" in unit.name for unit in runs), 3)
        for group in ("closed", "first"):
            self.assertGreaterEqual(len(inject.GROUP_KINDS) * sum("_" + group in unit.name for unit in runs), 10)


class Others(unittest.TestCase):
    def test_bystanders(self):
        values = [{"none": 100, "this": 104, "reference": 103, "after": 102}, {"none": 102, "this": 105, "reference": 104, "after": 102}]
        found, apart = bystanders.added(values)
        self.assertEqual((found, apart), ({"this": 3.0, "reference": 2.0}, 2))
        entry = bystanders.entry_of("read", "ns", values, True)
        self.assertEqual([row["ok"] for row in entry["rows"]], [False, True])
        self.assertTrue(bystanders.entry_of("send", "ns", values, False)["rows"][0]["ok"])

    def test_stopped(self):
        records = [hello(), variance(3, 10, 12), diagnosis(3, "stopped", verdict="rank 1 was stopped by a signal")]
        self.assertTrue(all(row["ok"] for row in sentences.judge_stop(records, (at(10), at(12)), "stop")))
        wrong = [hello(), variance(3, 10, 12, ranks="0"), diagnosis(3, "blocked_other", verdict="transfers took longer")]
        self.assertFalse(any(row["ok"] for row in sentences.judge_stop(wrong, (at(10), at(12)), "stop")))

    def test_oversubscribed(self):
        said = diagnosis(3, "preempted", verdict="kernels3 (pid 12) and others ran 5 s on the CPUs of ranks 0-3: move or stop them")
        self.assertEqual([row["ok"] for row in sentences.judge_oversubscribed([said], {12, 13})], [False, False])
        said = diagnosis(3, "preempted", verdict="the job is oversubscribed: 4 runnable threads on 2 CPUs")
        self.assertEqual([row["ok"] for row in sentences.judge_oversubscribed([said], {12, 13})], [True, True])


if __name__ == "__main__":
    unittest.main()
