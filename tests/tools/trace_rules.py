#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The rules of the Trace Event Format (JSON object format) that viewers rely on, for the phases that vapro writes: trace_rules.py FILE...
The format's own text is the "Trace Event Format" document that the Perfetto documentation refers to.
"""
import json
import sys

PHASES = {"M", "X", "C", "i"}
METADATA = {"process_name", "thread_name", "process_labels", "process_sort_index", "thread_sort_index"}
SCOPES = {"g", "p", "t"}
NS = 1000  # of a microsecond: times are compared in whole nanoseconds


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def event_faults(event):
    """What is wrong with one event by itself."""
    if not isinstance(event, dict):
        return ["an event is no object"]
    phase = event.get("ph")
    if phase not in PHASES:
        return [f"phase {phase!r} is not one of {sorted(PHASES)}"]
    found = []
    if not isinstance(event.get("name"), str) or not event["name"]:
        found.append("no name")
    found += [f"{key} is no whole number" for key in ("pid", "tid") if not is_whole(event.get(key))]
    if not isinstance(event.get("args", {}), dict):
        found.append("args is no object")
    if "cat" in event and not isinstance(event["cat"], str):
        found.append("cat is no text")
    if phase == "M":
        if event.get("name") not in METADATA:
            found.append("metadata of an unknown name")
        elif event["name"].endswith("_name") and not isinstance(event.get("args", {}).get("name"), str):
            found.append("a name without args.name")
    elif not is_number(event.get("ts")) or event["ts"] < 0:
        found.append("ts is no time")
    if phase == "X" and (not is_number(event.get("dur")) or event["dur"] < 0):
        found.append("dur is no duration")
    if phase == "C" and (not event.get("args") or not all(is_number(value) for value in event["args"].values())):
        found.append("a counter whose args are no numbers")
    if phase == "i" and event.get("s", "t") not in SCOPES:
        found.append("an instant of an unknown scope")
    return [f"{event.get('name')!r}: {fault}" for fault in found]


def nesting_faults(events):
    """Complete events of a thread may nest, and must not overlap otherwise."""
    rows, found = {}, []
    for event in events:
        if event["ph"] == "X":
            begin = round(event["ts"] * NS)
            rows.setdefault((event["pid"], event["tid"]), []).append((begin, begin + round(event["dur"] * NS), event["name"]))
    for row, slices in rows.items():
        open_ends = []
        for begin, end, name in sorted(slices, key=lambda item: (item[0], -item[1])):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and open_ends[-1] < end:
                found.append(f"{name!r} overlaps the end of another event on row {row}")
            open_ends.append(end)
    return found


def naming_faults(events):
    """Each process and thread that has events has a name; a number names one thread only."""
    processes = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    threads = [(event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["name"] == "thread_name"]
    found = [f"process {event['pid']} has no name" for event in events if event["pid"] not in processes]
    found += [f"thread {event['tid']} has no name" for event in events if event["ph"] in "Xi" and (event["pid"], event["tid"]) not in threads]
    if len({tid for _, tid in threads}) < len(threads) or {tid for _, tid in threads} & processes:
        found.append("a number is that of two threads, or of a thread and a process")
    return found


def faults(trace):
    """All that is wrong with a trace, as sentences."""
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["there is no list traceEvents"]
    if trace.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        return ["displayTimeUnit is neither ms nor ns"]
    events = trace["traceEvents"]
    found = [fault for event in events for fault in event_faults(event)]
    return found or nesting_faults(events) + naming_faults(events)


def main():
    bad = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for fault in faults(json.load(file)):
                print(f"{path}: {fault}")
                bad = True
    sys.exit(bad)


if __name__ == "__main__":
    main()
