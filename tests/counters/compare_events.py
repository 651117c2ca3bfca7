#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The event tables against the vendors' lists in tests/data/pmu_events: every encoding must be in a list
and equal, and every row of the lists must be used.

usage: compare_events.py PRINT_EVENTS [--used FILE.csv]     --used prints the rows of a longer list that are used
"""
import csv
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "pmu_events")
# Arm's lists are by architecture and by family
LISTS = {"neoverse_n1": ["armv8_common"], "a64fx": ["armv8_common", "a64fx"]}
NEOVERSE = ["armv8_common", "neoverse_v1_n2_v2_n3_v3", "neoverse_n3_v3"]


def lists_of(cpu):
    return LISTS.get(cpu, NEOVERSE if cpu.startswith("neoverse") else [cpu])


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        yield from lines


def table(printer):
    text = subprocess.run([printer], capture_output=True, text=True, check=True).stdout
    return {tuple(line.split(",")) for line in text.splitlines()}


def main():
    events = table(sys.argv[1])
    if sys.argv[2:3] == ["--used"]:
        used = {(name, event) for cpu, event, _ in events for name in lists_of(cpu)}
        with open(sys.argv[3], encoding="utf-8") as file:
            lines = file.read().splitlines()
        print("\n".join([lines[0]] + [line for line in lines[1:] if tuple(line.split(",")[:2]) in used]))
        return 0
    known = {}
    for name in sorted(os.listdir(DATA)):
        if name.endswith(".csv"):
            known.update({(row[0], row[1]): int(row[2], 16) for row in rows(os.path.join(DATA, name))})
    wrong, used = [], set()
    for cpu, event, config in sorted(events):
        found = [(name, event) for name in lists_of(cpu) if (name, event) in known]
        used.update(found)
        if not found:
            wrong.append(f"{cpu} {event}: in no list")
        elif known[found[0]] != int(config, 16):
            wrong.append(f"{cpu} {event}: {config}, the list has {known[found[0]]:#x}")
    wrong += [f"{cpu} {event}: in a list, not used" for cpu, event in sorted(set(known) - used)]
    print("\n".join(wrong))
    print(f"{len(events)} events of {len({cpu for cpu, _, _ in events})} CPUs compared, {len(wrong)} differ")
    return 1 if wrong or not events else 0


sys.exit(main())
