#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The report page in a headless Chromium, by its keyboard alone; and names of users that try to be more than text."""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
import contradictions  # noqa: E402
from browser import Browser  # noqa: E402

VAPRO = os.path.join(BUILD, "vapro")
HOSTILE = "</script><script>window.harm=1</script><img src=x onerror=harm=1>\"'`\u0001\u202e\u2066&lt;"
CAPTURE = "it's a \"run\" $(touch harm).capture"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **options)


class Command(unittest.TestCase):
    """Files in, files out, and what is refused."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vapro-report-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for name in ("one", "two"):
            run(os.path.join(BUILD, "tests", "make_capture"), "--ranks", "2", "--seconds", "12", name + ".capture", cwd=cls.folder)
        run(VAPRO, "analyze", "-o", "one.ndjson", "one.capture", cwd=cls.folder)
        contradictions.demand_none(os.path.join(cls.folder, "one.ndjson"))

    def report(self, *words, **options):
        return subprocess.run([VAPRO, "report", *words], capture_output=True, text=True, timeout=60, cwd=self.folder, **{"stdin": subprocess.DEVNULL, **options})

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def refused(self, code, text, *words):
        done = self.report(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def data(self, text):
        return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])

    def test_default_name(self):
        done = self.report("one.ndjson")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wrote one.html", done.stderr)
        self.assertEqual(os.stat(os.path.join(self.folder, "one.html")).st_mode & 0o777, 0o640)
        self.assertEqual(self.report("one.ndjson").returncode, 0)  # its own page is replaced

    def test_same_from_records_and_capture(self):
        """The page of a capture is that of the records of its replay."""
        pages = [self.data(self.report("--html", "-", name).stdout) for name in ("one.ndjson", "one.capture")]
        for key in ("verdict", "jobs", "regions", "maps", "causes", "hosts"):
            self.assertEqual(pages[0][key], pages[1][key])
        for state in pages[1]["states"]:  # only the capture has these
            for key in ("fragments", "seconds", "least", "most"):
                state.pop(key, None)
        for state in pages[0]["states"]:
            self.assertIn(state, pages[1]["states"])
        self.assertEqual([page["source"]["kind"] for page in pages], ["records", "captures"])

    def test_states(self):
        """A page of a capture has all states, as `vapro stg` counts them; one of records has those that they name."""
        self.assertEqual(self.report("--html", "states.html", "one.capture").returncode, 0)
        page = self.data(self.read("states.html"))
        counted = [json.loads(line) for line in run(VAPRO, "stg", "--json", "one.capture", cwd=self.folder).stdout.splitlines()]
        self.assertTrue(page["states_all"])
        self.assertEqual(sum(state.get("fragments", 0) for state in page["states"]), sum(state["n"] for state in counted))
        self.assertAlmostEqual(sum(state.get("seconds", 0) for state in page["states"]), sum(state["seconds"] for state in counted), 3)
        for state in page["states"]:
            if "fragments" in state:
                self.assertLessEqual(state["least"], state["seconds"] / state["fragments"] + 1e-6)
                self.assertLessEqual(state["seconds"] / state["fragments"], state["most"] + 1e-6)
        losses = [state["lost"] for state in page["states"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual(self.report("--html", "states.html", "one.ndjson").returncode, 0)
        page = self.data(self.read("states.html"))
        self.assertFalse(page["states_all"] or any("fragments" in state for state in page["states"]))

    def test_many_states(self):
        """What is beyond the limit is counted, and is what lost least."""
        variance = {"schema": "vapro/1", "type": "variance", "time": "2026-01-01T00:00:15.0Z", "host": "n1", "job": "j", "revision": 1, "state": "closed",
                    "class": "computation", "begin": "2026-01-01T00:00:01.0Z", "end": "2026-01-01T00:00:02.0Z", "ranks": "1", "lost_seconds": 1}
        with open(os.path.join(self.folder, "many.ndjson"), "w", encoding="utf-8") as file:
            for number in range(2100):
                site = {"class": "computation", "labels": "", "to": f"a+{number}", "source": f"f{number} (a.c:{number})", "lost_seconds": number + 1}
                file.write(json.dumps(dict(variance, id=number + 1, call_sites=[site])) + "\n")
        self.assertEqual(self.report("--html", "many.html", "many.ndjson").returncode, 0)
        page = self.data(self.read("many.html"))
        self.assertEqual((len(page["states"]), page["states_more"]), (2000, 100))
        self.assertEqual([page["states"][0]["lost"], page["states"][-1]["lost"]], [2100, 101])

    def test_unseen_around(self):
        """A region beside time in which nothing was seen says so, and no other."""
        variance = {"schema": "vapro/1", "type": "variance", "time": "2026-01-01T00:00:15.0Z", "host": "n1", "job": "j", "revision": 1, "state": "closed",
                    "class": "computation", "begin": "2026-01-01T00:00:01.0Z", "end": "2026-01-01T00:00:02.0Z", "ranks": "1", "lost_seconds": 1}
        with open(os.path.join(self.folder, "unseen.ndjson"), "w", encoding="utf-8") as file:
            for number, before in ((1, 1.4), (2, 0)):
                file.write(json.dumps(dict(variance, id=number, unseen_before_seconds=before, unseen_after_seconds=0)) + "\n")
        self.assertEqual(self.report("--html", "unseen.html", "unseen.ndjson").returncode, 0)
        regions = self.data(self.read("unseen.html"))["regions"]
        self.assertEqual(sorted(region.get("unseen", "") for region in regions), ["", "1.40 s before it: it may have begun earlier"])

    def test_running_daemon(self):
        """Without a file the socket is used; files and a socket exclude each other."""
        self.refused(2, "exclude each other", "--socket", self.folder + "/", "one.ndjson")
        self.refused(1, "no running vaprod found", "--socket", self.folder + "/")
        self.refused(1, "no process listens", "--socket", os.path.join(self.folder, "nothing"))
        self.refused(2, "at most", "--socket", os.path.join(self.folder, "x" * 200))

    def test_standard_input(self):
        with open(os.path.join(self.folder, "one.ndjson"), encoding="utf-8") as file:
            done = self.report("--html", "-", "-", stdin=file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("<!DOCTYPE html>"))
        self.refused(2, "--html is needed", "-")

    def test_other_files_stay(self):
        before = self.read("one.ndjson")
        self.refused(1, "exists and is no report", "--html", "one.ndjson", "one.capture")
        self.assertEqual(self.read("one.ndjson"), before)
        os.symlink("one.ndjson", os.path.join(self.folder, "link.html"))
        self.refused(1, "symbolic link", "--html", "link.html", "one.capture")
        self.refused(1, "it is a directory", "--html", ".", "one.capture")
        self.refused(1, "No such file or directory", "--html", "missing/x.html", "one.capture")
        self.assertEqual(self.read("one.ndjson"), before)

    def test_wrong_input(self):
        self.refused(1, "missing.ndjson: No such file or directory", "missing.ndjson")
        self.refused(1, "are of one kind", "one.ndjson", "one.capture")
        self.refused(1, "is a directory", ".")
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(os.path.join(self.folder, "socket"))
            self.refused(1, "name it by --socket", "socket")
        with open(os.path.join(self.folder, "empty.ndjson"), "w", encoding="utf-8"):
            pass
        self.refused(1, "is empty", "empty.ndjson")
        self.refused(1, "it has no run 7", "--run", "7", "one.ndjson")
        self.refused(2, "--run", "--run", "x", "one.ndjson")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "empty.html")))

    def test_bad_lines(self):
        with open(os.path.join(self.folder, "bad.ndjson"), "w", encoding="utf-8") as file:
            file.write(self.read("one.ndjson") + "{broken\n")
        done = self.report("--html", "bad.html", "bad.ndjson")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 bad line was refused", done.stderr)
        self.assertEqual(self.data(self.read("bad.html"))["source"]["bad_lines"], 1)

    def test_cut_capture(self):
        with open(os.path.join(self.folder, "two.capture"), "rb") as file:
            data = file.read()
        with open(os.path.join(self.folder, "cut.capture"), "wb") as file:
            file.write(data[:len(data) * 2 // 3])
        done = self.report("--html", "cut.html", "cut.capture")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(self.data(self.read("cut.html"))["source"]["cut"])


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="vapro-page-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.capture = os.path.join(cls.folder, CAPTURE)
        made = run(os.path.join(BUILD, "tests", "make_capture"), "--ranks", "8", "--ranks-per-host", "4", "--seconds", "40", "--noise", "0.06", cls.capture)
        assert made.returncode == 0, made.stderr
        cls.page = os.path.join(cls.folder, "run.html")
        written = run(VAPRO, "report", "--html", cls.page, cls.capture)
        assert written.returncode == 0, written.stderr
        cls.browser = cls.enterClassContext(Browser()) if hasattr(cls, "enterClassContext") else Browser()
        if not hasattr(cls, "enterClassContext"):
            cls.addClassCleanup(cls.browser.__exit__)

    def open(self, path=None, fragment=""):
        self.browser.open(path or self.page, fragment)
        return self.browser

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.js("window.violations"), [])

    def status(self):
        return self.browser.text("status")

    def tab_to(self, identifier):
        """Presses Tab until an element has the focus."""
        for _ in range(40):
            if self.browser.js("document.activeElement.id") == identifier:
                return
            self.browser.key("Tab")
        self.fail("Tab does not reach " + identifier)

    def test_next_region(self):
        browser = self.open()
        browser.key("n")
        first = re.match(r"region (\S+) of (\d+): ", self.status())
        self.assertIsNotNone(first, self.status())
        browser.key("n")
        self.assertNotEqual(re.match(r"region (\S+) of ", self.status())[1], first[1])
        browser.key("p")
        self.assertEqual(re.match(r"region (\S+) of ", self.status())[1], first[1])
        self.assertIn("region=" + first[1], browser.js("location.hash"))
        self.assertIn(f"Region {first[1]}: ", browser.text("detail-head"))
        browser.key("Enter")
        self.assertEqual(browser.js("document.activeElement.id"), "detail")

    def test_sort_by_loss(self):
        browser = self.open()
        browser.key("s", "s")
        self.assertIn("rows by loss", self.status())
        losses = browser.js("heat.order.map(row => heat.rowLoss[row.index])")
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertNotEqual(losses[0], losses[-1])

    def test_class(self):
        browser = self.open()
        before = browser.js("document.querySelector('#classes [aria-pressed=true]').textContent")
        browser.key("c")
        browser.wait(f"document.querySelector('#classes [aria-pressed=true]').textContent !== {json.dumps(before)}")
        self.assertIn("class=communication", browser.js("location.hash"))
        self.assertIn("waiting", browser.text("legend"))

    def copied(self):
        """What the key r copied, as it is in the clipboard."""
        self.browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.browser.key("r")
        self.browser.wait("document.getElementById('status').textContent.startsWith('cop')")
        text = self.browser.js("navigator.clipboard.readText()")
        self.assertIn(text, self.status())
        return text

    def analyze(self, command):
        words = shlex.split(command)
        self.assertEqual(words[:2], ["vapro", "analyze"])
        self.assertEqual(words[-1], self.capture)
        done = run(VAPRO, *words[1:], cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "harm")))
        return done.stderr

    def test_copy_region(self):
        browser = self.open()
        browser.key("n")
        region = browser.js("({ranks: chosen.ranks, begin: utc(chosen.begin), end: utc(chosen.end), who: chosen.who})")
        command = self.copied()
        self.assertIn(f"--region {region['ranks']}@{region['begin']}..{region['end']}", command)
        self.assertIn("chosen", self.analyze(command))

    def test_copy_selection(self):
        browser = self.open()
        browser.key("+")
        self.tab_to("canvas")
        browser.key("b", "l", "l", "l", "j", "b")
        brush = browser.js("({r0: brush.r0, r1: brush.r1, t0: utc(brush.t0), t1: utc(brush.t1)})")
        self.assertEqual(brush["r1"] - brush["r0"], 2)
        command = self.copied()
        self.assertIn(f"{brush['r0']}-{brush['r1'] - 1}@{brush['t0']}..{brush['t1']}", command)
        self.analyze(command)
        browser.key("Escape")
        self.assertIsNone(browser.js("brush"))

    def test_move(self):
        browser = self.open()
        browser.key("+", "+")
        self.tab_to("canvas")
        part = browser.js("part")
        browser.key("ArrowRight", "ArrowDown")
        moved = browser.js("part")
        self.assertGreater(moved["t0"], part["t0"])
        self.assertGreater(moved["r0"], part["r0"])
        self.assertAlmostEqual(moved["t1"] - moved["t0"], part["t1"] - part["t0"])
        browser.key("PageDown")
        self.assertEqual(browser.js("[part.r0, part.r1]"), [4, 8])
        self.assertIn("host", self.status())
        browser.key("0")
        self.assertEqual(browser.js("part"), browser.js("wholePart()"))

    def mouse(self, kind, x, y, **values):
        self.browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **values)

    def test_mouse(self):
        """A drag selects whole cells, the wheel zooms where it is, a click selects the region there and a double click shows it."""
        browser = self.open()
        browser.js("byId('map').scrollIntoView({behavior: 'instant'})")
        at = browser.js("(at => ({x: at.left + picture.box.left, y: at.top + picture.box.top, w: picture.box.width, h: picture.box.height}))(canvas.getBoundingClientRect())")
        self.mouse("mousePressed", at["x"] + at["w"] * 0.251, at["y"] + at["h"] * 0.3, button="left", clickCount=1)
        self.mouse("mouseMoved", at["x"] + at["w"] * 0.499, at["y"] + at["h"] * 0.7, button="left", buttons=1)
        self.mouse("mouseReleased", at["x"] + at["w"] * 0.499, at["y"] + at["h"] * 0.7, button="left", clickCount=1)
        brush, bin_of = browser.js("brush"), browser.js("heat.map.bin")
        self.assertEqual((brush["r0"], brush["r1"]), (2, 6))
        self.assertAlmostEqual(brush["t0"], 10, delta=bin_of)
        self.assertAlmostEqual(brush["t1"], 20, delta=bin_of)
        self.analyze(self.copied())
        browser.key("Escape")
        self.mouse("mouseWheel", at["x"] + at["w"] / 2, at["y"] + at["h"] / 2, deltaX=0, deltaY=-300)
        browser.wait("part.t1 - part.t0 < 30")
        self.assertAlmostEqual(browser.js("(part.t0 + part.t1) / 2"), 20, delta=0.1)
        browser.key("0")
        spot = browser.js("(hit => { const at = canvas.getBoundingClientRect(); return {x: at.left + hit.x + hit.width / 2, y: at.top + hit.y + hit.height / 2, number: hit.region.number}; })"
                          "(picture.hits[0])")
        for clicks in (1, 2):
            self.mouse("mousePressed", spot["x"], spot["y"], button="left", clickCount=clicks)
            self.mouse("mouseReleased", spot["x"], spot["y"], button="left", clickCount=clicks)
        browser.wait(f"chosen && chosen.number === {json.dumps(spot['number'])} && part.t1 - part.t0 < 30")
        self.assertIn("region=" + spot["number"], browser.js("location.hash"))

    def test_address(self):
        browser = self.open(fragment="#class=communication&time=5-15&rows=2-6&sort=rank&mean=1&region=1")
        self.assertEqual(browser.js("[heat.map.class, part, sortBy, mean, chosen.number]"),
                         ["communication", {"r0": 2, "r1": 6, "t0": 5, "t1": 15}, "rank", True, "1"])
        browser.js("location.hash = 'regions'")  # a section is none of it
        browser.key("m")
        self.assertEqual(browser.js("[heat.map.class, part.r0, mean]"), ["communication", 2, False])
        browser.js("location.hash = 'class=computation'")
        browser.wait("heat.map.class === 'computation'")
        self.assertEqual(browser.js("[part.r0, sortBy]"), [0, "host"])

    def test_find_rank(self):
        browser = self.open()
        browser.key("/", "5", "Enter")
        self.assertIn("rank 5 on ", self.status())
        browser.key("/", "9", "9", "Enter")
        self.assertIn("there is no rank", self.status())

    def test_keys(self):
        """The list of keys opens and closes, and takes no other key meanwhile."""
        browser = self.open()
        browser.key("?", "c")
        self.assertTrue(browser.js("byId('help').open"))
        self.assertEqual(browser.js("heat.map.class"), "computation")
        browser.key("Enter")
        self.assertFalse(browser.js("byId('help').open"))

    def test_print(self):
        browser = self.open()
        pdf = browser.pdf()
        self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", pdf)), 2)

    def test_accessibility(self):
        browser = self.open()
        nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
        named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored") and "role" in node]
        verdict = browser.js("page.verdict")
        self.assertIn(("region", "Verdict"), named)
        self.assertTrue(any(role == "StaticText" and verdict[1:] in name for role, name in named), verdict)
        self.assertIn(("region", "Slow regions"), named)
        headers = {name for role, name in named if role == "columnheader"}
        self.assertTrue({"no.", "severity", "who", "cause", "lost"} <= headers, headers)
        self.assertIn(("button", "region 1, details"), named)
        self.assertIn(("application", "Heat map of ranks over time"), named)

    def test_view_agrees(self):
        """The first region and the causes are those of `vapro view`."""
        records = os.path.join(self.folder, "run.ndjson")
        self.assertEqual(run(VAPRO, "analyze", "-o", records, self.capture).returncode, 0)
        contradictions.demand_none(records)
        view = re.sub(r"\s+", " ", run(VAPRO, "view", "--width", "2000", "--color", "never", "--no-pager", records).stdout)
        browser = self.open()
        self.assertIn(browser.js("page.verdict"), view)
        self.assertTrue(browser.js("page.causes.length > 0 && page.causes.every(cause => cause.text.includes(duration(cause.lost) + ' lost'))"))
        self.assertEqual(browser.js("[0.00001234, 0.0999, 9.999, 120, 185, 7320].map(duration)"), ["12.3 us", "0.10 s", "10.0 s", "2 min", "3 min 5 s", "2 h 2 min"])
        self.assertIn(" 1. " + browser.js("(one => (one.alarm ? one.severity + ': ' : '') + one.class + ' of ' + one.who)(page.regions[0])"), view)

    def test_hostile_names(self):
        records, page = os.path.join(self.folder, "hostile.ndjson"), os.path.join(self.folder, "hostile.html")
        self.assertEqual(run(VAPRO, "analyze", "-o", records, self.capture).returncode, 0)
        with open(records, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]

        def spoil(item):
            """Every text that a user or a program chooses."""
            if isinstance(item, list):
                return [spoil(one) for one in item]
            if not isinstance(item, dict):
                return item
            return {key: HOSTILE if key in ("host", "comm", "culprit", "who", "verdict", "advice", "evidence", "source", "from", "to", "labels", "text", "exe",
                                            "symbols") and isinstance(value, str) else spoil(value) for key, value in item.items()}

        with open(records, "w", encoding="utf-8") as file:
            for line in lines:
                line = spoil(line)
                if "job" in line and isinstance(line["job"], str):
                    line["job"] = HOSTILE
                file.write(json.dumps(line) + "\n")
            file.write(json.dumps({"schema": "vapro/1", "type": "warning", "time": lines[0]["time"], "host": HOSTILE, "code": HOSTILE, "text": HOSTILE, "pid": None}) + "\n")
        written = run(VAPRO, "report", "--html", page, records)
        self.assertEqual(written.returncode, 0, written.stderr)
        browser = self.open(page)
        browser.key("n", "Enter", "c", "s", "s")
        self.assertIsNone(browser.js("window.harm"))
        self.assertEqual(browser.js("document.images.length"), 0)
        self.assertIn("<img src=x", browser.text("detail"))
        self.assertGreater(browser.js("page.regions[0].sites.length"), 0)
        self.assertIn("\u2039202e\u203a", browser.text("warnings"))
        self.assertIsNone(re.search("[\u0001\u202e\u2066]", browser.js("document.body.innerText + document.title")))
        self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", browser.pdf())), 2)
        self.assertTrue(browser.js("page.regions.length > 0 && page.regions.every(region => page.maps.some(map => ofJob(region, map)))"))

    def test_inside(self):
        """Functions in which a slow computation was sampled."""
        records, page = os.path.join(self.folder, "inside.ndjson"), os.path.join(self.folder, "inside.html")
        self.assertEqual(run(VAPRO, "analyze", "-o", records, self.capture).returncode, 0)
        with open(records, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            if line["type"] == "variance":
                line["inside"] = [{"source": "dgemm (blas.c:120)", "function": "dgemm", "pct_of_samples": 82, "samples": 41}]
        with open(records, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        self.assertEqual(run(VAPRO, "report", "--html", page, records).returncode, 0)
        self.open(page)
        self.assertIn("82.0 % in dgemm (blas.c:120), 41 samples", self.browser.text("detail"))

    def test_hang(self):
        """A job that hangs is the verdict and stands above the causes."""
        records, page = os.path.join(self.folder, "hang.ndjson"), os.path.join(self.folder, "hang.html")
        self.assertEqual(run(VAPRO, "analyze", "-o", records, self.capture).returncode, 0)
        with open(records, encoding="utf-8") as file:
            line = next(line for line in map(json.loads, file) if line["type"] == "window")
        hang = {key: line[key] for key in ("schema", "time", "host", "job", "uid") if key in line}
        with open(records, "a", encoding="utf-8") as file:
            file.write(json.dumps(dict(hang, type="hang", id=99, alarm=True, severity="critical", text="hang: rank 3 " + HOSTILE)) + "\n")
        self.assertEqual(run(VAPRO, "report", "--html", page, records).returncode, 0)
        browser = self.open(page)
        self.assertIn("hang: rank 3", browser.text("verdict"))
        self.assertIn("hang: rank 3", browser.js("document.querySelector('#causes-table tbody tr').textContent"))
        self.assertGreater(browser.js("document.querySelectorAll('#causes-table tbody tr').length"), 1)
        self.assertIsNone(browser.js("window.harm"))

    def test_little_compared(self):
        """The second sentence, on coverage, is that of `vapro view`."""
        records, page = os.path.join(self.folder, "little.ndjson"), os.path.join(self.folder, "little.html")
        self.assertEqual(run(VAPRO, "analyze", "-o", records, self.capture).returncode, 0)
        with open(records, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            if line["type"] == "window":
                line["coverage"] = {key: value / 20 for key, value in line["coverage"].items()}
        with open(records, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        view = run(VAPRO, "view", "--width", "2000", "--color", "never", "--no-pager", records).stdout
        self.assertEqual(run(VAPRO, "report", "--html", page, records).returncode, 0)
        browser = self.open(page)
        self.assertIn("could be compared", browser.text("notes"))
        self.assertIn(browser.text("notes"), view)

    def test_empty(self):
        """A run without a window."""
        records, page = os.path.join(self.folder, "empty.ndjson"), os.path.join(self.folder, "empty.html")
        with open(records, "w", encoding="utf-8") as file:
            file.write(json.dumps({"schema": "vapro/1", "type": "hello", "time": "2026-01-01T00:00:00.000000000Z", "host": "n"}) + "\n")
        self.assertEqual(run(VAPRO, "report", "--html", page, records).returncode, 0)
        browser = self.open(page)
        self.assertIn("no MPI or multi-threaded process was found", browser.text("verdict"))
        self.assertIn("There is no heat map", browser.text("map-none"))


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
