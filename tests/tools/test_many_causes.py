#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
test_many_causes.py [BUILD]: jobs of four ranks with two or three faults of different cause at the same time. Each fault has a
cause of its own with its rank, times and seconds, what others waited for it, and nothing in the records contradicts itself.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402

START_NS = 1_800_000_000_000_000_000
RANKS, SECONDS, WORK, STEP = 4, 30, .020, .001
# cause, rank, begin, end, share of the time that it takes; seconds lost; least and most that others wait
FAULTS = {
    "overlap": [("preempted", 0, 10, 12, .5, .52, 1.5, 1.54), ("stopped", 1, 11, 12, 1, 1., 2.92, 2.96)],
    "long": [("preempted", 0, 8, 20, .5, 5.39, 14.91, 15.7), ("stopped", 0, 14, 15, 1, 1., 3., 3.), ("throttled", 1, 16, 17, .6, .59, .57, 1.36)],
    "near": [("preempted", 0, 8, 10, .5, 1., 2.98, 2.98), ("stopped", 1, 10.3, 11.3, 1, 1., 3., 3.)],
    "nothing": [],
}


def work(faults, rank, begin, amount):
    """The end of an amount of work, and the seconds that each cause took."""
    time, took = begin, {}
    while amount > 1e-9:
        active = [fault for fault in faults if fault[1] == rank and fault[2] <= time < fault[3]]
        share = max((fault[4] for fault in active), default=0)
        cause = next((fault[0] for fault in active if fault[4] == share), None)
        step = STEP if active else min(amount, STEP)
        if (1 - share) * step > amount:
            step = amount / (1 - share)
        amount -= (1 - share) * step
        time += step
        if cause:
            took[cause] = took.get(cause, 0) + step * share
    return time, took


def fragments(faults):
    draw, now = random.Random(4), 0.
    while now < SECONDS:
        ends = []
        for rank in range(RANKS):
            end, took = work(faults, rank, now, WORK * (1 + draw.gauss(0, .005)))
            ends.append(end)
            record = {"rank": rank, "class": "computation", "from": "app@0123456789ab+0x120", "to": "app@0123456789ab+0x120",
                      "start_ns": START_NS + int(now * 1e9), "duration_ns": int((end - now) * 1e9)}
            if took:
                record["factors"] = {cause + "_ns": int(seconds * 1e9) for cause, seconds in took.items()}
            yield record
        last = max(ends) + 1e-4
        for rank in range(RANKS):
            yield {"rank": rank, "class": "communication", "at": "app@0123456789ab+0x120", "start_ns": START_NS + int(ends[rank] * 1e9),
                   "duration_ns": int((last - ends[rank]) * 1e9), "workload": {"function": "MPI_Allreduce", "bytes": 8, "comm": "0"}}
        now = last


def analyse(faults, ranks=RANKS, make=fragments):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in.ndjson"), os.path.join(folder, "records.ndjson")
        with open(source, "w", encoding="utf-8") as file:
            for record in make(faults) if make is fragments else make(*faults):
                record.update(host="n0", world_size=ranks, pid=1000 + record["rank"], cpu=record["rank"])
                file.write(json.dumps(record) + "\n")
        subprocess.run([os.path.join(BUILD, "vapro"), "analyze", "--format", "ndjson", "--output", target, source], check=True,
                       capture_output=True)
        with open(target, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def stalls_of(ranks):
    """(step, rank, seconds lost): one stall in each tenth step."""
    draw = random.Random(7)
    return [(step, draw.randrange(ranks), draw.uniform(.03, .06)) for step in range(105, 1400, 10)]


def stalls(ranks):
    """A job of steps of 20 ms in which now and then a step of one rank takes longer; the ranks do not wait for each other."""
    lost = {(step, rank): seconds for step, rank, seconds in stalls_of(ranks)}
    for rank in range(ranks):
        draw, now = random.Random(rank), 0.
        for step in range(1400):
            end = now + WORK * (1 + draw.gauss(0, .005)) + lost.get((step, rank), 0)
            yield {"rank": rank, "class": "computation", "from": "app@0123456789ab+0x120", "to": "app@0123456789ab+0x120",
                   "start_ns": START_NS + int(now * 1e9), "duration_ns": int((end - now) * 1e9)}
            now = end


def slow_steps(begin, seconds):
    """Nine hours and a quarter of two ranks in steps of 2 s; from `begin` on rank 0 has half of its CPU for some seconds."""
    now, step = 0., 0
    while now < 33300:
        lost = 2. if begin <= now < begin + seconds else 0.
        ends = [now + 2 + .002 * ((step * 7 + 3 * rank) % 5) + (0 if rank else lost) for rank in range(2)]
        for rank, end in enumerate(ends):
            yield {"rank": rank, "class": "computation", "from": "app@0123456789ab+0x120", "to": "app@0123456789ab+0x120",
                   "start_ns": START_NS + int(now * 1e9), "duration_ns": int((end - now) * 1e9),
                   **({"factors": {"preempted_ns": int(lost * 1e9)}} if lost and not rank else {})}
        last = max(ends) + 1e-3
        for rank, end in enumerate(ends):
            yield {"rank": rank, "class": "communication", "at": "app@0123456789ab+0x120", "start_ns": START_NS + int(end * 1e9),
                   "duration_ns": int((last - end) * 1e9), "workload": {"function": "MPI_Allreduce", "bytes": 8, "comm": "0"}}
        now, step = last, step + 1


def second(text):
    return contradictions.seconds(text) - START_NS / 1e9


class ManyCauses(unittest.TestCase):
    def test_each_fault_is_a_cause(self):
        for name, faults in FAULTS.items():
            with self.subTest(name):
                records = analyse(faults)
                causes = {cause["cause"]: cause for cause in records if cause["type"] == "cause" and cause["final"]}
                self.assertEqual(contradictions.contradictions(records), [])
                self.assertEqual(sorted(causes), sorted(fault[0] for fault in faults))
                for cause, rank, begin, end, _, lost, least, most in faults:
                    found = causes[cause]
                    self.assertTrue(found["alarm"])
                    self.assertEqual(found["ranks"], str(rank))
                    self.assertAlmostEqual(second(found["begin"]), begin, delta=.4)
                    # while rank 1 is stopped, the preempted rank 0 has nothing to do
                    self.assertGreaterEqual(second(found["end"]), (11 if name == "overlap" else end) - .4)
                    self.assertLessEqual(second(found["end"]), end + .4)
                    self.assertAlmostEqual(found["lost_seconds"], lost, delta=.05 * lost)
                    self.assertGreaterEqual(found["caused_seconds"], .85 * least)
                    self.assertLessEqual(found["caused_seconds"], 1.15 * most)

    def test_when_a_fault_comes(self):
        """The same hog in the first minute and in hour 9 of a job of nine hours has the same severity at the end."""
        for seconds, severity in ((4, "warning"), (600, "critical")):
            for begin in (40, 32430):
                with self.subTest(begin=begin, seconds=seconds):
                    records = analyse((begin, seconds), 2, slow_steps)
                    final = [record for record in records if record["type"] == "cause" and record["final"] and record["confirmed"]]
                    self.assertEqual(contradictions.contradictions(records), [])
                    self.assertEqual([(cause["cause"], cause["severity"]) for cause in final], [("preempted", severity)])
                    self.assertEqual(final[0]["denominator_seconds"], 7200)
                    self.assertAlmostEqual(final[0]["lost_seconds"], seconds / 2, delta=1 + .05 * seconds)

    def test_small_is_counted_once(self):
        """Stalls of 30 to 60 ms that nothing explains: `small` is at most 1.2 times the truth, nothing that weighs is in it."""
        for ranks in (4, 64):
            records = analyse((ranks,), ranks, stalls)
            truth = sum(lost for _, _, lost in stalls_of(ranks))
            windows = [record for record in records if record["type"] == "window"]
            small = sum(window["small"]["lost_seconds"] for window in windows)
            listed = sum(record["lost_seconds"] for record in {record["id"]: record for record in records if record["type"] == "variance"}.values()
                         if record["class"] == "computation")
            self.assertLessEqual(small + listed, 1.2 * truth)
            self.assertGreater(small, 0)
            for window in windows:  # each stall is of one rank and 60 ms at most, and no region of more is too little
                length = contradictions.seconds(window["end"]) - contradictions.seconds(window["begin"])
                self.assertLessEqual(window["small"]["lost_seconds"], max(1, window["small"]["count"] + 1) * max(.1, .001 * ranks * length))

    def test_each_cause_is_in_a_sentence(self):
        records = analyse(FAULTS["long"])
        verdicts = " ".join(record["verdict"] for record in records if record["type"] == "variance" and record["state"] == "closed")
        for word in ("preempted", "1.00 s of it stopped", "throttled"):
            self.assertIn(word, verdicts)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
