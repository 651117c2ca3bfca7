#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""The confined reader without sanitizers, and the lines of source it finds for vapro stg."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, j, main, of_type, records  # noqa: E402

SOURCE = os.path.join(ROOT, "tests", "live", "marked.c")


def must(jobs, command):
    code, job = jobs.run(command, os.path.basename(command[0]), 60)
    if code:
        raise RuntimeError(f"{command}: {job.err()}")


def marked():
    """{function: line} as the source's own marks have it."""
    with open(SOURCE, encoding="utf-8") as file:
        return {m.group(1): number for number, line in enumerate(file, 1) if (m := re.search(r"/\* here: (\w+) \*/", line))}


def shown(states):
    """{function: (line of source or "", words)} of the program's own communication."""
    found = {}
    for state in states:
        function = re.search(r"(?:^| )function=(\w+)", state["labels"])
        if "at" in state and function:
            line = re.search(r"\((marked\.c:\d+)\)", state["source"])
            found[function.group(1)] = line.group(1) if line else "", state["source"]
    return found


def test_reader(tap, jobs):
    code, job = jobs.run([j.path("tests", "confine")], "confine", 120, cwd=ROOT)
    tap.ok(code == 0, "the tests of the confined reader pass without sanitizers", job.out() + job.err())


def test_lines(tap, jobs):
    program, capture, out = (os.path.join(jobs.directory, name) for name in ("marked", "run.capture", "out.ndjson"))
    build = ["mpicc", "-O1", "-g", SOURCE, "-o", program]
    must(jobs, build)
    # vaprod does not open a debug file in a user's directory, so that the capture has no lines
    must(jobs, ["objcopy", "--only-keep-debug", program, program + ".debug"])
    must(jobs, ["objcopy", "--strip-debug", "--add-gnu-debuglink=" + program + ".debug", program])
    code, job = jobs.run([VAPRO, "run", "--capture", capture, "--output", out, "--", *j.mpirun(2, program, 200)], "run", 60)
    tap.ok(code == 0, "a run is captured", job.err())
    tap.equal([r["code"] for r in of_type(records(out), "warning") if r["code"] == "image_unreadable"], [], "all images were read")
    truth = {function: f"marked.c:{line}" for function, line in marked().items()}
    tap.equal(len(truth), 3, "the source is marked")

    def stg(name, *options):
        code, job = jobs.run([VAPRO, "stg", *options, capture], name, 30)
        tap.equal(code, 0, f"vapro stg: {name}")
        return job.out(), [line for line in job.err().splitlines() if program + ":" in line]

    def states(name):
        text, said = stg(name, "--json")
        return [json.loads(line) for line in text.splitlines()], said

    def lines(found):
        return {function: line for function, (line, _) in shown(found).items() if function in truth}
    found, said = states("with a separate debug file")
    tap.equal(lines(found), truth, "calls are shown at their marked lines")
    tap.ok(not said, "there is no complaint about lines of source", said)
    functions = {function: words.split(" ")[0] for function, (_, words) in shown(found).items() if function in truth}
    tap.equal(functions, {"MPI_Allreduce": "reduce", "MPI_Barrier": "main", "MPI_Bcast": "main"},
              "calls are shown in their functions")
    table, said = stg("as a table")
    for line in truth.values():
        tap.ok(line in table, f"the table has {line}", table)
    drawing, said = stg("as a drawing", "--dot")
    for line in truth.values():
        tap.ok(line in drawing, f"the drawing has {line}", drawing)

    must(jobs, ["objcopy", "--only-keep-debug", j.path("tools", "demo_mpi"), program + ".debug"])
    found, said = states("with another program's debug file")
    tap.equal(lines(found), dict.fromkeys(truth, ""), "another program's debug file is not used")
    os.unlink(program + ".debug")
    found, said = states("without debug information")
    tap.equal(lines(found), dict.fromkeys(truth, ""), "without debug information there are no lines")
    functions = {function: words.split("+")[0] for function, (_, words) in shown(found).items() if function in truth}
    tap.equal(functions, {"MPI_Allreduce": "reduce", "MPI_Barrier": "main", "MPI_Bcast": "main"}, "functions are shown nevertheless")
    tap.ok(len(said) == 1 and "no lines of source" in said[0], "the missing debug information is reported once", said)
    must(jobs, [*build, "-DBUILD=2"])
    found, said = states("with another build")
    tap.equal(lines(found), dict.fromkeys(truth, ""), "another build's lines are not shown")
    tap.ok(len(said) == 1 and "another build" in said[0], "the other build is reported once", said)
    os.unlink(program)
    found, said = states("without the program")
    tap.equal(lines(found), dict.fromkeys(truth, ""), "no lines are shown of a file that is gone")
    tap.ok(len(said) == 1 and "No such file" in said[0], "the missing file is reported once", said)


def test_unreadable(tap, jobs):
    program, out = (os.path.join(jobs.directory, name) for name in ("padded", "out.ndjson"))
    must(jobs, ["mpicc", "-O1", SOURCE, "-o", program])
    os.truncate(program, 600 << 20)  # a hole behind the program: more than a reader takes
    code, job = jobs.run([VAPRO, "run", "--output", out, "--", *j.mpirun(2, program, 50)], "run", 60)
    tap.ok(code == 0, "a program that cannot be read is tracked nevertheless", job.err())
    said = [r["text"] for r in of_type(records(out), "warning") if r["code"] == "image_unreadable"]
    tap.ok(len(said) == 1 and program in said[0] and "out of range" in said[0], "its image is named once, with the reason", said)
    tap.equal(len([r for r in of_type(records(out), "process") if r["state"] == "attached"]), 2, "both ranks are attached")
    os.unlink(program)


main(test_reader, test_lines, test_unreadable)
