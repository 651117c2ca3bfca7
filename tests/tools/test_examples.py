#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The examples of README, the documents for users, man pages and --help. Those that read files run on a small capture; of those that need a daemon or a
job the command line is read, by an option that prints and ends. Also: the page of the records has every key of the schema.
"""
import json
import os
import re
import socket
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402
COMMANDS = ("run", "analyze", "diagnose", "diff", "runs", "view", "report", "top", "stg", "noise", "variability", "publish", "check")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def of_document(*path):
    return re.findall(r"^    ((?:vapro|vaprod) .*)$", text_of(*path), re.M)


def of_page(name):
    """Lines between .nf and .fi of a man page, as they are shown."""
    blocks = re.findall(r"^\.nf\n(.*?)^\.fi$", text_of("deploy", name), re.M | re.S)
    return [line.replace("\\-", "-").replace("\\e", "\\") for block in blocks for line in block.splitlines()]


def of_help(*command):
    text = subprocess.run([os.path.join(BUILD, command[0]), *command[1:], "--help"], capture_output=True, text=True, check=True).stdout
    return [line.strip() for line in text.partition("\nExamples:\n")[2].splitlines() if not line.strip().startswith("#")]


def words_of(line):
    """The words of the first command of a line, without a comment, an ellipsis and what follows in a pipe."""
    lexer = shlex.shlex(re.sub(r"\s\.\.\.", " ", line), posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if word in ("|", ">"):
            break
        words.append(word)
    return words


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name in ("run", "node1", "node2", "good", "new", "monday", "tuesday"):
            subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "4", "--seconds", "20", "--noise", "0.02", "--seed",
                            "2" if name == "node2" else "1", os.path.join(cls.folder.name, name + ".capture")], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(cls.folder.name, "nightly.capture"), "wb") as two_runs:
            for name in ("monday", "tuesday"):
                with open(os.path.join(cls.folder.name, name + ".capture"), "rb") as one:
                    two_runs.write(one.read())
        os.mkdir(os.path.join(cls.folder.name, "nightly"))
        for name in ("node1", "node2", "good", "new", "monday"):
            shutil.copy(os.path.join(cls.folder.name, name + ".capture"), os.path.join(cls.folder.name, "nightly"))
        subprocess.run([os.path.join(BUILD, "vapro"), "analyze", "-o", "run.ndjson", "run.capture"], check=True, cwd=cls.folder.name)
        contradictions.demand_none(os.path.join(cls.folder.name, "run.ndjson"))

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cls.address = f"127.0.0.1:{free.getsockname()[1]}"
        config = os.path.join(cls.folder.name, "broker.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'listen: {cls.address}\njetstream {{ store_dir: "{cls.folder.name}/store", max_file: 256M }}\n')
        cls.broker = subprocess.Popen(["nats-server", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.publish_job("slurm:123.0")

    @classmethod
    def publish_job(cls, job):
        """A job of many nodes that examples read from the broker: its blocks and its results."""
        path = os.path.join(cls.folder.name, "job.capture")
        subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "4", "--seconds", "20", "--job", job, path], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join(BUILD, "vapro"), "publish", "--broker", f"nats://{cls.address}", path], check=True, stderr=subprocess.DEVNULL)
        worker = subprocess.Popen([os.path.join(BUILD, "vapro-worker"), "--broker", f"nats://{cls.address}", "--output", cls.folder.name],
                                  stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while time.monotonic() < end and subprocess.run([os.path.join(BUILD, "vapro"), "view", "--broker", f"nats://{cls.address}"], check=False,
                                                        capture_output=True).returncode:
            time.sleep(0.2)
        worker.terminate()
        worker.wait()

    @classmethod
    def tearDownClass(cls):
        cls.broker.kill()
        cls.broker.wait()
        cls.folder.cleanup()

    def run_words(self, words):
        return subprocess.run([os.path.join(BUILD, words[0]), *words[1:]], capture_output=True, text=True, check=False, cwd=self.folder.name,
                              timeout=120, stdin=subprocess.DEVNULL)

    def check(self, line):
        words = words_of(line)
        codes, shown = {0}, None
        if words[0] == "vaprod":
            words.insert(1, "--print-config")
        elif words[1] == "run":
            self.assertIn("--", words, line)
            words.insert(2, "--print-config")
        elif (words[1] in ("diagnose", "top", "check") and "--broker" not in words) or words[1:] == ["report"] or "--one-line" in words or words[1] == "jobs" or words[1:3] == ["report", "--job"]:  # of whatever vaprod there is
            words.append("--help")
            shown = "Usage: vapro " + words[1]
        elif "--fail-on" in words:
            codes = {0, 7 if words[1] == "diff" else 4}
        if words[0] == "vapro":
            words = [word.replace("nats://broker", f"nats://{self.address}") for word in words]
        done = self.run_words(words)
        self.assertIn(done.returncode, codes, f"{line}: {done.stderr}")
        if shown:
            self.assertIn(shown, done.stdout, line)

    def check_all(self, lines, least):
        self.assertGreaterEqual(len(lines), least)
        for line in lines:
            with self.subTest(line):
                self.check(line)

    def test_documents(self):
        self.check_all(of_document("README.md"), 8)
        self.check_all(of_document("docs", "tutorial.md"), 25)
        self.check_all(of_document("docs", "site.md"), 7)
        self.check_all(of_document("docs", "without-root.md"), 8)

    def test_pages(self):
        self.check_all(of_page("vaprod.8.in"), 7)
        self.check_all(of_page("vapro.1.in"), 12)

    def test_help(self):
        self.check_all(of_help("vapro"), 2)
        self.check_all(of_help("vaprod"), 3)
        for command in COMMANDS:
            self.check_all(of_help("vapro", command), 2)

    def test_it_can_fail(self):
        for line in ("vaprod --no-such-option", "vapro view none.ndjson", "vapro check --no-such-option", "vapro run --windov 3 -- true"):
            with self.assertRaises(AssertionError):
                self.check(line)


class Pages(unittest.TestCase):
    def test_sections(self):
        for name in ("vaprod.8.in", "vapro.1.in"):
            headings = re.findall(r"^\.SH (.*)$", text_of("deploy", name), re.M)
            for wanted in ("EXAMPLES", "FILES", "ENVIRONMENT", "EXIT STATUS"):
                self.assertIn(wanted, headings, name)

    def test_records(self):
        """Every record and key of the schema is on the page, and every key has a description."""
        page = subprocess.run([os.path.join(ROOT, "deploy", "records.py"), os.path.join(BUILD, "vapro.schema.json")],
                              capture_output=True, text=True, check=True).stdout
        schema = json.loads(text_of(BUILD, "vapro.schema.json"))
        for name, definition in schema["definitions"].items():
            if not re.search(rf'"const": "{name}"', json.dumps(schema["allOf"])):
                continue
            start = page.index(f"\n.SH RECORD {name.upper()}\n")
            section = page[start:page.index("\n.SH ", start + 1)]
            for key in definition["properties"]:
                self.assertIn(f"\n.BR {key} ", section, name)
        self.assertNotIn("\n\n", page)  # an empty line breaks the layout


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
