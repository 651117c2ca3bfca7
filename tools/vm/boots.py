#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Boots a guest repeatedly and runs an MPICH program in each boot: alone, under vaprod beside an Open MPI program, and
while its probes are moved with calls in flight. A program that hangs now and then shows in one of many boots only.

usage: boots.py [--boots N] [--arch amd64|arm64] [--suite SUITE] [--rounds N]      30 boots of amd64, trixie by default

Prints a line for each boot and a table; results go to build/accept/boots.json, and the files of a boot that did not go
well stay in build/vm/bad-N. Exit code 1 where a program did not end well, or a return is missing. A program that hangs
in MPI_Finalize, one rank asleep on a socket and the other spinning, is a race of MPICH with UCX (docs/returns.md).
"""
import argparse
import json
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest  # noqa: E402

PROGRAMS = ("alone", "watched", "beside", "vaprod", "moved", "mover")


def text(directory, name):
    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def judge(directory):
    """{codes, vanished, departed, moves, missing} of one boot."""
    found = {"codes": {name: text(directory, name + ".code").strip() or "none" for name in PROGRAMS}}
    lines = [json.loads(line) for line in text(directory, "out.ndjson").splitlines()]
    windows = [line for line in lines if line["type"] == "window"]
    found["vanished"] = sum(window["lost"]["vanished"] for window in windows)
    found["departed"] = [line["text"] for line in lines if line["type"] == "warning" and "no longer match" in line["text"]]
    last = (text(directory, "mover.out").splitlines() or ["{}"])[-1]
    moved = json.loads(last) if last.startswith("{") else {}
    found["moves"], found["missing"] = moved.get("moves", 0), moved.get("missing", -1)
    found["well"] = (set(found["codes"].values()) == {"0"} and not found["departed"] and found["moves"] > 0 and
                     found["missing"] == 0)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boots", type=int, default=30)
    parser.add_argument("--arch", default="amd64", choices=sorted(guest.MACHINES))
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--rounds", type=int, default=400)
    args = parser.parse_args()
    build = guest.build_directory(args.arch)
    scenario = os.path.join(build, "vm", "boots.sh") if os.path.isdir(os.path.join(build, "vm")) else os.path.join(build, "boots.sh")
    with open(os.path.join(HERE, "boots.sh"), encoding="utf-8") as source, open(scenario, "w", encoding="utf-8") as file:
        file.write(f"ROUNDS={args.rounds}\n" + source.read())
    boots, out = [], os.path.join(guest.ROOT, "build", "accept", "boots.json")
    os.makedirs(os.path.dirname(out), exist_ok=True)
    for number in range(1, args.boots + 1):
        begin = time.monotonic()
        try:
            found = judge(guest.run(args.arch, args.suite, scenario, limit=1500, name=f"boots-{args.arch}-{args.suite}",
                                    files=[os.path.join(build, "tests", "move_probes")]))
        except guest.GuestFailed as failure:
            found = {"well": False, "failure": str(failure)}
        found["seconds"] = round(time.monotonic() - begin, 1)
        if not found["well"]:
            shutil.copytree(os.path.join(guest.WORK, f"run-boots-{args.arch}-{args.suite}"),
                            os.path.join(guest.WORK, f"bad-{number}"), dirs_exist_ok=True)
        boots.append(found)
        print(f"boot {number}: {'well' if found['well'] else 'NOT WELL'} {json.dumps(found)}", flush=True)
        with open(out, "w", encoding="utf-8") as file:
            json.dump({"arch": args.arch, "suite": args.suite, "rounds": args.rounds, "boots": boots}, file, indent=1)
    well = sum(found["well"] for found in boots)
    print(f"{well} of {len(boots)} boots of {args.arch}, {args.suite} went well; {out}")
    for name in PROGRAMS:
        bad = [found["codes"][name] for found in boots if "codes" in found and found["codes"][name] != "0"]
        print(f"  {name:8} ended well in {len(boots) - len(bad)}" + (f", other codes: {' '.join(bad)}" if bad else ""))
    return 0 if well == len(boots) else 1


if __name__ == "__main__":
    sys.exit(main())
