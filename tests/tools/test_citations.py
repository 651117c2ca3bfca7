#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the documents cite in code marks exists: files, identifiers and the files they are in, values of constants, targets of make. So do the
sections of ARCHITECTURE.md that the sources cite. The page of the warnings has each of their codes.
"""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
# examples of names, and what libraries other than vapro's have
NOT_HERE = {"thing__verb", "foo.c", "foo.h", "foo_private.h", "mpi.h", "backtrace"}
FENCED = re.compile(r"^```.*?^```$", re.S | re.M)
INDENTED = re.compile(r"^ {4}.*$", re.M)
SPAN = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w./-]+\.(?:c|h|S|py|t|sh|awk|mk|json|csv|md|in|service)")
IDENTIFIER = re.compile(r"(?:(?:struct|enum)\s+)?([A-Za-z]\w*)(?:\(\))?")
PLACE = re.compile(r"`(\w+)` (?:of|in) `([\w.-]+\.(?:c|h|py|t|js))`")
VALUE = re.compile(r"`([A-Z][A-Z0-9_]+)`\s+\((\d+)\)")
DEFINED = re.compile(r"^#define[ \t]+(\w+)[ \t]+(\d+)\b|^\s*(\w+) = (\d+),", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
RULE = re.compile(r"^([^\s#:=][^:=\n]*):(?!=)", re.M)
MAKE = re.compile(r"\bmake ((?:[\w./-]+(?:=\S*)? ?)+)")
# the stable codes of warnings
CODES = (r'warn(?:_owner)?\(\s*[^;"]*?("[a-z_]+")', r"later_code = ([^;]*);", r"\.code = (\"[a-z_]+\")", r'return ("output_[a-z]+");')
QUOTED = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'""")
HEADING = re.compile(r"^##+ (\d+(?:\.\d+)?)", re.M)
SECTION = re.compile(r"ARCHITECTURE,?\s+(?:\*\s+)?section\s+(\d+(?:\.\d+)?)")


def listed(*patterns):
    found = subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True, text=True, check=False)
    return [name for name in found.stdout.split() if os.path.isfile(os.path.join(ROOT, name))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
        return file.read()


class Tree:
    """What may be cited. Comments and documents prove nothing; texts in code do: they hold keys and warning codes."""

    def __init__(self, names, texts):
        self.names = names
        code = [COMMENT.sub(" ", text) if re.search(r"\.[chS]$", name) else text for name, text in texts.items()]
        self.defines = {}
        for name, text in zip(texts, code):
            self.defines.setdefault(os.path.basename(name), set()).update(re.findall(r"[A-Za-z_]\w*", text))
        self.words = {word for words in self.defines.values() for word in words}
        self.values = {}
        for hit in (hit for text in code for hit in DEFINED.finditer(text)):
            self.values.setdefault(hit[1] or hit[3], set()).add(hit[2] or hit[4])
        rules = [head for name, text in texts.items() if re.search(r"(Makefile|\.mk)$", name)
                 for head in RULE.findall(text)]
        self.targets = set(" ".join(rules).replace("$(B)", "build").split())

    def has_file(self, path):
        return any(name == path or name.endswith("/" + path) for name in self.names)

    def has_target(self, target):
        if target.startswith("build/"):
            name, kind = os.path.splitext(os.path.basename(target))
            of_folder = any(path.startswith(f"tests/unit/{name}/") for path in self.names)  # a program of unit tests
            return of_folder or self.has_file(name + (".S" if kind == ".so" else ".c"))
        return target in self.targets


def of_tree():
    # what states rules about words or citations contains the wrong ones as well
    names = listed()
    left_out = re.compile(r"\.(md|csv|png|1|8\.in)$|^tests/(tools|data)/")
    return Tree(names, {name: read(name) for name in names if not left_out.search(name)})


def wrong(text, tree):
    """What a document cites that the tree does not have, in the order of kinds."""
    marked = FENCED.sub("", text)
    code = FENCED.findall(text) + INDENTED.findall(marked)
    spans = [" ".join(span.split()) for span in SPAN.findall(INDENTED.sub("", marked))]
    files = [span for span in spans if FILE.fullmatch(span) and not span.startswith("build/")]
    found = [span for span in files if not tree.has_file(span)]
    for span in spans:
        name = IDENTIFIER.fullmatch(span)
        if name and name[1] not in tree.words and not tree.has_file(span):
            found.append(name[1])
    for name, value in VALUE.findall(text):
        if name in tree.values and value not in tree.values[name]:
            found.append(f"{name} ({value})")
    for name, file in PLACE.findall(text):
        if file in tree.defines and name in tree.words and name not in tree.defines[file]:
            found.append(f"{name} in {file}")
    for targets in (hit for part in code + spans for hit in MAKE.findall(QUOTED.sub("", part))):
        found += ["make " + target for target in targets.split() if "=" not in target and not tree.has_target(target)]
    return [name for name in found if name not in NOT_HERE]


class Citations(unittest.TestCase):
    def test_documents(self):
        names = listed(*DOCUMENTS)
        if not names:
            self.skipTest("no git checkout")
        tree = of_tree()
        for name in names:
            with self.subTest(name):
                self.assertEqual(wrong(read(name), tree), [])

    def test_sections(self):
        sections = set(HEADING.findall(read("docs/ARCHITECTURE.md")))
        for name in listed("*.[ch]", "*.py", "*.awk"):
            with self.subTest(name):
                self.assertEqual([hit for hit in SECTION.findall(read(name)) if hit not in sections], [])

    def test_warnings(self):
        """The page of the warnings has each code that a source emits, and no other."""
        emitted = {code for name in listed("user/*.c") for pattern in CODES for hit in re.findall(pattern, read(name))
                   for code in re.findall(r'"([a-z]+(?:_[a-z]+)*)"', hit)}
        if not emitted:
            self.skipTest("no git checkout")
        rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", read("docs/warnings.md").partition("## Codes")[2], re.M)
        self.assertEqual({code for row in rows for code in re.findall(r"`([a-z_]+)`", row)}, emitted)

    def test_it_can_fail(self):
        code = "#define MOST 8\nint a__add; /* gone */\nenum { B = 3,\n};"
        tree = Tree(["user/a.c", "tests/unit/test_a.c", "tests/unit/folder/test_b.c"], {"user/a.c": code, "Makefile": "$(B)/a: a\nall: x\n"})
        right = "`a.c`, `a__add`, `struct\na__add`, `MOST` (8), `MOST` of `a.c`, `B`, `make all\nX='gone it'`"
        self.assertEqual(wrong(right + "\n\n    make build/test/test_a V=1\n    make build/test/folder\n```\nmake `all`\n```\n", tree), [])
        false = "`b.c`, `b/a.c`, `gone`, `enum less`, `a__gone()`, `MOST` (9), `all` in `a.c`, `make x`"
        self.assertEqual(wrong(false + "\n\n    make y\n\n```\nmake z\n```\n", tree),
                         ["b.c", "b/a.c", "gone", "less", "a__gone", "MOST (9)", "all in a.c", "make z", "make y", "make x"])


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
