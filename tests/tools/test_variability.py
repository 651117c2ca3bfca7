#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`vapro variability`: the same workloads from a capture and from its records, as a table and as JSON, in the page and in a view."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
RANKS = 16


class Variability(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", str(RANKS), "--seconds", "60", "--noise", "0.05",
                        cls.path("run.capture")], check=True, stdout=subprocess.DEVNULL)
        cls.vapro("analyze", "--output", "run.ndjson", "run.capture", codes=(0, 1))
        with open(cls.path("run.ndjson"), encoding="utf-8") as file:
            cls.lines = file.read().splitlines()
        cls.records = [record for record in map(json.loads, cls.lines) if record["type"] == "variability"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def vapro(cls, *words, codes=(0,)):
        done = subprocess.run([os.path.join(BUILD, "vapro"), *words], capture_output=True, text=True, check=False, cwd=cls.folder.name,
                              timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode not in codes:
            raise AssertionError(f"{words}: {done.returncode} {done.stderr}")
        return done

    def test_records(self):
        """One record of each workload, at the end, most time first, of all ranks; their time is no more than that of the job."""
        self.assertGreaterEqual(len(self.records), 4)
        self.assertEqual(len({record["state_id"] for record in self.records}), len(self.records))
        seconds = [record["seconds"] for record in self.records]
        self.assertEqual(seconds, sorted(seconds, reverse=True))
        self.assertLessEqual(sum(seconds), 60 * RANKS)
        for record in self.records:
            self.assertEqual(record["ranks"], RANKS)
            self.assertGreaterEqual(record["batches"] * record["fragments_per_batch"], 5 * record["batches"])
            self.assertLessEqual(record["temporal"]["median_pct"], record["temporal"]["worst_pct"])

    def test_json(self):
        for name in ("run.ndjson", "run.capture"):
            printed = [json.loads(line) for line in self.vapro("variability", "--json", name).stdout.splitlines()]
            self.assertEqual(printed, self.records)

    def test_table(self):
        lines = self.vapro("variability", "run.ndjson").stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["kind", "origin", "time"])
        kinds = [line.split()[:2] for line in lines[1:] if not line.startswith(" ")]
        self.assertEqual(kinds, [[record["kind"], record["origin"]] for record in self.records])

    def test_job(self):
        self.assertEqual(self.vapro("variability", "--json", "--job", "sim:1", "run.ndjson").stdout.count("\n"), len(self.records))
        self.assertEqual(self.vapro("variability", "--json", "--job", "sim:2", "run.ndjson").stdout, "")

    def test_none(self):
        """Output without its end has no such records: that is said, and is no failure."""
        with open(self.path("cut.ndjson"), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self.lines if '"type":"variability"' not in line)
        self.assertIn("the end of the run is not in the input", self.vapro("variability", "cut.ndjson").stdout)
        self.assertEqual(self.vapro("variability", "--json", "cut.ndjson").stdout, "")

    def test_wrong_input(self):
        self.assertIn("vapro variability: ", self.vapro("variability", "missing.ndjson", codes=(1,)).stderr)
        self.assertIn("needed, not both", self.vapro("variability", codes=(2,)).stderr)
        with open(self.path("bad.ndjson"), "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in [*self.lines, "{"])
        done = self.vapro("variability", "--json", "bad.ndjson", codes=(1,))
        self.assertEqual(len(done.stdout.splitlines()), len(self.records))
        self.assertIn("1 bad line was refused", done.stderr)

    def test_view(self):
        self.assertIn("Variability of equal work, by batches\nkind ", self.vapro("view", "--all", "run.ndjson").stdout)
        self.assertNotIn("Variability", self.vapro("view", "run.ndjson").stdout)

    def test_page(self):
        self.vapro("report", "--html", "run.html", "run.ndjson")
        with open(self.path("run.html"), encoding="utf-8") as file:
            text = file.read()
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        self.assertEqual([(one["kind"], one["seconds"]) for one in data["variability"]],
                         [(record["kind"], record["seconds"]) for record in self.records])
        for one, record in zip(data["variability"], self.records):
            self.assertAlmostEqual(one["worst"], record["temporal"]["worst_pct"] / 100, 6)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
