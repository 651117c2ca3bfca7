# SPDX-License-Identifier: GPL-2.0-or-later
"""The report page of large jobs: its size, and how fast a headless Chromium without a GPU draws, moves and zooms it."""
import json
import os
import random
import statistics
import subprocess
import time

from bench_common import path, row, scratch
from browser import Browser

BIN_NS = 200_000_000
START = 1_800_000_000
CLASSES = ("computation", "communication", "io")
PER_HOST = 64
BINS_PER_LINE = 50


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(START + int(seconds))) + f".{int(round(seconds % 1 * 1e9)):09d}Z"


def record(kind, seconds, **members):
    return {"schema": "vapro/1", "type": kind, "time": stamp(seconds), "host": "n0", "job": "slurm:4096", "uid": 1000, **members}


def values_of(name, count, rank, slow, source):
    """The performance of a rank's bins: noise below the best, as real jobs have it, dips, and in communication waiting, each rank its own share."""
    if name == "communication":
        return source.choices(WAITING[rank % len(WAITING)], k=count)
    values = source.choices(NOISE, k=count)
    if slow:
        values[source.randrange(count)] = "0.48"
    return values


CHANCE = random.Random(1)
NOISE = [f"{1 - abs(CHANCE.gauss(0, 0.03)):.3f}" for _ in range(4096)]
WAITING = [[f"{min(1, max(0, CHANCE.gauss(share / 64, 0.1))):.3f}" for _ in range(512)] for share in range(8, 60)]


def write_run(name, ranks, bins, regions):
    """Records of a job with as many heat map lines as a daemon writes, and regions of which each is slow on one host."""
    source = random.Random(3)
    seconds = bins * BIN_NS / 1e9
    with open(name, "w", encoding="utf-8") as file:
        def put(item):
            file.write(json.dumps(item, separators=(",", ":")) + "\n")

        put({"schema": "vapro/1", "type": "hello", "time": stamp(0), "host": "n0", "version": "bench", "workload_source": "instructions"})
        put(record("window", seconds, begin=stamp(0), end=stamp(seconds), ranks=f"0-{ranks - 1}", world_size=ranks, partial=False,
                   coverage={"computation": 0.8, "communication": 0.15, "io": 0.01, "total": 0.96},
                   performance={"computation": 0.97, "communication": 0.55, "io": 0.99}, fragments=ranks * bins * 40))
        for begin in range(0, bins, BINS_PER_LINE):
            count = min(BINS_PER_LINE, bins - begin)
            for name_of_class in CLASSES:
                head = record("heatmap", begin * BIN_NS / 1e9, begin=stamp(begin * BIN_NS / 1e9), bin_ns=BIN_NS, revision=0, **{"class": name_of_class},
                              rows=[])
                text = json.dumps(head, separators=(",", ":"))[:-3]
                rows = (f'{{"rank":{rank},"pid":{10000 + rank},"host":"node{rank // PER_HOST:04d}","values":['
                        + ",".join(values_of(name_of_class, count, rank, rank % 17 == begin // BINS_PER_LINE % 17, source)) + "]}" for rank in range(ranks))
                file.write(text + "[" + ",".join(rows) + "]}\n")
        for number in range(1, regions + 1):
            begin, rank = source.randrange(bins - 10) * BIN_NS / 1e9, source.randrange(ranks)
            item = record("variance", seconds, id=number, revision=0, state="closed", begin=stamp(begin), end=stamp(begin + 2), ranks=str(rank), who=f"rank {rank}",
                          performance=0.5, lost_seconds=1 + number / regions, severity="warning", confidence="confirmed", alarm=True, caused_seconds=0,
                          effect_of=None, call_sites=[{"class": "computation", "from": "a+0x1", "to": "a+0x2", "source": "solve (solver.c:12 to 40)",
                                                       "labels": "", "lost_seconds": 1, "ratio": 2}])
            item["class"] = "computation"
            put(item)
            put(record("diagnosis", seconds, variance=number, factors=[], interferers=[{"comm": "hog", "pid": 4242, "seconds": 1, "relation": "foreign"}],
                       cause="preempted", culprit="hog", where={"hosts": [f"node{rank // PER_HOST:04d}"]}, advice="move hog", verdict=f"rank {rank} lost 1 s"))
    return name


def draws(browser, *keys):
    """Milliseconds of each drawing that the keys cause."""
    browser.js("performance.clearMeasures('draw')")
    browser.key(*keys)
    return browser.js("performance.getEntriesByName('draw').map(entry => entry.duration)")


def measure(name, ranks, bins, regions):
    directory = scratch("page", name)
    records, page = write_run(os.path.join(directory, "run.ndjson"), ranks, bins, regions), os.path.join(directory, "run.html")
    begin = time.monotonic()
    subprocess.run([path("vapro"), "report", "--html", page, records], check=True, capture_output=True, timeout=900)
    seconds = time.monotonic() - begin
    os.unlink(records)
    with Browser(1280, 900) as browser:
        browser.open(page)
        first = browser.js("performance.getEntriesByName('first-picture')[0].startTime")
        browser.js("canvas.focus()")
        browser.js("heat.levels.clear()")
        full = draws(browser, "0")
        moves = draws(browser, *("+",) * 4, *("ArrowRight", "ArrowDown") * 6, *("ArrowLeft", "ArrowUp") * 6, *("-",) * 4)
        means = draws(browser, "m", *("+", "ArrowRight") * 4, *("-",) * 4)
        browser.screenshot(os.path.join(directory, "page.png"))
        columns, complaints = browser.js("heat.columns"), browser.complaints()
    if complaints:
        raise RuntimeError("; ".join(complaints))
    return {"bytes": os.path.getsize(page), "written": seconds, "first": first, "full": max(full), "move": statistics.median(moves),
            "move_most": max(moves), "mean": statistics.median(means), "columns": columns}


def part_page():
    big = measure("4096", 4096, 2000, 3000)
    huge = measure("16384", 16384, 2000, 3000)
    what = "page of 4,096 ranks x 2,000 bins x 3 classes, 3,000 regions: "
    return [
        row(what + "size", f"{big['bytes'] / 1e6:.1f} MB", "< 9 MB", big["bytes"] < 9e6, **big),
        row(what + "written in", f"{big['written']:.1f} s"),
        row(what + "first picture", f"{big['first']:.0f} ms", "< 1,000 ms", big["first"] < 1000),
        row(what + "full draw", f"{big['full']:.0f} ms", "< 400 ms", big["full"] < 400),
        row(what + "move and zoom, median (most)", f"{big['move']:.0f} ms ({big['move_most']:.0f} ms)", "< 80 ms", big["move"] < 80),
        row(what + "the same with means, median", f"{big['mean']:.0f} ms", "< 80 ms", big["mean"] < 80),
        row("page of 16,384 ranks x 2,000 bins x 3 classes: opens", f"{huge['first']:.0f} ms, {huge['bytes'] / 1e6:.1f} MB, {huge['columns']} columns", "it opens", True, **huge),
        row("page of 16,384 ranks: move and zoom, median", f"{huge['move']:.0f} ms"),
    ]
