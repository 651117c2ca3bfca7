#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration on the command line of vaprod: --print-config, --check-config, what wins; and the example file."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))


def vaprod(*options, config=""):
    """(exit code, standard output, standard error) of vaprod with a configuration file of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(config)
        file.flush()
        done = subprocess.run([os.path.join(BUILD, "vaprod"), "--config", file.name, *options], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr.replace(file.name, "FILE")


def settings(*options, config=""):
    """What --print-config prints beside comments, as a list of (section, name, value)."""
    code, out, err = vaprod(*options, "--print-config", config=config)
    assert not code, err
    found, section = [], ""
    for line in out.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.append((section, name.strip(), value.strip()))
    return found


class Settings(unittest.TestCase):
    def test_example(self):
        """The example is what the tables say: every setting, commented, with its default."""
        example = vaprod("--print-config")[1]
        active = re.sub(r"^#(?=[a-z][a-z -]* ?=)", "", example, flags=re.M)
        active = re.sub(r"^(event NAME|pid|exe|duration|output|capture|profiles|job-reports|fail-on|records|output-max|metrics|cpus|publish-memory|broker|broker-[a-z]+|cluster) ?=.*\n", "", active, flags=re.M)
        self.assertGreater(len(re.findall(r"^[a-z-]+ =", active, re.M)), 30)
        self.assertEqual(settings(config=active), [])
        for name in ("keep-bytes", "ring-bytes", "learn", "long-fragment", "broker-key"):
            self.assertIn(f"\n#{name} =", example)
        for name in ("min-cells", "states", "publish", "user-function"):
            self.assertNotIn(f"\n#{name} =", example)

    def test_every_option_can_be_set(self):
        config = ("[selection]\npid = 1\npid = 2\nexe = lmp*\nduration = 5m\nuser-function = exe:f\n[output]\noutput = run.ndjson\noutput = -\n"
                  "records = no-maps\noutput-max = 2G\nmetrics = /run/vapro.prom\ncapture = run.capture\nquiet = yes\n[publishing]\nbroker = nats://user:secret@b1,nats://b2:4333\npublish-only = yes\n"
                  "cluster = blue\npublish-memory = 8M\n[overhead]\ncpus = 0-3\nmemory-cap = 1G\n[kernel]\nevent X=cpu/event=1/\n")
        self.assertEqual(settings(config=config), [
            ("selection", "pid", "1"), ("selection", "pid", "2"), ("selection", "exe", "lmp*"), ("selection", "duration", "5m"),
            ("selection", "function", "exe:f"), ("output", "output", "run.ndjson"), ("output", "output", "-"),
            ("output", "records", "no-maps"), ("output", "output-max", "2G"), ("output", "metrics", "/run/vapro.prom"),
            ("output", "capture", "run.capture"), ("output", "quiet", "yes"),
            ("publishing", "broker", "nats://b1,nats://b2:4333"), ("publishing", "publish-only", "yes"), ("publishing", "cluster", "blue"),
            ("publishing", "publish-memory", "8M"), ("overhead", "cpus", "0-3"), ("overhead", "memory-cap", "1G"),
            ("kernel", "event X", "cpu/event=1/")])

    def test_older_names(self):
        """What sites have in their files since before still holds."""
        config = "[publishing]\npublish = nats://b\npublish-ca = a\npublish-cert = b\npublish-key = c\npublish-credentials = d\n"
        self.assertEqual(settings(config="[selection]\nuser-function = exe:f\n"), [("selection", "function", "exe:f")])
        code, _, err = vaprod("--print-config", config=config)
        self.assertEqual((code, "credentials: d: No such file" in err), (2, True), err)
        with tempfile.NamedTemporaryFile() as file:
            config = re.sub(r"= [a-d]$", "= " + file.name, config, flags=re.M)
            self.assertEqual(settings(config=config), [("publishing", "broker", "nats://b")] + [
                ("publishing", name, file.name) for name in ("broker-credentials", "broker-ca", "broker-cert", "broker-key")])

    def test_command_line_wins(self):
        config = "pid = 1\noutput = a\nwindow = 30\n"
        self.assertEqual(settings("--exe", "b*", "--output", "-", "--window", "40", config=config),
                         [("selection", "exe", "b*"), ("output", "output", "-"), ("analysis", "window", "40s")])

    def test_bounds_of_the_output(self):
        self.assertEqual(settings("--records", "alarms", "--output-max", "3M", "--metrics", "a.prom", config="records = all\n"),
                         [("output", "records", "alarms"), ("output", "output-max", "3M"), ("output", "metrics", "a.prom")])
        self.assertEqual([vaprod(*words)[0] for words in (("--records", "some"), ("--output-max", "1K"))], [2, 2])

    def test_run_takes_only_tunables(self):
        """The site's output and selection are those of the daemon."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("pid = 1\noutput = a\nwindow = 30\n")
            file.flush()
            done = subprocess.run([os.path.join(BUILD, "vapro"), "run", "--config", file.name, "--print-config", "--", "true"],
                                  capture_output=True, text=True, check=True)
        self.assertEqual(re.findall(r"^[a-z-]+ =.*", done.stdout, re.M), ["window = 30s"])

    def test_check(self):
        self.assertEqual(vaprod("--check-config", config="window = 30\n")[0::2], (0, ""))
        for config, words in (("windw = 3", "FILE:1: unknown setting 'windw'; did you mean 'window'?"),
                              ("\n[ouput]", "FILE:2: unknown section [ouput]; did you mean [output]?"),
                              ("[output]\nthreshold = 3", "FILE:2: threshold belongs to [analysis]"),
                              ("pid = x", "FILE:1: pid: invalid PID 'x'"), ("quiet = maybe", "FILE:1: quiet: invalid word 'maybe'; expected yes or no"),
                              ("output =", "FILE:1: output: invalid value ''; expected FILE|-"), ("threshold = 85", "expected 1% to 100%"),
                              ("a: b", "FILE:1: expected 'name = value'"), ("\n" + 20000 * "x", "FILE:2: not a line of text of at most")):
            code, out, err = vaprod("--check-config", config=config)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
