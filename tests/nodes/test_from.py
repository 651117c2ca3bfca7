#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
`--broker nats://...` of the commands, with a broker and workers of its own on loopback: a job in a stream reads as the
captures of its nodes do. Argument: the build directory.
"""
import json
import os
import re
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import nodes_common  # noqa: E402
from nodes_common import Nodes, comparable, final, free_port, valid, wait_for  # noqa: E402

BUILD = "build"


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class From(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(BUILD)
        self.addCleanup(self.nodes.__exit__)

    def run_vapro(self, *words, code=0):
        done = subprocess.run([os.path.join(BUILD, "vapro"), *words], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}{done.stdout}")
        return done

    def start_worker(self, *options):
        worker = self.nodes.start_worker(*options)
        wait_for(lambda: os.path.exists(self.nodes.path("store0", "jetstream", "$G", "streams", "KV_vapro_leases")), 10,
                 "the worker makes its streams")
        return worker

    def file_of(self, captures):
        """The output of `vapro analyze` of the captures."""
        path = self.nodes.path("expected.ndjson")
        self.run_vapro("analyze", "--output", path, *captures)
        return path

    def wait_for_results(self, captures, job=None):
        expected = sorted(self.nodes.expected(captures))
        wait_for(lambda: sorted(final(self.nodes.records(job))) == expected, 40, "the worker's records")

    def test_results(self):
        """view and report show what they show of a file."""
        captures = self.nodes.captures(3, 4)
        expected = self.file_of(captures)
        self.start_worker()
        self.nodes.send(captures)
        self.wait_for_results(captures)
        for options in ((), ("--all",), ("--class", "communication"), ("--since", "20", "--until", "40")):
            self.assertEqual(self.run_vapro("view", "--broker", self.nodes.url, *options).stdout,
                             self.run_vapro("view", *options, expected).stdout)
        self.assertEqual(self.run_vapro("view", "--broker", self.nodes.url, "--fail-on", "warning", code=4).stdout,
                         self.run_vapro("view", "--fail-on", "warning", expected, code=4).stdout)
        for words, name in ((("--broker", self.nodes.url, "--job", "sim:1"), "stream"), ((expected,), "file")):
            self.run_vapro("report", "--html", self.nodes.path(name + ".html"), "--csv", self.nodes.path(name),
                           "--trace", self.nodes.path(name + ".trace"), *words)
        self.assertTrue(os.listdir(self.nodes.path("file")))
        for name in os.listdir(self.nodes.path("file")):
            with open(self.nodes.path("file", name), encoding="utf-8") as one, open(self.nodes.path("stream", name), encoding="utf-8") as other:
                self.assertEqual(one.read(), other.read(), name)
        with open(self.nodes.path("file.trace"), encoding="utf-8") as one, open(self.nodes.path("stream.trace"), encoding="utf-8") as other:
            self.assertEqual(one.read(), other.read())
        with open(self.nodes.path("stream.html"), encoding="utf-8") as page:
            self.assertIn("sim:1", page.read())

    def test_replaced_records(self):
        """Windows that were judged without a late node, and then again, are shown once, with it."""
        captures = self.nodes.captures(3, 4)
        expected = self.file_of(captures)
        self.start_worker("--late-after", "500ms")
        self.nodes.send(captures, "--late-host", "sim1", "--late", "100", "--speed", "20")
        self.wait_for_results(captures)
        published = self.nodes.published()
        self.assertGreater(len(published), len(valid(published)) + 1, "records were replaced")
        self.assertEqual(self.run_vapro("view", "--broker", self.nodes.url).stdout, self.run_vapro("view", expected).stdout)

    def test_taken_over(self):
        captures = self.nodes.captures(3, 4)
        expected = self.file_of(captures)
        for _ in range(2):
            self.start_worker()
        sender = self.nodes.start_sending(captures, "--speed", "12")
        wait_for(lambda: sum(record["type"] == "window" for record in self.nodes.records()) >= 2, 30, "two windows")
        holder = next(worker for worker in self.nodes.workers if os.listdir(worker.directory))
        # while the job runs its begin is shown
        self.assertIn("sim:1", self.run_vapro("view", "--broker", self.nodes.url).stdout)
        self.nodes.end(holder, signal.SIGKILL)
        self.assertEqual(sender.wait(60), 0)
        self.wait_for_results(captures)
        self.assertEqual(self.run_vapro("view", "--broker", self.nodes.url).stdout, self.run_vapro("view", expected).stdout)

    def analyzed(self, *options):
        done = self.run_vapro("analyze", "--broker", self.nodes.url, *options)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(records[-1]["type"], "bye")
        return [comparable(record) for record in records[:-1]], done.stderr

    def test_blocks(self):
        """analyze finds in the stream what it finds in the captures, whatever order the blocks came in."""
        captures = self.nodes.captures(3, 4)
        expected = self.nodes.expected(captures)
        self.start_worker()
        self.nodes.end(self.nodes.workers[0])
        self.nodes.send(captures, "--shuffle", "7", "--twice")
        found, said = self.analyzed()
        self.assertEqual(found, expected)
        self.assertEqual(said, "")
        options = ("--window", "5s")
        other = [comparable(json.loads(line)) for line in self.run_vapro("analyze", *options, *captures).stdout.splitlines()]
        self.assertNotEqual(other, expected)
        self.assertEqual(self.analyzed(*options)[0], other)

    def test_one_node_after_the_other(self):
        captures = self.nodes.captures(3, 4)
        self.start_worker()
        self.nodes.send(captures, "--by-file")
        self.assertEqual(self.analyzed()[0], self.nodes.expected(captures))

    def test_lost_and_hostile_blocks(self):
        captures = self.nodes.captures(3, 4)
        self.start_worker()
        self.nodes.send(captures, "--skip-every", "31", "--garbage-every", "20")
        found, said = self.analyzed()
        self.assertEqual(sum('"type": "window"' in record for record in found),
                         sum('"type": "window"' in record for record in self.nodes.expected(captures)))
        self.assertIn("blocks are missing", said)
        self.assertIn("refused; the first one: a block of host sim", said)

    def test_running_job(self):
        captures = self.nodes.captures(2, 2)
        self.start_worker()
        sender = self.nodes.start_sending(captures, "--speed", "10")
        wait_for(lambda: sum(record["type"] == "window" for record in self.nodes.records()) >= 2, 30, "two windows")
        found, said = self.analyzed()
        self.assertIn("has not ended", said)
        windows = [record for record in self.nodes.expected(captures) if '"type": "window"' in record]
        begin = [record for record in found if '"type": "window"' in record]
        self.assertGreaterEqual(len(begin), 2)
        self.assertLess(len(begin), len(windows))
        self.assertEqual(sender.wait(60), 0)

    def test_diagnose(self):
        """A query of all nodes at once, without root."""
        captures = self.nodes.captures(3, 4)
        self.start_worker()
        self.nodes.send(captures)
        text = self.run_vapro("diagnose", "--broker", self.nodes.url, "0-11@10..40").stdout
        self.assertIn("computation of ranks 0-11", text)
        self.assertIn("preempted", text)
        records = [json.loads(line) for line in
                   self.run_vapro("diagnose", "--broker", self.nodes.url, "--json", "4-7@10..40").stdout.splitlines()]
        self.assertTrue(records and all(record["type"] in ("variance", "diagnosis") for record in records))
        hosts = {host for record in records if record["type"] == "diagnosis" for host in record["where"]["hosts"]}
        self.assertEqual(hosts, {"sim1"})
        self.assertIn("available: ranks 0-11", self.run_vapro("diagnose", "--broker", self.nodes.url, "all@1000..2000", code=1).stderr)

    def test_top(self):
        """Jobs and ranks as workers publish them, also after the broker was away."""
        captures = self.nodes.captures(3, 4)
        self.assertIn("has no stream", self.run_vapro("top", "--once", "--broker", self.nodes.url, code=1).stderr)
        self.start_worker()
        self.assertIn("no job", self.run_vapro("top", "--once", "--broker", self.nodes.url).stdout)
        self.nodes.send(captures)
        self.wait_for_results(captures)
        shown = self.run_vapro("top", "--once", "--broker", self.nodes.url).stdout
        self.assertIn("1 job, 12 processes", shown)
        ranks = re.findall(r"^ +(\d+) +(\d+) \[", shown, re.M)
        self.assertEqual(sorted(int(rank) for rank, _ in ranks), list(range(12)))
        self.assertEqual(len({pid for _, pid in ranks}), 12)
        self.assertIn("preempted by hog", shown)
        self.assertIn("12 processes", self.run_vapro("top", "--once", "--broker", self.nodes.url, "--job", "sim:1", "--cluster", "test").stdout)
        for other in (("--job", "sim:2"), ("--cluster", "other")):
            self.assertIn("no job", self.run_vapro("top", "--once", "--broker", self.nodes.url, *other).stdout)
        for wrong in (("--socket", "/run/vapro", "--broker", self.nodes.url), ("--job", "sim:1"), ("--cluster", "test")):
            self.run_vapro("top", "--once", *wrong, code=2)
        path = self.nodes.path("top.txt")
        with open(path, "w", encoding="utf-8") as output:
            top = subprocess.Popen([os.path.join(BUILD, "vapro"), "top", "--batch", "--interval", "0.5s", "--broker", self.nodes.url],
                                   stdout=output)
        self.nodes.others.append(top)

        def read():
            with open(path, encoding="utf-8") as file:
                return file.read()
        wait_for(lambda: "sim:1" in read(), 20, "the job is shown")
        self.nodes.stop_broker(how=signal.SIGKILL)
        self.nodes.start_broker()
        self.assertNotIn("slurm:7.0", read())
        self.nodes.send(self.nodes.captures(1, 2, job="slurm:7.0"))
        wait_for(lambda: "slurm:7.0" in read(), 40, "a job after the broker came back is shown")
        self.assertIsNone(top.poll())

    def test_choice(self):
        """Of several jobs one is named; what there is, is listed."""
        jobs = ["sim:2", "slurm:4.0"]
        captures = {job: self.nodes.captures(1, 2, job=job, seed=number) for number, job in enumerate(jobs)}
        for command, words in (("view", ()), ("report", ("--html", "/dev/null")), ("analyze", ()), ("diagnose", ("all@..",))):
            said = self.run_vapro(command, "--broker", self.nodes.url, *words, code=1).stderr
            self.assertIn("has no stream of", said)
        self.start_worker()
        self.assertIn("no job yet", self.run_vapro("view", "--broker", self.nodes.url, code=2).stderr)
        self.nodes.send([path for paths in captures.values() for path in paths])
        for job, paths in captures.items():
            self.wait_for_results(paths, job.replace(".", "=2E"))
        for command, words in (("view", ()), ("analyze", ()), ("diagnose", ("all@..",))):
            said = self.run_vapro(command, "--broker", self.nodes.url, *words, code=2).stderr
            self.assertTrue("2 jobs" in said and all(job in said for job in jobs), said)
            said = self.run_vapro(command, "--broker", self.nodes.url, "--job", "none", *words, code=2).stderr
            self.assertTrue("'none'" in said and all(job in said for job in jobs), said)
            for job in jobs:
                found = self.run_vapro(command, "--broker", self.nodes.url, "--job", job, "--cluster", "test", *words).stdout
                self.assertIn(job, found)
                self.assertFalse(any(other in found for other in jobs if other != job))
            self.run_vapro(command, "--broker", self.nodes.url, "--job", jobs[0], "--cluster", "other", *words, code=2)

    def test_mistakes(self):
        away = f"nats://127.0.0.1:{free_port()}"
        for command, words in (("view", ()), ("analyze", ()), ("diagnose", ("all@..",)), ("report", ("--html", "/dev/null"))):
            self.assertIn("no broker answers", self.run_vapro(command, "--broker", away, *words, code=1).stderr)
            self.assertIn("address 1", self.run_vapro(command, "--broker", "broker", *words, code=2).stderr)
            self.assertIn("--broker", self.run_vapro(command, "--cluster", "main", *words, code=2).stderr)
        for words in (("view", "--job", "a", "file"), ("view", "--broker", away, "file"), ("report", "--socket", "/run/vapro/", "--broker", away),
                      ("report", "--broker", away, "file"), ("analyze", "--broker", away, "file"), ("analyze", "--job", "a"),
                      ("analyze", "--broker", away, "--run", "1"), ("analyze", "--broker", away, "--format", "ndjson")):
            self.run_vapro(*words, code=2)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
