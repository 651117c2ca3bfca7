#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make install` installs: the units start programs that are there, and nothing is outside the prefix."""
import json
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "/opt/vapro"


class Install(unittest.TestCase):
    def test_install(self):
        with tempfile.TemporaryDirectory() as target:
            done = subprocess.run(["make", "-C", ROOT, "install", f"PREFIX={PREFIX}", f"DESTDIR={target}"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(target), ["opt"])
            units = os.path.join(target + PREFIX, "lib/systemd/system")
            self.assertEqual(sorted(os.listdir(units)), ["vapro-worker.service", "vaprod.service"])
            for unit in os.listdir(units):
                with open(os.path.join(units, unit), encoding="utf-8") as file:
                    program = re.search(r"^ExecStart=(\S+)", file.read(), re.M).group(1)
                self.assertTrue(program.startswith(PREFIX + "/"), program)
                self.assertTrue(os.access(target + program, os.X_OK), program)
            with open(os.path.join(target + PREFIX, "share/vapro/vapro.schema.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["title"], "vapro/1")
            for page in ("man1/vapro.1", "man5/vapro-records.5", "man8/vaprod.8", "man8/vapro-worker.8"):
                self.assertTrue(os.path.exists(os.path.join(target + PREFIX, "share/man", page)), page)
            with open(os.path.join(target + PREFIX, "share/man/man8/vaprod.8"), encoding="utf-8") as file:
                page = file.read()
            for text in ("\n.SS Overhead\n", "\\-\\-broker URL[,URL]\n", "\n.SS Only in the configuration file\n", ".B ring\\-bytes = SIZE\n"):
                self.assertIn(text, page)
            with open(os.path.join(target + PREFIX, "share/vapro/vapro.conf"), encoding="utf-8") as file:
                self.assertIn("\n#ring-bytes = 4M\n", file.read())


if __name__ == "__main__":
    unittest.main()
