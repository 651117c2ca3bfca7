#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/judgement.md lists the constants of the judgement with their values; what moves them changes a number and nothing else."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import constants
import sensitivity


class Constants(unittest.TestCase):
    def test_document(self):
        """It is what tools/constants.py --update writes, and each constant has a meaning."""
        text = constants.DOCUMENT.read_text()
        found = {at.key: at.value for at in constants.constants()}
        listed = constants.rows_of(text)
        self.assertGreater(len(found), 200)
        self.assertEqual(found, {key: value for key, (value, _) in listed.items()}, "run tools/constants.py --update")
        self.assertEqual([key for key, (_, meaning) in listed.items() if not meaning], [])
        self.assertEqual(constants.update(text), text, "run tools/constants.py --update")

    def test_moved(self):
        """Another value is in the same line, the rest of the file is as it was, and the two directions differ."""
        for at in constants.constants():
            text = at.path.read_text()
            values = []
            for factor in (0.8, 1.2):
                moved = at.moved(factor)
                if moved is None:
                    continue
                before, after = text.splitlines(), moved.splitlines()
                self.assertEqual(len(before), len(after), at.key)
                other = [number for number, (a, b) in enumerate(zip(before, after), 1) if a != b]
                self.assertEqual(other, [at.line], at.key)
                self.assertTrue(re.search(rf"\b{at.name}\b", after[at.line - 1]), at.key)
                values.append(after[at.line - 1])
            self.assertEqual(len(values), len(set(values)), at.key)

    def test_difference(self):
        """What is missed, found, falsely alarmed and otherwise lost is said; records alone are said to be records."""
        def job(found, false, loss, records):
            return {"failed": False, "found": found, "loss": loss, "false": false, "parts": 0, "records": records}
        usual = {"a": job([True, False], 0, [0.01, None], 1), "b": job([], 1, [], 2)}
        self.assertEqual(sensitivity.difference(usual, usual), [])
        said = sensitivity.difference(usual, {"a": job([False, True], 0, [None, 0.0], 1), "b": job([], 3, [], 2)})
        self.assertEqual(said, ["misses a", "finds a", "+2 false alarms or parts"])
        self.assertEqual(sensitivity.difference(usual, {"a": job([True, False], 0, [0.05, None], 1), "b": usual["b"]}), ["loss of a"])
        self.assertEqual(sensitivity.difference(usual, {"a": usual["a"], "b": job([], 1, [], 9)}), ["records of 1 jobs only"])

    def test_subset(self):
        """Each case of the subset exists."""
        sources = "".join(path.read_text() for path in (constants.ROOT / "tools" / "accuracy").glob("cases*.c"))
        for case in sensitivity.SUBSET:
            kind = case.split("/")[0]
            shape, _, rest = kind.partition("-")
            self.assertTrue(f'"{kind}"' in sources or (f"({shape}" in sources and f'"-{rest}"' in sources), case)


if __name__ == "__main__":
    unittest.main()
