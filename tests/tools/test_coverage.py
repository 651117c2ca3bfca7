#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What coverage.py makes of the reports of gcov: a line counts once, and as executed where any program executed it."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import coverage  # noqa: E402


def report(file, **counts):
    return {"files": [{"file": file, "lines": [{"line_number": int(line[1:]), "count": count} for line, count in counts.items()]}]}


class Coverage(unittest.TestCase):
    def test_lines(self):
        found = coverage.add([report("user/a/x.c", n1=0, n2=3), report("user/a/x.c", n1=1, n2=0, n3=0), report("tests/unit/sim.c", n1=1),
                              report("/usr/include/string.h", n1=1)])
        self.assertEqual(found, {"user/a/x.c": {1: True, 2: True, 3: False}})
        self.assertAlmostEqual(coverage.pct(found.values()), 200 / 3)

    def test_table(self):
        found = coverage.add([report("user/a/x.c", n1=1, n2=1), report("user/a/y.c", n1=0, n2=1), report("user/b/z.c", n1=1)])
        text = coverage.table(found)
        self.assertEqual([line.split() for line in text], [["user/a", "4", "lines", "75.0", "%"], ["user/b", "1", "lines", "100.0", "%"],
                                                           ["below", "60", "%:"], ["user/a/y.c", "50.0", "%"], ["all", "5", "lines", "80.0", "%"]])

    def test_nothing(self):
        self.assertEqual(coverage.pct([]), 0)
        self.assertEqual(coverage.notes("/nonexistent"), [])


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
