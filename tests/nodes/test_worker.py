#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
vapro-worker with a broker of its own on loopback: whatever happens on the way from the nodes, its final records are
those of `vapro analyze` of the same captures. Argument: the build directory.
"""
import json
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


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Takeover(unittest.TestCase):
    """A job that goes on from a checkpoint has the records of one that was read from its first block."""
    SPEED = "40"

    @classmethod
    def setUpClass(cls):
        cls.sources = Nodes(BUILD)
        cls.addClassCleanup(cls.sources.__exit__)
        cls.captures = cls.sources.captures(HOSTS, 4, seconds=420, noise=0.01)
        cls.expected = sorted(cls.sources.expected(cls.captures))

    def setUp(self):
        self.nodes = Nodes(BUILD)
        self.addCleanup(self.nodes.__exit__)

    def request(self, subject, **body):
        client = self.nodes.client()
        try:
            return client.request(subject, json.dumps(body).encode())
        finally:
            client.close()

    def lease(self):
        """The latest entry of the job's lease."""
        if "state" not in self.request("$JS.API.STREAM.INFO.KV_vapro_leases"):
            return {}
        client = self.nodes.client()
        try:
            entries = [json.loads(message) for message in client.messages("KV_vapro_leases") if b'"state"' in message]
        finally:
            client.close()
        return entries[-1] if entries else {}

    def checkpoint(self):
        return wait_for(lambda: self.lease().get("checkpoint"), 60, "a checkpoint in the entry of the lease")

    def holder(self):
        return next(worker for worker in self.nodes.workers if os.listdir(worker.directory))

    def judging(self):
        return [record for record in self.nodes.records() if record["type"] == "judging"]

    def acknowledged(self):
        """Number in the stream of the last block that is not needed any more."""
        names = self.request("$JS.API.CONSUMER.NAMES.vapro_in")["consumers"]
        return max(self.request(f"$JS.API.CONSUMER.INFO.vapro_in.{name}")["ack_floor"]["stream_seq"] for name in names)

    def check(self, without=()):
        try:
            wait_for(lambda: sorted(final(self.nodes.records(), without)) == self.expected, 60, "the records of vapro analyze")
        except AssertionError:
            print(self.nodes.log(), file=sys.stderr)
            self.assertEqual(sorted(final(self.nodes.records(), without)), self.expected)
            raise
        windows = [(record["time"], record["pass"]) for record in self.nodes.published() if record["type"] == "window"]
        self.assertEqual(len(windows), len(set(windows)), "nothing that was published is repeated")

    def take_over(self, disturb):
        """A job whose worker is disturbed after a checkpoint; returns that worker."""
        for _ in range(2):
            self.nodes.start_worker("--verbose")
        sender = self.nodes.start_sending(self.captures, "--speed", self.SPEED)
        self.checkpoint()
        holder = self.holder()
        disturb(holder)
        wait_for(lambda: len(self.judging()) == 2, 30, "the take-over")
        return holder, sender

    def test_killed(self):
        _, sender = self.take_over(lambda holder: self.nodes.end(holder, signal.SIGKILL))
        self.assertEqual(sender.wait(60), 0)
        self.check()
        self.assertEqual([bool(record["checkpoint"]) for record in self.judging()], [False, True])
        self.assertEqual([record["reason"] for record in self.judging()], ["new", "taken_over"])

    def test_stopped(self):
        holder, sender = self.take_over(lambda holder: holder.send_signal(signal.SIGSTOP))
        holder.send_signal(signal.SIGCONT)
        self.assertEqual(sender.wait(60), 0)
        self.check()
        self.assertEqual([bool(record["checkpoint"]) for record in self.judging()], [False, True])
        self.assertEqual(self.nodes.end(holder), 0)

    def test_start_of_the_stream_is_gone(self):
        """What is acknowledged is not needed by the worker that goes on."""
        def purge(holder):
            number = wait_for(self.acknowledged, 10, "acknowledged blocks")
            self.nodes.end(holder, signal.SIGKILL)
            self.assertGreater(self.request("$JS.API.STREAM.PURGE.vapro_in", seq=number + 1)["purged"], 100)
        _, sender = self.take_over(purge)
        self.assertEqual(sender.wait(60), 0)
        self.check()
        self.assertTrue(self.judging()[1]["checkpoint"])

    def test_checkpoint_is_gone(self):
        """A checkpoint that cannot be read is named, and the job is read from its first block."""
        def purge(holder):
            self.nodes.end(holder, signal.SIGKILL)
            self.request("$JS.API.STREAM.PURGE.vapro_state")
        _, sender = self.take_over(purge)
        self.assertEqual(sender.wait(60), 0)
        self.check()
        self.assertIsNone(self.judging()[1]["checkpoint"])
        self.assertIn("there is no checkpoint to go on from", self.nodes.log())

    def test_late_blocks(self):
        """Blocks that come late are judged again from the checkpoint before them."""
        self.nodes.start_worker("--late-after", "500ms", "--verbose")
        self.nodes.send(self.captures, "--late-host", "sim1", "--late-from", "330", "--late", "80", "--speed", self.SPEED)
        self.check()
        self.assertIn("late_blocks", [record["reason"] for record in self.judging()])
        self.assertTrue(all(record["checkpoint"] for record in self.judging() if record["reason"] == "late_blocks"))

    def test_worker_joins(self):
        """A worker that comes later gets a job of one that has more than its share, after a checkpoint of it."""
        others = self.nodes.captures(HOSTS, 4, job="sim:2", seconds=420, noise=0.01, seed=9)
        first = self.nodes.start_worker("--verbose")
        sender = self.nodes.start_sending([*self.captures, *others], "--speed", self.SPEED)
        wait_for(lambda: len(os.listdir(first.directory)) == 2, 30, "both jobs")
        second = self.nodes.start_worker("--verbose")
        wait_for(lambda: os.listdir(second.directory), 60, "a job of the second worker")
        self.assertEqual(sender.wait(60), 0)
        for job, expected in ("sim:1", self.expected), ("sim:2", sorted(self.nodes.expected(others))):
            wait_for(lambda job=job, expected=expected: sorted(final(self.nodes.records(job))) == expected, 60, job)
        self.assertEqual(sum(bool(record["checkpoint"]) for record in self.judging()), 1)
        self.assertIn("handed over", self.nodes.log())

    def test_ended(self):
        """Of a job that has ended the latest checkpoint alone stays at the broker, and later blocks are judged from there."""
        captures = self.sources.captures(HOSTS, 4, job="sim:9", seconds=560, noise=0.01)
        self.nodes.start_worker("--verbose", "--late-after", "500ms", "--judge-again", "1s", "--idle", "3s")
        sender = self.nodes.start_sending(captures, "--late-host", "sim1", "--late-from", "540", "--late", "400", "--speed", self.SPEED)
        wait_for(lambda: self.lease().get("state") == "done", 60, "the end of the job, without the late node")
        self.assertGreater(self.nodes.log().count("checkpoint of"), 1)
        client = self.nodes.client()
        chunks = [headers for headers, _, _ in client.stored("vapro_state")]
        client.close()
        whole = [headers for headers in chunks if b"Vapro-End" in headers]
        self.assertEqual(len(whole), 1, "one checkpoint")
        self.assertIn(b"Vapro-Chunks: %d\r\n" % len(chunks), whole[0])
        self.assertEqual(sender.wait(60), 0)
        wait_for(lambda: len(self.judging()) == 2, 30, "the job is taken up again")
        self.assertTrue(self.judging()[1]["checkpoint"])

    def test_neither_start_nor_checkpoint(self):
        """A stream that has lost a job's first blocks: what is missing is said, and the rest is judged to its end."""
        worker = self.nodes.start_worker()  # makes the streams
        wait_for(lambda: "state" in self.request("$JS.API.STREAM.INFO.vapro_state"), 10, "the worker makes its streams")
        self.nodes.end(worker)
        self.nodes.send(self.captures)
        self.request("$JS.API.STREAM.PURGE.vapro_in", seq=600)
        self.nodes.start_worker("--verbose")
        wait_for(lambda: "ended;" in self.nodes.log(), 40, "the end of the job")
        missing = [record for record in self.nodes.records() if record.get("code") == "blocks_missing"]
        self.assertEqual(len({record["host"] for record in missing}), HOSTS)
        windows = [record for record in valid(self.nodes.records()) if record["type"] == "window"]
        self.assertGreater(len(windows), 10)
        self.assertGreater(windows[0]["lost"]["published"], 100)
        self.assertEqual({window["lost"]["published"] for window in windows[2:]}, {0})


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
