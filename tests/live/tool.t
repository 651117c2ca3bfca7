#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Command lines, exit codes, captures, and messages about bad input."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, j, main, of_type, rank_pids, records, select, tool  # noqa: E402


def free_pid():
    with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
        pid = int(file.read()) - 1
    while os.path.exists(f"/proc/{pid}"):
        pid -= 1
    return pid


def test_usage(tap, jobs):
    for command in ([VAPROD, "--help"], [VAPRO, "--help"], [VAPRO, "run", "--help"], [VAPRO, "analyze", "--help"],
                    [VAPRO, "view", "--help"], [VAPRO, "stg", "--help"], [VAPRO, "check", "--help"]):
        code, job = jobs.run(command, "help", 10)
        tap.ok(code == 0 and "Usage:" in job.out(), " ".join(map(os.path.basename, command)), job.err())
    for words, named in ((["--frobnicate"], "--frobnicate"), (["--pid", "x1"], "x1"), (["--window", "0"], "window"),
                         (["--overhead-cap", "lots"], "lots"), (["--io", "maybe"], "maybe"), (["--duration", "-1"], "-1"),
                         (["--workload", "1/instructions"], "instructions"), (["--cpus", "a-b"], "a-b"), (["stray"], "stray"), (["--config", "/nonexistent"], "/nonexistent")):
        code, job = jobs.run([VAPROD, *words], "usage", 10)
        tap.ok(code == 2 and named in job.err(), "vaprod " + " ".join(words) + " is refused", f"{code} {job.err()}")


def test_judges(tap, jobs):
    """The judges of make accept and make accuracy find the faults of made-up runs."""
    for command in (["truth.py", "self-test"], ["accuracy_live.py", "--self-test"]):
        code, job = jobs.run(["/usr/bin/python3", os.path.join(ROOT, "tools", command[0]), command[1]], command[0], 60)
        tap.equal(code, 0, f"{command[0]} passes its self-test")


def test_bad_targets(tap, jobs):
    pid = free_pid()
    code, job = jobs.run([VAPROD, "--pid", pid, "--duration", "1"], "unknown", 20)
    tap.ok(code == 1 and str(pid) in job.err() and not job.out(), "an unknown process is named, and nothing starts", f"{code} {job.err()}")
    code, job = jobs.run([VAPROD, "--pid", os.getpid(), "--duration", "0.3"], "no_mpi", 30)
    tap.ok(code == 0 and "maps no MPI library" in job.err() and "ranks" in job.err(), "a process without MPI is reported on standard error",
           f"{code} {job.err()}")
    code, job = jobs.run([VAPROD, "--exe", "no-such-*", "--duration", "0.3", "--fail-on", "info"], "nothing", 30)
    tap.ok(code == 5 and "matches --exe" in job.err() and "nothing was watched" in job.err(), "--fail-on: nothing was watched",
           f"{code} {job.err()}")
    copy = f"/tmp/vapro-test-{os.getpid()}"
    shutil.copy(VAPROD, copy)
    os.chmod(copy, 0o755)
    try:
        code, job = jobs.run([copy, "--duration", "1"], "unprivileged", 20, user=65534, cwd="/")
    finally:
        os.unlink(copy)
    tap.ok(code == 3 and "root" in job.err(), "missing privileges are reported, exit code 3", f"{code} {job.err()}")


def test_capture_replays(tap, jobs):
    program = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 9, "--log", jobs.directory, "--scratch", jobs.directory,
                                  "--bind"), "demo_mpi")
    pids = rank_pids(program, jobs.directory, 2)
    out, capture, again = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture", "again.ndjson"))
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--window", "3"], "vaprod")
    attached(out, pids)
    tap.equal(jobs.wait(program, 30), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its targets")
    code, job = jobs.run([VAPRO, "analyze", capture, "--output", again], "analyze", 30)
    tap.equal(code, 0, "the capture is analysed " + job.err())

    def lines(path):
        return [{k: v for k, v in r.items() if not (k == "time" and r["type"] in ("hello", "bye"))} for r in records(path)]
    tap.ok(len(of_type(records(out), "window")) >= 3, "the output holds windows")
    tap.equal(lines(again), lines(out), "replayed lines equal the live ones")
    with open(capture, "rb") as file:
        data = file.read()
    cut = os.path.join(jobs.directory, "cut.capture")
    with open(cut, "wb") as file:
        file.write(data[:len(data) // 2])
    code, job = jobs.run([VAPRO, "analyze", cut], "cut", 30)
    tap.ok(code == 1 and "cut.capture" in job.err() and '"window"' in job.out(),
           "a truncated capture is reported and analysed up to its end",
           f"{code} {job.err()}")
    code, job = jobs.run([VAPRO, "view", out, "--color=never"], "view", 30)
    tap.ok(code == 0 and "computation" in job.out(), "vapro view draws it", f"{code} {job.err()}")


def test_run(tap, jobs):
    out = os.path.join(jobs.directory, "out.ndjson")
    code, job = jobs.run([VAPRO, "run", "--output", out, "--", *j.mpirun(2, tool("demo_mpi"), "--seconds", 5, "--log",
                          jobs.directory, "--scratch", jobs.directory, "--bind")], "run", 60)
    tap.equal(code, 0, "vapro run gives the command's exit code")
    tap.equal({r["rank"] for r in of_type(records(out), "process") if r["state"] == "attached"}, {0, 1}, "both ranks were found")
    tap.ok("overhead" in job.err() and "judged" in job.err(), "the output ends with a summary", job.err())
    code, job = jobs.run([VAPRO, "run", "--", "true"], "true", 30)
    tap.ok(code == 0 and "none mapped an MPI library" in job.err() and "--exe" in job.err(), "a command without MPI: why nothing was watched",
           f"{code} {job.err()}")
    code, job = jobs.run([VAPRO, "run", "--fail-on", "info", "--", "true"], "true", 30)
    tap.equal(code, 5, "--fail-on of a command without MPI gives 5")
    code, job = jobs.run([VAPRO, "run", "--fail-on", "info", "--", "sh", "-c", "exit 7"], "seven", 30)
    tap.equal(code, 7, "the exit code of a command that fails comes first")
    code, job = jobs.run([VAPRO, "run", "--", "sh", "-c", "exit 7"], "seven", 30)
    tap.equal(code, 7, "vapro run gives the exit code 7 of its command")
    code, job = jobs.run([VAPRO, "run", "--", "/nonexistent/program"], "none", 30)
    tap.ok(code == 127 and "/nonexistent/program" in job.err(), "a command that is not there is named", f"{code} {job.err()}")


def test_ndjson(tap, jobs):
    good = ('{"rank":%d,"thread":0,"class":"computation","from":"a@1+0x1","to":"a@1+0x2","start_ns":%d,'
            '"duration_ns":52000,"workload":{"instructions":100000}}\n')
    path = os.path.join(jobs.directory, "lines.ndjson")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(2000):
            file.write(good % (i % 2, 1000 + i * 60000))
            if i == 7:
                file.write('{"rank":0,\n')
    code, job = jobs.run([VAPRO, "analyze", "--format", "ndjson", path], "ndjson", 30)
    tap.ok(code == 0 and "9" in job.err(), "a bad line is reported by number and refused", f"{code} {job.err()}")
    tap.ok('"window"' in job.out(), "the good lines are analysed")
    code, job = jobs.run([VAPRO, "analyze", "--format", "ndjson", "--strict", path], "strict", 30)
    tap.equal(code, 1, "--strict ends at the bad line")
    hosts = [os.path.join(jobs.directory, f"host{i}.ndjson") for i in range(2)]
    for rank, name in enumerate(hosts):
        with open(name, "w", encoding="utf-8") as file:
            for i in range(1000):
                line = json.loads(good % (rank, 1000 + i * 60000))
                line["workload"] = {"instructions": 100000 * (1 + i % 2), "loads": 5000}
                file.write(json.dumps(line) + "\n")
    for name, options in ("hosts", []), ("larger", ["--workload", "instructions,1/loads"]):
        code, job = jobs.run([VAPRO, "analyze", "--format", "ndjson", *options, *hosts], name, 30)
        tap.ok(code == 0 and '"ranks":"0-1"' in job.out(), f"files of two hosts are one job, {options}", f"{code} {job.err()}")
    code, job = jobs.run([VAPRO, "analyze", "--format", "ndjson", "--workload", "instructions,1/loads,1/hits", *hosts], "stray", 30)
    tap.ok(code == 2 and "'hits'" in job.err(), "a count that is in no line is named", f"{code} {job.err()}")


def test_check(tap, jobs):
    code, job = jobs.run([VAPRO, "check"], "check", 60)
    tap.equal(code, 0, "vapro check: this machine is sufficient")
    tap.ok("attach by session" in job.out() and "instruction counter" in job.out(), "it shows what is there", job.out())
    code, job = jobs.run([VAPRO, "check", "--json"], "check", 60)
    found = json.loads(job.out())
    tap.equal((code, found["schema"], found["can_run"]), (0, "vapro-check/1", True), "vapro check --json")
    tap.ok({"lockdown", "perf_event_paranoid", "ptrace_scope", "unprivileged BPF", "seccomp", "cgroup", "BTF"} <=
           {row["name"] for row in found["needs"]}, "it has what the kernel permits", found["needs"])
    tap.equal([row["state"] for row in found["improves"] if row["name"] == "disk space" and "GiB free in the current folder" in row["detail"]],
              ["yes" if shutil.disk_usage(".").free >= 2**30 else "no"], "it has the disk's room")
    tap.equal([c["name"] for c in found["capabilities"] if c["missing"]], [], "it has the capabilities, of which none is missing")


def test_capabilities(tap, jobs):
    """Root without the capability to trace other processes: vaprod warns, since it would see no process."""
    out = os.path.join(jobs.directory, "out.ndjson")
    less = ["setpriv", "--bounding-set=-sys_ptrace"]
    code, job = jobs.run([*less, VAPROD, "--exe", "no-such-*", "--duration", "0.3", "--output", out], "vaprod", 30, add=True)
    warnings = of_type(records(out), "warning")
    tap.ok(any(w["code"] == "missing_capability" and "CAP_SYS_PTRACE" in w["text"] for w in warnings),
           "vaprod names the missing capability",
           f"{code} {job.err()}")
    code, job = jobs.run([*less, VAPRO, "check"], "check", 60)
    tap.ok(code == 3 and "CAP_SYS_PTRACE" in job.out(), "vapro check names the missing capability", f"{code} {job.out()}")
    code, job = jobs.run([*less, VAPRO, "check", "--json"], "check", 60)
    tap.equal((code, [c["name"] for c in json.loads(job.out())["capabilities"] if c["missing"]]), (3, ["CAP_SYS_PTRACE"]),
              "so does vapro check --json")
    code, job = jobs.run([VAPROD, "--exe", "no-such-*", "--duration", "0.3", "--output", out], "all", 30)
    tap.equal([w for w in of_type(records(out), "warning") if w["code"] == "missing_capability"], [],
              "with all capabilities there is no warning")


main(test_usage, test_judges, test_bad_targets, test_capture_replays, test_run, test_ndjson, test_check, test_capabilities)
