#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The rooms of user/, each of which includes headers of itself and of those before it only, so that there is no circle.
What lies loose in user/, or in a room that has no place in the order, is an error.
"""
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user")
ORDER = ("base", "functions", "config", "sandbox", "target", "model", "records", "compare", "capture", "wire", "broker", "probe/elf", "probe/pmu", "probe/bpf", "overhead",
         "probe/attach", "collect", "detect", "diagnose", "analysis", "report", "metrics", "pipeline", "worker", "source", "node", "page", "export", "reports", "query", "top", "daemon", "cli")


def sources(root):
    """Paths of all C files below, from there on."""
    for directory, _, names in os.walk(root):
        for name in names:
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(directory, name), root)


def included(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return re.findall(r'^#include "([^"]+)"', file.read(), re.M)


def wrong(root, order):
    """Sentences about what is out of order."""
    files, found = sorted(sources(root)), []
    known = set(files)
    for path in files:
        room = os.path.dirname(path)
        if room not in order:
            found.append(f"{path}: {room or 'the folder itself'} has no place in the order")
            continue
        for header in included(root, path):
            other = os.path.dirname(header)
            if header in known and other in order and order.index(other) > order.index(room):
                found.append(f"{path} includes {header}: {other} is above {room}")
    return found


class Layers(unittest.TestCase):
    def test_tree(self):
        self.assertEqual(wrong(ROOT, ORDER), [])

    def test_it_can_fail(self):
        """The order upside down is wrong in many places, and one room less in all of its files."""
        self.assertGreater(len(wrong(ROOT, tuple(reversed(ORDER)))), 100)
        without = tuple(room for room in ORDER if room != "model")
        self.assertTrue(any("has no place" in line for line in wrong(ROOT, without)))


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
