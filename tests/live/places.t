#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as users run them: late and linked-in MPI, namespaces, removed files, children, many processes at once."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, j, library, main, of_type, rank_pids, ready_pid, records, select, tool, until  # noqa: E402

LIBRARY = library("libmpi.so.40")
FAST = ["--window", "1.5"]  # a window's end, where what has ended is released, every second


def processes(out, state=None):
    return [r for r in of_type(records(out), "process") if state in (None, r["state"])]


def started(out):
    until(lambda: os.path.exists(out) and records(out), 20)


def copy(source, directory, name=None):
    where = os.path.join(directory, name or os.path.basename(source))
    shutil.copy(source, where + ".new")
    os.rename(where + ".new", where)
    return where


def host_pid(program):
    """The only process of the node that runs this executable."""
    def look():
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/exe").removesuffix(" (deleted)") == program:
                    return int(entry)
            except OSError:
                pass
        return None
    return until(look, 20)


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def maps_mpi(record):
    return any("libmpi" in image["path"] for image in record["images"])


def test_late_mpi(tap, jobs):
    program = copy(tool("late_mpi"), jobs.directory)
    by_name, by_pid = (os.path.join(jobs.directory, name + ".ndjson") for name in ("exe", "pid"))
    first = jobs.start([VAPROD, "--exe", program, "--output", by_name, "--io", "off"], "vaprod_exe")
    started(by_name)
    signal_file = os.path.join(jobs.directory, "attached")
    late = jobs.start([program, "--seconds", "2"], "late_mpi", env={"VAPRO_GO": signal_file})
    pid = ready_pid(late)
    second = jobs.start([VAPROD, "--pid", pid, "--output", by_pid, "--io", "off"], "vaprod_pid")
    until(lambda: os.path.exists(by_pid) and processes(by_pid, "attached"), 30)
    touch(signal_file)
    tap.equal(jobs.wait(late, 30), 0, "a program that opens MPI late ends well")
    tap.equal(jobs.wait(second, 20), 0, "vaprod ends with it")
    tap.equal([maps_mpi(r) for r in processes(by_pid, "attached")], [False, True], "by number: attached at once, and when MPI came")
    tap.ok(processes(by_pid)[-1]["hits"] > 50, "its calls are seen", processes(by_pid)[-1])
    until(lambda: processes(by_name, "exited"), 10)
    tap.equal([(r["pid"], maps_mpi(r)) for r in processes(by_name, "attached")], [(pid, True)], "by name: attached when MPI came")
    tap.ok(processes(by_name)[-1]["hits"] > 50, "its calls are seen", processes(by_name)[-1])
    tap.equal(jobs.interrupt(first, 10), 0, "vaprod ends well")


def test_linked_in(tap, jobs):
    program = copy(tool("static_mpi"), jobs.directory)
    stripped = os.path.join(jobs.directory, "stripped_mpi")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--exe", stripped, "--output", out, "--io", "off"], "vaprod")
    started(out)
    slurm = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "2", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}
    bare = jobs.start([stripped, "--rate", "100", "--seconds", "1"], "stripped")
    job = jobs.start([program, "--rate", "200", "--seconds", "4"], "static_mpi", env=slurm)
    tap.equal(jobs.wait(job, 30), 0, "a program with MPI linked in ends well")
    tap.equal(jobs.wait(bare, 30), 0, "a program without symbols ends well")
    reported = until(lambda: processes(out, "exited"), 10) or [{}]
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    tap.ok(reported[0].get("hits", 0) > 200 and reported[0]["images"][0]["path"] == program, "its own functions are probed", reported)
    tap.equal((reported[0]["rank"], reported[0]["world_size"], reported[0]["job"]["kind"], reported[0]["job"]["id"], reported[0]["job"]["step"]),
              (3, 8, "slurm", "4711", "2"), "Slurm's names are reported")
    tap.equal(len(processes(out, "attached")), 1, "a program without symbols is not attached")


# Runs in a namespace of processes and one of mounts: $1 kind of file system, $2 directory, $3 program's name.
INSIDE = """
set -e
if [ $1 = tmpfs ]; then
	mount -t tmpfs none $2/$1
else
	mount -t tmpfs none $2/upper
	mkdir $2/upper/up $2/upper/work
	mount -t overlay -o lowerdir=$2/lower,upperdir=$2/upper/up,workdir=$2/upper/work none $2/$1
fi
cp $2/lower/* $2/$1/ 2>/dev/null || true
LD_LIBRARY_PATH=$2/$1 $2/$1/$3 --rate 200 --seconds 4 --delay 1 >$2/$1/said &
until grep -q ready $2/$1/said; do sleep 0.1; done
cat $2/$1/said
rm $2/$1/$3
wait $!
echo ended
for i in $(seq 40); do
	umount $2/$1 2>/dev/null && echo umounted && break
	sleep 0.3
done
"""


def test_namespaces(tap, jobs):
    directory = jobs.directory
    for name in ("lower", "upper", "tmpfs", "overlay"):
        os.makedirs(os.path.join(directory, name), exist_ok=True)
    lower = os.path.join(directory, "lower")
    copy(LIBRARY, lower, "libmpi.so.40")
    out = os.path.join(directory, "out.ndjson")
    kinds = {kind: os.path.join(directory, kind, "in_" + kind) for kind in ("tmpfs", "overlay")}
    for kind in kinds:
        copy(tool("flat_out"), lower, "in_" + kind)
    daemon = jobs.start([VAPROD, *(word for path in kinds.values() for word in ("--exe", path)), "--output", out, "--io", "off"],
                        "vaprod")
    started(out)
    running = {kind: jobs.start(["unshare", "-pfm", "--mount-proc", "sh", "-c", INSIDE, "sh", kind, directory,
                                 os.path.basename(path)], kind) for kind, path in kinds.items()}
    pids = {kind: host_pid(path) for kind, path in kinds.items()}
    for kind, job in running.items():
        tap.equal(jobs.wait(job, 40), 0, f"{kind}: a program in its own namespaces ends well")
        tap.ok("umounted" in job.out(), f"{kind}: its file system can be unmounted while vaprod runs", job.out() + job.err())
        tap.ok(pids[kind] and f'"pid":{pids[kind]}' not in job.out(),
               f"{kind}: the program has another pid in its namespace", job.out())
        reported = until(lambda pid=pids[kind]: {r["pid"]: r for r in processes(out, "exited")}.get(pid), 5)
        tap.ok(reported and reported["hits"] > 200, f"{kind}: it is reported with the host's number, and its calls are seen", reported)
        tap.ok(reported and reported["images"][0]["path"].startswith(os.path.join(directory, kind)),
               f"{kind}: its own library is probed", reported)
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")


def test_files_go_away(tap, jobs):
    directory = jobs.directory
    library = os.path.join(directory, "lib")
    os.makedirs(library, exist_ok=True)
    mpi = copy(LIBRARY, library, "libmpi.so.40")
    names = ("before", "after", "stripped")
    program = {name: copy(tool("flat_out"), directory, name) for name in names}
    subprocess.run(["strip", program["stripped"]], check=True)
    env = {"LD_LIBRARY_PATH": library}

    def start(name):
        job = jobs.start([program[name], "--rate", "200", "--seconds", "4", "--delay", "1"], name, env=env)
        return job, ready_pid(job)

    running = {"before": start("before")}
    old = os.stat(mpi).st_ino
    copy(LIBRARY, library, "libmpi.so.40")  # as the upgrade of a package does: a new file has the name
    os.unlink(program["before"])
    running["after"], running["stripped"] = start("after"), start("stripped")
    tap.ok(os.stat(mpi).st_ino != old, "the library was replaced while in use")
    out = os.path.join(directory, "out.ndjson")
    daemon = jobs.start([VAPROD, *(word for name in names for word in ("--exe", program[name])), "--output", out, "--io", "off"],
                        "vaprod")
    for name, (job, pid) in running.items():
        tap.equal(jobs.wait(job, 30), 0, f"{name}: the program ends well")
        reported = until(lambda pid=pid: [r for r in processes(out, "exited") if r["pid"] == pid], 5)
        tap.ok(reported and reported[0]["hits"] > 100, f"{name}: its calls are seen", reported or processes(out))
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    with_sites = of_type(records(out), "window")
    tap.equal(len({w["job"] for w in with_sites}), 3, "three jobs, each with windows of its own")


def test_children_and_exec(tap, jobs):
    program = copy(tool("late_mpi"), jobs.directory)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off"], "vaprod")
    started(out)
    signal_file = os.path.join(jobs.directory, "attached")
    waiting = f"while [ ! -e {signal_file} ]; do sleep 0.1; done"
    shell = jobs.start(["sh", "-c", f"{waiting}; exec {program} --delay 0 --seconds 3"], "shell")
    named = os.path.join(jobs.directory, "named.ndjson")
    by_pid = jobs.start([VAPROD, "--pid", shell.pid, "--output", named, "--io", "off"], "vaprod_pid")
    until(lambda: os.path.exists(named) and processes(named, "attached"), 30)
    touch(signal_file)
    rank = jobs.start(j.mpirun(1, program, "--delay", "0.2", "--seconds", "3", "--fork-calls"), "fork")
    tap.equal(jobs.wait(rank, 40), 0, "a rank that forks ends well")
    child = int(re.search(r'"child":(\d+)', rank.out()).group(1))
    parent = int(re.search(r'"pid":(\d+)', rank.out()).group(1))
    tap.equal(jobs.wait(shell, 40), 0, "a shell that execs a program ends well")
    tap.equal(jobs.wait(by_pid, 20), 0, "vaprod ends with it")
    until(lambda: parent in {r["pid"] for r in processes(out, "exited")}, 10)
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    states = {(r["pid"], r["state"]) for r in processes(out)}
    tap.ok((child, "attached") not in states, "the child of a rank is not attached as a rank", states)
    tap.ok((parent, "exited") in states, "the rank is watched to its end", states)
    calls = int(re.search(r'"calls":(\d+)', rank.out()).group(1))
    hits = [r["hits"] for r in processes(out, "exited") if r["pid"] == parent]
    tap.ok(hits and calls / 2 < hits[0] <= calls + 1, "only the calls of the rank are counted", (calls, hits))
    reported = processes(named)
    tap.equal([r["state"] for r in reported], ["attached", "exited", "attached", "exited"],
              "exec: the new program under the same pid is attached again")
    tap.ok(reported[-1]["hits"] > 100 and reported[-1]["exe"] == program, "the calls of the new program are seen", reported[-1])


def test_two_jobs(tap, jobs):
    out = os.path.join(jobs.directory, "out.ndjson")
    programs = []
    for name in ("one", "two"):
        logs = os.path.join(jobs.directory, name)
        shutil.rmtree(logs, ignore_errors=True)
        os.makedirs(logs)
        job = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", "6", "--log", logs, "--scratch", logs), name)
        programs.append((job, rank_pids(job, logs, 2)))
    pids = [pid for _, found in programs for pid in found]
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--io", "off", *FAST], "vaprod")
    attached(out, pids)
    for job, _ in programs:
        tap.equal(jobs.wait(job, 40), 0, f"job {job.name} ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with them")
    lines = records(out)
    identity = {r["pid"]: r["job"]["identity"] for r in of_type(lines, "process")}
    names = [{identity[pid] for pid in found} for _, found in programs]
    tap.ok(all(len(n) == 1 for n in names) and names[0] != names[1], "each job has its own identity", names)
    reported = {name: [w["ranks"] for w in of_type(lines, "window") if w["job"] == name and w["fragments"]] for n in names for name in n}
    tap.ok(all(ranks and set(ranks) == {"0-1"} for ranks in reported.values()),
           "each job has windows with its two ranks", reported)


def reuse(pid, command, **more):
    """Starts a process with a given pid, which must be unused."""
    for _ in range(40):
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(pid - 1))
        process = subprocess.Popen(command, **more)
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    return None


def test_number_is_used_again(tap, jobs):
    program = copy(tool("flat_out"), jobs.directory)
    out, named = (os.path.join(jobs.directory, name + ".ndjson") for name in ("out", "named"))
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off", *FAST], "vaprod")
    started(out)
    first = jobs.start([program, "--rate", "200", "--seconds", "3"], "first")
    by_pid = jobs.start([VAPROD, "--pid", first.pid, "--output", named, "--io", "off"], "vaprod_pid")
    tap.equal(jobs.wait(first, 30), 0, "the first program ends well")
    until(lambda: processes(out, "exited"), 10)
    second = reuse(first.pid, [program, "--rate", "200", "--seconds", "4"], stdout=subprocess.DEVNULL)
    tap.ok(second is not None, "another process has the pid of the first program")
    if second:
        tap.equal(second.wait(30), 0, "the second program ends well")
        until(lambda: len(processes(out, "exited")) > 1, 10)
    tap.equal(jobs.wait(by_pid, 20), 0, "a vaprod with the pid of the first program ends with it")
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    reported = processes(out, "exited")
    tap.equal([r["pid"] for r in reported], [first.pid] * 2, "both are reported")
    tap.ok(len({r["start_time"] for r in reported}) == 2 and all(r["hits"] > 100 for r in reported),
           "each program has its own start and calls", reported)
    tap.equal(len(processes(named, "attached")), 1, "by pid only the first program is attached")


def test_many_ranks_beside_a_stranger(tap, jobs):
    ranks = 24
    program = copy(tool("sleepers"), jobs.directory)
    stranger = jobs.start([copy(tool("flat_out"), jobs.directory, "stranger"), "--rate", "10", "--seconds", "24"], "stranger")
    ready_pid(stranger)
    out = os.path.join(jobs.directory, "out.ndjson")
    daemon = jobs.start([VAPROD, "--exe", program, "--output", out, "--io", "off", *FAST], "vaprod")
    started(out)
    job = jobs.start(j.mpirun(ranks, program, "--seconds", "10", "--period", "0.5"), "sleepers")
    tap.equal(jobs.wait(job, 60), 0, f"a job of {ranks} ranks ends well")
    until(lambda: len(processes(out, "exited")) >= ranks, 10)
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    reported = processes(out)
    tap.equal(sorted({r["rank"] for r in reported if r["state"] == "attached"}), list(range(ranks)), "all ranks are attached")
    tap.equal([r["reason"] for r in reported if r["state"] == "refused"], [], "none is refused")
    hits = [(r["rank"], r["pid"], r["hits"]) for r in reported if r["state"] == "exited"]
    # MPI_Init, a barrier, a broadcast, 20 barriers, MPI_Finalize; the first seconds' may come before the probes do,
    # and while one link for all replaces those of each process a call may meet both, and neither counts it
    tap.ok(hits and min(h for _, _, h in hits) >= 8 and max(h for _, _, h in hits) <= 28, "each call is seen once", hits)


def bpftool(verb, table):
    done = subprocess.run(["bpftool", "-j", "map", verb, "id", table], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def entries(pid):
    """{name: entries} of the kernel tables of a vaprod that hold something per process."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
                match = re.search(r"^map_id:\s*(\d+)", file.read(), re.M)
        except OSError:  # closed meanwhile
            continue
        if not match:
            continue
        table = bpftool("show", match.group(1))["name"]
        if table in ("processes", "handles", "io_sites", "vertices", "edges"):
            found[table] = len(bpftool("dump", match.group(1)))
    return found


def footprint(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        memory = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
    return len(os.listdir(f"/proc/{pid}/fd")), memory, entries(pid)


def start_many(count, command, env):
    """Runs short processes, 40 at a time."""
    running = []
    for _ in range(count):
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if len(running) >= 40:
            running.pop(0).wait()
    for process in running:
        process.wait()


def test_many_processes(tap, jobs):
    brief = copy("/bin/sleep", jobs.directory, "brief")
    out = os.path.join(jobs.directory, "out.ndjson")
    # no data is retained for queries, since it would grow for a minute
    demo_mpi = copy(tool("demo_mpi"), jobs.directory)
    daemon = jobs.start([VAPROD, "--exe", demo_mpi, "--exe", brief, "--output", out, "--io", "off", "--keep", "0", *FAST],
                        "vaprod")
    started(out)
    program = jobs.start(j.mpirun(2, demo_mpi, "--seconds", "36", "--log", jobs.directory, "--scratch", jobs.directory),
                         "demo_mpi")
    pids = rank_pids(program, jobs.directory, 2)
    attached(out, pids)
    plain, with_mpi = dict(os.environ), dict(os.environ, LD_PRELOAD=LIBRARY)
    start_many(350, [brief, "0.05"], plain)  # what so many processes need is allocated once
    start_many(400, [brief, "0.05"], with_mpi)
    time.sleep(2.5)
    before = footprint(daemon.pid)
    for _ in range(2):
        start_many(350, [brief, "0.05"], plain)
        start_many(100, [brief, "0.05"], with_mpi)
    time.sleep(2.5)
    # links may be closed and opened meanwhile: a descriptor of each process would be hundreds
    until(lambda: footprint(daemon.pid)[0] <= before[0] + 16, 10)
    after = footprint(daemon.pid)
    tap.equal(jobs.wait(program, 60), 0, "the job ends well")
    until(lambda: set(pids) <= {r["pid"] for r in processes(out, "exited")}, 10)
    tap.equal(jobs.interrupt(daemon, 10), 0, "vaprod ends well")
    reported = processes(out)
    ours = [r for r in reported if r["pid"] in pids]
    tap.equal(sorted(r["state"] for r in ours), ["attached"] * 2 + ["exited"] * 2, "the job's ranks are watched from begin to end")
    brief_ones = {r["pid"] for r in reported if r["pid"] not in pids and r["state"] == "attached"}
    gone = {r["pid"] for r in reported if r["pid"] not in pids and r["state"] == "exited"}
    short = [w for w in of_type(records(out), "warning") if w["code"] == "too_short"]
    tap.ok((brief_ones or short) and brief_ones == gone,
           "of the brief ones that have MPI, those that were attached were detached, or they were too short", len(brief_ones))
    tap.ok(after[0] <= before[0] + 16, "no descriptor is left of 1000 brief processes", (before, after))
    tap.ok(after[1] < before[1] + 8192, "memory has grown by less than 8 MiB", (before, after))
    tap.ok(after[2].get("processes") == before[2].get("processes") == 2,
           "the kernel side's table has the job's processes only", (before, after))
    tap.ok(all(after[2][name] <= before[2][name] for name in ("handles", "io_sites")),
           "the kernel side's tables of handles and IO sites have not grown", (before, after))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(143))
    tests = (test_late_mpi, test_linked_in, test_namespaces, test_files_go_away, test_children_and_exec, test_two_jobs,
             test_number_is_used_again,
             test_many_ranks_beside_a_stranger, test_many_processes)
    main(*(test for test in tests if not sys.argv[1:] or test.__name__ in sys.argv[1:]), held=False)
