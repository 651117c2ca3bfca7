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


C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\\\.|[^\"\\\\\n])*\"", re.S)


class Constants(unittest.TestCase):
    def test_document(self):
        """It is what tools/constants.py --update writes; each constant has a meaning, and each that decides a source."""
        text = constants.DOCUMENT.read_text()
        found, listed = constants.constants(), constants.rows_of(text)
        self.assertEqual({at.key: at.value for at in found}, {key: row.value for key, row in listed.items()}, "run tools/constants.py --update")
        self.assertEqual([at.key for at in found if not at.meaning], [])
        self.assertEqual([at.key for at in found if not at.bound and not constants.SOURCES.match(listed[at.key].source)], [])
        self.assertEqual(constants.update(text), text, "run tools/constants.py --update")

    def test_number(self):
        """At most 200 decide."""
        deciding = [at for at in constants.constants() if not at.bound]
        self.assertLessEqual(len(deciding), 200)
        self.assertEqual({at.place.split("/")[0] for at in deciding}, {*constants.FOLDERS, "vapro"})

    def test_hidden(self):
        """No fraction stands in the middle of a rule, where neither the document nor the measurement sees it."""
        units = re.compile(r"\d+(?:\.0)?e[-+]?\d+|[012]\.[05]")
        for folder in constants.FOLDERS:
            for path in sorted((constants.ROOT / "user" / folder).glob("*.[ch]")):
                text = path.read_text()
                spans = [at.span for at in constants.constants_of(path, text)]
                bare = C_COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
                hidden = [match[0] for match in re.finditer(r"(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?", bare)
                          if not units.fullmatch(match[0]) and not any(begin <= match.start() < end for begin, end in spans)]
                self.assertEqual(hidden, [], path)

    def test_kinds(self):
        """A define decides, an enumerator with a number is a bound, an expression of another constant is neither."""
        text = ("#define ONE 0.5 /* share */\n#define TWO (2 * ONE) /* follows */\n#define TEXT \"1\"\n#define FLAG (1U << 3)\n"
                "enum { ROOM = 8 }; /* rows\n */\n\nenum { A, B };\nenum { X = 1, Y = 2 };\nstatic const double TINY = 1e-9; /* of one */\n"
                "CONSTANT(SHARE, part, 0.25) /* of it */\n")
        found = [(at.name, at.value, at.bound, at.meaning) for at in constants.constants_of(constants.DOCUMENT, text)]
        self.assertEqual(found, [("ONE", "0.5", False, "share"), ("TWO", "(2 * ONE)", False, "follows"), ("part", "0.25", False, "of it"),
                                 ("ROOM", "8", True, "rows"), ("X", "1", True, ""), ("Y", "2", True, ""), ("TINY", "1e-9", True, "of one")])
        names = [at.name for at in constants.constants()]
        self.assertNotIn("SHARE_NEARLY_ALL", names)
        self.assertIn("SHARE_MEANINGFUL", names)

    def test_cases(self):
        """What holds a constant stays in the document while its value does; source and cases are not lost."""
        at = next(at for at in constants.constants() if at.name == "SET_RATIO")
        text = constants.update(constants.DOCUMENT.read_text(), {at.key: ("misses hog", "nothing")})
        row = constants.rows_of(constants.update(text))[at.key]
        self.assertEqual((row.below, row.above), ("misses hog", "nothing"))
        other = text.replace(f"`SET_RATIO` | `{at.value}`", "`SET_RATIO` | `9.5`")
        row = constants.rows_of(constants.update(other))[at.key]
        self.assertEqual((row.value, row.below, row.above), (at.value, constants.UNKNOWN, constants.UNKNOWN))

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

    def test_cell(self):
        """The document says at most three names of each kind, and which of both kinds of case was not measured."""
        stored = {"jobs": {"a": {"0.8": ["misses a, b, c, d, e"], "1.2": []}}, "tests": {"a": {"0.8": ["sets_are_found"], "1.2": []}, "b": {"0.8": [], "1.2": []}}}
        self.assertEqual(sensitivity.cell(stored, "a", "0.8"), "misses a, b, c and 2 others; fails sets_are_found")
        self.assertEqual(sensitivity.cell(stored, "a", "1.2"), "nothing")
        self.assertEqual(sensitivity.cell(stored, "b", "1.2"), "no unit test")
        self.assertEqual(sensitivity.cell({**stored, "tests": {}}, "a", "1.2"), "no job")
        self.assertIsNone(sensitivity.cell(stored, "c", "1.2"))

    def test_names(self):
        """What follows from a constant moves with it."""
        at = next(at for at in constants.constants() if at.name == "SHARE_MEANINGFUL")
        self.assertEqual(sensitivity.names_of(at), {"SHARE_MEANINGFUL", "SHARE_NEARLY_ALL"})

    def test_subset(self):
        """Each case of the subset exists."""
        sources = "".join(path.read_text() for path in (constants.ROOT / "tools" / "accuracy").glob("cases*.c"))
        for case in sensitivity.SUBSET:
            kind = case.split("/")[0]
            shape, _, rest = kind.partition("-")
            self.assertTrue(f'"{kind}"' in sources or (f"({shape}" in sources and f'"-{rest}"' in sources), case)


if __name__ == "__main__":
    unittest.main()
