#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Faults on the way from nodes to a worker: brokers that are absent or full, nodes that are silent, of other versions, or
hostile, streams that are too short, clocks that are off. The final records are those of `vapro analyze` of what was not
lost, and what was lost is counted. Argument: the build directory.
"""
import json
import os
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import nodes_common  # noqa: E402
from nodes_common import Nodes, final, valid, wait_for  # noqa: E402

BUILD = "build"


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Faults(unittest.TestCase):
    brokers = 1

    def setUp(self):
        self.nodes = Nodes(BUILD, self.brokers)
        self.addCleanup(self.nodes.__exit__)
        self.captures = self.nodes.captures(3, 4)

    def check(self, expected, without=(), seconds=40):
        """Waits until the valid records are the expected ones."""
        expected = sorted(expected)
        try:
            wait_for(lambda: sorted(final(self.nodes.records(), without)) == expected, seconds, "the records of vapro analyze")
        except AssertionError:
            found = final(self.nodes.records(), without)
            differ = [text[:600] for text in expected if text not in found], [text[:600] for text in found if text not in expected]
            self.fail(f"missing: {differ[0]}\nunexpected: {differ[1]}\nlog: {self.nodes.log()}")

    def lost(self):
        """Fragments that the final windows name as not published."""
        return sum(record["lost"]["published"] for record in valid(self.nodes.records()) if record["type"] == "window")

    def texts(self, code):
        return [record["text"] for record in valid(self.nodes.records()) if record.get("code") == code]

    def check_drops(self, player, least=1):
        """What nodes discarded is in the windows, and the rest is as if it had never been."""
        hosts = self.nodes.played(player)[1]
        dropped = {host: node["dropped"] for host, node in hosts.items() if node["dropped"]}
        self.assertGreaterEqual(len(dropped), least, hosts)
        self.assertFalse(any(node["waiting"] for node in hosts.values()), hosts)
        self.check(self.nodes.expected(self.nodes.unpacked()), ("blocks_missing",))
        self.assertEqual(self.lost(), sum(node["fragments"] for node in hosts.values()))
        for host, number in dropped.items():
            self.assertTrue(any(f"of which the node discarded {number})" in text and host in text
                                for text in self.texts("blocks_missing")), self.texts("blocks_missing"))

    def wait_for_drops(self, player, number=5):
        wait_for(lambda: any(line.get("least_dropped", 0) >= number for line in self.nodes.said(player)), 30, "drops on each node")

    def test_broker_absent_at_start(self):
        self.nodes.stop_broker()
        player = self.nodes.start_playing(self.captures, "--speed", "20", "--memory", "60000", "--settle-at", "45")
        self.wait_for_drops(player)
        self.nodes.start_broker()
        self.nodes.start_worker()
        self.check_drops(player, 3)

    def test_broker_absent_in_the_middle(self):
        self.nodes.start_worker("--lease", "10s")
        player = self.nodes.start_playing(self.captures, "--speed", "8", "--memory", "20000", "--settle-at", "55")
        wait_for(lambda: any(record["type"] == "window" for record in self.nodes.records()), 30, "a window")
        self.nodes.stop_broker(how=signal.SIGKILL)
        self.wait_for_drops(player)
        self.nodes.start_broker()
        self.check_drops(player, 3)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
