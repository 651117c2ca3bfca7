#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Metrics beside what reads them: promtool accepts a file of theirs and the alert rules, whose tests pass, and the rules and the
dashboard name no metric and no label that the file does not have. test_metrics.py [BUILD]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
PROMETHEUS = os.path.join(ROOT, "deploy", "prometheus")
OF_PROMETHEUS = {"instance", "job", "file"}


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False, cwd=PROMETHEUS)
    return done.returncode, done.stdout + done.stderr


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def named(text):
    """{metric: labels} of a text of expressions."""
    found = {}
    for name, labels in re.findall(r"\b(vapro_[a-z_]+)\b(?:\{([^}]*)\})?", text):
        found.setdefault(name, set()).update(re.findall(r"([a-z_]+)\s*(?:=~|!=|!~|=)", labels))
    return found


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vapro.prom")
            done = subprocess.run([os.path.join(BUILD, "test", "metrics"), "test_metrics"], capture_output=True, text=True, check=False,
                                  env={**os.environ, "VAPRO_TEST_METRICS": path})
            assert not done.returncode, done.stdout + done.stderr
            with open(path, encoding="utf-8") as file:
                cls.text = file.read()
        cls.series = {}
        for name, labels in re.findall(r"^(vapro_[a-z_]+)(?:\{(.*)\})? \S+$", cls.text, re.M):
            cls.series.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', labels))

    def known(self, text, where):
        found = named(text)
        self.assertGreater(len(found), 2, where)
        for name, labels in found.items():
            self.assertIn(name, self.series, where)
            self.assertEqual(labels - OF_PROMETHEUS - self.series[name], set(), f"{where}: {name}")

    def test_file(self):
        self.assertEqual(promtool("check", "metrics", text=self.text), (0, ""))

    def test_names(self):
        """Names, types and units follow the rules of OpenMetrics; no label names a rank, process, user, command or path."""
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.text, re.M))
        self.assertEqual(set(types), set(self.series))
        self.assertEqual(set(re.findall(r"^# HELP (\S+) .+\.$", self.text, re.M)), set(self.series))
        for name, kind in types.items():
            self.assertEqual(name.endswith("_total"), kind == "counter", name)
        for name, unit in re.findall(r"^# UNIT (\S+) (\S+)$", self.text, re.M):
            self.assertTrue(name.endswith("_" + unit) and (name in types or name + "_total" in types), name)
        self.assertTrue(self.text.endswith("\n# EOF\n"))
        self.assertEqual(set().union(*self.series.values()), {"cluster", "job_id", "class", "stat", "cause", "severity", "why"})

    def test_rules(self):
        code, said = promtool("check", "rules", "vapro.rules.yml")
        self.assertEqual((code, "4 rules" in said), (0, True), said)
        code, said = promtool("test", "rules", "vapro.rules.test.yml")
        self.assertEqual(code, 0, said)
        self.known(read("deploy", "prometheus", "vapro.rules.yml"), "rules")

    def test_rules_can_fail(self):
        """A rule that waits is not one that alarms at once."""
        rules = read("deploy", "prometheus", "vapro.rules.yml")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "vapro.rules.yml"), "w", encoding="utf-8") as file:
                file.write(rules.replace("for: 0s", "for: 2m"))
            path = os.path.join(folder, "test.yml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(read("deploy", "prometheus", "vapro.rules.test.yml"))
            self.assertNotEqual(promtool("test", "rules", path)[0], 0)

    def test_dashboard(self):
        dashboard = json.loads(read("deploy", "grafana", "vapro.json"))
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries = [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
        self.known("\n".join(expressions + queries), "dashboard")
        self.assertEqual(set(named("\n".join(expressions))), set(self.series))
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        for expression in expressions:
            legend = re.sub(r"\$__rate_interval", "5m", re.sub(r"\$(instance|job)\b", ".*", expression))
            with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
                file.write(json.dumps({"groups": [{"name": "x", "rules": [{"record": "x", "expr": legend}]}]}))
                file.flush()
                self.assertEqual(promtool("check", "rules", file.name)[0], 0, expression)

    def test_documents(self):
        """The document lists each metric, with its labels."""
        text = read("docs", "metrics.md")
        for name, labels in self.series.items():
            row = re.search(rf"^\| `{name}` \|([^|]*)\|", text, re.M)
            self.assertTrue(row, name)
            self.assertEqual(set(re.findall(r"`([a-z_]+)`", row.group(1))), labels, name)


if __name__ == "__main__":
    unittest.main()
