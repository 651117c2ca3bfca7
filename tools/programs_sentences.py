# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part sentences: the sentences of a diagnosis where the cause is no other program: a job with more ranks than CPUs, a rank
that was stopped, one to which a debugger attached.
"""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_score as score  # noqa: E402
from jobs import Jobs  # noqa: E402
from programs_common import Unit, end_vaprod, of_type, rows_of_units, shielded, start_vaprod, t  # noqa: E402
from programs_list import CPUS, PROGRAMS, ranks_of  # noqa: E402

SECONDS = 25
AT, LENGTH = 12, 2.0


def texts_of(records, ids):
    """All sentences about these variances, as one text."""
    said = []
    for record in records:
        if record.get("type") == "diagnosis" and record["variance"] in ids:
            advice = record.get("advice") or []
            said += [record.get("verdict") or "", *([advice] if isinstance(advice, str) else map(str, advice))]
        if record.get("type") == "variance" and record["id"] in ids:
            said.append(record.get("evidence") or "")
    return " | ".join(dict.fromkeys(s for s in said if s))


def run_job(directory, options, ranks, disturb=None):
    program = PROGRAMS["kernels3"]
    with shielded(options) as groups, Jobs(directory) as jobs:
        daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern())
        job = program.start(jobs, groups, directory, directory, ranks=ranks, seconds=SECONDS)
        pids = ranks_of(job, program, ranks)
        one = None
        if disturb:
            time.sleep(AT)
            one = disturb(jobs, pids[1])
        if jobs.wait(job, SECONDS + 60):
            raise RuntimeError("kernels3 failed: " + job.err().strip()[-300:])
        end_vaprod(jobs, daemon)
    return t.load_records(ndjson), one


def stopped(jobs, pid):
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic_ns()
    try:
        time.sleep(LENGTH)
    finally:
        end = time.monotonic_ns()
        os.kill(pid, signal.SIGCONT)
    return begin, end


def traced(jobs, pid):
    """A debugger attaches, waits for a while, and detaches."""
    begin = time.monotonic_ns()
    code, job = jobs.run(["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-solib-add off", "-p", pid, "-ex",
                          f"shell sleep {LENGTH}", "-ex", "detach"], "gdb", 60)
    if code:
        raise RuntimeError("gdb failed: " + job.err().strip()[-300:])
    return begin, time.monotonic_ns()


def judge_stop(records, one, word):
    """Rows of a run in which rank 1 was stopped from one[0] to one[1]."""
    where = {"kind": "stop", "rank": 1, "ranks": [0, 1], "tids": [], "begin": one[0], "end": one[1], "lost_s": None}
    variances = [v for v in score.variances_of(records) if score.meets(v, where)]
    mine = [v for v in variances if v["alarm"] and score.at_place(v, where)]
    said = texts_of(records, {v["id"] for v in mine})
    majors = sorted({name for v in mine for name in v["majors"]})
    # the debugger takes the CPU itself while it starts, under our name until it has called exec(), and reads symbols
    with open("/proc/self/comm", encoding="utf-8") as file:
        debugger = {"gdb", file.read().strip()}
    blamed = [v["id"] for v in variances if v["alarm"] and v["ranks"] == [0] and v["effect_of"] is None and not debugger & set(v["interferers"])]
    return [t.row("rank and factor", f"{'rank 1' if mine else 'no alarm of rank 1'}; {', '.join(majors) or 'none'}", "rank 1; stopped",
                  bool(mine) and "stopped" in majors),
            t.row("the sentence", said[:160] or "none", f"says {word}", bool(re.search(word, said, re.I))),
            t.row("alarms that blame rank 0", len(blamed), 0, not blamed)]


def judge_oversubscribed(records, pids_of_job):
    said = " ".join(str(r.get("verdict", "")) + " " + str(r.get("advice", "")) for r in of_type(records, "diagnosis"))
    warnings = " ".join(w["text"] for w in of_type(records, "warning"))
    moved = [m for m in re.findall(r"([\w-]+) \(pid (\d+)\)[^|.]*?move or stop", said) if int(m[1]) in pids_of_job]
    return [t.row("says that it is oversubscribed", "yes" if re.search("oversubscri", said + warnings, re.I) else "no", "yes",
                  bool(re.search("oversubscri", said + warnings, re.I))),
            t.row("advice to move or stop its own ranks", len(moved), 0, not moved)]


def units(options):
    def oversubscribed(directory, progress):
        records, _ = run_job(directory, options, 2 * CPUS)
        pids = {r["pid"] for r in of_type(records, "process")}
        return {"rows": judge_oversubscribed(records, pids)}

    def stop(directory, progress):
        return {"rows": judge_stop(*run_job(directory, options, 2, stopped), "stop")}

    def debug(directory, progress):
        return {"rows": judge_stop(*run_job(directory, options, 2, traced), "trac|debug|stop")}
    return [Unit("oversubscribed", "job", SECONDS + 20, oversubscribed), Unit("stopped_rank", "job", SECONDS + 15, stop),
            Unit("debugger", "job", SECONDS + 15, debug)]


def table(joined, left):
    return rows_of_units(joined, left)
