#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""
The diagnosis selects the counters. Clocks take their place: their table has parts of the backend and no parts
of memory, and all time is the backend's. Only computations that span a change are not counted.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPRO, VAPROD, ROOT, attached, j, main, of_type, ready_pid, records, tool  # noqa: E402

PIECES = 1800
BUSY_NS = 200000  # CPU time: a sleeping computation has some 20 us of it, all of which a hypervisor may steal
CALL, COUNT, START, END, BACKEND, MEMORY, CORE = 0, 1, 4, 5, 6, 7, 8


def watch(jobs):
    """A program that is slow for a while, under vaprod to its end: its result, the records, its computations."""
    program = jobs.start(j.mpirun(1, tool("stalls"), "--alone", "--pieces", PIECES, "--from", 550, "--to", 1450, "--us", 3000,
                                  "--more-us", 2000, "--idle-us", 1000, "--delay", 3), "stalls")
    pid = ready_pid(program)
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    # more work takes longer by the clock: by this tolerance it is the same work, and slow beside the fastest of it
    daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0",
                         "--counters", "test", "--cluster-tolerance", "0.95", "--reference", "fastest", "--window", "1.5s", "--long-fragment", "0s"],
                        "vaprod")
    attached(out, [pid])
    if jobs.wait(program, 90) or jobs.wait(daemon, 20):
        raise RuntimeError(program.err() + daemon.err())
    sums = subprocess.run([j.path("tests", "sum_counts"), capture], capture_output=True, text=True, check=True)
    return json.loads(program.out().splitlines()[-1]), records(out), json.loads(sums.stdout), daemon.err()


def check_stages(tap, lines, errors):
    stages = of_type(lines, "stage")
    requested = [(s["stage"], s["parts_of"], s["counted"]) for s in stages]
    tap.equal(requested[:3], [(2, "backend", True), (3, "memory", False), (1, None, True)],
              "parts of the backend are counted, parts of memory cannot be, then stage 1 is counted again")
    tap.equal([r for r in requested if not r[2]], [(3, "memory", False)], "a group that cannot be counted is reported once")
    if len(stages) < 3:
        return
    reported = {v["id"] for v in of_type(lines, "variance")}
    tap.ok(stages[0]["variance"] in reported and stages[0]["job"], "with the variance that needs it", stages[0])
    tap.ok("no events that part it" in stages[1]["reason"] and "memory" in errors, "the stage record has the reason", stages[1])
    tap.ok("instructions" in stages[0]["counters"] and "clock.task" in stages[0]["counters"],
           "the stage record has the counters", stages[0])
    tap.ok(stages[0]["uncounted_ms"] > 0 and stages[1]["uncounted_ms"] == 0,
           "the stage record has the time without counting", stages)
    diagnoses = [(d["stage"], d["final"], {f["name"]: f for f in d["factors"]}) for d in of_type(lines, "diagnosis")
                 if d["variance"] == stages[0]["variance"]]
    first, last = diagnoses[0], diagnoses[-1]
    tap.equal(first[:2], (1, False), "the first diagnosis is of stage 1 and not final")
    tap.ok(first[2]["backend"]["major"] and "memory" not in first[2], "the first diagnosis has the backend as a whole", first)
    tap.equal(last[:2], (2, True), "the last diagnosis is of stage 2 and final")
    parts = [last[2].get(name, {"contribution_pct_of_level": 0})["contribution_pct_of_level"] for name in ("memory", "core")]
    tap.ok(all(40 <= part <= 60 for part in parts),
           "the last diagnosis has the parts of the backend as the clocks count them", parts)


def check_counts(tap, result, lines, sums):
    """Each computation of the program is counted with one set of counters, or it spans a change and is reported as lost."""
    pieces, changes = sums["singles"], [s for s in sums["stages"] if s[3]]
    tap.equal(len(pieces), result["computations"], "every computation is emitted singly")
    uncounted = [p for p in pieces if not p[COUNT]]
    tap.equal(sum(w["lost"]["counter"] for w in of_type(lines, "window")), len(uncounted),
              "computations that were not counted are reported as lost")
    # the clock is read a little before and after the change itself: a computation at these borders may be counted
    straddlers = [p for p in pieces if any(p[START] <= end and p[END] >= begin for begin, end, _, _ in changes)]
    across = [p for p in pieces if any(p[START] < begin and p[END] > end for begin, end, _, _ in changes)]
    tap.ok(straddlers, "there are computations that span a change", changes)
    tap.ok(all(not p[COUNT] and not p[BACKEND] and not p[MEMORY] for p in across),
           "computations across a change have no counts", across)
    # some kernels do not report all switches
    others = [p for p in uncounted if p not in straddlers]
    tap.ok(len(others) <= 0.01 * len(pieces), "nearly all other computations are counted",
           f"{len(others)} of {len(pieces)}: {others[:3]}")
    by_stage = {0: [p for p in pieces if p[COUNT] and p[END] < changes[0][0]]}
    for number, change in enumerate(changes, 1):
        after = changes[number][0] if number < len(changes) else float("inf")
        by_stage[number] = [p for p in pieces if p[COUNT] and p[START] > change[1] and p[END] < after]
    tap.equal(sum(map(len, by_stage.values())) + len(straddlers) + len(others), result["computations"],
              "computations before, between, after and across the changes are all computations of the program")
    # after the first change a computation without CPU time may have no counts
    for number, counted in by_stage.items():
        stage = changes[number - 1][2] if number else 1
        own, foreign = ((BACKEND,), (MEMORY, CORE)) if stage == 1 else ((MEMORY, CORE), (BACKEND,))
        # of shorter ones the hypervisor or interrupts may have had all the time
        busy = [p for p in counted if p[COUNT] > BUSY_NS]
        blank = [p for p in busy if not all(p[count] for count in own)]
        tap.ok(busy and len(blank) <= 0.02 * len(busy),
               f"nearly all computations after change {number} have counts of their stage",
               f"{len(blank)} of {len(counted)}: {blank[:3]}")
        wrong = [p for p in counted if any(p[count] for count in foreign)]
        tap.ok(counted and not wrong, f"computations after change {number} have counts of stage {stage} only", wrong[:3])


def test_diagnosis_drives_the_counters(tap, jobs):
    result, lines, sums, errors = watch(jobs)
    tap.equal(lines[0]["workload_source"], "instructions", "clocks count")
    check_stages(tap, lines, errors)
    check_counts(tap, result, lines, sums)
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"),
                            os.path.join(jobs.directory, "out.ndjson")], capture_output=True, text=True, check=False)
    tap.equal(check.returncode, 0, "every line is valid by the schema" + ("" if check.returncode == 0 else check.stdout[-600:]))
    replay = os.path.join(jobs.directory, "replay.ndjson")
    code = subprocess.run([VAPRO, "analyze", os.path.join(jobs.directory, "run.capture"), "--output", replay],
                          capture_output=True, text=True, check=False)
    tap.equal(code.returncode, 0, "the capture replays" + code.stderr[-300:])
    compared = ("stage", "variance", "diagnosis")
    again = [r for r in records(replay) if r["type"] in compared]
    tap.ok(again == [r for r in lines if r["type"] in compared], "the replay emits the same stages and diagnoses")


def test_kernel_refuses_counting_code(tap, jobs):
    """vaprod with required counters refuses to start; tests/vm/stages.t tests it without, where counters exist."""
    daemon = jobs.start(["env", "LD_PRELOAD=" + j.path("tests", "refuse_counting.so"), VAPROD, "--pid", os.getpid(), "--duration",
                         "0.3", "--counters", "test"], "refused")
    tap.equal(jobs.wait(daemon, 30), 3, "requested counters that the kernel refuses: exit code 3")
    tap.ok("refuses the BPF object with the code that reads counters" in daemon.err(), "the refusal has a reason", daemon.err())


main(test_diagnosis_drives_the_counters, test_kernel_refuses_counting_code)
