#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Compares the records of vaprod (NDJSON) with the truth: the truth logs of the test workloads
(tools/workloads/truth.h) and the injectors' own logs (tools/inject/eventlog.h).

  truth.py stats DIR                           how steady each segment is
  truth.py show DIR [--hog FILE]               the truth as a heat map and lost seconds
  truth.py check --truth DIR [--hog FILE] NDJSON [--json FILE]
                                               verdict on every alarm; exit 1 where one is wrong
  truth.py self-test                           on made-up runs, right and wrong ones

Expected duration of a segment: the median of the same segment (id) of the same rank outside the
hog's time. Lost seconds: sum of (duration - expected) over the segments that overlap the hog.
An alarm that does not overlap the hog must be confirmed: the rank's segments in the alarm's time
are at least 15 % slow on average. For class io its IO calls may be slow instead, for class communication its
segments and calls together, since another task may have had the CPU inside of calls; the row names which were slow.
An alarm of IO whose cause is a disk is never attributed to the hog, and must be confirmed too.
Clocks: hello.clock {mono_ns, utc}.
"""
import argparse
import calendar
import glob
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time

BORDER_MS = 400       # begin and end of the region against the hog's own times
LOST_TOLERANCE = 0.15
SLOW = 1.15           # a confirmed alarm's segments take at least this times the expected time
CAUSES = ("preempted", "wakeup_wait")


class Truth:
    """Truth log of one rank: segments [(id, start_ns, duration_ns)] in time order."""

    def __init__(self, rank, pid=0):
        self.rank, self.pid = rank, pid
        self.names, self.io, self.segments = {}, set(), []
        self.complete = False
        self.expected, self.expected_call, self.fastest = {}, {}, {}

    def calls(self):
        """The calls between segments: (id of the segment before, start_ns, duration_ns)."""
        for (sid, start, duration), (_, following, _) in zip(self.segments, self.segments[1:]):
            yield sid, start + duration, following - start - duration

    def learn(self, quiet_from=None, quiet_to=None):
        """Sets expected durations, medians, and those of the fastest tenth from what lies outside (quiet_from, quiet_to)."""
        def durations(items):
            by_id = {}
            for sid, start, duration in items:
                if quiet_from is None or start + duration <= quiet_from or start >= quiet_to:
                    by_id.setdefault(sid, []).append(duration)
            return by_id
        segments = durations(self.segments)
        self.expected = {sid: statistics.median(values) for sid, values in segments.items()}
        self.fastest = {sid: sorted(values)[len(values) // 10] for sid, values in segments.items()}
        self.expected_call = {sid: statistics.median(values) for sid, values in durations(self.calls()).items()}

    def lost_ns(self, begin, end, fastest=False):
        """Sum of duration - expected over the segments that overlap [begin, end); or beyond the fastest tenth."""
        usual = self.fastest if fastest else self.expected
        return sum(duration - usual.get(sid, duration) for sid, start, duration in self.segments
                   if start < end and start + duration > begin)

    @staticmethod
    def _slowness(items, expected, begin, end):
        took = wanted = 0.0
        for sid, start, duration in items:
            inside = min(end, start + duration) - max(begin, start)
            if inside > 0 and duration > 0 and sid in expected:
                took += inside
                wanted += expected[sid] * inside / duration
        return took / wanted if wanted else None

    def slowness(self, begin, end):
        """Time that the segments in [begin, end) took over the time expected, or None."""
        return self._slowness(self.segments, self.expected, begin, end)

    def io_slowness(self, begin, end):
        calls = [call for call in self.calls() if call[0] in self.io]
        return self._slowness(calls, self.expected_call, begin, end)

    def all_slowness(self, begin, end):
        """The same of segments and calls together: how late the rank was."""
        both = [(("in", sid), start, duration) for sid, start, duration in self.segments]
        both += [(("after", sid), start, duration) for sid, start, duration in self.calls()]
        expected = {("in", sid): ns for sid, ns in self.expected.items()}
        expected.update({("after", sid): ns for sid, ns in self.expected_call.items()})
        return self._slowness(both, expected, begin, end)


def load_truth(directory, name="truth"):
    """{rank: Truth} of DIR/NAME.*"""
    truths = {}
    for path in sorted(glob.glob(os.path.join(directory, name + ".*"))):
        truth = None
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith("#"):
                    words = line.split()
                    if line.startswith("# vapro truth"):
                        match = re.search(r"rank (\d+), pid (\d+)", line)
                        truth = Truth(int(match.group(1)), int(match.group(2)))
                    elif words[1:2] == ["name"]:
                        truth.names[int(words[2])] = " ".join(words[3:])
                    elif words[1:2] == ["io"]:
                        truth.io.add(int(words[2]))
                    elif words[1:2] == ["end"]:
                        truth.complete = True
                else:
                    fields = line.split()
                    if len(fields) == 3 and line.endswith("\n"):
                        truth.segments.append(tuple(map(int, fields)))
        if truth is None:
            raise ValueError(path + ": not a truth log")
        truth.learn()
        truths[truth.rank] = truth
    if not truths:
        raise ValueError(f"{directory}: no truth logs")
    return truths


def load_records(path):
    """The NDJSON records of a file; a last line that was cut short is left out."""
    records = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                records.append(json.loads(line))
            except ValueError as error:
                if line.endswith("\n"):
                    raise ValueError(f"{path}:{number}: {error}") from error
    return records


def load_events(path):
    """An injector's log: [{"name", "cpu", "begin", "end"}] in CLOCK_MONOTONIC ns."""
    events = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                event = json.loads(line)
                events.append({"name": event["name"], "cpu": event["cpu"], "pid": event["pid"],
                               "begin": event["start"]["monotonic_ns"], "end": event["end"]["monotonic_ns"]})
    return events


def parse_time(text):
    """RFC 3339 UTC with any number of decimals -> ns since the epoch, exactly."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|z|\+00:00)", text)
    if not match:
        raise ValueError(f"not an RFC 3339 UTC time: {text!r}")
    seconds = calendar.timegm(time.strptime(match.group(1) + " " + match.group(2), "%Y-%m-%d %H:%M:%S"))
    return seconds * 10**9 + int((match.group(3) or "0").ljust(9, "0"))


def format_time(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + f".{ns % 10**9:09d}Z"


def parse_ranks(text):
    """"0-3,7" -> [0, 1, 2, 3, 7]"""
    ranks = []
    for part in str(text).split(","):
        if part.strip():
            first, _, last = part.strip().partition("-")
            ranks.extend(range(int(first), int(last or first) + 1))
    return ranks


def utc_offset(records):
    """UTC minus CLOCK_MONOTONIC in ns, by the clock pair in `hello`."""
    for record in records:
        if record.get("type") == "hello":
            return parse_time(record["clock"]["utc"]) - int(record["clock"]["mono_ns"])
    raise ValueError("no hello record, so no clock pair")


def variances(records):
    """{id: last revision} of all variance records."""
    last = {}
    for record in records:
        if record.get("type") == "variance":
            old = last.get(record["id"])
            if old is None or record["revision"] >= old["revision"]:
                last[record["id"]] = record
    return last


def diagnosis(records, variance_id):
    """All diagnoses of a variance together: ({factor: latest entry}, [interferers])."""
    factors, interferers = {}, []
    for record in records:
        if record.get("type") == "diagnosis" and record["variance"] == variance_id:
            factors.update((factor["name"], factor) for factor in record.get("factors", []))
            interferers = record.get("interferers") or interferers
    return factors, interferers


def row(what, measured, wanted, ok):
    return {"what": what, "measured": measured, "wanted": wanted, "ok": bool(ok)}


def confirm(truths, variance, begin, end):
    """Whether the truth logs confirm an alarm: (ok, text). begin and end in CLOCK_MONOTONIC ns."""
    texts, ok = [], True
    for rank in parse_ranks(variance["ranks"]):
        ratio = truths[rank].slowness(begin, end) if rank in truths else None
        kind = "segments"
        if variance["class"] == "io" and (ratio is None or ratio < SLOW) and rank in truths:
            ratio, kind = truths[rank].io_slowness(begin, end), "IO calls"
        if variance["class"] == "communication" and (ratio is None or ratio < SLOW) and rank in truths:
            ratio, kind = truths[rank].all_slowness(begin, end), "segments and calls"
        ok = ok and ratio is not None and ratio >= SLOW
        texts.append(f"rank {rank} {kind} " + (f"{ratio:.2f} x expected" if ratio else "unknown"))
    return ok, ", ".join(texts)


def is_of_a_disk(records, alarm):
    """Whether an alarm says that calls of IO slept for a disk, which a CPU hog cannot cause."""
    factors, _ = diagnosis(records, alarm["id"])
    majors = {name for name, factor in factors.items() if factor.get("major")}
    return alarm["class"] == "io" and "blocked_io" in majors and not majors.intersection(CAUSES)


def judge(records, truths, hog=None, hog_rank=None, name="hog"):
    """Rows {what, measured, wanted, ok} on every alarm of a run; hog: an event of load_events() or None."""
    offset = utc_offset(records)
    last = variances(records)
    alarms = [v for v in last.values() if v.get("alarm")]
    rows, hits = [], []
    if hog:
        hog_rank = hog["cpu"] if hog_rank is None else hog_rank
    for truth in truths.values():
        truth.learn(hog["begin"] if hog else None, hog["end"] if hog else None)
    for alarm in alarms:
        begin, end = parse_time(alarm["begin"]) - offset, parse_time(alarm["end"]) - offset
        if hog and begin < hog["end"] and end > hog["begin"] and not is_of_a_disk(records, alarm):
            hits.append((alarm, begin, end))
        else:
            ok, text = confirm(truths, alarm, begin, end)
            rows.append(row(f"other alarm {alarm['id']}: {alarm['class']}, ranks {alarm['ranks']}, "
                            f"{(end - begin) / 1e9:.1f} s, {alarm['lost_seconds']:.2f} s lost",
                            text, f"at least {SLOW} x in the truth log", ok))
    if not hog:
        return rows
    rows.insert(0, row(f"alarms that overlap the {name}", len(hits), 1, len(hits) == 1))
    for alarm, begin, end in hits:
        ranks = parse_ranks(alarm["ranks"])
        rows.append(row("rank", alarm["ranks"], str(hog_rank), ranks == [hog_rank]))
        for what, said, true in (("begin", begin, hog["begin"]), ("end", end, hog["end"])):
            off = (said - true) / 1e6
            rows.append(row(f"{what}, off by", f"{off:+.0f} ms", f"within {BORDER_MS} ms", abs(off) <= BORDER_MS))
        true = truths[hog_rank].lost_ns(hog["begin"], hog["end"]) / 1e9
        said = alarm["lost_seconds"]
        rows.append(row("lost seconds", f"{said:.3f}", f"{true:.3f} within {LOST_TOLERANCE:.0%}",
                        true > 0 and abs(said - true) <= LOST_TOLERANCE * true))
        factors, interferers = diagnosis(records, alarm["id"])
        majors = [factor for factor in factors.values() if factor.get("major")]
        rows.append(row("major factors", ", ".join(f"{m['name']} {m['contribution_pct_of_level']:.0f} %" for m in majors) or "none",
                        " or ".join(CAUSES), any(m["name"] in CAUSES for m in majors)))
        rows.append(row("interferers", ", ".join(f"{i['comm']} {i['seconds']:.2f} s" for i in interferers[:4]) or "none",
                        f"{name} among them", any(i["comm"] == name for i in interferers)))
        if len(truths) > 1:
            effects = [v for v in last.values() if v.get("effect_of") == alarm["id"]]
            other = sorted({rank for v in effects for rank in parse_ranks(v["ranks"])} - {hog_rank})
            rows.append(row("waiting is reported as its effect", f"ranks {other}" if other else "none",
                            "every other rank", set(other) == set(truths) - {hog_rank}))
    return rows


def table(rows, out=sys.stdout):
    """Prints rows as a table."""
    cells = [("what", "measured", "wanted", "")]
    cells += [(r["what"], str(r["measured"]), str(r["wanted"]), "ok" if r["ok"] else "WRONG") for r in rows]
    widths = [max(len(c[i]) for c in cells) for i in range(3)]
    for cell in cells:
        print("  " + "  ".join(text.ljust(width) for text, width in zip(cell, widths)), cell[3], file=out)


def print_stats(truths, out=sys.stdout):
    """Count, median, spread of each segment: how constant the work of a workload is."""
    print("rank  id  segment                       n   median ms   p5..p95 of median    cv       cv (robust)", file=out)
    for rank, truth in sorted(truths.items()):
        by_id = {}
        for sid, _, duration in truth.segments:
            by_id.setdefault(sid, []).append(duration)
        for sid, values in sorted(by_id.items()):
            values.sort()
            median = statistics.median(values)
            low, high = values[len(values) * 5 // 100], values[len(values) * 95 // 100]
            cv = statistics.pstdev(values) / statistics.mean(values) if statistics.mean(values) else 0
            robust = 1.4826 * statistics.median(abs(v - median) for v in values) / median if median else 0
            print(f"{rank:4}  {sid:2}  {truth.names.get(sid, ''):26} {len(values):6}  {median / 1e6:9.4f}"
                  f"   {low / median if median else 0:6.3f}..{high / median if median else 0:6.3f}     {cv:7.2%}  {robust:7.2%}", file=out)
        took = sum(s[2] for s in truth.segments)
        if truth.segments:
            wall = truth.segments[-1][1] + truth.segments[-1][2] - truth.segments[0][1]
            print(f"{rank:4}      segments are {took / wall:.1%} of {wall / 1e9:.2f} s", file=out)


def print_map(truths, hog=None, columns=72, out=sys.stdout):
    """Performance of the segments over time as rows of digits: 9 = as expected, 4 = half as fast."""
    begin = min(t.segments[0][1] for t in truths.values())
    end = max(t.segments[-1][1] + t.segments[-1][2] for t in truths.values())
    step = (end - begin) / columns
    print(f"  truth: one column is {step / 1e9:.2f} s; 9 = as fast as expected, 5 = takes twice as long", file=out)
    if hog:
        line = "".join("#" if begin + (c + 1) * step > hog["begin"] and begin + c * step < hog["end"] else "."
                       for c in range(columns))
        print(f"  hog     {line}", file=out)
    for rank, truth in sorted(truths.items()):
        truth.learn(hog["begin"] if hog else None, hog["end"] if hog else None)
        ratios = [truth.slowness(begin + c * step, begin + (c + 1) * step) for c in range(columns)]
        print(f"  rank {rank:2} " + "".join(" " if r is None else str(min(9, round(10 / r))) for r in ratios), file=out)
    if hog:
        for rank, truth in sorted(truths.items()):
            print(f"  rank {rank}: {truth.lost_ns(hog['begin'], hog['end']) / 1e9:.3f} s lost in computation "
                  f"while the hog ran ({(hog['end'] - hog['begin']) / 1e9:.3f} s)", file=out)


def made_up_run(directory, seed=1):
    """A run of 20 s, rank 0 half as fast from 8 s to 11 s, in files; returns (records, hog)."""
    draw = random.Random(seed)
    base, offset = 5_000_000_000_000, 1_790_000_000_000_000_000
    hog = {"name": "hog", "pid": 99, "cpu": 0, "begin": base + 8 * 10**9, "end": base + 11 * 10**9}
    lost = 0
    for rank in range(2):
        at = base
        with open(os.path.join(directory, f"truth.{rank}"), "w", encoding="utf-8") as file:
            print(f"# vapro truth 1, rank {rank}, pid {1000 + rank}\n# name 1 first\n# name 2 second\n# io 2", file=file)
            while at < base + 20 * 10**9:
                for sid, length in ((1, 6_000_000), (2, 4_000_000)):
                    normal = duration = int(length * draw.uniform(0.99, 1.02))
                    if rank == 0 and hog["begin"] <= at < hog["end"]:
                        duration *= 2
                        lost += duration - normal
                    print(sid, at, duration, file=file)
                    at += duration + (100_000 if sid == 1 else 1_000_000)
            print("# end 0", file=file)
    with open(os.path.join(directory, "hog.json"), "w", encoding="utf-8") as file:
        print(json.dumps({"name": "hog", "pid": 99, "cpu": 0,
                          "start": {"monotonic_ns": hog["begin"], "realtime_ns": hog["begin"] + offset},
                          "end": {"monotonic_ns": hog["end"], "realtime_ns": hog["end"] + offset}}), file=file)

    def utc(ns):
        return format_time(ns + offset)

    def variance(vid, kind, ranks, **more):
        return {"schema": "vapro/1", "type": "variance", "id": vid, "revision": 2, "state": "closed", "class": kind,
                "also": [], "begin": utc(hog["begin"] + 150_000_000), "end": utc(hog["end"] + 50_000_000), "ranks": ranks,
                "performance": 0.5, "lost_seconds": lost / 1e9, "alarm": True, "effect_of": None, **more}
    records = [
        {"schema": "vapro/1", "type": "hello", "clock": {"mono_ns": base, "utc": format_time(base + offset)}},
        variance(7, "computation", "0", revision=1, lost_seconds=0.2, state="open"),
        variance(7, "computation", "0"),
        variance(8, "communication", "1", alarm=False, effect_of=7),
        {"type": "diagnosis", "variance": 7, "stage": 1, "final": False, "interferers": [],
         "factors": [{"name": "suspension", "stage": 1, "contribution_pct_of_level": 98.0, "major": True}]},
        {"type": "diagnosis", "variance": 7, "stage": 2, "final": True,
         "factors": [{"name": "preempted", "stage": 2, "contribution_pct_of_level": 97.0, "major": True}],
         "interferers": [{"comm": "hog", "pid": 99, "seconds": 1.4}]},
    ]
    return records, hog


def self_test():
    def wrong(records, truths, hog):
        return [r["what"] for r in judge(records, truths, hog) if not r["ok"]]

    def changed(records, index, **values):
        copy = [dict(r) for r in records]
        copy[index].update(values)
        return copy
    with tempfile.TemporaryDirectory() as directory:
        records, hog = made_up_run(directory)
        path = os.path.join(directory, "vapro.ndjson")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(r) + "\n" for r in records)
            file.write('{"type":"win')  # cut short
        truths = load_truth(directory)
        assert load_records(path) == records
        assert load_events(os.path.join(directory, "hog.json"))[0] == hog
        assert all(t.complete and len(t.segments) > 3000 for t in truths.values())
        assert wrong(records, truths, hog) == [], wrong(records, truths, hog)
        early = format_time(parse_time(records[2]["begin"]) - 700_000_000)
        late = format_time(parse_time(records[2]["end"]) + 400_000_000)
        assert wrong(changed(records, 2, begin=early), truths, hog) == ["begin, off by"]
        assert wrong(changed(records, 2, end=late), truths, hog) == ["end, off by"]
        assert wrong(changed(records, 2, lost_seconds=records[2]["lost_seconds"] * 1.2), truths, hog) == ["lost seconds"]
        assert wrong(changed(records, 2, ranks="0-1"), truths, hog) == ["rank"]
        assert wrong(changed(records, 2, alarm=False), truths, hog) == ["alarms that overlap the hog"]
        assert wrong(changed(records, 3, alarm=True, effect_of=None), truths, hog)[0] == "alarms that overlap the hog"
        assert wrong(changed(records, 3, effect_of=None), truths, hog) == ["waiting is reported as its effect"]
        assert wrong(changed(records, 5, interferers=[]), truths, hog) == ["interferers"]
        assert wrong(changed(records, 5, factors=[]), truths, hog) == ["major factors"]
        # another alarm during the hog counts as the hog's, but one of a disk must be confirmed as at any other time
        beside = dict(records[2], **{"id": 9, "class": "io", "ranks": "1"})
        disk = {"type": "diagnosis", "variance": 9, "stage": 2, "final": True, "interferers": [],
                "factors": [{"name": "blocked_io", "stage": 2, "contribution_pct_of_level": 99.0, "major": True}]}
        assert wrong(records + [beside], truths, hog)[0] == "alarms that overlap the hog"
        assert [w[:13] for w in wrong(records + [beside, disk], truths, hog)] == ["other alarm 9"]
        # an alarm at another time: wrong where the truth log shows no slowdown, confirmed where it does
        other = {"id": 9, "begin": format_time(parse_time(records[2]["begin"]) + 5 * 10**9),
                 "end": format_time(parse_time(records[2]["end"]) + 5 * 10**9)}
        assert len(wrong(records + [dict(records[2], **other)], truths, hog)) == 1
        slow = truths[0].segments
        shifted = [(s, t, int(d * 1.4) if 13.1 < (t - slow[0][1]) / 1e9 < 16.1 else d) for s, t, d in slow]
        truths[0].segments = shifted
        assert wrong(records + [dict(records[2], **other)], truths, hog) == []
        truths[0].segments = slow
        io = dict(records[2], **{**other, "class": "io"})
        assert len(wrong(records + [io], truths, hog)) == 1
        # another task had the CPU inside of calls: the segments are as fast as ever, but each begins later
        calls, late, moved = dict(records[2], **{**other, "class": "communication"}), 0, []
        assert len(wrong(records + [calls], truths, hog)) == 1
        for sid, start, duration in slow:
            late += int(0.4 * duration) if 13.1 < (start - slow[0][1]) / 1e9 < 16.1 else 0
            moved.append((sid, start + late, duration))
        truths[0].segments = moved
        assert wrong(records + [calls], truths, None) == []
        assert len(wrong(records + [dict(calls, **{"class": "computation"})], truths, None)) == 1
        truths[0].segments = slow
        # the alarm of the hog is confirmed like any other alarm, too
        assert wrong(records, truths, None) == []
        # clocks and ranks
        assert parse_time("2026-11-21T11:00:00.000000001Z") - parse_time("2026-11-21T10:59:59Z") == 10**9 + 1
        assert parse_time(format_time(1_790_000_000_123_456_789)) == 1_790_000_000_123_456_789
        assert parse_ranks("0-3,7") == [0, 1, 2, 3, 7] and parse_ranks("") == []
    print("truth.py: self-test passed")
    return 0


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    stats = commands.add_parser("stats")
    stats.add_argument("truth")
    show = commands.add_parser("show")
    show.add_argument("truth")
    show.add_argument("--hog")
    check = commands.add_parser("check")
    check.add_argument("ndjson")
    check.add_argument("--truth", required=True)
    check.add_argument("--hog")
    check.add_argument("--rank", type=int, help="rank that the hog disturbed (default: the number of its CPU)")
    check.add_argument("--json")
    commands.add_parser("self-test")
    args = parser.parse_args()
    if args.command == "self-test":
        return self_test()
    try:
        truths = load_truth(args.truth)
        if args.command == "stats":
            print_stats(truths)
            return 0
        hog = load_events(args.hog)[0] if args.hog else None
        if args.command == "show":
            print_map(truths, hog)
            return 0
        rows = judge(load_records(args.ndjson), truths, hog, args.rank)
    except (OSError, ValueError, KeyError, IndexError) as error:
        print(f"truth.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    table(rows or [row("alarms", 0, "none that is wrong", True)])
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0 if all(r["ok"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
