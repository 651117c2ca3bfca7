# SPDX-License-Identifier: GPL-2.0-or-later
"""What the checks of `make accept` share: running vaprod on workloads, and reading what it wrote."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import truth as t  # noqa: E402
from jobs import ROOT, Jobs, TimeLimit, descendants, leaked_probes, mpirun, path, until  # noqa: E402,F401

VAPROD, VAPRO = path("vaprod"), path("vapro")
QUICK = "--quick" in sys.argv


def tool(name):
    return path("tools", name)


def scratch(*parts):
    """An empty directory below build/accept."""
    directory = path("accept", *parts)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    return directory


def repeat(times, quick):
    return quick if QUICK else times


def save(which, group, name, entry):
    """Puts one entry of group into build/WHICH/WHICH.json beside the others, with when and where it was measured."""
    where = path(which, which + ".json")
    try:
        with open(where, encoding="utf-8") as file:
            everything = json.load(file)
    except (OSError, ValueError):
        everything = {group: {}}
    uname = os.uname()
    everything.update(kernel=uname.release, machine=uname.machine, cpus=os.cpu_count())
    everything[group][name] = {"time": t.format_time(time.time_ns()), "quick": QUICK, **entry}
    with open(where + ".new", "w", encoding="utf-8") as file:
        json.dump(everything, file, indent=1)
        file.write("\n")
    os.replace(where + ".new", where)


def rows_of(rows, prefix):
    return [dict(r, what=prefix + r["what"]) for r in rows]


def pids_of(job, directory, ranks, name="truth"):
    """The pids of a workload's ranks, from the first line of their logs."""
    def look():
        if job.process.poll() is not None:
            raise RuntimeError(f"{job.name} ended at once: {job.err().strip()}")
        found = []
        for rank in range(ranks):
            try:
                with open(os.path.join(directory, f"{name}.{rank}"), encoding="utf-8") as file:
                    match = re.search(r"pid (\d+)\n", file.readline())
            except OSError:
                match = None
            if match:
                found.append(int(match.group(1)))
        return found if len(found) == ranks else None
    pids = until(look, 20)
    if not pids:
        raise RuntimeError(f"{job.name} did not start its ranks")
    return pids


def ready_pid(job):
    """The pid that a program prints as {"ready":true,"pid":P}."""
    match = until(lambda: re.search(r'"ready":true,"pid":(\d+)', job.out()), 20)
    if not match:
        raise RuntimeError(f"{job.name} did not start: {job.err().strip()}")
    return int(match.group(1))


def last_json(text):
    """The last line of a program's output that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError("no JSON in the output: " + text[-300:])


def select(pids):
    return [word for pid in pids for word in ("--pid", str(pid))]


def vaprod(jobs, name, pids, duration=None, *options, **more):
    """Starts vaprod; its NDJSON goes to NAME.ndjson of the jobs' directory, which is also returned."""
    ndjson = os.path.join(jobs.directory, name + ".ndjson")
    command = [VAPROD, *select(pids), "--output", ndjson, *options]
    if duration:
        command += ["--duration", str(duration)]
    return jobs.start(command, name, **more), ndjson


def attached(ndjson, pid):
    """Whether vaprod has reported this process."""
    try:
        return any(r.get("type") == "process" and r.get("pid") == pid for r in t.load_records(ndjson))
    except (OSError, ValueError):
        return False


def well(code, job):
    if code != 0:
        raise RuntimeError(f"{job.name} ended with {code}: {job.err().strip()[-500:]}")


def of_type(records, kind):
    return [r for r in records if r.get("type") == kind]


def window_weights(records):
    """[(window, seconds)]"""
    return [(w, (t.parse_time(w["end"]) - t.parse_time(w["begin"])) / 1e9) for w in of_type(records, "window")]


def mean_over_windows(records, value):
    pairs = [(value(w), s) for w, s in window_weights(records) if value(w) is not None]
    total = sum(s for _, s in pairs)
    return sum(v * s for v, s in pairs) / total if total else float("nan")


def overlaps(record, offset, begin, end):
    return t.parse_time(record["begin"]) - offset < end and t.parse_time(record["end"]) - offset > begin


def watch_demo(directory, hog_seconds=0, hog_after=14, watch=30):
    """One run of demo_mpi under vaprod: (records, truths, hog or None)."""
    files = os.path.join(directory, "files")
    os.makedirs(files)
    with Jobs(directory) as jobs:
        demo = jobs.start(mpirun(2, tool("demo_mpi"), "--seconds", watch + 5, "--log", directory, "--scratch", files,
                                 "--bind"), "demo_mpi")
        pids = pids_of(demo, directory, 2)
        time.sleep(1)
        daemon, ndjson = vaprod(jobs, "vapro", pids, watch)
        if hog_seconds:
            hog_log = os.path.join(directory, "hog.json")
            jobs.start([tool("hog"), "--cpu", 0, "--start-after", hog_after, "--seconds", hog_seconds, "--log", hog_log], "hog")
        well(jobs.wait(daemon, watch + 30), daemon)
        well(jobs.wait(demo, 30), demo)
    shutil.rmtree(files)
    hog = t.load_events(hog_log)[0] if hog_seconds else None
    return t.load_records(ndjson), t.load_truth(directory), hog


def lammps(steps, log):
    return mpirun(2, "lmp", "-in", os.path.join(ROOT, "tools", "lammps.in"), "-var", "steps", steps,
                  "-log", log, "-screen", "none")


def rank_pids(job, comm, ranks):
    """Pids of a job's processes of one name, when there are enough."""
    found = []
    for pid in descendants(job.pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                if file.read().strip() == comm:
                    found.append(pid)
        except OSError:
            pass
    return sorted(found) if len(found) == ranks else None


def thermo(log):
    """The thermodynamic lines of a lammps log: all numbers that are no times."""
    lines, inside = [], False
    with open(log, encoding="utf-8") as file:
        for line in file:
            if line.startswith("Step "):
                inside = True
            elif line.startswith("Loop time"):
                inside = False
            elif inside:
                lines.append(line.rstrip())
    return lines


def hpcc_input(directory, order=1000):
    """order: of the matrices, which all other sizes follow; 1000 takes less than a second, 4000 12 s."""
    with open("/usr/share/doc/hpcc/examples/_hpccinf.txt", encoding="utf-8") as file:
        text = file.read()
    # the default process grid is 2 x 2; 1 x 2 for two ranks, all else as it comes
    text = re.sub(r"^2(\s+Ps)$", r"1\1", text, flags=re.M)
    text = re.sub(r"^1000(\s+Ns)$", rf"{order}\1", text, flags=re.M)
    with open(os.path.join(directory, "hpccinf.txt"), "w", encoding="utf-8") as file:
        file.write(text)


def hpcc_result(directory):
    """{name: value} of all that is no time, and counts of the verdicts."""
    with open(os.path.join(directory, "hpccoutf.txt"), encoding="utf-8") as file:
        text = file.read()
    result = {key: value for key, value in re.findall(r"^(\w+)=(\S+)$", text, re.M)
              if re.search(r"Success|Errors|residual|_N$|_NB$|fail", key)}  # PTRANS_n is that of the fastest
    # not the lines of verdicts: those of CPU time are left out where it was 0
    for verdict in ("passed", "failed"):
        result[verdict] = sum(map(int, re.findall(rf"(\d+) tests completed and {verdict} residual checks", text)))
    return result


def attached_ranks(ndjson, name):
    records = t.load_records(ndjson)
    ranks = {r["rank"] for r in of_type(records, "process") if r.get("rank") is not None and hits_of(r)}
    fragments = sum(w["fragments"] for w in of_type(records, "window"))
    return t.row(f"{name}: ranks attached with hits, fragments", f"{sorted(ranks)}, {fragments}", "[0, 1], more than 0",
                 ranks == {0, 1} and fragments > 0)


def hits_of(record):
    """Hits of a `process` record: a number, or numbers by function."""
    hits = record.get("hits", 0)
    if isinstance(hits, dict):
        hits = sum(hits.values())
    return hits or 0


def measured(name, function):
    """The rows of a check, or one that says why it could not be measured."""
    try:
        return function()
    except (RuntimeError, OSError, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, TimeLimit,
            subprocess.SubprocessError) as error:
        with open(path("accept", name + ".error"), "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        return [t.row(f"{name} could not be measured", f"{type(error).__name__}: {error}", "a measurement", False)]
