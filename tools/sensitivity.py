#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sensitivity.py [--minutes N] [--only GLOB] [--by jobs|tests] [--bounds] [--document] [--fresh]: moves each constant of
the judgement by 20 % in either direction, analyses a fixed subset of the simulated jobs of make accuracy with it, runs
the unit tests of its room, and prints what changes.

Only the files that have the constant are compiled again, into build/sensitivity; the tree stays as it is.  What was
measured is in build/sensitivity/results.json, and the next invocation goes on with what is missing (--fresh: from the
start).  Results belong to the sources that they were measured with: a change of these discards them.
"""
import argparse
import fnmatch
import functools
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time

from constants import DOCUMENT, FOLDERS, ROOT, constants, update

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


@functools.cache
def recipe_of(target):
    lines = [line for line in command("make", "--no-print-directory", "-n", "-B", "-o", "build/libvapro.a", target).splitlines() if f"-o {target}" in line]
    return shlex.split(lines[-1])


def recipe(target):
    """The last command with which make builds a file."""
    return list(recipe_of(target))


def names_of(at):
    """The constant, and those that follow from it."""
    names, text = {at.name}, at.path.read_text()
    for match in re.finditer(r"^#define[ \t]+(\w+)[ \t]+([^\n]*)$", text, re.M):
        names |= {match[1]} if names.intersection(re.findall(r"\w+", match[2])) else set()
    return names


def dependents(at):
    """Objects that a constant is compiled into: by what the compiler wrote beside them, and by the files that name it."""
    place, names, used = str(at.path.relative_to(ROOT)), "|".join(names_of(at)), {}
    for folder in ("build/user", "build/tools/accuracy"):
        for found in sorted((ROOT / folder).rglob("*.d")):
            files = found.read_text().replace("\\\n", " ").split("\n")[0].split()[1:]
            for file in files if place in files else ():
                if file not in used:
                    text = (ROOT / file).read_text()
                    defined = re.findall(rf"#define[ \t]+(?:{names})\b|\b(?:{names}) = \d", text) if file == place else []
                    used[file] = len(re.findall(rf"\b(?:{names})\b", text)) > len(defined)
            if place in files and any(used[file] for file in files):
                yield str(found.with_suffix(".o").relative_to(ROOT))


def compiled(at, factor):
    """The objects of another value of a constant, by their usual names; None where it has no other value."""
    text = at.moved(factor)
    if text is None:
        return None
    shadow = OUT / "source" / at.path.relative_to(ROOT / "user")
    shadow.parent.mkdir(parents=True, exist_ok=True)
    shadow.write_text(text)
    made = {}
    try:
        for target in dependents(at):
            words = recipe(target)
            source = words[words.index("-c") + 1]
            made[target] = str(OUT / target.replace("/", "+"))
            words = [word for word in words if word not in ("-MMD", "-MP", "-Werror")]
            words[words.index("-o") + 1] = made[target]
            if str(ROOT / source) == str(at.path):
                words[words.index("-c") + 1] = str(shadow)
            command(*words[:1], f"-I{OUT / 'source'}", f"-iquote{at.path.parent}", *words[1:], "-O1")
        return made
    finally:
        shadow.unlink()


def link(made):
    """Objects come before the archive, so that their namesakes in it are not used."""
    words, made = recipe(TOOL), dict(made)
    program = str(OUT / "accuracy")
    words[words.index("-o") + 1] = program
    words = [made.pop(word, word) for word in words]
    library = words.index("build/libvapro.a")
    command(*words[:library], *made.values(), *words[library:])
    return program


def unit_object(source, name, *options):
    """The object of a file of the unit tests, without sanitizers."""
    words, target = recipe("build/user/model/judge.o"), OUT / "tests" / f"{name}.o"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        words = [word for word in words if word not in ("-MMD", "-MP", "-Werror")]
        words[words.index("-c") + 1], words[words.index("-o") + 1] = str(source), str(target)
        command(*words, "-O1", "-w", "-Itests/unit", *options)
    return str(target)


def run_tests(room, made):
    """Which unit tests of a room fail with some objects in place of their namesakes."""
    folder, program = ROOT / "tests" / "unit", str(OUT / "tests" / room)
    files = sorted((folder / room).glob("test_*.c"))
    units = [unit_object(file, f"{room}+{file.stem}", f"-Dmain=main_of_{file.stem}") for file in files]
    units += [unit_object(file, file.stem) for file in sorted(folder.glob("*.c")) if file.name != "room.c" and not file.name.startswith("test_")]
    units.append(unit_object(folder / "room.c", f"{room}+room", "-DUNIT_FILES=" + " ".join(f"UNIT_FILE({file.stem})" for file in files)))
    words, made = recipe(TOOL), dict(made)
    output = words.index("-o")
    del words[output:output + 2]
    library = words.index("build/libvapro.a")
    usual = [made.pop(word, word) for word in words[:library] if word.endswith(".o") and not word.endswith("/main.o")]
    command(words[0], *units, *usual, *made.values(), words[library], "-lcmocka", *words[library + 1:], "-o", program)
    try:
        done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return ["takes too long"]
    named = re.findall(r"^\[  FAILED  \] (\w+)$", done.stdout + done.stderr, re.M)
    return sorted(set(named or re.findall(r"^(test_\w+) failed$", done.stdout, re.M)))


def rooms_of(at):
    """The constants that all rooms share are in the first one."""
    return FOLDERS if at.path.name == "judgement.h" else [at.place.split("/")[0]]


def tested(at, made, usual):
    """Which unit tests fail that do not fail anyway."""
    failed = []
    for room in rooms_of(at):
        if room not in usual:
            usual[room] = run_tests(room, {})
        failed += [name for name in run_tests(room, made) if name not in usual[room]]
    return failed


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
        stored = {"sources": digest(), "usual": None, "jobs": {}, "usual_tests": {}, "tests": {}}
    return stored


def store(stored):
    fresh = OUT / "results.json.new"
    fresh.write_text(json.dumps(stored, indent=1))
    fresh.rename(OUT / "results.json")


def attempt(at, factor, stored, by):
    try:
        made = compiled(at, factor)
        if made is None:
            return ["cannot be moved"]
        if by == "tests":
            return tested(at, made, stored["usual_tests"])
        return difference(stored["usual"], measure(link(made)))
    except Broken as broken:
        return [f"does not build or run: {broken.args[0]}"]


def short(sentence):
    """A sentence with at most three of the names that it lists."""
    names = sentence.split(", ")
    return sentence if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} others"


def cell(stored, key, factor):
    """What the document says of a constant that is moved; None where that is not known yet."""
    jobs, tests = (stored[by].get(key, {}).get(factor) for by in ("jobs", "tests"))
    if jobs is None and tests is None:
        return None
    said = [short(sentence) for sentence in [*(jobs or []), *(["fails " + ", ".join(tests)] if tests else [])]]
    if said:
        return "; ".join(said)
    return "nothing" if jobs is not None and tests is not None else "no job" if tests is None else "no unit test"


def held(stored):
    cells = {at.key: tuple(cell(stored, at.key, factor) for factor in ("0.8", "1.2")) for at in constants()}
    return {key: both for key, both in cells.items() if None not in both}


def print_table(stored, chosen, by):
    for at in chosen:
        results = stored[by].get(at.key)
        if results is not None:
            print(f"{at.name:<26} {at.value:<22} {at.place}")
            print(f"    x 0.8: {'; '.join(results['0.8']) or 'nothing'}")
            print(f"    x 1.2: {'; '.join(results['1.2']) or 'nothing'}")
    measured = [stored[by][at.key] for at in chosen if at.key in stored[by]]
    idle = sum(not results["0.8"] and not results["1.2"] for results in measured)
    print(f"{len(measured)} of {len(chosen)} constants measured by {by}; {idle} change nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120, help="after which it ends, and can go on later (120)")
    parser.add_argument("--only", default="*", help="constants whose name or NAME@FOLDER/FILE matches")
    parser.add_argument("--by", choices=("jobs", "tests"), help="only the simulated jobs, or only the unit tests")
    parser.add_argument("--bounds", action="store_true", help="bounds and formats, too")
    parser.add_argument("--document", action="store_true", help="write what was measured into docs/judgement.md")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    (OUT / "tests").mkdir(parents=True, exist_ok=True)
    stored = load(options.fresh)
    chosen = [at for at in constants() if (options.bounds or not at.bound) and
              (fnmatch.fnmatch(at.name, options.only) or fnmatch.fnmatch(at.key, options.only))]
    for by in (options.by,) if options.by else ("tests", "jobs"):
        if by == "jobs" and stored["usual"] is None:
            stored["usual"] = measure(str(ROOT / TOOL))
            store(stored)
        for at in chosen:
            if at.key in stored[by] or time.monotonic() > end:
                continue
            stored[by][at.key] = {str(factor): attempt(at, factor, stored, by) for factor in (0.8, 1.2)}
            store(stored)
            print(at.key, stored[by][at.key], file=sys.stderr)
        print_table(stored, chosen, by)
    if options.document:
        DOCUMENT.write_text(update(DOCUMENT.read_text(), held(stored)))


if __name__ == "__main__":
    sys.exit(main())
