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


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r'VAPRO_VERSION "([0-9.]+)"', read("include", "vapro", "version.h")).group(1)


def version_of(page):
    """The version in the first line of a man page."""
    return re.search(r'^\.TH .* "vapro ([0-9.]+)"', page).group(1)


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
            self.assertEqual(version_of(page), version())
            self.packages(sorted(os.path.relpath(os.path.join(folder, name), target + PREFIX)
                                 for folder, _, names in os.walk(target + PREFIX) for name in names))

    def packages(self, installed):
        """Every file is in one package of Debian, or in none on purpose; what a package takes is there."""
        taken = {}
        installed = [name for name in installed if not name.endswith("vapro_spank.so")]  # made where Slurm's headers are
        for listing in ("vapro.install", "vapro-worker.install", "not-installed"):
            for line in read("deploy", "debian", listing).splitlines():
                path = line.split()[0]
                if path.startswith("usr/") and not path.startswith("usr/lib/"):
                    path = path[4:]
                    found = [name for name in installed if name == path or name.startswith(path + "/")]
                    self.assertTrue(found, line)
                    for name in found:
                        self.assertNotIn(name, taken)
                        taken[name] = listing
        self.assertEqual([name for name in installed if name not in taken and not name.endswith(".service")], [])
        spec = read("deploy", "rpm", "vapro.spec.in")
        for name in installed:
            if not name.startswith("share/vapro/"):
                self.assertIn(os.path.basename(name), spec)

    def test_changelog(self):
        """The version of the package is that of the programs, and CHANGELOG.md has a section of it."""
        self.assertTrue(re.search(rf"^## {re.escape(version())}\b", read("CHANGELOG.md"), re.M))
        out = subprocess.run([os.path.join(ROOT, "deploy/debian-changelog.sh"), version()], input=read("CHANGELOG.md"), capture_output=True, text=True, check=True)
        self.assertTrue(out.stdout.startswith(f"vapro ({version()}) "))
        self.assertRegex(out.stdout, r"\n -- .* <.*>  \w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d \+0000\n$")

    def test_no_other_version(self):
        """No file but the header has a version of its own."""
        files = subprocess.run(["git", "-C", ROOT, "grep", "-lF", version(), "--", "Makefile", "user", "include", "deploy", "tools", "bpf"],
                               capture_output=True, text=True, check=False).stdout.split()
        self.assertEqual([name for name in files if name != "deploy/records.py"], ["include/vapro/version.h"])


if __name__ == "__main__":
    unittest.main()
