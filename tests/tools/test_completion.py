#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The completion that the programs print, in the shells themselves: every option of --help=all, words of values, files."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else "build")
COMMANDS = ("run", "analyze", "diagnose", "diff", "runs", "view", "report", "jobs", "top", "stg", "noise", "variability", "publish", "check")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout


def completion(program, shell):
    return output(os.path.join(BUILD, program), "--completion", shell)


def options_of(*words):
    """The long options that --help=all lists; `vapro run` has those of vaprod, but for a selection of its own."""
    if words == ("vapro", "run"):
        return options_of("vaprod") - {"--pid", "--exe", "--duration", "--dry-run", "--completion", "--version"}
    text = output(os.path.join(BUILD, words[0]), *words[1:], "--help=all")
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M))


def in_bash(program, *words):
    """What bash offers for the last word. As bash does, words are split at =."""
    script = (completion(program, "bash") + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _' + program + '; printf "%s\\n" "${COMPREPLY[@]}"')
    return set(output("bash", "-c", script, "bash", program, *words).split())


class Bash(unittest.TestCase):
    def test_commands(self):
        self.assertEqual(in_bash("vapro", ""), set(COMMANDS))
        self.assertEqual(in_bash("vapro", "di"), {"diagnose", "diff"})

    def test_options(self):
        for command in COMMANDS:
            self.assertEqual(in_bash("vapro", command, "--"), options_of("vapro", command), command)
        self.assertEqual(in_bash("vaprod", "--"), options_of("vaprod"))
        self.assertIn("--pid", in_bash("vaprod", "--p"))
        self.assertNotIn("--pid", in_bash("vapro", "run", "--p"))
        self.assertNotIn("--colour", in_bash("vapro", "view", "--co"))

    def test_values(self):
        self.assertEqual(in_bash("vapro", "view", "--color", ""), {"auto", "always", "never"})
        self.assertEqual(in_bash("vapro", "view", "--color", "=", "al"), {"always"})
        self.assertEqual(in_bash("vapro", "view", "--color", "="), {"auto", "always", "never"})
        self.assertEqual(in_bash("vaprod", "--io", "o"), {"off", "on"})
        self.assertEqual(in_bash("vaprod", "--no-return", "=", ""), {"yes", "no"})
        self.assertIn("--window", in_bash("vaprod", "--no-return", "--w"))
        self.assertEqual(in_bash("vaprod", "--window", ""), set())

    def test_files(self):
        self.assertIn("etc", in_bash("vaprod", "--output", "et"))
        self.assertIn("etc", in_bash("vaprod", "-o", "et"))
        self.assertIn("etc", in_bash("vapro", "view", "et"))
        self.assertIn("bash", in_bash("vapro", "run", "--", "bas"))


class Others(unittest.TestCase):
    def check(self, shell, *syntax):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        for program in ("vapro", "vaprod"):
            done = subprocess.run([shell, *syntax], input=completion(program, shell), capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_zsh(self):
        self.check("zsh", "-n", "/dev/stdin")

    def test_fish(self):
        self.check("fish", "--no-execute", "/dev/stdin")

    def offered_by_fish(self, line):
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "completion.fish")
            with open(path, "w", encoding="utf-8") as file:
                file.write(completion(line.split()[0], "fish"))
            done = subprocess.run(["fish", "-c", f"source {path}; complete -C '{line}'"], text=True, capture_output=True, check=True, cwd="/",
                                  env={**os.environ, "HOME": home})
        return {text.split("\t")[0] for text in done.stdout.splitlines()}

    def test_fish_offers(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        self.assertEqual(self.offered_by_fish("vapro view --color "), {"auto", "always", "never"})
        self.assertLessEqual(options_of("vapro", "run"), self.offered_by_fish("vapro run --"))
        self.assertTrue(set(COMMANDS) <= self.offered_by_fish("vapro "))

    def test_zsh_has_every_option(self):
        text = completion("vapro", "zsh")
        for command in COMMANDS:
            section = text[text.index(f"\n\t{command})\n"):]
            section = section[:section.index(";;")]
            found = set(re.findall(r"(?<![\w-])(--[a-z-]+)(?=[=}\[])", section))
            self.assertLessEqual(options_of("vapro", command), found, command)

    def test_unknown_shell(self):
        for program in ("vapro", "vaprod"):
            done = subprocess.run([os.path.join(BUILD, program), "--completion", "csh"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("bash", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
