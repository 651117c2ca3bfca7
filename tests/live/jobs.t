#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Jobs of two users leave each their owner a report: its files, names and rights; users find theirs without root."""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, main, of_type, records, select, tool, until  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))
ANN, BOB, EVE = 65533, 65532, 65531
FILES = {".html", ".ndjson", ".txt"}
# as ProtectProc=invisible of the unit: processes without CAP_SYS_PTRACE see their own only
HIDDEN = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=invisible proc /proc; exec "$0" "$@"']


def listed(folder):
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def start(jobs, home, user, job, name, seconds, more=()):
    """A program of a user in an environment as Slurm makes it."""
    variables = [f"SLURM_JOB_ID={job}", f"SLURM_JOB_NAME={name}", "SLURM_JOB_ACCOUNT=phys", "SLURM_JOB_PARTITION=main",
                 "SLURM_JOB_NUM_NODES=1", "SLURM_PROCID=0", "SLURM_STEP_ID=0", *more]
    return jobs.start(["/usr/bin/env", *variables, os.path.join(home, "crew"), "--seconds", str(seconds)], f"crew{job}", user=user, cwd=home)




def test_jobs(tap, jobs):
    where, home, left = (f"/tmp/vapro-jobs-{os.getpid()}{end}" for end in ("/", "-home", "-reports"))
    for folder in (where, home, left):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(home)
    os.chmod(home, 0o755)
    for file in (VAPRO, tool("crew"), tool("hog")):
        shutil.copy(file, home)
        os.chmod(os.path.join(home, os.path.basename(file)), 0o755)
    vapro, out = os.path.join(home, "vapro"), os.path.join(jobs.directory, "out.ndjson")
    ann = start(jobs, home, ANN, 9999701, "heat\x1b[31m", 90)
    bob = start(jobs, home, BOB, 9999702, "cool", 200)
    off = start(jobs, home, ANN, 9999703, "off", 90, ["VAPRO=off"])
    arguments = [VAPROD, *select([ann.pid, bob.pid]), "--output", out, "--socket", where, "--job-reports", left]
    daemon = jobs.start([*HIDDEN, *arguments], "vaprod")
    attached(out, [ann.pid, bob.pid])
    hog = jobs.start([os.path.join(home, "hog"), "--cpu", str(CPUS[0]), "--start-after", "3", "--seconds", "20"], "hog", user=EVE, cwd=home)

    # names in records
    names = [line["job"].get("names") for line in of_type(records(out), "process") if line["pid"] == ann.pid]
    tap.equal(names[:1], [{"name": "heat?[31m", "account": "phys", "partition": "main", "nodes": 1, "source": "environment"}],
              "a process record has the names of its job, harmless, and says that a user chose them")
    tap.ok(until(lambda: any("names" in line for line in of_type(records(out), "window")), 30), "so does a window")
    tap.ok(off.pid not in {line["pid"] for line in of_type(records(out), "process")}, "VAPRO=off leaves a job alone")
    code, shown = jobs.run([VAPRO, "top", "--once", "--socket", where], "top", 30)
    tap.ok(code == 0 and "cool (slurm 9999702.0)" in shown.out(), "top shows the name before the identity", shown.out() + shown.err())
    code, own = jobs.run([vapro, "diagnose", "--socket", where, "--job", "9999702", "--json", "all@.."], "diagnose", 60, user=BOB, cwd="/")
    found = {line["job"] for line in map(json.loads, own.out().splitlines())}
    tap.ok(code == 0 and found <= {"slurm:9999702.0"}, "a user's diagnosis is of the user's own job", own.out()[:300] + own.err())
    code, other = jobs.run([vapro, "diagnose", "--socket", where, "--job", "9999702", "all@.."], "foreign", 60, user=ANN, cwd="/")
    tap.ok("9999702.0" not in other.out() + other.err() and code != 0, "that of another user is not shown", other.out()[:300] + other.err())

    code, run = jobs.run([vapro, "run", "--socket", where, "--", "/bin/sh", "-c", "exit 9"], "run", 30, user=BOB, cwd="/")
    tap.ok(code == 9 and "without root" in run.err() and "the vaprod of this node" in run.err(), "vapro run without root leaves it to this vaprod", run.err())

    # the end of a job
    ended = time.time() + 60
    tap.equal(jobs.wait(ann, 120), 0, "a job ends")
    ended = time.time()
    folder = os.path.join(left, "jobs", str(ANN))
    tap.ok(until(lambda: {os.path.splitext(name)[1] for name in listed(folder) if name[0] != "."} == FILES, 15), "it leaves three files", str(listed(folder)))
    files = [os.path.join(folder, name) for name in listed(folder)]
    first = max(os.stat(name).st_mtime for name in files)
    tap.ok(first - ended <= 10, f"within 10 s of its end: {first - ended:.1f} s", str(first - ended))
    modes = {(os.stat(name).st_uid, oct(os.stat(name).st_mode & 0o7777)) for name in files}
    status = os.stat(folder)
    tap.equal((modes, status.st_uid, oct(status.st_mode & 0o7777)), ({(ANN, "0o600")}, ANN, "0o700"), "they are the user's, and closed to others")
    tap.ok(not any(name.startswith(".") for name in listed(folder)), "and no other file stays", str(listed(folder)))
    with open(os.path.join(folder, "slurm-9999701.0.txt"), encoding="utf-8") as file:
        text = file.read().splitlines()
    tap.ok(len(text) <= 10 and text[0].startswith('crew "heat?[31m" (slurm 9999701.0'), "the text has ten lines at most, program and name first", "\n".join(text))
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), os.path.join(folder, "slurm-9999701.0.ndjson")],
                           capture_output=True, text=True, check=False)
    tap.equal((check.returncode, check.stdout[-500:] if check.returncode else ""), (0, ""), "the records are those of the schema")
    lines = records(os.path.join(folder, "slurm-9999701.0.ndjson"))
    tap.ok({line["job"] for line in of_type(lines, "window")} == {"slurm:9999701.0"} and of_type(lines, "heatmap"), "of this job alone, with its maps")
    tap.equal([line["complete"] for line in of_type(lines, "job_report")], [True], "and complete")
    tap.ok('"hog"' not in json.dumps(lines), "a task of another user has no name in them")

    # who finds it
    code, listing = jobs.run([vapro, "jobs", "--directory", left], "jobs", 30, user=ANN, cwd="/")
    tap.ok(code == 0 and "slurm-9999701.0" in listing.out() and "9999702" not in listing.out(), "its owner lists it", listing.out() + listing.err())
    code, listing = jobs.run([vapro, "jobs", "--directory", left], "others", 30, user=EVE, cwd="/")
    tap.ok(code == 0 and "9999701" not in listing.out(), "another user sees nothing", listing.out() + listing.err())
    code, denied = jobs.run(["/bin/cat", files[0]], "cat", 30, user=EVE, cwd="/")
    tap.ok(code != 0 and "Permission denied" in denied.err(), "and may not read it", denied.err())
    code, line = jobs.run([vapro, "report", "--one-line", "--job", "9999701", "--directory", left], "line", 30, user=ANN, cwd="/")
    tap.ok(code == 0 and line.out().startswith("vapro: ") and len(line.out()) <= 251 and line.out().count("\n") == 1, "the verdict is one line", line.out() + line.err())
    code, page = jobs.run([vapro, "report", "--html", "-", "--job", "slurm:9999701", "--directory", left], "page", 60, user=ANN, cwd="/")
    tap.ok(code == 0 and "<html" in page.out(), "a page is made of it by the number of the job", page.err())

    # vaprod is killed while a job runs
    os.kill(daemon.pid, 9)
    jobs.wait(daemon, 60)  # its links go first, which takes long on a busy machine
    spool = os.path.join(left, "spool")
    tap.ok(len(listed(spool)) >= 2, "a killed vaprod leaves the records of a running job", str(listed(spool)))
    jobs.interrupt(bob)
    daemon = jobs.start([VAPROD, "--exe", "no-such-program", "--output", "/dev/null", "--socket", where, "--job-reports", left], "again")
    folder = os.path.join(left, "jobs", str(BOB))
    tap.ok(until(lambda: {os.path.splitext(name)[1] for name in listed(folder) if name[0] != "."} == FILES, 30), "the next one writes its report", str(listed(folder)))
    lines = records(os.path.join(folder, "slurm-9999702.0.ndjson"))
    tap.equal([line["complete"] for line in of_type(lines, "job_report")], [False], "marked incomplete")
    jobs.stop(daemon)
    for process in (hog, off):
        jobs.stop(process)
    for folder in (where, home, left):
        shutil.rmtree(folder, ignore_errors=True)


main(test_jobs, held=False)
