# SPDX-License-Identifier: GPL-2.0-or-later
"""Probe sites against an independent judge, and responses to bad input. Checks sites, badinput."""
import os
import random
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402


def check_sites():
    script = os.path.join(ROOT, "tests", "sites", "compare.py")
    directory = scratch("sites")
    with Jobs(directory) as jobs:
        command = ["/usr/bin/python3", script, "--print-sites", path("tests", "print_sites")]
        older = os.path.join(ROOT, "..", "shared", "reference", "site_scan.py")
        if os.path.exists(older):
            command += ["--reference", older]
        code, job = jobs.run(command, "compare", 600, cwd=ROOT)
        lines = [line for line in (job.out() + job.err()).splitlines() if line.strip()]
    return [t.row("probe sites against the independent script", lines[-1] if lines else "no output", "agreement, exit code 0",
                  code == 0)]


def check_badinput():
    rows = []
    directory = scratch("badinput")

    def file_of(name, data):
        where = os.path.join(directory, name)
        with open(where, "wb") as file:
            file.write(data)
        return where

    def case(jobs, what, command, codes, names, limit=20, **more):
        """Runs a command that must fail in a given way and name the thing on stderr."""
        try:
            code, job = jobs.run(command, "case", limit, **more)
            err = job.err()
        except TimeLimit as error:
            code, err = "none", str(error)
        named = all(name in err for name in names)
        first = err.strip().splitlines()[-1] if err.strip() else "(nothing)"
        rows.append(t.row(what, f"{code}: {first[:110]}", f"{' or '.join(map(str, codes))}, names {', '.join(names)}",
                          code in codes and named))

    with Jobs(directory) as jobs:
        with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
            unused = int(file.read()) - 1
        while os.path.exists(f"/proc/{unused}"):
            unused -= 1
        case(jobs, "unknown PID", [VAPROD, "--pid", unused, "--duration", 2], [1], [str(unused)])
        for option, value in (("--pid", "banana"), ("--pid", "-3"), ("--window", "banana"), ("--window", "-1"),
                              ("--duration", "nan"), ("--overhead-cap", "lots"), ("--overhead-cap", "-5"), ("--io", "maybe"),
                              ("--config", "/nonexistent/vapro.conf")):
            codes = [1, 2] if option == "--config" else [2]
            case(jobs, f"option {option} {value}", [VAPROD, option, value, "--duration", 1], codes, [value])
        case(jobs, "unknown option", [VAPROD, "--frobnicate"], [2], ["--frobnicate"])
        case(jobs, "unknown command", [VAPRO, "frobnicate"], [2], ["frobnicate"])
        case(jobs, "command that does not exist", [VAPRO, "run", "--", "/nonexistent/program"], [127], ["/nonexistent/program"])

        # without privileges
        with_others = os.path.join("/tmp", f"vapro-accept-{os.getpid()}")
        shutil.copy(VAPROD, with_others)
        os.chmod(with_others, 0o755)
        try:
            case(jobs, "missing privileges", [with_others, "--output", "-", "--duration", 1], [3], ["privilege"], user=65534,
                 cwd="/")
        finally:
            os.unlink(with_others)

        # analyze
        missing = os.path.join(directory, "missing.capture")
        case(jobs, "capture that is not there", [VAPRO, "analyze", missing], [1], [missing])
        case(jobs, "capture of noise", [VAPRO, "analyze", file_of("noise.capture", random.Random(1).randbytes(50000))], [1],
             ["noise.capture"])
        case(jobs, "empty capture", [VAPRO, "analyze", file_of("empty.capture", b"")], [1], ["empty.capture"])
        good = (b'{"rank":0,"thread":0,"class":"computation","from":"a@1+0x1","to":"a@1+0x2","start_ns":1000,'
                b'"duration_ns":52000,"workload":{"instructions":100000}}\n')
        later = good.replace(b'"start_ns":1000', b'"start_ns":90000')
        lines = file_of("lines.ndjson", good + b'{"rank":0,"class":\n' + later)
        case(jobs, "bad NDJSON line", [VAPRO, "analyze", "--format", "ndjson", lines], [0], ["lines.ndjson", "2"])
        case(jobs, "bad NDJSON line, --strict", [VAPRO, "analyze", "--format", "ndjson", "--strict", lines], [1],
             ["lines.ndjson", "2"])

        # a PID that exits during attach: never worse than a clear answer
        worst = []
        for number in range(repeat(12, 3)):
            job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 1000, "--seconds", 0.1 + 0.04 * number), "victim")
            victim = ready_pid(job)
            ndjson = os.path.join(directory, "exits.ndjson")
            code, daemon = jobs.run([VAPROD, "--pid", victim, "--output", ndjson, "--duration", 2], "exits", 20)
            text = daemon.err()
            if os.path.exists(ndjson):
                with open(ndjson, encoding="utf-8") as file:
                    text += file.read()
                os.unlink(ndjson)
            if code not in (0, 1) or str(victim) not in text or jobs.wait(job, 20) != 0:
                worst.append((code, daemon.err().strip()[-80:]))
        rows.append(t.row("PID that exits during attach", worst[0] if worst else "named each time", "0 or 1, names the PID",
                          not worst))
        for part in (lambda: unreadable_binary(jobs, directory), lambda: full_disk(jobs, directory, file_of)):
            rows += measured("badinput", part)
    return rows


def unreadable_binary(jobs, directory):
    """A program whose libmpi runs but whose section table is damaged."""
    libraries = os.path.join(directory, "lib")
    os.makedirs(libraries)
    listing = subprocess.run(["ldd", tool("flat_out")], capture_output=True, text=True, check=True).stdout
    real = os.path.realpath(re.search(r"libmpi\.so\S* => (\S+)", listing).group(1))
    damaged = os.path.join(libraries, re.search(r"libmpi\.so\S*", listing).group(0))
    with open(real, "rb") as file:
        data = bytearray(file.read())
    struct.pack_into("<Q", data, 40, 0x7fffffffffff)  # e_shoff
    with open(damaged, "wb") as file:
        file.write(data)
    job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 1000, "--seconds", 8), "damaged", env={"LD_LIBRARY_PATH": libraries})
    pid = ready_pid(job)
    ndjson = os.path.join(directory, "damaged.ndjson")
    code, daemon = jobs.run([VAPROD, "--pid", pid, "--output", ndjson, "--duration", 3], "damaged_vapro", 30)
    text = daemon.err()
    if os.path.exists(ndjson):
        with open(ndjson, encoding="utf-8") as file:
            text += "".join(line for line in file if '"process"' in line or '"warning"' in line)
    target = jobs.wait(job, 30)
    return [t.row("unreadable binary (damaged libmpi): exit code, target's exit code", f"{code}, {target}", "0 or 1, 0",
                  code in (0, 1) and target == 0),
            t.row("unreadable binary: named", damaged in text, True, damaged in text)]


def full_disk(jobs, directory, file_of):
    """Output and capture on a full disk, each with the other intact; then a capture cut short."""
    rows = []
    files = os.path.join(directory, "files")
    os.makedirs(files)
    demo = jobs.start(mpirun(2, tool("demo_mpi"), "--seconds", 25, "--log", directory, "--scratch", files, "--bind"), "demo_mpi")
    pids = pids_of(demo, directory, 2)

    def analyze(capture):
        code, job = jobs.run([VAPRO, "analyze", capture], "analyze", 30)
        windows = sum('"type":"window"' in line.replace(" ", "") for line in job.out().splitlines())
        return code, windows, job.err().strip()
    capture = os.path.join(directory, "good.capture")
    code, daemon = jobs.run([VAPROD, *select(pids), "--output", "/dev/full", "--capture", capture, "--duration", 6], "full_output", 40)
    replay = analyze(capture)
    rows.append(t.row("output on a full disk", f"{code}: {daemon.err().strip()[-90:]}", "1, names /dev/full",
                      code == 1 and "/dev/full" in daemon.err()))
    rows.append(t.row("output on a full disk: windows in the capture", replay[1], "at least 1", replay[0] == 0 and replay[1] > 0))
    code, daemon = jobs.run([VAPROD, *select(pids), "--capture", "/dev/full", "--duration", 6], "full_capture", 40)
    rows.append(t.row("capture on a disk that is full at the start", f"{code}: {daemon.err().strip()[-90:]}",
                      "1, names /dev/full", code == 1 and "/dev/full" in daemon.err()))
    small = os.path.join(directory, "small")
    os.makedirs(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        ndjson, filled = os.path.join(directory, "good.ndjson"), os.path.join(small, "filled.capture")
        code, daemon = jobs.run([VAPROD, *select(pids), "--output", ndjson, "--capture", filled, "--duration", 6], "filled", 40)
        windows = len(of_type(t.load_records(ndjson), "window"))
        rows.append(t.row("capture on a disk that fills up: exit code, windows in the output",
                          f"{code}, {windows}: {daemon.err().strip()[-90:]}", "1, at least 1, names it",
                          code == 1 and windows > 0 and filled in daemon.err()))
        replay = analyze(filled)
        rows.append(t.row("the capture of the full disk is analysed", f"{replay[0]}, {replay[1]} windows", "1, at least 1",
                          replay[0] == 1 and replay[1] > 0))
    finally:
        subprocess.run(["umount", small], check=True)
    jobs.stop(demo)
    with open(capture, "rb") as file:
        data = file.read()
    cut = analyze(file_of("cut.capture", data[:len(data) * 6 // 10]))
    rows.append(t.row("capture cut short", f"{cut[0]}, {cut[1]} windows: {cut[2][-80:]}", "0 or 1, names it, keeps the windows",
                      cut[0] in (0, 1) and cut[1] > 0 and "cut.capture" in cut[2]))
    draw, crashes = random.Random(7), []
    for number in range(repeat(50, 5)):
        broken = bytearray(data)
        for _ in range(8):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        code, _, _ = analyze(file_of("broken.capture", broken))
        if code not in (0, 1):
            crashes.append((number, code))
    rows.append(t.row("captures with 8 random bytes changed: exit codes other than 0 and 1", crashes or 0, 0, not crashes))
    return rows
