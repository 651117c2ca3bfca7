#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
A new key of a record is a row of the table and a line of its writer: both are added to a copy of the sources, of which two
files change, and the schema and the man page of the copy have the key. Without the row the writer does not compile.
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPIED = ("include", "user", "tools/print_schema.c", "deploy/records.py")
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation"]
TABLE, WRITER = "user/records/records.def", "user/report/window_json.c"
ROW = 'KEY(rare, longest_seconds, NUMBER(6) AT_LEAST(0) OPTIONAL, "time of the longest of these fragments")\n'
BEHIND_ROW = "KEY(rare, fragments,"
LINE = "record__put_number(object, KEY(rare, longest_seconds), rare->seconds) &&\n"
BEHIND_LINE = "record__put_uint(object, KEY(rare, fragments),"


class NewKey(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.copy = directory.name
        for name in COPIED:
            path = os.path.join(self.copy, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            (shutil.copytree if os.path.isdir(os.path.join(ROOT, name)) else shutil.copy)(os.path.join(ROOT, name), path)

    def insert(self, name, text, behind):
        path = os.path.join(self.copy, name)
        with open(path, encoding="utf-8") as file:
            before = file.read()
        self.assertEqual(before.count(behind), 1, behind)
        with open(path, "w", encoding="utf-8") as file:
            file.write(before.replace(behind, text + behind))

    def gcc(self, *words):
        return subprocess.run(["gcc", "-Iinclude", "-Iuser", *FLAGS, *words], cwd=self.copy, capture_output=True, text=True, check=False)

    def changed(self):
        """Files of the copy that are not those of the tree."""
        return sorted(os.path.relpath(os.path.join(directory, name), self.copy)
                      for top in COPIED for directory, _, names in os.walk(os.path.join(self.copy, top)) for name in names
                      if self.differs(os.path.relpath(os.path.join(directory, name), self.copy)))

    def differs(self, name):
        with open(os.path.join(self.copy, name), "rb") as one, open(os.path.join(ROOT, name), "rb") as other:
            return one.read() != other.read()

    def test_two_files(self):
        self.insert(WRITER, LINE, BEHIND_LINE)
        self.assertIn("longest_seconds", self.gcc("-fsyntax-only", WRITER).stderr)
        self.insert(TABLE, ROW, BEHIND_ROW)
        written = self.gcc("-fsyntax-only", WRITER)
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertEqual(self.changed(), [TABLE, WRITER])
        made = self.gcc("-o", "print_schema", "tools/print_schema.c", "user/records/record_table.c", "user/model/names.c",
                        "-lcjson")
        self.assertEqual(made.returncode, 0, made.stderr)
        schema = subprocess.run(["./print_schema"], cwd=self.copy, capture_output=True, check=True).stdout
        with open(os.path.join(self.copy, "schema.json"), "wb") as file:
            file.write(schema)
        rare = json.loads(schema)["definitions"]["rare"]
        self.assertEqual(rare["properties"]["longest_seconds"]["type"], "number")
        self.assertNotIn("longest_seconds", rare["required"])
        page = subprocess.run(["deploy/records.py", "schema.json"], cwd=self.copy, capture_output=True, text=True, check=True).stdout
        self.assertIn("longest_seconds", page)


if __name__ == "__main__":
    unittest.main()
