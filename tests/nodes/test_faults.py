#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Faults on the way from nodes to a worker: brokers that are absent or full, nodes that are silent, of other versions, or
hostile, streams that are too short, clocks that are off. The final records are those of `vapro analyze` of what was not
lost, and what was lost is counted. Argument: the build directory.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools"))
import nodes_common  # noqa: E402
from nodes_common import Nodes, final, valid, wait_for  # noqa: E402

BUILD = "build"


def seconds_of(text):
    """Seconds of a record's time within its day."""
    hours, minutes, seconds = text[11:-1].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


class Faulty(unittest.TestCase):
    brokers = 1

    def setUp(self):
        self.nodes = Nodes(BUILD, self.brokers)
        self.addCleanup(self.nodes.__exit__)
        self.captures = self.nodes.captures(3, 4)

    def check(self, expected, without=(), seconds=40):
        """Waits until the valid records are the expected ones."""
        expected = sorted(expected)
        try:
            wait_for(lambda: sorted(final(self.nodes.records(), without)) == expected, seconds, "the records of vapro analyze")
        except AssertionError:
            found = final(self.nodes.records(), without)
            differ = [text[:600] for text in expected if text not in found], [text[:600] for text in found if text not in expected]
            self.fail(f"missing: {differ[0]}\nunexpected: {differ[1]}\nlog: {self.nodes.log()}")

    def lost(self):
        """Fragments that the final windows name as not published."""
        return sum(record["lost"]["published"] for record in valid(self.nodes.records()) if record["type"] == "window")

    def texts(self, code):
        return [record["text"] for record in valid(self.nodes.records()) if record.get("code") == code]

    def check_drops(self, player, least=1):
        """What nodes discarded is in the windows, and the rest is as if it had never been."""
        hosts = self.nodes.played(player)[1]
        dropped = {host: node["dropped"] for host, node in hosts.items() if node["dropped"]}
        self.assertGreaterEqual(len(dropped), least, hosts)
        self.assertFalse(any(node["waiting"] for node in hosts.values()), hosts)
        self.check(self.nodes.expected(self.nodes.unpacked()), ("blocks_missing",))
        self.assertEqual(self.lost(), sum(node["fragments"] for node in hosts.values()))
        for host, number in dropped.items():
            self.assertTrue(any(f"of which the node discarded {number})" in text and host in text
                                for text in self.texts("blocks_missing")), self.texts("blocks_missing"))

    @staticmethod
    def log_of(player):
        with open(player.log, encoding="utf-8") as file:
            return file.read()

    def wait_for_drops(self, player):
        """Until the player waits for the broker; the rings are full then."""
        wait_for(lambda: any("settling" in line for line in self.nodes.said(player)), 30, "the time to settle")


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Faults(Faulty):
    def test_broker_absent_at_start(self):
        self.nodes.stop_broker()
        player = self.nodes.start_playing(self.captures, "--speed", "20", "--memory", "30000", "--settle-at", "46")
        self.wait_for_drops(player)
        self.nodes.start_broker()
        self.nodes.start_worker()
        self.check_drops(player, 3)

    def test_broker_absent_in_the_middle(self):
        self.nodes.start_worker("--lease", "10s")
        player = self.nodes.start_playing(self.captures, "--speed", "10", "--memory", "20000", "--settle-at", "55")
        wait_for(lambda: any(record["type"] == "window" for record in self.nodes.records()), 30, "a window")
        self.nodes.stop_broker(how=signal.SIGKILL)
        self.wait_for_drops(player)
        self.nodes.start_broker()
        self.check_drops(player, 3)

    def windows(self, number):
        """The windows of a pass, and its heat maps of computations by their begin."""
        records = [record for record in self.nodes.records() if record.get("pass") == number]
        return ([record for record in records if record["type"] == "window"],
                {record["begin"]: record["rows"] for record in records if record["type"] == "heatmap" and record["class"] == "computation"})

    def test_silent_node(self):
        """Windows of the silence have no cells of the node; they are judged again when its blocks come."""
        self.nodes.start_worker("--late-after", "500ms")
        self.nodes.send(self.captures, "--silent-host", "sim1", "--silent-at", "16", "--silent", "30", "--speed", "15")
        self.check(self.nodes.expected(self.captures))
        cells = {begin: {row["rank"]: row["values"] for row in rows} for begin, rows in self.windows(0)[1].items()}
        silent = [rows for rows in cells.values() if all(value is None for rank in range(4, 8) for value in rows.get(rank, [None]))]
        self.assertTrue(silent, "a window without cells of sim1")
        self.assertTrue(all(any(value is not None for value in rows[0]) for rows in silent), "the others have cells")
        self.assertTrue(any(record["reason"] == "late_blocks" for record in self.nodes.records() if record["type"] == "judging"))

    def test_retention_shorter_than_the_job(self):
        """What the stream has dropped is counted, and what it holds is judged."""
        client = self.nodes.client()
        client.make_stream("vapro_in", "in", max_bytes=150000, discard="old")
        self.nodes.send(self.captures)
        kept = client.request("$JS.API.STREAM.INFO.vapro_in")["state"]
        client.close()
        self.assertGreater(kept["first_seq"], 20)
        self.nodes.start_worker()

        def without_losses(texts):
            """Records without what the worker alone can count: blocks that the stream does not hold any more."""
            records = [json.loads(text) for text in texts]
            for record in records:
                record.get("lost", {}).pop("published", None)
            return sorted(json.dumps(record, sort_keys=True) for record in records)

        expected = without_losses(self.nodes.expected(self.nodes.unpacked()))
        wait_for(lambda: without_losses(final(self.nodes.records(), ("blocks_missing",))) == expected, 40, "the records of vapro analyze")
        self.assertGreater(self.lost(), 0)
        missing = self.texts("blocks_missing")
        self.assertEqual(len(missing), 3)
        self.assertEqual(sum(int(text.split()[0]) for text in missing), kept["first_seq"] - 1, missing)

    def test_other_versions(self):
        """Nodes with a column less and a column more are read like the others."""
        self.nodes.start_worker()
        self.nodes.send(self.captures, "--older-host", "sim0", "--newer-host", "sim2")
        self.check(self.nodes.expected(self.captures))

    def test_unknown_version(self):
        """Blocks of an unknown wire format are refused with host and version, and the other nodes are judged."""
        for version in "0", "2":
            with self.subTest(version=version):
                job = f"sim:{version}7"
                captures = self.nodes.captures(3, 4, job=job)
                if not self.nodes.workers:
                    self.nodes.start_worker("--late-after", "500ms")
                self.nodes.send(captures, "--version-host", "sim1", "--version", version)
                expected = sorted(self.nodes.expected([captures[0], captures[2]]))
                wait_for(lambda: sorted(final(self.nodes.records(job), ("block_refused",))) == expected, 30, "the other nodes' records")
                refused = [record for record in self.nodes.records(job) if record.get("code") == "block_refused"]
                self.assertTrue(refused)
                self.assertTrue(all(record["host"] == "sim1" and f"version {version}" in record["text"] for record in refused), refused)

    def test_hostile_heads(self):
        """Heads with random bytes and a right checksum: refused by the name of their host, and other jobs are unharmed."""
        worker = self.nodes.start_worker("--late-after", "500ms", "--idle", "5s")
        other = self.nodes.captures(2, 2, job="sim:2", seed=5)
        self.nodes.send([*self.captures, *other], "--hostile-host", "sim2")
        expected = sorted(self.nodes.expected(other))
        wait_for(lambda: sorted(final(self.nodes.records("sim:2"))) == expected, 40, "the records of the other job")
        wait_for(lambda: sum(record["type"] == "window" for record in valid(self.nodes.records("sim:1"))) >= 6, 40, "all windows")
        refused = [record for record in self.nodes.records("sim:1") if record.get("code") == "block_refused"]
        self.assertTrue(refused)
        self.assertEqual({record["host"] for record in refused}, {"sim2"}, refused)
        self.assertEqual(self.nodes.end(worker), 0)

    def skewed(self, milliseconds):
        """What a worker finds where the clock of host n1 is off: alarms, and the last offsets by host."""
        nodes = Nodes(BUILD)
        self.addCleanup(nodes.__exit__)
        path = nodes.path("skewed.capture")
        subprocess.run([os.path.join(BUILD, "tests", "make_skewed"), str(milliseconds), path], check=True)
        nodes.start_worker()
        nodes.send([path])
        wait_for(lambda: "ended" in nodes.log(), 60, "the end of the job")
        latest = {record["id"]: record for record in valid(nodes.records()) if record["type"] == "variance"}
        window = [record for record in valid(nodes.records()) if record["type"] == "window"][-1]
        nodes.__exit__()
        return ([record for record in latest.values() if record["alarm"]],
                {clock["host"]: clock for clock in window["clock_offsets"]})

    def test_clocks(self):
        """A host whose clock is off: the same variances and culprits at the same time, and the offset is reported."""
        even, clocks = self.skewed(0)
        self.assertTrue(even)
        self.assertEqual(len(clocks), 4)
        for milliseconds in 130, 500:
            with self.subTest(milliseconds=milliseconds):
                alarms, clocks = self.skewed(milliseconds)
                self.assertAlmostEqual(clocks["n1"]["offset_ms"], milliseconds, delta=10)
                self.assertAlmostEqual(clocks["n1"]["corrected_ms"], milliseconds, delta=10)
                self.assertEqual(sorted((a["class"], a["ranks"], [c["rank"] for c in a["culprits"]]) for a in alarms),
                                 sorted((a["class"], a["ranks"], [c["rank"] for c in a["culprits"]]) for a in even))
                for one, other in zip(sorted(alarms, key=lambda a: a["begin"]), sorted(even, key=lambda a: a["begin"])):
                    for side in "begin", "end":
                        self.assertLessEqual(abs(seconds_of(one[side]) - seconds_of(other[side])), 0.2001, (one[side], other[side]))

    def test_stream_full(self):
        """A stream that discards new messages when it is full: nodes say so, discard and count, and go on with room."""
        client = self.nodes.client()
        client.make_stream("vapro_in", "in", max_bytes=60000, discard="new")
        player = self.nodes.start_playing(self.captures, "--speed", "20", "--memory", "30000", "--settle-at", "55")
        self.wait_for_drops(player)
        wait_for(lambda: "maximum bytes exceeded" in self.log_of(player), 30, "the reason")
        config = client.request("$JS.API.STREAM.INFO.vapro_in")["config"]
        answer = client.request("$JS.API.STREAM.UPDATE.vapro_in", json.dumps({**config, "max_bytes": 64 << 20}).encode())
        client.close()
        self.assertNotIn("error", answer)
        self.nodes.start_worker()
        self.check_drops(player, 3)

    @unittest.skipIf(os.geteuid(), "root is needed for a disk that is full")
    def test_disk_full(self):
        """
        The broker's disk is full: it answers nothing, which nodes and workers survive, and say. A worker ends then as ever.
        After the broker has room and was started again all goes on.
        """
        store = self.nodes.path("store0")
        self.nodes.stop_broker()
        shutil.rmtree(store)
        os.mkdir(store)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", store], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", store], check=True)
        self.nodes.start_broker()
        worker = self.nodes.start_worker("--late-after", "1s")
        player = self.nodes.start_playing(self.captures, "--speed", "10", "--memory", "20000", "--settle-at", "55")
        wait_for(lambda: any(record["type"] == "window" for record in self.nodes.records()), 30, "a window")
        filler = os.open(os.path.join(store, "filler"), os.O_CREAT | os.O_WRONLY)
        with self.assertRaises(OSError):
            while True:
                os.write(filler, bytes(4096))
        os.close(filler)
        self.wait_for_drops(player)
        wait_for(lambda: "the broker did not answer in time" in self.log_of(player), 30, "what the nodes say")
        wait_for(lambda: "did not renew the lease" in self.nodes.log(), 30, "what the worker says")
        self.assertIsNone(worker.poll(), "the worker lives")
        self.assertIsNone(player.poll(), "the nodes live")
        self.assertEqual(self.nodes.end(worker), 0)
        os.remove(os.path.join(store, "filler"))
        self.nodes.stop_broker(how=signal.SIGKILL)
        self.nodes.start_broker()
        self.nodes.start_worker("--late-after", "1s")
        self.check_drops(player, 3)

    def test_broker_hangs(self):
        """A broker that accepts connections and answers nothing: nodes and a worker of many jobs end, and say what is lost."""
        jobs = [f"sim:{number}" for number in range(10)]
        captures = [path for job in jobs for path in self.nodes.captures(1, 2, job=job)]
        worker = self.nodes.start_worker()
        player = self.nodes.start_playing(captures, "--speed", "8", "--memory", "20000", "--flush", "0.2")
        wait_for(lambda: len(os.listdir(worker.directory)) == len(jobs) and "window" in {record["type"] for record in self.nodes.records()},
                 30, "windows")
        self.nodes.servers[0].send_signal(signal.SIGSTOP)
        self.assertEqual(self.nodes.end(worker), 0)
        hosts = self.nodes.played(player)[1]
        self.assertTrue(all(node["waiting"] or node["dropped"] for node in hosts.values()), hosts)
        self.assertIn("no broker took them in time", self.log_of(player))


@unittest.skipIf(nodes_common.NO_SERVER, nodes_common.NO_SERVER)
class Leader(Faulty):
    brokers = 3

    def leader(self):
        """Name of the broker that leads the stream of blocks, or None. Brokers that elect one do not respond."""
        client = self.nodes.client()
        try:
            return client.request("$JS.API.STREAM.INFO.vapro_in").get("cluster", {}).get("leader")
        except TimeoutError:
            return None
        finally:
            client.close()

    def test_leader_killed(self):
        """Of three brokers the one that leads the stream of blocks is killed while nodes send: each block is there once."""
        self.nodes.start_worker("--replicas", "3", "--lease", "10s")
        leader = wait_for(self.leader, 40, "a leader")
        player = self.nodes.start_playing(self.captures, "--speed", "20")
        time.sleep(1)
        self.nodes.stop_broker(int(leader[1:]), signal.SIGKILL)
        hosts = self.nodes.played(player)[1]
        self.assertFalse(any(node["waiting"] or node["dropped"] for node in hosts.values()), hosts)
        client = self.nodes.client()
        ids = [headers.split(b"Nats-Msg-Id:")[1].split()[0] for headers, _, _ in client.stored("vapro_in")]
        client.close()
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(ids), sum(node["acknowledged"] for node in hosts.values()))
        self.check(self.nodes.expected(self.captures))


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
        BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
