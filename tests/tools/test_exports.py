#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
`vapro report --svg, --csv and --trace` of a simulated run, of records with hostile names and of several jobs: the trace keeps the
rules of its format, the tables load with the numbers of the records, and the picture is XML that holds what the run has.
"""
import copy
import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

import trace_rules

BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else "build")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import contradictions  # noqa: E402
TABLES = ("jobs", "causes", "variances", "states", "hangs", "variability", "profile", "cells")
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'a</script><b>"x",\'\r\n=1+1 \u202e\u0007\U0001f600 &amp;'


def with_pandas(path):
    """The table as a list of rows of texts, by pandas."""
    import pandas  # pylint: disable=import-outside-toplevel
    table = pandas.read_csv(path, dtype=str, keep_default_na=False)
    return [dict(zip(table.columns, row)) for row in table.values.tolist()]


def with_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


class Exports(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "48", "--seconds", "40", "--noise", "0.05", "--ranks-per-host", "16",
                        "--bundles", "40", cls.path("run.capture")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join(BUILD, "vapro"), "analyze", "-o", cls.path("run.ndjson"), cls.path("run.capture")], check=True)
        contradictions.demand_none(cls.path("run.ndjson"))
        with open(cls.path("run.ndjson"), encoding="utf-8") as file:
            cls.records = [json.loads(line) for line in file]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def report(self, *words, code=0, data=None):
        done = subprocess.run([os.path.join(BUILD, "vapro"), "report", *words], capture_output=True, text=True, check=False, cwd=self.folder.name,
                              timeout=60, input=data or "")
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, records):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return name

    def trace(self, name):
        done = self.report("--trace", "-", name)
        trace = json.loads(done.stdout)
        self.assertEqual(trace_rules.faults(trace), [])
        return trace

    def tables(self, name, *words):
        folder = name + ".tables"
        self.report("--csv", folder, *words, name)
        return {table: with_csv(self.path(f"{folder}/{table}.csv")) for table in TABLES}

    def picture(self, name, *words):
        return xml.fromstring(self.report("--svg", "-", *words, name).stdout.encode())

    def latest(self, kind, key="id"):
        """The latest records of a type, by their number."""
        return {record[key]: record for record in self.records if record["type"] == kind}

    def changed(self, change):
        """Copies of the records, each passed through a function that may change it."""
        records = copy.deepcopy(self.records)
        for record in records:
            change(record)
        return records

    # ---- trace

    def test_trace(self):
        events = self.trace("run.ndjson")["traceEvents"]
        variances = self.latest("variance")
        self.assertGreater(len(variances), 5)
        names = [event["args"]["name"] for event in events if event["ph"] == "M"]
        for name in ("sim0", "sim1", "sim2", "rank 0", "rank 47", "job sim:1"):
            self.assertIn(name, names)
        regions = [event for event in events if event.get("cat") == "region"]
        whole = {event["args"]["id"]: event for event in regions if "id" in event["args"]}
        self.assertEqual(set(whole), set(variances))
        for number, variance in variances.items():
            event = whole[number]
            self.assertAlmostEqual(event["args"]["lost_seconds"], variance["lost_seconds"], 5)
            self.assertEqual(event["args"]["confidence"], variance["confidence"])
        tasks = [event for event in events if event.get("cat") == "task"]
        ran = sum(task["seconds"] for record in self.latest("diagnosis", "variance").values() for task in record["interferers"])
        self.assertAlmostEqual(sum(event["args"]["ran_seconds"] for event in tasks), ran, 3)
        fragments = [event for event in events if event.get("cat") == "fragment"]
        self.assertEqual(len(fragments), sum(len(variance["exemplars"]) for variance in variances.values()))
        counters = {event["name"] for event in events if event["ph"] == "C"}
        for word in ("mean performance, %", "worst performance, %", "ranks evaluated"):
            self.assertIn("computation: " + word, counters)
        self.assertIn("communication: mean waiting, %", counters)

    def test_regions_are_on_their_ranks(self):
        events = self.trace("run.ndjson")["traceEvents"]
        names = {event["tid"]: event["args"]["name"].partition(",")[0] for event in events if event.get("name") == "thread_name"}
        rows = {}
        for event in events:
            if event.get("cat") == "region":
                rows.setdefault(event["args"]["region"], set()).add(names[event["tid"]])
        for row in self.tables("run.ndjson")["variances"]:
            self.assertEqual(len(rows[row["number"]]), int(row["rank_count"]), row)
            self.assertIn("rank " + row["ranks"].replace(",", "-").split("-")[0], rows[row["number"]])

    def test_instants(self):
        time = next(record["end"] for record in self.records if record["type"] == "window")
        head = {"schema": "vapro/1", "time": time, "host": "sim1"}
        records = self.records + [{**head, "type": "warning", "code": "ring_full", "text": "full", "pid": None},
                                  {**head, "type": "stage", "stage": 1, "parts_of": None, "counted": True, "reason": None, "job": None,
                                   "variance": None, "counters": ["cycles"], "uncounted_ms": 0, "text": "counts time"}]
        events = self.trace(self.write("instants.ndjson", records))["traceEvents"]
        found = {event["cat"]: event for event in events if event["ph"] == "i"}
        self.assertEqual(found["warning"]["args"]["text"], "full")
        self.assertEqual(found["stage"]["args"]["counters"], ["cycles"])
        self.assertEqual(found["stage"]["ts"], found["warning"]["ts"])

    def test_inside(self):
        """Where a slow computation ran, as the records have it."""
        def sample(record):
            if record["type"] == "variance":
                record["inside"] = [{"source": "solve (cg.c:12)", "function": "solve", "pct_of_samples": 80, "samples": 8}]

        name = self.write("inside.ndjson", self.changed(sample))
        events = [event for event in self.trace(name)["traceEvents"] if "id" in event.get("args", {})]
        for words in [event["args"]["inside"] for event in events] + [row["inside"] for row in self.tables(name)["variances"]]:
            self.assertIn("solve (cg.c:12)", words)

    def test_rules_can_fail(self):
        good = {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 0, "dur": 10}
        named = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": {"name": "p"}},
                 {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}}]
        nested = [{**good, "ts": 2, "dur": 8}, {**good, "ts": 10}]
        self.assertEqual(trace_rules.faults({"traceEvents": [*named, good, *nested]}), [])
        for bad in ({**good, "ts": 5}, {**good, "ts": "5"}, {**good, "ts": 20, "dur": -1}, {**good, "ph": "Y"}, {**good, "pid": "p"},
                    {**good, "ts": 30, "tid": 3}, {**good, "ts": 30, "pid": 3}, {"ph": "C", "name": "c", "pid": 1, "tid": 1, "ts": 1, "args": {"a": "x"}},
                    {"ph": "i", "name": "i", "pid": 1, "tid": 2, "ts": 1, "s": "x"}, {**good, "name": ""}):
            self.assertNotEqual(trace_rules.faults({"traceEvents": [*named, good, bad]}), [], bad)
        self.assertNotEqual(trace_rules.faults([]), [])

    # ---- tables

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "python3-pandas is not installed")
    def test_pandas(self):
        """pandas reads the same rows as python's own reader."""
        for table, rows in self.tables("run.ndjson").items():
            self.assertEqual(with_pandas(self.path(f"run.ndjson.tables/{table}.csv")), rows)
            self.assertTrue(rows or table == "hangs", table)

    def test_tables(self):
        tables = self.tables("run.ndjson")
        variances = self.latest("variance")
        self.assertEqual({int(row["id"]) for row in tables["variances"]}, set(variances))
        for row in tables["variances"]:
            record = variances[int(row["id"])]
            self.assertAlmostEqual(float(row["lost_seconds"]), record["lost_seconds"], 5)
            self.assertEqual(row["ranks"], record["ranks"])
            self.assertEqual(row["alarm"], "true" if record["alarm"] else "false")
        final = [record for record in self.records if record["type"] == "cause" and record["final"]]
        self.assertEqual([(row["cause"], row["culprit"], int(row["variances"])) for row in tables["causes"]],
                         [(record["cause"], record["culprit"]["comm"] if record["culprit"] else "", record["regions"])
                          for record in sorted(final, key=lambda record: record["number"])])
        self.assertEqual([row["job"] for row in tables["jobs"]], ["sim:1"])
        self.assertEqual(tables["jobs"][0]["hosts"], "sim0 sim1 sim2")
        self.assertTrue(any(row["kind"] == "slow" and float(row["ratio"]) > 1 for row in tables["states"]))
        known = {site["state_id"] for record in self.records if record["type"] == "variance" for site in record["call_sites"]}
        found = {row["state_id"] for row in tables["states"] if row["kind"] == "slow"}
        self.assertTrue(found and found <= known, (found, known))

    def test_variability(self):
        records = [record for record in self.records if record["type"] == "variability"]
        rows = self.tables("run.ndjson")["variability"]
        self.assertTrue(rows)
        self.assertEqual([row["state_id"] for row in rows], [record["state_id"] for record in records])
        for row, record in zip(rows, records):
            for key in ("kind", "origin", "work"):
                self.assertEqual(row[key], record[key])
            self.assertEqual(float(row["seconds"]), record["seconds"])
            self.assertEqual(float(row["temporal_worst_pct"]), record["temporal"]["worst_pct"])
            self.assertEqual(float(row["slowest_pct"]), record["spatial"]["slowest_pct"])
            self.assertEqual(row["stalls_pct"], "")

    def test_cells(self):
        """Each evaluated bin is one row, with the value of its last revision."""
        cells, known = {}, {}
        for record in self.records:
            if record["type"] != "heatmap" or record["class"] != "computation":
                continue
            begin = int(record["begin"][17:19]) * 5 + int(record["begin"][20]) // 2
            for row in record["rows"]:
                for at, value in enumerate(row["values"]):
                    cells[(row["rank"], row.get("thread", ""), begin + at)] = value
        for row in self.tables("run.ndjson")["cells"]:
            if row["class"] == "computation":
                known[(int(row["rank"]), int(row["thread"]) if row["thread"] else "", round(float(row["begin_s"]) * 5))] = float(row["performance"])
        self.assertEqual(set(known), {key for key, value in cells.items() if value is not None})
        for key, value in known.items():
            self.assertAlmostEqual(value, cells[key], 4)

    def test_line_ends(self):
        self.report("--csv", "lines", "run.ndjson")
        with open(self.path("lines/jobs.csv"), "rb") as file:
            data = file.read()
        self.assertEqual(data.count(b"\n"), data.count(b"\r\n"))
        self.assertTrue(data.endswith(b"\r\n"))

    # ---- picture

    def test_picture(self):
        picture = self.picture("run.ndjson")
        texts = ["".join(text.itertext()) for text in picture.iter(SVG + "text")]
        for text in ("Performance of computation, job sim:1", "48 ranks on 3 hosts, 40.0 s from 2027-01-15 08:00:00 UTC", "sim0", "sim2",
                     "not evaluated", "seconds from the begin of the run", "1"):
            self.assertIn(text, texts)
        self.assertTrue(any("hog" in text for text in texts))
        cells = picture.find(SVG + "g")
        self.assertGreater(len(cells.findall(SVG + "path")), 3)

    def test_cells_are_drawn(self):
        """The path of each colour has the area of all cells that are as slow or slower, and cells of none overlap."""
        areas = []
        for path in self.picture("run.ndjson").find(SVG + "g").iter(SVG + "path"):
            drawn = set()
            for rectangle in path.get("d").split("M")[1:]:
                place, width, height = rectangle.replace("v", "h").split("h")[:3]
                left, top = (int(number) for number in place.split())
                cells = {(left + x, top + y) for x in range(int(width)) for y in range(int(height))}
                self.assertFalse(cells & drawn, rectangle)
                drawn |= cells
            areas.append(len(drawn))
        speeds = [float(row["performance"]) for row in self.tables("run.ndjson")["cells"] if row["class"] == "computation"]
        levels = [int(20 * (1 - speed) + 0.5) for speed in speeds]
        self.assertEqual(areas, [sum(level >= least for level in levels) for least in sorted(set(levels))])

    def test_many_ranks_share_rows(self):
        """More ranks than rows: the slowest rank of each row is what is seen, and the file stays small."""
        head = {"schema": "vapro/1", "time": "2027-01-15T08:00:40.000000000Z", "job": "big", "host": "n0", "type": "heatmap", "class": "io"}
        values = [1] * 200
        rows = [{"rank": rank, "pid": rank + 1, "host": f"n{rank // 64}", "values": values} for rank in range(4096)]
        rows[77] = {**rows[77], "values": [1] * 100 + [0.1] + [1] * 99}
        records = [{**head, "begin": "2027-01-15T08:00:00.000000000Z", "bin_ns": 200000000, "revision": 0, "rows": rows}]
        text = self.report("--svg", "-", "--class", "io", self.write("big.ndjson", records)).stdout
        self.assertLess(len(text), 100000)
        paths = xml.fromstring(text.encode()).find(SVG + "g").findall(SVG + "path")
        drawn = [path.get("d") for path in paths]
        self.assertEqual(len(drawn), 2)
        self.assertIn("h1v1h-1z", drawn[1])
        self.assertEqual(drawn[1].count("M"), 1)

    # ---- hangs

    def test_hangs(self):
        """The last record of a hang is in the table, a row for each group, and one event of the trace; of other jobs none is."""
        head = {"schema": "vapro/1", "type": "hang", "time": "2027-01-15T08:00:40.000000000Z", "host": "sim0", "job": "sim:1", "id": 901,
                "state": "open", "kind": "calls", "outcome": "goes_on", "alarm": True, "severity": "critical", "seconds": 20,
                "begin": "2027-01-15T08:00:10.000000000Z", "end": "2027-01-15T08:00:30.000000000Z", "text": "hang: no rank has made progress"}
        group = {"state_id": None, "labels": "function=MPI_Recv peer=0", "class": "communication", "from": None, "to": "a@1+0x2",
                 "ranks": "1", "condition": "in_call", "since": "2027-01-15T08:00:11.000000000Z", "waits_for": "0"}
        groups = [group, {**group, "source": "main (app.c:7)", "ranks": "0,2-47", "since": None, "did_not_enter": "1"}]
        name = self.write("hang.ndjson", [*self.records, {**head, "revision": 0, "groups": groups[:1]},
                                          {**head, "revision": 1, "outcome": "resumed", "groups": groups}, {**head, "job": "gone", "groups": groups}])
        rows = self.tables(name, "--job", "sim:1")["hangs"]
        self.assertEqual([(row["id"], row["outcome"], row["ranks"], row["since_s"], row["call"], row["waits_for"], row["did_not_enter"]) for row in rows],
                         [("901", "resumed", "1", "11", "a@1+0x2", "0", ""), ("901", "resumed", "0,2-47", "", "main (app.c:7)", "0", "1")])
        self.assertEqual({(row["begin_s"], row["end_s"], row["alarm"], row["job"]) for row in rows}, {("10", "30", "true", "sim:1")})
        events = [event for event in self.trace(name)["traceEvents"] if event.get("cat") == "hang"]
        self.assertEqual([(event["ts"], event["dur"], event["name"], len(event["args"]["groups"])) for event in events],
                         [(10e6, 20e6, "no progress: calls", 2)])

    # ---- all of them

    def test_hostile_names(self):
        def rename(record):
            for key in ("host", "job"):
                if isinstance(record.get(key), str):
                    record[key] += HOSTILE
            for row in record.get("rows", ()):
                row["host"] = row.get("host", "sim0") + HOSTILE
            for task in record.get("interferers", ()):
                task["comm"] = HOSTILE
            if record.get("culprit"):
                record["culprit"] = HOSTILE
            for key in ("verdict", "advice", "evidence", "who"):
                if record.get(key):
                    record[key] = HOSTILE

        name = self.write("hostile.ndjson", self.changed(rename))
        events = self.trace(name)["traceEvents"]
        self.assertTrue(any(HOSTILE in event["args"]["name"] for event in events if event["ph"] == "M"))
        self.assertTrue(any(HOSTILE in row["host"] for row in self.tables(name)["cells"]))
        picture = self.picture(name)
        self.assertEqual({element.tag for element in picture.iter()}, {SVG + tag for tag in (
            "svg", "title", "defs", "pattern", "rect", "path", "g", "text")})
        self.assertTrue(any("</script><b>" in "".join(text.itertext()) for text in picture.iter(SVG + "text")))

    def test_bytes_that_are_no_text(self):
        with open(self.path("run.ndjson"), "rb") as file:
            data = file.read().replace(b'"sim1"', b'"s\xff\xc0im\xed\xa0\x80"')
        with open(self.path("bytes.ndjson"), "wb") as file:
            file.write(data)
        self.trace("bytes.ndjson")
        self.picture("bytes.ndjson")
        self.assertIn("s??im???", {row["host"] for row in self.tables("bytes.ndjson")["cells"]})

    def test_jobs(self):
        """Of several jobs a picture needs the choice of one, and --job restricts all outputs."""
        def second(record):
            if isinstance(record.get("job"), str):
                record["job"] = "other"

        jobs = [record for record in self.changed(second) if record["type"] not in ("hello", "bye")]
        name = self.write("jobs.ndjson", self.records[:-1] + jobs + self.records[-1:])
        done = self.report("--svg", "jobs.svg", name, code=1)
        self.assertIn("several jobs, as sim:1 and other", done.stderr)
        self.assertFalse(os.path.exists(self.path("jobs.svg")))
        names = {event["args"]["name"] for event in self.trace(name)["traceEvents"] if event["ph"] == "M"}
        self.assertLessEqual({"job sim:1", "job other", "sim0, job other"}, names)
        self.assertEqual({row["job"] for row in self.tables(name)["variances"]}, {"sim:1", "other"})
        for table in ("jobs", "causes", "variances", "states", "cells"):
            self.assertEqual({row["job"] for row in self.tables(name, "--job", "other")[table]}, {"other"}, table)
        self.picture(name, "--job", "other")
        done = self.report("--trace", "-", "--job", "none", name, code=1)
        self.assertIn("no job 'none'", done.stderr)

    def test_jobs_of_one_name(self):
        """Two users may have jobs of one name; --job takes the name that is shown, in which they differ."""
        def of_user(uid):
            def change(record):
                if isinstance(record.get("job"), str):
                    record["uid"] = uid
            return self.changed(change)

        maps = [record for record in of_user(7) if record["type"] == "heatmap"]
        name = self.write("users.ndjson", of_user(5)[:-1] + maps)
        self.assertIn("several jobs, as sim:1 and sim:1 of uid 7", self.report("--svg", "no.svg", name, code=1).stderr)
        self.assertEqual({row["variance"] for row in self.tables(name, "--job", "sim:1 of uid 7")["states"]}, set())
        self.picture(name, "--job", "sim:1 of uid 5")
        self.report("--svg", "no.svg", "--job", "sim:1 of uid 6", name, code=1)

    def test_capture(self):
        """A capture is replayed into the tables of its records."""
        self.assertEqual(self.tables("run.capture")["variances"], self.tables("run.ndjson")["variances"])

    def test_damaged(self):
        """Values and times that cannot be, as of a damaged file, never make an output that its readers refuse."""
        def damage(record):
            if record["type"] == "heatmap":
                record["rows"][0]["values"][5] = 1e308
            if record["type"] == "variance" and record["exemplars"]:
                record["exemplars"][0]["duration_ns"] = 2 ** 64 - 1
                record["lost_seconds"] = -1e308
                record["begin"] = "1970-01-01T00:00:00.000000000Z"

        name = self.write("damaged.ndjson", self.changed(damage))
        self.trace(name)
        self.picture(name)
        for row in self.tables(name)["cells"]:
            self.assertLessEqual(float(row["performance"]), 1)

    def test_nothing_evaluated(self):
        def blank(record):
            for row in record.get("rows", ()):
                row["values"] = [None] * len(row["values"])

        records = [record for record in self.changed(blank) if record["type"] not in ("variance", "diagnosis", "cause")]
        name = self.write("blank.ndjson", records)
        tables = self.tables(name)
        self.assertEqual((tables["cells"], tables["variances"], tables["causes"]), ([], [], []))
        self.assertEqual(self.picture(name).find(SVG + "g").findall(SVG + "path"), [])
        counters = [event["args"]["value"] for event in self.trace(name)["traceEvents"] if event["ph"] == "C"]
        self.assertEqual(set(counters), {0})

    def test_no_maps(self):
        name = self.write("empty.ndjson", [record for record in self.records if record["type"] in ("hello", "bye")])
        self.assertEqual(self.trace(name)["traceEvents"], [])
        self.assertEqual(self.tables(name)["jobs"], [])
        self.assertIn("no heat map of computation", self.report("--svg", "none.svg", name, code=1).stderr)

    def test_outputs(self):
        """What is no output of the same kind stays; the other outputs are written all the same."""
        with open(self.path("mine.svg"), "w", encoding="utf-8") as file:
            file.write("<svg>mine</svg>")
        done = self.report("--svg", "mine.svg", "--trace", "new.json", "run.ndjson", code=1)
        self.assertIn("mine.svg exists and is no report", done.stderr)
        with open(self.path("mine.svg"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "<svg>mine</svg>")
        self.report("--trace", "new.json", "run.ndjson")
        self.assertFalse(os.path.exists(self.path("run.html")))
        self.assertIn("only one output", self.report("--svg", "-", "--trace", "-", "run.ndjson", code=2).stderr)
        self.assertIn("--svg is needed", self.report("--class", "io", "run.ndjson", code=2).stderr)
        self.assertIn("expected computation", self.report("--svg", "-", "--class", "disk", "run.ndjson", code=2).stderr)
        self.assertIn("new.json is not one", self.report("--csv", "new.json", "run.ndjson", code=1).stderr)
        self.assertIn("No space left", self.report("--trace", "/dev/full", "run.ndjson", code=1).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
