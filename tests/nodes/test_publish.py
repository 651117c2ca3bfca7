#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
`vapro publish` in front of a broker and a worker: the final records are those of `vapro analyze` of the same captures,
whatever happens to the broker meanwhile. Argument: the build directory.
"""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import nodes_common  # noqa: E402
from nodes_common import Nodes, final, wait_for  # noqa: E402

BUILD = "build"


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Publish(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(BUILD)
        self.addCleanup(self.nodes.__exit__)
        self.captures = self.nodes.captures(3, 4)
        self.expected = sorted(self.nodes.expected(self.captures))

    def start(self, *options):
        process = subprocess.Popen([os.path.join(BUILD, "vapro"), "publish", "--broker", self.nodes.url, *options, *self.captures],
                                   stderr=subprocess.PIPE, text=True)
        self.nodes.others.append(process)
        return process

    def check(self):
        try:
            wait_for(lambda: sorted(final(self.nodes.records())) == self.expected, 60, "the records of vapro analyze")
        except AssertionError:
            print(self.nodes.log(), file=sys.stderr)
            self.assertEqual(sorted(final(self.nodes.records())), self.expected)

    def test_all(self):
        self.nodes.start_worker()
        process = self.start()
        text = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, text)
        self.check()

    def test_broker_killed(self):
        """Twice in the middle; and absent at the start, so that the worker comes later, too."""
        self.nodes.stop_broker(0, signal.SIGKILL)
        process = self.start("--speed", "20")
        time.sleep(0.5)
        self.nodes.start_broker(0)
        self.nodes.start_worker()
        for _ in range(2):
            time.sleep(0.7)
            self.nodes.stop_broker(0, signal.SIGKILL)
            self.nodes.start_broker(0)
        text = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, text)
        self.check()


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
