#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
What is written has the keys of the table of records and no others: the lines of the unit tests, of an analysis and of a
comparison against the schema without additional keys.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402


def run(*words, **options):
    return subprocess.run([os.path.join(BUILD, words[0]), *words[1:]], capture_output=True, text=True, check=False, **options)


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(run("tools/print_schema", "--strict").stdout)
        cls.validator = jsonschema.Draft7Validator(schema)
        cls.directory = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def check(self, lines):
        """Validates lines; returns the types of their records."""
        records = [json.loads(line) for line in lines.splitlines()]
        for record in records:
            faults = [f"{record['type']}/{'/'.join(map(str, fault.absolute_path))}: {fault.message[:200]}"
                      for fault in self.validator.iter_errors(record)]
            self.assertEqual(faults, [])
        return {record["type"] for record in records}

    def capture(self, name, *options):
        made = run("tests/make_capture", "--ranks", "16", "--seconds", "40", *options, self.path(name))
        self.assertEqual(made.returncode, 0, made.stderr)
        return self.path(name)

    def test_schema_has_every_key(self):
        with open(os.path.join(ROOT, "user", "records", "records.def"), encoding="utf-8") as file:
            keys = re.findall(r"^KEY\((\w+), (\w+),", file.read(), re.M)
        self.assertGreater(len(keys), 400)
        for strict in ((), ("--strict",)):
            definitions = json.loads(run("tools/print_schema", *strict).stdout)["definitions"]
            for part, key in keys:
                self.assertTrue(definitions[part]["properties"][key]["description"], (part, key))
                self.assertEqual(definitions[part].get("additionalProperties"), False if strict else None, part)

    def test_lines_of_unit_tests(self):
        types = set()
        for room, name in (("report", "test_json"), ("report", "test_hang_text"), ("report", "test_lines"), ("report", "test_variability_lines"),
                           ("report", "test_profile_lines"),
                           ("analysis", "test_causes")):
            file = self.path(name)
            done = run(f"test/{room}", name, env={**os.environ, "VAPRO_TEST_LINES": file})
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(file, encoding="utf-8") as lines:
                types |= self.check(lines.read())
        self.assertEqual(types, {"hello", "process", "window", "heatmap", "variance", "diagnosis", "imbalance", "drift", "rare", "noise", "hang",
                                 "variability", "rank_profile", "earlier", "cause", "warning", "bye"})

    def test_analysis(self):
        capture = self.capture("slow", "--noise", "0.05", "--counters")
        done = run("vapro", "analyze", "--output", "-", capture)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(contradictions.contradictions([json.loads(line) for line in done.stdout.splitlines()]), [])
        self.assertLessEqual({"hello", "window", "heatmap", "variance", "diagnosis", "cause"}, self.check(done.stdout))

    def test_comparison(self):
        done = run("vapro", "diff", "--json", "--all", self.capture("one"), self.capture("two", "--seed", "2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.check(done.stdout), {"diff"})
        self.assertIn("state", {json.loads(line)["what"] for line in done.stdout.splitlines()})

    def test_many_runs(self):
        captures = [self.capture(f"day{seed}", "--seed", str(seed), *(["--noise", "0.05"] if seed == 3 else [])) for seed in range(1, 7)]
        done = run("vapro", "runs", "--json", *captures)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.check(done.stdout), {"runs"})
        self.assertEqual([json.loads(line)["what"] for line in done.stdout.splitlines()][:7], ["all"] + 6 * ["run"])

    def test_it_can_fail(self):
        head = {"schema": "vapro/1", "time": "2027-01-15T08:00:00.000000000Z", "host": "n1", "type": "warning"}
        right = {**head, "code": "c", "text": "t", "pid": None}
        self.assertEqual(self.check(json.dumps(right)), {"warning"})
        for wrong in ({**right, "unknown": 1}, {**right, "pid": "1"}, {**head, "code": "c"}, {**right, "type": "forecast"}):
            with self.assertRaises(AssertionError):
                self.check(json.dumps(wrong))


if __name__ == "__main__":
    unittest.main()
