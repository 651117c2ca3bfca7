#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The options of the programs: how many the helps list, that a test names each of them, that older names still work, and
that an option is one row: a copy of the tree gets one more, in one file. test_options.py [BUILD]
"""
import filecmp
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402
USUAL, ALL = 25, 50
with open(os.path.join(ROOT, "include/vapro/version.h"), encoding="utf-8") as header:
    VERSION = re.search(r'VAPRO_VERSION "(.*)"', header.read()).group(1)
COMMANDS = ("run", "analyze", "diagnose", "diff", "runs", "view", "report", "jobs", "top", "stg", "noise", "variability", "publish", "check")
LIBRARIES = "-lbpf -ldw -lelf -liberty -lcjson -lgsl -lgslcblas -lnats -lzstd -lz -lm -lncursesw"


def run(*words, build=BUILD):
    done = subprocess.run([os.path.join(build, words[0]), *words[1:]], capture_output=True, text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def listed(*words, build=BUILD):
    """The long options that a help lists."""
    return re.findall(r"^  (?:-\w, )?--([a-z-]+)", run(*words, build=build)[1], re.M)


def texts(*patterns):
    found = []
    for pattern in patterns:
        for path in glob.glob(os.path.join(ROOT, pattern)):
            if os.path.basename(path) != os.path.basename(__file__):
                with open(path, encoding="utf-8") as file:
                    found.append(file.read())
    return "".join(found)


class Helps(unittest.TestCase):
    def test_numbers(self):
        usual, all_of_them = listed("vaprod", "--help"), listed("vaprod", "--help=all")
        self.assertLessEqual(len(usual), USUAL)
        self.assertLessEqual(len(all_of_them), ALL)
        self.assertLess(set(usual), set(all_of_them))
        self.assertEqual(len(all_of_them), len(set(all_of_them)))
        self.assertGreater(len(usual), 20)
        for command in COMMANDS[1:]:
            self.assertLessEqual(len(listed("vapro", command, "--help")), USUAL, command)

    def test_run_refers_to_vaprod(self):
        for option in ("--help", "--help=all"):
            text = run("vapro", "run", option)[1]
            self.assertIn("`vaprod --help`", text)
            self.assertEqual(listed("vapro", "run", option), [])

    def test_where_options_are_listed(self):
        usual, all_of_them = run("vaprod", "--help")[1], run("vaprod", "--help=all")[1]
        man = run("vaprod", "--help=man")[1].replace("\\-", "-")
        for name in ("min-lost", "broker", "function"):
            self.assertIn(f"--{name} ", usual)
        self.assertNotIn("fastest", usual)
        for name in ("min-share", "hop-frames", "reference"):
            self.assertIn(f"--{name} ", all_of_them)
        for name in ("keep-bytes", "ring-bytes", "learn", "long-fragment"):
            self.assertNotIn(f"--{name} ", all_of_them)
            self.assertIn(f".B {name} = ", man[man.index("Only in the configuration file"):])
        for name in ("states", "user-function", "publish", "publish-ca", "min-cells", "map-entries"):
            self.assertNotIn(f"--{name} ", all_of_them + man)
        self.assertNotRegex(all_of_them, r"\|test\b")
        self.assertNotIn("--score", run("vapro", "analyze", "--help=all")[1])

    def test_each_is_tested(self):
        """A live test, a unit test, a test of programs or a case of accuracy names each option."""
        named = texts("tests/live/*.t", "tests/unit/*.[ch]", "tests/nodes/*.py", "tests/tools/*.py", "tests/vm/*.sh", "tools/accuracy/*.[ch]")
        with open(os.path.join(ROOT, "include/vapro/tunables.def"), encoding="utf-8") as file:
            members = {name: member for member, name in re.findall(r'^TUNABLE\(\w+, \w+, \w+, (\w+), "([a-z-]+)"', file.read(), re.M)}
        options = listed("vaprod", "--help=all")
        self.assertGreater(len(set(members) & set(options)), 20)
        for option in options:
            words = [rf'--{option}\b(?!-)', rf'"{option}"'] + ([rf"[.>]{members[option]}\b"] if option in members else [])
            self.assertTrue(re.search("|".join(words), named), option)


class Words(unittest.TestCase):
    def test_version(self):
        for program in ("vaprod", "vapro", "vapro-worker"):
            for word in ("-V", "--version", "version"):
                self.assertEqual(run(program, word), (0, f"{program} {VERSION}\n", ""))

    def test_help(self):
        for program in ("vaprod", "vapro", "vapro-worker"):
            texts_of = {run(program, word) for word in ("-h", "--help", "help")}
            self.assertEqual(len(texts_of), 1, program)
            code, out, err = texts_of.pop()
            self.assertEqual((code, err, out.startswith(f"Usage: {program} ")), (0, "", True))
        for command in COMMANDS:
            self.assertEqual(run("vapro", "help", command), run("vapro", command, "--help"))
        self.assertEqual(run("vapro", "help", "nothing")[0], 2)
        self.assertEqual(run("vapro", "--help=all"), run("vapro", "--help"))
        self.assertEqual(run("vapro")[0], 2)


class Values(unittest.TestCase):
    """Words and switches do what they say."""

    def test_view(self):
        with tempfile.TemporaryDirectory() as folder:
            capture, records = os.path.join(folder, "run.capture"), os.path.join(folder, "run.ndjson")
            subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "4", "--seconds", "20", "--noise", "0.02", capture],
                           check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(run("vapro", "analyze", "-o", records, capture)[0], 0)
            contradictions.demand_none(records)
            for color, expected in (("always", True), ("never", False), ("auto", False)):
                code, out, err = run("vapro", "view", "--color", color, records)
                self.assertEqual((code, "\033" in out), (0, expected), color + err)
            rows = [re.findall(r"^ *(?:rank )?(\d+) ", run("vapro", "view", "--sort", sort, "--class", "computation", records)[1], re.M)
                    for sort in ("rank", "loss")]
            self.assertNotEqual(rows[0], rows[1])
            self.assertEqual(sorted(rows[0]), sorted(rows[1]))


class OlderNames(unittest.TestCase):
    """An older name is what its new name is: both lead to the same message."""

    def same(self, old, new, expected):
        found = run(*old.split())
        self.assertEqual(found, run(*new.split()), old)
        self.assertEqual(found[0], 2, found)
        self.assertIn(expected, found[2])

    def test_brokers(self):
        wrong = "address 1 of the broker is not valid"
        self.same("vaprod --publish x", "vaprod --broker x", wrong)
        self.same("vapro run --publish x -- true", "vapro run --broker x -- true", wrong)
        for command in ("view", "report", "top", "analyze", "diagnose all@.."):
            self.same(f"vapro {command} --from x", f"vapro {command} --broker x", wrong)
        self.same("vapro publish --to x file", "vapro publish --broker x file", wrong)
        self.same("vapro publish -t x file", "vapro publish --broker x file", wrong)
        self.same("vapro-worker --nats x", "vapro-worker --broker x", wrong)

    def test_security(self):
        missing = "/nonexistent/file: No such file"
        for what in ("ca", "credentials"):
            self.same(f"vaprod --broker nats://b --publish-{what} /nonexistent/file",
                      f"vaprod --broker nats://b --broker-{what} /nonexistent/file", missing)
            self.same(f"vapro view --from nats://b --{what} /nonexistent/file",
                      f"vapro view --broker nats://b --broker-{what} /nonexistent/file", missing)
            self.same(f"vapro-worker --nats nats://b --{what} /nonexistent/file",
                      f"vapro-worker --broker nats://b --broker-{what} /nonexistent/file", missing)
        for old, new in (("vaprod --publish nats://b --publish-", "vaprod --broker nats://b --broker-"),
                         ("vapro publish --to nats://b file --", "vapro publish --broker nats://b file --broker-")):
            for what in ("cert", "key"):
                self.same(f"{old}{what} /dev/null", f"{new}{what} /dev/null", "a certificate needs its key")

    def test_functions(self):
        self.same("vaprod --user-function f", "vaprod --function f", "--function: ")
        self.same("vapro view --colour x", "vapro view --color x", "expected auto, always or never")


class OneRow(unittest.TestCase):
    """An option more, in one file of a copy of the tree; what is made of rows there follows."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in ("include", "user"):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(self.folder.name, name))

    def change(self, path, before, after):
        path = os.path.join(self.folder.name, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(before), 1, before)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(before, after))

    def changed(self):
        """The files that differ from those of the tree."""
        found = []
        for folder, _, names in os.walk(self.folder.name):
            for name in names:
                path = os.path.join(folder, name)
                original = os.path.join(ROOT, os.path.relpath(path, self.folder.name))
                if not os.path.exists(original) or not filecmp.cmp(path, original, shallow=False):
                    found.append(os.path.relpath(path, self.folder.name))
        return found

    def link(self, program, *sources):
        """Compiles the rooms of options of the copy, and links the rest of the tree's: it is not called here."""
        decoder = "-lZydis" if os.uname().machine == "x86_64" else "-lcapstone"
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-std=gnu11", "-O0", "-Iinclude", "-Iuser", f"-I{BUILD}", *sources,
                        os.path.join(BUILD, "libvapro.a"), *LIBRARIES.split(), decoder, "-o", program],
                       cwd=self.folder.name, check=True)

    def test_option_of_a_command(self):
        self.change("user/cli/stg_command.c", "	int rank, run;\n", "	int rank, run;\n	double least_s;\n")
        self.change("user/cli/stg_command.c", "static const struct option_row rows[] = {\n",
                    "static const struct option_row rows[] = {\n    {.type = OPTION_SECONDS, OPTION_AT(struct choice, least_s), "
                    '.name = "least-time", .max = 60, .help = "only states of so much time"},\n')
        self.assertEqual(self.changed(), ["user/cli/stg_command.c"])
        self.link("vapro", "user/cli/vapro.c", "user/cli/stg_command.c")
        build = self.folder.name
        self.assertIn("least-time", listed("vapro", "stg", "--help", build=build))
        self.assertIn("only states of so much time", run("vapro", "stg", "--help=man", build=build)[1])
        self.assertIn("stg:--least-time)", run("vapro", "--completion", "bash", build=build)[1])
        self.assertEqual(run("vapro", "stg", "--least-time", "5x", "file", build=build)[::2],
                         (2, "vapro stg: --least-time: invalid duration '5x'; expected 0s to 1m, such as 30, 500ms, 5m or 1h\n"))

    def test_tunable(self):
        row = ('TUNABLE(USUAL, ANALYSIS, SHARE, least_part, "least-part", "12%", 0.01, 0.5,\n'
               '	"share that is the least part")\n')
        before = 'TUNABLE(EXPERT, KERNEL, ATTACH, attach, "attach"'
        self.change("include/vapro/tunables.def", before, row + before)
        self.assertEqual(self.changed(), ["include/vapro/tunables.def"])
        sources = [os.path.relpath(path, self.folder.name) for path in
                   sorted(glob.glob(os.path.join(self.folder.name, "user/config/*.c")) + glob.glob(os.path.join(self.folder.name, "user/cli/*.c")))
                   if os.path.basename(path) not in ("vapro.c", "vapro-worker.c")]
        self.link("vaprod", *sources)
        build = self.folder.name
        self.assertIn("least-part", listed("vaprod", "--help", build=build))
        self.assertIn("share that is the least part", run("vaprod", "--help=man", build=build)[1])
        self.assertIn("--least-part) return", run("vaprod", "--completion", "bash", build=build)[1])
        self.assertIn("\n#least-part = 12%\n", run("vaprod", "--config", "/dev/null", "--print-config", build=build)[1])
        self.assertIn("\nleast-part = 20%\n", run("vaprod", "--config", "/dev/null", "--least-part", "0.2", "--print-config", build=build)[1])
        self.assertEqual(run("vaprod", "--config", "/dev/null", "--least-part=1", build=build)[::2],
                         (2, "vaprod: --least-part: invalid share '1'; expected 1% to 50%\n"))
        with open(os.path.join(build, "hello.c"), "w", encoding="utf-8") as file:
            file.write('#include <stdio.h>\n#include "config/config_json.h"\nint main(void) { struct vapro_config config; config__init(&config); '
                       "return puts(config__to_text(&config)) < 0; }\n")
        self.link("hello", "hello.c", *[source for source in sources if "config" in os.path.dirname(source)])
        self.assertEqual(json.loads(run("hello", build=build)[1])["least_part"], 0.12)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
