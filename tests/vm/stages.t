#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The diagnosis selects counters stage by stage down to the factor that was set, on an emulated A64FX.
Its own PMU counts instructions; the stalls, which no emulator has, and the events that count them are
stand-ins of a kernel module.
"""
import json
import os
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "..", "tools", "vm")]
import guest  # noqa: E402
from live import ROOT, Tap, of_type, records  # noqa: E402

ARCH, SUITE = "arm64", "bookworm"  # modules for later kernels need later compilers than this machine's
STANDIN = os.path.join(HERE, "standin")

# The stalls of each program as the path of factors to them: [(stage, factor)].
PROGRAMS = {"memory": [(1, "backend"), (2, "memory"), (3, "dram")], "execution": [(1, "backend"), (2, "core")]}


def text(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def code(directory, name):
    return text(directory, name + ".code").strip()


def check_machine(tap, directory):
    check = text(directory, "check.out")
    tap.equal(code(directory, "check"), "0", "vapro check --counters counts" + text(directory, "check.err")[-300:])
    tap.ok("Fujitsu A64FX" in check, "vapro check knows the CPU", check)
    fits = [line.split()[:3] for line in check.splitlines() if " fits " in line and line.startswith("  stage")]
    tap.ok(all(["stage", stage, name] in fits for stage, name in (("1", "top-down"), ("2", "backend"), ("3", "memory"))),
           "events of all stages fit", check)
    loops = check.split("\n  stage 1", 1)[-1].splitlines()
    tap.ok(any("retiring 40." in line and "backend 35." in line for line in loops[:3]),
           "vapro check shows the shares that were set", check)


def check_narrow(tap, directory):
    """A kernel that refuses the code that reads counters."""
    tap.equal(code(directory, "narrow"), "0", "vaprod runs without the code that reads counters")
    hello = json.loads(text(directory, "narrow.out").splitlines()[0])
    tap.equal(hello["workload_source"], "arguments", "the workload source falls back to arguments")
    reasons = [hello["pmu"]["reason"]] + [c["reason"] for c in hello["counters"] if c["name"] == "instructions"]
    tap.ok(all("refuses the BPF object with the code that reads counters" in (r or "") for r in reasons),
           "hello has the reason", hello["pmu"])
    tap.ok(not any(c["available"] for c in hello["counters"]), "hello names no counter as available", hello["counters"])


def check_way_down(tap, lines, name, pid):
    """The diagnoses of a program's variance, and what was counted for it."""
    way = PROGRAMS[name]
    job = [p["job"]["identity"] for p in of_type(lines, "process") if p["pid"] == pid][0]
    stages = [s for s in of_type(lines, "stage") if s["job"] == job]
    tap.equal([(s["stage"], s["parts_of"], s["counted"]) for s in stages],
              [(stage, parent, True) for (_, parent), (stage, _) in zip(way, way[1:])],
              f"{name}: the parts of each major factor are counted, one after the other")
    reported = [d for d in of_type(lines, "diagnosis") if d["job"] == job and d["variance"] in {s["variance"] for s in stages}]
    if not reported:
        tap.ok(False, f"{name}: there is a diagnosis", of_type(lines, "variance"))
        return
    tap.equal((reported[0]["stage"], reported[0]["final"]), (1, False),
              f"{name}: the first diagnosis is of stage 1 and not final")
    tap.equal((reported[-1]["stage"], reported[-1]["final"]), (way[-1][0], True),
              f"{name}: the last diagnosis is of stage {way[-1][0]} and final")
    before = {f["name"] for f in reported[0]["factors"] if f["major"]}
    tap.equal(before, {way[0][1]}, f"{name}: at first {way[0][1]} is the major factor")
    last = {f["name"]: f for f in reported[-1]["factors"]}
    for stage, factor in way:
        found = last.get(factor, {"stage": 0, "contribution_pct_of_level": 0})
        tap.ok(found["stage"] == stage and found["contribution_pct_of_level"] >= 80,
               f"{name}: {factor} is most of the loss at stage {stage}", last)
    tap.equal({factor for factor, found in last.items() if found["major"]}, {factor for _, factor in way},
              f"{name}: no other factor is major")


def check_stages(tap, directory):
    tap.equal([code(directory, name) for name in (*PROGRAMS, "vaprod")], ["0"] * (len(PROGRAMS) + 1),
              "programs and vaprod end well" + text(directory, "vaprod.err")[-600:])
    lines = records(os.path.join(directory, "out.ndjson"))
    instructions = [c for c in lines[0]["counters"] if c["name"] == "instructions"][0]
    tap.ok(instructions["available"] and instructions["provider"] == "hardware", "instructions are counted", instructions)
    for name in PROGRAMS:
        pid = json.loads(text(directory, name + ".out").splitlines()[0])["pid"]
        check_way_down(tap, lines, name, pid)
    tap.equal([s["stage"] for s in of_type(lines, "stage")], [2, 3, 1, 2, 1], "stage 1 follows each final diagnosis")
    lost = {cause: n for w in of_type(lines, "window") for cause, n in w["lost"].items() if n}
    tap.ok(not set(lost) - {"counter", "unaccounted"}, "only computations that span a change are lost", lost)
    schema = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"), os.path.join(directory, "out.ndjson")],
                            capture_output=True, text=True, check=False)
    tap.equal(schema.returncode, 0, "every line is valid by the schema" + schema.stdout[-600:] * (schema.returncode != 0))


def main():
    tap = Tap()
    try:
        module = guest.module(ARCH, SUITE, STANDIN)
        directory = guest.run(ARCH, SUITE, os.path.join(HERE, "stages.sh"), name="stages", cpu="a64fx", files=[
            module, os.path.join(STANDIN, "events.conf"), os.path.join(guest.build_directory(ARCH), "tests", "refuse_counting.so")])
        check_machine(tap, directory)
        check_narrow(tap, directory)
        check_stages(tap, directory)
    except (guest.GuestFailed, OSError, subprocess.CalledProcessError, KeyError, IndexError):
        tap.ok(False, "the guest's results can be judged", traceback.format_exc())
    print(f"1..{tap.count}")


main()
