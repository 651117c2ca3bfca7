#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sensitivity.py [--minutes N] [--only GLOB] [--fresh]: moves each constant of the judgement by 20 % in either direction,
analyses a fixed subset of the simulated jobs of make accuracy with it, and prints what changes.

Only the files that have the constant are compiled again, into build/sensitivity; the tree stays as it is.  What was
measured is in build/sensitivity/results.json, and the next invocation goes on with what is missing (--fresh: from the
start).  Results belong to the sources that they were measured with: a change of these discards them.
"""
import argparse
import fnmatch
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import time

from constants import ROOT, constants

OUT = ROOT / "build" / "sensitivity"
TOOL = "build/tools/accuracy/accuracy"
SEED = "1"
SUBSET = (
    # one program: faults, and what only looks like one
    "hog/20ms", "silent-rank/20ms", "memory-socket/20ms", "node-start-10/20ms", "stalls/500ms", "drift/500ms", "two-adjacent/20ms",
    "frequency-host/500ms", "network-all/500ms", "network-rank/20ms", "io-rank/500ms", "io-stalls/500ms", "jitter/500ms", "tails/20ms",
    "groups/500ms", "cold/20ms", "moved/500ms", "phases/500ms",
    # many shapes
    "grid-hog", "farm-host", "stealing-silent", "amr-silent", "mpmd-overlap", "gpu-host", "nested-always", "uncoupled-steal", "sweep-stop",
    "hpl1000", "ep6", "long2s", "amr-network", "grid-hog+network", "storage-spell", "namd-sends", "phases-checkpoint",
    "grid-heavy35", "amr-plain", "amr-growth", "gpu-varying", "mpmd-wander", "writes-sigma.6", "sweep-pareto", "phases-plain", "farm-plain",
    "amr-late-quiet", "uncoupled-alternates",
)


class Broken(Exception):
    """A program that does not compile or run."""


def command(*words, **options):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, **options)
    if done.returncode:
        raise Broken((done.stderr or done.stdout).strip().splitlines()[-1:] or words[0])
    return done.stdout


def recipe(target):
    """The last command with which make builds a file."""
    lines = [line for line in command("make", "--no-print-directory", "-n", "-B", "-o", "build/libvapro.a", target).splitlines() if f"-o {target}" in line]
    return shlex.split(lines[-1])


def dependents(path):
    """Objects that a file is compiled into, by what the compiler wrote beside them."""
    name = str(path.relative_to(ROOT))
    for folder in ("build/user", "build/tools/accuracy"):
        for found in sorted((ROOT / folder).rglob("*.d")):
            if name in found.read_text().split():
                yield str(found.with_suffix(".o").relative_to(ROOT))


def build(at, factor):
    """A program with another value of a constant; None where it has none."""
    text = at.moved(factor)
    if text is None:
        return None
    shadow = OUT / "source" / at.path.relative_to(ROOT / "user")
    shadow.parent.mkdir(parents=True, exist_ok=True)
    shadow.write_text(text)
    made = {}
    try:
        for target in dependents(at.path):
            words = recipe(target)
            source = words[words.index("-c") + 1]
            made[target] = str(OUT / target.replace("/", "+"))
            words = [word for word in words if word not in ("-MMD", "-MP", "-Werror")]
            words[words.index("-o") + 1] = made[target]
            if str(ROOT / source) == str(at.path):
                words[words.index("-c") + 1] = str(shadow)
            command(*words[:1], f"-I{OUT / 'source'}", f"-iquote{at.path.parent}", *words[1:])
        return link(made)
    finally:
        shadow.unlink()


def link(made):
    """Objects come before the archive, so that their namesakes in it are not used."""
    words = recipe(TOOL)
    program = str(OUT / "accuracy")
    words[words.index("-o") + 1] = program
    words = [made.pop(word, word) for word in words]
    library = words.index("build/libvapro.a")
    command(*words[:library], *made.values(), *words[library:])
    return program


def measure(program):
    """What is found of each job of the subset: plain values, so that equal ones are equal."""
    command(program, "--case", ",".join(SUBSET), "--seed", SEED, "--out", str(OUT / "run"))
    jobs = json.loads((OUT / "run" / "accuracy.json").read_text())["jobs"]
    return {f"{job['name']} {job['mode']}": outcome(job) for job in jobs}


def outcome(job):
    loss = [None if not truth["found"] or truth.get("loss_error") is None else round(truth["loss_error"], 3) for truth in job["truths"]]
    return {"failed": job["failed"],
            "found": [truth["found"] for truth in job["truths"]],
            "loss": loss,
            "false": sum(alarm["is"] in ("false", "wrong_class") for alarm in job["alarms"]),
            "parts": sum(alarm["is"] == "part" for alarm in job["alarms"]),
            "records": [job["variances"], job["imbalances"], job["drifts"], round(job["coverage"], 4)]}


def difference(usual, other):
    """Sentences on what another value changes; the last one counts jobs whose records alone are others."""
    lost, won, false, loss, records = [], [], 0, [], 0
    for name, before in usual.items():
        after = other[name]
        if before == after:
            continue
        pairs = list(zip(before["found"], after["found"]))
        lost += [name] if any(a and not b for a, b in pairs) else []
        won += [name] if any(b and not a for a, b in pairs) else []
        false += after["false"] + after["parts"] - before["false"] - before["parts"]
        moved = [abs(b) - abs(a) for a, b in zip(before["loss"], after["loss"]) if a is not None and b is not None and abs(abs(b) - abs(a)) >= 0.01]
        loss += [name] if moved else []
        records += 1
    said = [f"misses {', '.join(lost)}"] if lost else []
    said += [f"finds {', '.join(won)}"] if won else []
    said += [f"{false:+d} false alarms or parts"] if false else []
    said += [f"loss of {', '.join(loss)}"] if loss else []
    return said or ([f"records of {records} jobs only"] if records else [])


def digest():
    """Of all sources that results depend on."""
    files = sorted(path for folder in ("user", "include", "tools/accuracy") for path in (ROOT / folder).rglob("*.[ch]"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files) + repr((SUBSET, SEED)).encode()).hexdigest()


def load(fresh):
    try:
        stored = json.loads((OUT / "results.json").read_text())
    except (OSError, ValueError):
        stored = {}
    if fresh or stored.get("sources") != digest():
        stored = {"sources": digest(), "usual": None, "results": {}}
    return stored


def store(stored):
    fresh = OUT / "results.json.new"
    fresh.write_text(json.dumps(stored, indent=1))
    fresh.rename(OUT / "results.json")


def attempt(at, factor, usual):
    try:
        program = build(at, factor)
        return ["cannot be moved"] if program is None else difference(usual, measure(program))
    except Broken as broken:
        return [f"does not build or run: {broken.args[0]}"]


def print_table(stored, chosen):
    for at in chosen:
        results = stored["results"].get(at.key)
        if results is not None:
            print(f"{at.name:<26} {at.value:<22} {at.place}")
            print(f"    x 0.8: {'; '.join(results['0.8']) or 'nothing'}")
            print(f"    x 1.2: {'; '.join(results['1.2']) or 'nothing'}")
    measured = [stored["results"][at.key] for at in chosen if at.key in stored["results"]]
    idle = sum(not results["0.8"] and not results["1.2"] for results in measured)
    print(f"{len(measured)} of {len(chosen)} constants measured; {idle} change nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120, help="after which it ends, and can go on later (120)")
    parser.add_argument("--only", default="*", help="constants whose name or NAME@FOLDER/FILE matches")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    OUT.mkdir(parents=True, exist_ok=True)
    stored = load(options.fresh)
    chosen = [at for at in constants() if fnmatch.fnmatch(at.name, options.only) or fnmatch.fnmatch(at.key, options.only)]
    if stored["usual"] is None:
        stored["usual"] = measure(str(ROOT / TOOL))
        store(stored)
    for at in chosen:
        if at.key in stored["results"] or time.monotonic() > end:
            continue
        stored["results"][at.key] = {str(factor): attempt(at, factor, stored["usual"]) for factor in (0.8, 1.2)}
        store(stored)
        print(at.key, stored["results"][at.key], file=sys.stderr)
    print_table(stored, chosen)


if __name__ == "__main__":
    sys.exit(main())
