#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner of the live tests, on made-up tests: what runs side by side, second tries, and when these fail the run."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
import run as runner  # noqa: E402

PASSES = "echo 'ok 1 - good'; echo 1..1"
FAILS = "echo 'not ok 1 - bad'; echo '# 1 - bad: why' >&2; echo 1..1"
SECOND = f"if [ -e $0.seen ]; then {PASSES}; else touch $0.seen; {FAILS}; fi"
QUIET_MACHINE = {"steal_pct": 0.3, "others_pct": 4}


class Schedule(unittest.TestCase):
    def test_needs(self):
        self.assertEqual(runner.needs_of("#!/bin/sh\n# NEEDS: quiet\n"), {"quiet"})
        self.assertEqual(runner.needs_of("#!/bin/sh\n"), set())
        with self.assertRaises(ValueError):
            runner.needs_of("# NEEDS: silence\n")
        self.assertEqual([runner.room_of(needs) for needs in ({"quiet"}, {"little"}, set())], [2, 0.5, 1])

    def test_each_live_test_can_be_scheduled(self):
        tests = [name for name in os.listdir(runner.HERE) if name.endswith(".t")]
        self.assertGreater(len(tests), 30)
        for name in tests:
            with self.subTest(name), open(os.path.join(runner.HERE, name), encoding="utf-8") as file:
                runner.needs_of(file.read())

    def test_side_by_side(self):
        waiting = {"quiet": 2, "one": 1, "two": 1, "little": 0.5}
        self.assertEqual(runner.next_of(waiting, {}), "one")
        self.assertEqual(runner.next_of(waiting, {"other": 1}), "one")
        self.assertEqual(runner.next_of(waiting, {"other": 1, "third": 0.5}), "little")
        self.assertIsNone(runner.next_of(waiting, {"other": 1, "third": 1}))
        self.assertIsNone(runner.next_of({"quiet": 2}, {"little": 0.5}))
        self.assertIsNone(runner.next_of({"one": 1}, {"quiet": 2}))
        self.assertEqual(runner.next_of({"quiet": 2}, {}), "quiet")


class Results(unittest.TestCase):
    def test_passed(self):
        self.assertTrue(runner.passed("ok 1 - a\nok 2 - b\n1..2\n", 0))
        self.assertTrue(runner.passed("1..0 # SKIP no broker\n", 0))
        for tap, code in (("ok 1 - a\nnot ok 2 - b\n1..2\n", 0), ("ok 1 - a\n1..2\n", 0), ("ok 1 - a\n", 0), ("ok 1 - a\n1..1\n", 1), ("", -9)):
            self.assertFalse(runner.passed(tap, code), (tap, code))

    def test_load(self):
        """What a test's own processes use is not other programs'; what runs outside them is."""
        with mock.patch.object(runner.Load, "read", side_effect=[(100.0, 50.0, 1.0, 20.0), (110.0, 57.0, 1.5, 24.0)]):
            self.assertEqual(runner.Load().since(), (5.0, 30.0))

    def test_own_time(self):
        load = runner.Load()
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
        self.assertGreaterEqual(load.read()[3] - load.begin[3], 0.4)


class Runs(unittest.TestCase):
    """Whole runs of made-up tests."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="vapro-runner-")
        self.addCleanup(subprocess.run, ["rm", "-r", self.directory], check=True)
        paths = {"HERE": self.directory, "SCRATCH": self.directory, "RESULTS": os.path.join(self.directory, "results"), "FLAKY": os.path.join(self.directory, "flaky.json"),
                 "TIMES": os.path.join(self.directory, "times.json")}
        for name, path in paths.items():
            patch = mock.patch.object(runner, name, path)
            patch.start()
            self.addCleanup(patch.stop)

    def add(self, name, body, needs=None):
        path = os.path.join(self.directory, name + ".t")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + (f"# NEEDS: {needs}\n" if needs else "") + body + "\n")
        os.chmod(path, 0o755)

    def run_all(self, *words, load=QUIET_MACHINE):
        """(exit code of prove, what was printed, build/flaky.json)"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), mock.patch.object(runner.Load, "since", lambda self: (load["steal_pct"], load["others_pct"])), \
                mock.patch.object(runner.subprocess, "run", self.prove):
            code = runner.main(words)
        with open(runner.FLAKY, encoding="utf-8") as file:
            return code, printed.getvalue() + self.summary, json.load(file)

    def prove(self, *args, **kwargs):
        done = subprocess.Popen(*args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.summary = done.communicate()[0]
        return mock.Mock(returncode=done.returncode)

    def test_all_pass(self):
        self.add("a", PASSES)
        self.add("b", PASSES, "quiet")
        self.add("c", PASSES, "little")
        code, printed, flaky = self.run_all()
        self.assertEqual((code, flaky), (0, []))
        self.assertIn("Files=5, Tests=5", printed)
        self.assertIn("0 contradictions in 0 record files of 3 tests", printed)
        self.assertIn("Result: PASS", printed)

    def test_some(self):
        self.add("a", PASSES)
        self.add("b", FAILS)
        self.assertEqual(self.run_all("a")[0], 0)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(runner.main(["c"]), 2)

    def test_failure(self):
        for number, body in enumerate((FAILS, PASSES + "; exit 3", "echo 'ok 1 - good'", "kill -9 $$")):
            with self.subTest(body):
                self.add("a", body)
                code, printed, flaky = self.run_all()
                self.assertNotEqual(code, 0, number)
                self.assertEqual(flaky, [])
                self.assertIn("Result: FAIL", printed)

    def test_contradictions(self):
        """Records that contradict themselves fail a test as if it had said so; what was there before does not count."""
        times = '"begin":"2027-01-15T08:00:00.0Z","end":"2027-01-15T08:00:10.0Z"'
        window = '{"type":"window","job":"j",%s,"ranks":"0","world_size":1,"performance":{"computation":null}}' % times
        cause = ('{"type":"cause","time":"2027-01-15T08:00:10.0Z","job":"j","final":true,"number":1,"cause":"stopped","confirmed":true,"alarm":true,"severity":"%s","ranks":"0",'
                 '"lost_seconds":1,"caused_seconds":0,"cost_pct_of_job":10,"rated_pct":10,"denominator_seconds":10,%s}')
        variance = '{"type":"variance","job":"j","id":1,"effect_of":null,"class":"computation","ranks":"0","alarm":true,"slow_path":false,' \
            '"severity":"critical","lost_seconds":1,"caused_seconds":0,"cost_pct_of_job":10,"performance":0.5,%s}' % times
        for first, then, good in (("critical", "critical", True), ("info", "info", False), ("info", "critical", True)):
            with self.subTest(first=first, then=then):
                for name, severity in (("first", first), ("then", then)):
                    with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                        file.write("\n".join((window, variance, cause % (severity, times))) + "\n")
                self.add("a", f"cd {self.directory} && mkdir -p a && cp first a/out.ndjson && cp then first\n{PASSES}")
                code, printed, flaky = self.run_all()
                self.assertEqual(code == 0, good, printed)
                self.assertEqual(len(flaky), int(first != then))
                self.assertEqual("== failed: tests/live/a.t\ncontradiction: " in printed, not good, printed)
                with open(os.path.join(self.directory, "results", "contradictions.t"), encoding="utf-8") as file:
                    self.assertIn("\nok 1 -" if good else "not ok 1 - records contradict themselves nowhere: 1", file.read())
                self.assertIn(f"{int(not good)} contradictions in 1 record files of 1 tests", printed)

    def test_second_try(self):
        self.add("a", SECOND)
        self.add("b", PASSES)
        code, printed, flaky = self.run_all()
        self.assertEqual(code, 0)
        self.assertEqual(flaky, [{"test": "tests/live/a.t", "failure": "not ok 1 - bad\n# 1 - bad: why", **QUIET_MACHINE}])
        self.assertIn("passed in its second try: tests/live/a.t", printed)

    def test_three_second_tries_fail(self):
        for name in "abc":
            self.add(name, SECOND)
        code, printed, flaky = self.run_all()
        self.assertNotEqual(code, 0)
        self.assertEqual(len(flaky), 3)
        self.assertIn("Result: FAIL", printed)

    def test_on_a_disturbed_machine_they_do_not_count(self):
        for load in ({"steal_pct": 11, "others_pct": 0}, {"steal_pct": 0, "others_pct": 11}):
            with self.subTest(load):
                for name in "abc":
                    self.add(name, SECOND)
                    if os.path.exists(os.path.join(self.directory, name + ".t.seen")):
                        os.unlink(os.path.join(self.directory, name + ".t.seen"))
                code, printed, flaky = self.run_all(load=load)
                self.assertEqual((code, len(flaky)), (0, 3))
                self.assertEqual(printed.count("which does not count"), 3)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
