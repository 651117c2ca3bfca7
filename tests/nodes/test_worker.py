#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
vapro-worker with a broker of its own on loopback: whatever happens on the way from the nodes, its final records are
those of `vapro analyze` of the same captures. Argument: the build directory.
"""
import os
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import nodes_common  # noqa: E402
from nodes_common import ROOT, Nodes, final, valid, wait_for  # noqa: E402

BUILD = "build"
HOSTS = 3


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Worker(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(BUILD)
        self.addCleanup(self.nodes.__exit__)
        self.captures = self.nodes.captures(HOSTS, 4)
        self.expected = self.nodes.expected(self.captures)
        self.windows = [line for line in self.expected if '"type": "window"' in line]
        self.assertGreater(len(self.windows), 4)

    def check(self, without=()):
        """Waits until the valid records are the expected ones; the stream of results has the same."""
        def same():
            return sorted(final(self.nodes.records(), without)) == sorted(self.expected)
        try:
            wait_for(same, 40, "the records of vapro analyze")
        except AssertionError:
            found = final(self.nodes.records(), without)
            print(self.nodes.log(), file=sys.stderr)
            self.assertEqual(sorted(found), sorted(self.expected))
            raise
        self.assertEqual(sorted(final(self.nodes.published(), without)), sorted(self.expected))

    def count_windows(self):
        return sum(record["type"] == "window" for record in valid(self.nodes.records()))

    def test_in_order(self):
        worker = self.nodes.start_worker()
        self.nodes.send(self.captures)
        self.check()
        self.assertEqual(self.nodes.end(worker), 0)
        files = [os.path.join(worker.directory, name) for name in os.listdir(worker.directory)]
        checked = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"), *files], check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(checked.returncode, 0, checked.stdout.decode())

    def test_any_order_and_twice(self):
        self.nodes.start_worker()
        self.nodes.send(self.captures, "--shuffle", "7", "--twice")
        self.check()

    def test_one_node_after_the_other(self):
        self.nodes.start_worker()
        self.nodes.send(self.captures, "--by-file")
        self.check()

    def test_blocks_before_the_worker(self):
        self.nodes.start_worker()  # makes the streams
        wait_for(lambda: os.path.exists(self.nodes.path("store0", "jetstream", "$G", "streams", "KV_vapro_leases")), 10,
                 "the worker makes its streams")
        self.nodes.end(self.nodes.workers[0])
        self.nodes.send(self.captures)
        self.nodes.start_worker()
        self.check()

    def test_late_node(self):
        """One node's blocks come after the others' windows were judged: those windows are judged again."""
        self.nodes.start_worker("--late-after", "500ms")
        self.nodes.send(self.captures, "--late-host", "sim1", "--late", "100", "--speed", "20")
        self.check()
        passes = [record for record in self.nodes.records() if record["type"] == "judging"]
        self.assertEqual([record["reason"] for record in passes][:2], ["new", "late_blocks"])
        first = [record for record in self.nodes.records() if record["type"] == "window" and record["pass"] == 0]
        self.assertTrue(first and all(record["ranks"] == "0-3,8-11" for record in first), "windows went without the late node")

    def test_too_late(self):
        """Blocks that come later than --judge-again are counted, and nothing is judged again."""
        self.nodes.start_worker("--late-after", "500ms", "--judge-again", "0s")
        self.nodes.send(self.captures[:1] + self.captures[2:], "--speed", "40")
        wait_for(lambda: self.count_windows() == len(self.windows), 30, "all windows without the node")
        self.nodes.send(self.captures[1:2])
        wait_for(lambda: "late" in self.nodes.log(), 20, "the end of the job")
        self.assertEqual([record["reason"] for record in self.nodes.records() if record["type"] == "judging"][:1], ["new"])

    def test_lost_blocks(self):
        """What is missing is said, by node, and the rest is judged."""
        self.nodes.start_worker("--idle", "3s")
        self.nodes.send(self.captures, "--skip-every", "31")
        wait_for(lambda: self.count_windows() == len(self.windows), 30, "all windows")
        warnings = [record for record in self.nodes.records() if record.get("code") == "blocks_missing"]
        self.assertTrue(warnings)
        self.assertTrue(all(record["host"] in record["text"] for record in warnings))

    def test_hostile_blocks(self):
        """Damaged blocks, and blocks under the subject of another host, are refused; the others count."""
        self.nodes.start_worker()
        self.nodes.send(self.captures, "--garbage-every", "20")
        self.check(without=("block_refused",))
        refused = [record for record in self.nodes.records() if record.get("code") == "block_refused"]
        self.assertTrue(any("damaged" in record["text"] for record in refused))
        self.assertTrue(all("sim" in record["text"] for record in refused))

    def holder(self):
        """The worker that has written windows."""
        return next((worker for worker in self.nodes.workers if os.listdir(worker.directory)), None)

    def test_killed_worker(self):
        for _ in range(2):
            self.nodes.start_worker()
        sender = self.nodes.start_sending(self.captures, "--speed", "12")
        wait_for(lambda: self.count_windows() >= 2, 30, "two windows")
        self.nodes.end(self.holder(), signal.SIGKILL)
        self.assertEqual(sender.wait(60), 0)
        self.check()
        epochs = {record["epoch"] for record in self.nodes.records()}
        self.assertEqual(len(epochs), 2)
        self.each_window_once()

    def each_window_once(self):
        windows = [record["time"] for record in self.nodes.published() if record["type"] == "window"]
        self.assertEqual(len(windows), len(set(windows)), "a take-over repeats nothing that was published")

    def test_stopped_worker(self):
        """A worker that wakes after another one took its job changes nothing."""
        for _ in range(2):
            self.nodes.start_worker()
        sender = self.nodes.start_sending(self.captures, "--speed", "12")
        wait_for(lambda: self.count_windows() >= 1, 30, "a window")
        holder = self.holder()
        holder.send_signal(signal.SIGSTOP)
        wait_for(lambda: len({record["epoch"] for record in self.nodes.records()}) == 2, 30, "the take-over")
        holder.send_signal(signal.SIGCONT)
        self.assertEqual(sender.wait(60), 0)
        self.check()
        self.each_window_once()
        self.assertEqual(self.nodes.end(holder), 0)

    def test_handed_back(self):
        """SIGTERM hands the lease back, and the next worker goes on."""
        first = self.nodes.start_worker()
        sender = self.nodes.start_sending(self.captures, "--speed", "12")
        wait_for(lambda: self.count_windows() >= 1, 30, "a window")
        self.assertEqual(self.nodes.end(first), 0)
        client = self.nodes.client()
        states = [message for message in client.messages("KV_vapro_leases") if b'"state"' in message]
        client.close()
        self.assertIn(b'"state":"free"', states[-1])
        self.nodes.start_worker()
        self.assertEqual(sender.wait(60), 0)
        self.check()

    def test_broker_restarted(self):
        self.nodes.start_worker("--lease", "10s")
        sender = self.nodes.start_sending(self.captures, "--speed", "12")
        wait_for(lambda: self.count_windows() >= 1, 30, "a window")
        self.nodes.stop_broker(how=signal.SIGKILL)
        time.sleep(1)
        self.nodes.start_broker()
        self.assertEqual(sender.wait(60), 0)
        self.check()

    def test_shared_jobs(self):
        """Jobs are shared among workers, and are apart from each other."""
        jobs = ["sim:2", "sim:3", "slurm:4.0"]
        captures = {job: self.nodes.captures(2, 2, job=job, seed=number) for number, job in enumerate(jobs)}
        for _ in range(2):
            self.nodes.start_worker()
        self.nodes.send([path for paths in captures.values() for path in paths])
        for job, paths in captures.items():
            expected = sorted(self.nodes.expected(paths))
            job = job.replace(".", "=2E")
            wait_for(lambda job=job, expected=expected: sorted(final(self.nodes.records(job))) == expected, 40, job)
        self.assertTrue(all(os.listdir(worker.directory) for worker in self.nodes.workers), "each worker has a job")


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
