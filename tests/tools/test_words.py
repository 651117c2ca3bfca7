#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Words that are never right here: as a part of an identifier, and as a word of a comment or a text. docs/GLOSSARY.md has the
field's words for them (emitted, attributed, detach, duty cycle, probe epoch, query, stolen, expensive).
"""
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
IN_IDENTIFIERS = {"told", "tell", "dear", "anew", "turn", "turns", "ask", "asked", "asks", "doing", "crowd", "shelter", "closer", "blind",
                  "kept", "taken"}
IN_TEXTS = re.compile(r"\b(told|tells?|dearer|dear|anew|lets? go|whoever)\b", re.I)
C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'" r"|[A-Za-z_]\w*|\s+|.", re.S)
C_FILES = ("user/*.[ch]", "bpf/*.[ch]", "include/*.h", "tests/*.[ch]", "tools/*.[ch]")
TEXT_FILES = ("Makefile", "deploy/*", "docs/*.md", "*.md", "tests/*.t", "tests/*.py", "tests/*.sh", "tools/*.py", "tools/*.sh", "tools/*.mk")


def listed(*patterns):
    found = subprocess.run(["git", "-C", ROOT, "ls-files", *patterns], capture_output=True, text=True, check=False)
    return [name for name in found.stdout.split() if os.path.exists(os.path.join(ROOT, name))]


def wrong_in_c(text):
    """[(line, what)] of C source."""
    found, at = [], 1
    for token in C_TOKEN.findall(text):
        if token.startswith(("/*", "//", '"')):
            found += [(at + token.count("\n", 0, hit.start()), hit[0]) for hit in IN_TEXTS.finditer(token)]
        elif re.match(r"[A-Za-z_]", token):
            words = token.lower().split("_")
            if IN_IDENTIFIERS.intersection(words) or "let_go" in token.lower():
                found.append((at, token))
        at += token.count("\n")
    return found


class Words(unittest.TestCase):
    def test_sources(self):
        names = listed(*C_FILES)
        if not names:
            self.skipTest("no git checkout")
        for name in names:
            with self.subTest(name), open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertEqual(wrong_in_c(file.read()), [])

    def test_texts(self):
        for name in listed(*TEXT_FILES):
            if name == "tests/tools/test_words.py":
                continue
            with self.subTest(name), open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.assertEqual([hit[0] for hit in IN_TEXTS.finditer(file.read())], [])

    def test_it_can_fail(self):
        self.assertEqual(wrong_in_c('int a; /* it is\n told */\nx = "lets go"; return turn_of(kept);'),
                         [(2, "told"), (3, "lets go"), (3, "turn_of"), (3, "kept")])
        self.assertEqual(wrong_in_c("int returned, task, unkept;"), [])


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
