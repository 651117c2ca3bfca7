#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
`vapro analyze --fragments`, the time of each rank, and `vapro diff` and `vapro runs` as pages and tables: from a synthetic
capture whose content is known.
"""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
RANKS, SECONDS = 8, 40


class Fragments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for seed in (1, 2):
            subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", str(RANKS), "--seconds", str(SECONDS), "--seed", str(seed),
                            cls.path(f"run{seed}.capture")], check=True, stdout=subprocess.DEVNULL)
        cls.vapro("analyze", "--output", "run.ndjson", "--fragments", "all.ndjson", "run1.capture", codes=(0, 1))
        cls.records = [json.loads(line) for line in cls.lines("run.ndjson")]
        cls.fragments = [json.loads(line) for line in cls.lines("all.ndjson")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def lines(cls, name):
        with open(cls.path(name), encoding="utf-8") as file:
            return file.read().splitlines()

    @classmethod
    def vapro(cls, *words, codes=(0,)):
        done = subprocess.run([os.path.join(BUILD, "vapro"), *words], capture_output=True, text=True, check=False, cwd=cls.folder.name,
                              timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode not in codes:
            raise AssertionError(f"{words}: {done.returncode} {done.stderr}")
        return done

    def of_type(self, kind):
        return [record for record in self.records if record["type"] == kind]

    def test_all(self):
        """All fragments of the capture, each once, of all ranks."""
        windows = self.of_type("window")
        self.assertEqual(sum(one.get("n", 1) for one in self.fragments), sum(window["fragments"] for window in windows))
        self.assertEqual(len({json.dumps(one, sort_keys=True) for one in self.fragments}), len(self.fragments))
        self.assertEqual({one["rank"] for one in self.fragments}, set(range(RANKS)))

    def test_again(self):
        """An analysis of what was written says of coverage and performance what that of the capture says."""
        self.vapro("analyze", "--format", "ndjson", "--output", "again.ndjson", "all.ndjson", codes=(0, 1))
        again = [record for record in map(json.loads, self.lines("again.ndjson")) if record["type"] == "window"]
        self.assertEqual(sum(window["fragments"] for window in again), sum(window["fragments"] for window in self.of_type("window")))
        for one, other in zip(self.of_type("window")[1:-1], again[1:-1]):
            for key in ("computation", "communication"):
                self.assertAlmostEqual(one["coverage"][key], other["coverage"][key], 1)

    def test_region(self):
        """The fragments of a region are those of all that lie in it."""
        begin = int(re.sub(r"\D", "", "1800000000")) * 10**9
        self.vapro("analyze", "-o", "/dev/null", "--fragments", "part.ndjson", "--region", "2-3@12..20", "run1.capture", codes=(0, 1))
        wanted = [one for one in self.fragments if one["rank"] in (2, 3) and one["start_ns"] < begin + 20 * 10**9 and
                  one.get("end_ns", one["start_ns"] + one["duration_ns"]) > begin + 12 * 10**9]
        self.assertGreater(len(wanted), 100)
        self.assertEqual([json.loads(line) for line in self.lines("part.ndjson")], wanted)

    def test_csv(self):
        self.vapro("analyze", "-o", "/dev/null", "--fragments", "all.csv", "run1.capture", codes=(0, 1))
        with open(self.path("all.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(self.fragments))
        for row, one in zip(rows, self.fragments):
            self.assertEqual((int(row["rank"]), row["class"], int(row["n"]), int(row["start_ns"]), int(row["duration_ns"]), row["state_id"]),
                             (one["rank"], one["class"], one.get("n", 1), one["start_ns"], one["duration_ns"], one["state_id"]))

    def test_state(self):
        state = self.fragments[-1]["state_id"]
        self.vapro("analyze", "-o", "/dev/null", "--fragments", "state.ndjson", "--state", state, "run1.capture", codes=(0, 1))
        self.assertEqual([json.loads(line) for line in self.lines("state.ndjson")], [one for one in self.fragments if one["state_id"] == state])
        done = self.vapro("analyze", "-o", "/dev/null", "--fragments", "none.ndjson", "--state", "MPI_Nothing", "run1.capture", codes=(0, 1))
        self.assertIn("none.ndjson is empty", done.stderr)
        self.assertIn("needs --fragments", self.vapro("analyze", "--state", "x", "run1.capture", codes=(2,)).stderr)
        self.assertIn("cannot write", self.vapro("analyze", "-o", "/dev/null", "--fragments", "no/such/file", "run1.capture", codes=(1,)).stderr)

    def test_profile(self):
        """The evaluated time of all ranks is the seconds of the coverage, by class; parts are no more than the whole."""
        profiles = self.of_type("rank_profile")
        self.assertEqual([one["rank"] for one in profiles], list(range(RANKS)))
        for name in ("computation", "communication", "io"):
            covered = sum(part["covered_seconds"] for one in profiles for part in one["parts"] if part["class"] == name)
            wanted = 0
            for window in self.of_type("window"):
                begin, end = (int(window[key][17:19]) + 60 * int(window[key][14:16]) + float(window[key][19:29]) for key in ("begin", "end"))
                wanted += window["coverage"][name] * ((end - begin) % 3600) * RANKS
            # coverage is rounded
            self.assertAlmostEqual(covered, wanted, delta=1e-3 * RANKS * SECONDS)
        for one in profiles:
            self.assertLessEqual(sum(part["seconds"] for part in one["parts"]), one["seconds"] + 1e-3)
            functions = {part["function"] for part in one["parts"] if part["class"] == "communication"}
            self.assertTrue(functions and all(name.startswith("MPI_") for name in functions))

    def test_profile_shown(self):
        profiles = self.of_type("rank_profile")
        text = self.vapro("view", "--all", "run.ndjson").stdout
        self.assertIn("Time of each rank, seconds\nrank ", text)
        self.assertNotIn("Time of each rank", self.vapro("view", "run.ndjson").stdout)
        table = text[text.index("Time of each rank"):].splitlines()[2:2 + RANKS]
        self.assertEqual([int(line.split()[0]) for line in table], list(range(RANKS)))
        self.vapro("report", "--csv", "tables", "run.ndjson")
        with open(self.path("tables/profile.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), sum(len(one["parts"]) for one in profiles))
        self.assertAlmostEqual(sum(float(row["seconds"]) for row in rows), sum(part["seconds"] for one in profiles for part in one["parts"]), 3)
        self.vapro("report", "--html", "run.html", "run.ndjson")
        with open(self.path("run.html"), encoding="utf-8") as file:
            data = json.loads(re.search(r'id="data">(.*?)</script>', file.read(), re.S)[1])
        self.assertEqual([one["rank"] for one in data["profile"]["ranks"]], list(range(RANKS)))
        self.assertAlmostEqual(data["profile"]["ranks"][0]["computation"],
                               sum(part["seconds"] for part in profiles[0]["parts"] if part["class"] == "computation"), 4)
        drawn = [one for one in data["variability"] if one["ranks"]]
        self.assertTrue(drawn)
        for one in drawn:
            for _, low, middle, high in one["ranks"]:
                self.assertTrue(0 < low <= middle <= high)

    def test_diff_page(self):
        self.vapro("diff", "--html", "diff.html", "run1.capture", "run2.capture")
        with open(self.path("diff.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.startswith("<!DOCTYPE html>\n<!-- vapro diff -->\n") and page.endswith("</html>\n"))
        self.assertIn("Change of each rank", page)
        self.assertEqual(len(re.findall(r"<circle ", page)), RANKS)
        self.assertNotIn("<script", page)
        with open(self.path("mine.html"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.assertIn("vapro diff: mine.html exists", self.vapro("diff", "--html", "mine.html", "run1.capture", "run2.capture", codes=(1,)).stderr)
        self.assertIn("choose one", self.vapro("diff", "--html", "x", "--json", "run1.capture", "run2.capture", codes=(2,)).stderr)

    def test_distribution(self):
        """The distribution of the times of runs, as a table and as a picture."""
        table = list(csv.DictReader(self.vapro("runs", "--csv", "run1.capture", "run2.capture").stdout.splitlines()))
        self.assertEqual(len(table), 2)
        picture = self.vapro("runs", "--svg", "run1.capture", "run2.capture").stdout
        self.assertEqual(len(re.findall(r"<circle ", picture)), 2)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
