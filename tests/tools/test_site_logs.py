#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Records of bounded lines: each command of docs/site-logs.md runs on the records of a run, packed or not; what view, report and
diff make of a run does not depend on parts, packing, or the file's name. test_site_logs.py [BUILD]
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402
LINE_MOST = 65536
RANKS = 400
PARTED, PACKED, WHOLE = "run.ndjson", "run.nd.zst", "all.ndjson"  # names of one length: columns are as wide


def page():
    with open(os.path.join(ROOT, "docs", "site-logs.md"), encoding="utf-8") as file:
        return file.read()


def run(*words, cwd, code=0):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env={**os.environ, "PATH": BUILD + ":/usr/sbin:" + os.environ["PATH"]})
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def joined(lines):
    """The lines with the parts of each map in one, as they were before there were parts."""
    found = []
    for line in lines:
        record = json.loads(line)
        is_map = record["type"] == "heatmap"
        part, parts = (record.pop("part", 0), record.pop("parts", 1)) if is_map else (0, 1)
        if part:
            found[-1][1]["rows"] += record["rows"]
        else:
            found.append((parts, record))
    return [json.dumps(record, separators=(",", ":")) + "\n" for _, record in found]


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.cwd = cls.folder.name
        run(os.path.join(BUILD, "tests", "make_capture"), "--ranks", str(RANKS), "--seconds", "40", "--bundles", "20", "--noise", "0.02", "run.capture", cwd=cls.cwd)
        run("vapro", "analyze", "-o", PARTED, "run.capture", cwd=cls.cwd)
        run("vapro", "analyze", "-o", PACKED, "run.capture", cwd=cls.cwd)
        cls.small = os.path.join(cls.cwd, "small")
        os.mkdir(cls.small)
        run(os.path.join(BUILD, "tests", "make_capture"), "--ranks", "8", "--seconds", "40", "--bundles", "20", "--noise", "0.1", "run.capture", cwd=cls.small)
        for name in ("run.ndjson", "run.ndjson.zst"):
            run("vapro", "analyze", "-o", name, "run.capture", cwd=cls.small)
        with open(os.path.join(cls.cwd, "run.ndjson"), encoding="utf-8") as file:
            cls.lines = file.readlines()
        with open(os.path.join(cls.cwd, WHOLE), "w", encoding="utf-8") as file:
            file.writelines(joined(cls.lines))
        contradictions.demand_none(os.path.join(cls.cwd, "run.ndjson"))

    def test_length(self):
        self.assertLess(max(len(line.encode()) for line in self.lines), LINE_MOST)
        maps = [json.loads(line) for line in self.lines if '"type":"heatmap"' in line]
        self.assertGreater(len([record for record in maps if record.get("parts", 1) > 2]), 4)
        with open(os.path.join(self.cwd, WHOLE), encoding="utf-8") as file:
            self.assertGreater(max(map(len, file)), LINE_MOST)

    def test_packed(self):
        self.assertEqual(run("zstd", "-dcq", PACKED, cwd=self.cwd), "".join(self.lines))
        self.assertLess(os.path.getsize(os.path.join(self.cwd, PACKED)), len("".join(self.lines)) / 4)

    def both(self, *words):
        """The output of a command for the parted, the packed and the whole form, without the names of the files."""
        found = {name: re.sub(r'"time":"[^"]*"', "", run(*[word.replace("FILE", name) for word in words], cwd=self.cwd)).replace(name, "FILE")
                 for name in (PARTED, PACKED, WHOLE)}
        self.assertEqual(len(set(found.values())), 1, words)
        return found[PARTED]

    def test_view(self):
        self.assertIn("rank", self.both("vapro", "view", "FILE"))
        self.both("vapro", "view", "--all", "--sort", "loss", "FILE")

    def test_report(self):
        """Tables and pictures are equal, byte for byte."""
        tables = {}
        for name in (PARTED, PACKED, WHOLE):
            folder = os.path.join(self.cwd, name + ".csv")
            run("vapro", "report", "--csv", folder, name, cwd=self.cwd)
            run("vapro", "report", "--svg", os.path.join(folder, "map.svg"), name, cwd=self.cwd)
            tables[name] = []
            for table in sorted(os.listdir(folder)):
                with open(os.path.join(folder, table), encoding="utf-8") as file:
                    tables[name].append((table, file.read()))
        self.assertGreater(len(tables[PARTED]), 3)
        self.assertEqual(tables[PARTED], tables[WHOLE])
        self.assertEqual(tables[PARTED], tables[PACKED])

    def test_diff(self):
        """The small run, beside the large one in each form."""
        small = os.path.join(self.small, "run.capture.ndjson")
        shutil.copy(os.path.join(self.small, "run.ndjson"), small)
        self.assertIn("rank", self.both("vapro", "diff", "--all", small, "FILE"))
        self.assertIn('"diff"', self.both("vapro", "diff", "--json", small, "FILE"))

    def test_contradictions(self):
        self.assertEqual(contradictions.in_file(os.path.join(self.cwd, "run.ndjson")), contradictions.in_file(os.path.join(self.cwd, WHOLE)))

    def test_page(self):
        """Every command of the page runs, and says something, but that which is silent where nothing was lost."""
        commands = re.findall(r"^    ((?:jq|awk|zstd|python3|vapro|logrotate) .*)$", page(), re.M)
        self.assertGreaterEqual(len(commands), 11)
        shutil.copy(os.path.join(ROOT, "deploy", "vapro.logrotate"), self.small)
        os.chmod(os.path.join(self.small, "vapro.logrotate"), 0o644)
        for command in commands:
            out = run("bash", "-o", "pipefail", "-c", command + (" 2>&1" if command.startswith("logrotate") else ""), cwd=self.small)
            self.assertNotIn("error:", out, command)
            self.assertTrue(out or "lost_lines" in command or command.startswith("awk 'length"), command)
        self.assertIn("sim", run("bash", "-c", next(c for c in commands if "@csv" in c), cwd=self.small))

    def test_shippers(self):
        text = page()
        self.assertIn("vapro", tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.S).group(1))["sources"])
        mapping = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))["mappings"]["properties"]
        with open(os.path.join(self.small, "run.ndjson"), encoding="utf-8") as file:
            keys = set().union(*(json.loads(line) for line in file if "heatmap" not in line[:60]))
        self.assertEqual(set(mapping) - keys, set())


class Rotation(unittest.TestCase):
    def test_logrotate(self):
        """The installed file, with logrotate itself: what it moves is packed, and its script runs."""
        with tempfile.TemporaryDirectory() as folder:
            logs = os.path.join(folder, "log")
            os.mkdir(logs)
            with open(os.path.join(ROOT, "deploy", "vapro.logrotate"), encoding="utf-8") as file:
                text = file.read()
            self.assertIn("--signal=HUP vaprod.service", text)
            text = text.replace("/var/log/vapro", logs).replace("systemctl kill --kill-who=main --signal=HUP vaprod.service", f"touch {folder}/reopened")
            with open(os.path.join(folder, "rotate"), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(folder, "rotate"), 0o644)
            for number in range(3):
                with open(os.path.join(logs, "vapro.ndjson"), "w", encoding="utf-8") as file:
                    file.write(f"{number}\n")
                run("logrotate", "-f", "-s", os.path.join(folder, "state"), os.path.join(folder, "rotate"), cwd=folder)
            self.assertTrue(os.path.exists(os.path.join(folder, "reopened")))
            self.assertEqual(run("zstd", "-dcq", "vapro.ndjson.2.zst", cwd=logs), "1\n")
            with open(os.path.join(logs, "vapro.ndjson.1"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "2\n")


if __name__ == "__main__":
    unittest.main()
