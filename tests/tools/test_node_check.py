#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`vapro check --node`: refusals, profiles, signals, and that nothing is left of it. test_node_check.py [BUILD]"""
import glob
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
VAPRO = os.path.join(BUILD, "vapro")
ONE_CPU = {min(os.sched_getaffinity(0))}
CODES = {"good": 0, "slow": 4, "wrong": 4, "undecided": 6, "slower": 7}
PATIENCE_S = 60
TRIES = 5


def one_cpu():
    os.sched_setaffinity(0, ONE_CPU)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Node(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check(self, *words, prepare=one_cpu):
        return subprocess.run([VAPRO, "check", "--node", *words], capture_output=True, text=True, check=False, timeout=180,
                              stdin=subprocess.DEVNULL, preexec_fn=prepare)

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def start(self):
        """A check that runs its kernels, and their process."""
        check = subprocess.Popen([VAPRO, "check", "--node", "--force", "--seconds", "300"], stdin=subprocess.DEVNULL, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=one_cpu)
        self.addCleanup(check.stderr.close)
        self.addCleanup(check.stdout.close)
        self.addCleanup(check.wait)
        self.addCleanup(check.kill)
        self.wait_for(lambda: children(check.pid), "the kernels have no process")
        return check, children(check.pid)[0]

    def test_profile(self):
        """A check becomes a profile of its owner's, with which the next one is compared."""
        for _ in range(TRIES):  # until another task leaves it the CPU for an iteration
            done = self.check("--force", "--seconds", "10", "--store", self.path("profile"), "--json")
            result = json.loads(done.stdout)
            if "no iteration of a kernel ended" not in done.stderr:
                break
        self.assertEqual(result["schema"], "vapro-node/1")
        self.assertEqual(done.returncode, CODES[result["verdict"]], done.stderr)
        self.assertEqual((result["cpus"], result["unpinned"]), (1, 0))
        self.assertEqual([kernel["kernel"] for kernel in result["kernels"]],
                         ["last_level_cache", "random_access", "triad", "matrix_product"])
        self.assertEqual(result["verdict"], "undecided")  # one CPU has no other beside it
        for record in result["variability"]:
            self.assertEqual((record["type"], record["work"], record["ranks"]), ("variability", "counted", 1))
        self.assertNotIn("profile", result)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("profile")).st_mode), 0o600)
        self.assertEqual(glob.glob(self.path("profile") + "*"), [self.path("profile")])

        done = self.check("--force", "--profile", self.path("profile"), "--json")
        result = json.loads(done.stdout)
        self.assertEqual(done.returncode, CODES[result["verdict"]], done.stderr)
        self.assertIn(result["verdict"], ("good", "undecided", "slower"))
        self.assertEqual(result["profile"]["host"], result["host"])
        self.assertTrue("kernels" in result["profile"] or "too short" in result["profile"]["not_compared"])

        text = self.check("--force", "--profile", self.path("profile")).stdout
        self.assertIn(f"Against {self.path('profile')}, of host {result['host']} at ", text)
        self.assertRegex(text, r"\nVerdict: (good|undecided|slower)")

        if len(os.sched_getaffinity(0)) > 1:
            done = self.check("--force", "--seconds", "5", "--profile", self.path("profile"), "--json", prepare=None)
            self.assertIn("1 CPUs, not", json.loads(done.stdout)["profile"]["not_compared"])
            self.assertIn(done.returncode, (4, 6))

    def test_wrong_profiles(self):
        """Wrong profiles are refused before the kernels run, and so is a file that cannot be read."""
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("vapro-checkpoint/4 node\nmore")
        for name, why in (("text", "cut short"), ("none", "No such file"), (".", "no regular file")):
            done = self.check("--force", "--profile", self.path(name))
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"{self.path(name)} is no profile of a node: ", done.stderr)
            self.assertIn(why, done.stderr)

    def test_usage(self):
        for words in (("--node", "--counters"), ("--seconds", "20"), ("--store", "x"), ("--profile", "x"), ("--force",), ("--node", "--seconds", "4")):
            done = subprocess.run([VAPRO, "check", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)

    def test_ranks(self):
        """A process that maps an MPI library: the check refuses and names it."""
        library = next(path for path in glob.glob("/lib/*/libz.so.1") + glob.glob("/usr/lib/*/libz.so.1"))
        shutil.copy(library, self.path("libmpi.so.40"))
        rank = subprocess.Popen([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(flush=True); sys.stdin.read()",
                                 self.path("libmpi.so.40")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            rank.stdout.readline()
            done = self.check()
        finally:
            rank.communicate()
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("of MPI run", done.stderr)
        if done.stderr.startswith("vapro check: 1 process"):  # of the node, which others share
            self.assertIn(f" {rank.pid} (", done.stderr)

    def test_signals(self):
        for number, name in ((signal.SIGINT, "Interrupt"), (signal.SIGTERM, "Terminated"), (signal.SIGHUP, "Hangup")):
            check, child = self.start()
            check.send_signal(number)
            out, err = check.communicate(timeout=PATIENCE_S)
            self.assertEqual((check.returncode, out), (1, ""))
            self.assertIn(f"ended by a signal ({name})", err)
            self.assertFalse(alive(child))

    def test_killed(self):
        """The kernels end with the command, also where nothing of it can clean up."""
        check, child = self.start()
        check.kill()
        check.wait()
        self.wait_for(lambda: not alive(child), "the kernels go on")


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
