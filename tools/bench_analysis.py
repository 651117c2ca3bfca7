# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast captures are analysed, by ranks; and how much vaprod writes. Parts analysis, ndjson."""
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import VAPRO, watch_demo  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary

MAKE_CAPTURE = path("tests", "make_capture")
JUDGED_RANKS, SINGLES_TARGET, BUNDLES_TARGET = 256, 3000000, 1000000  # a second, on one core
NDJSON_TARGET = 512  # bytes a second and process


def analyse(jobs, capture, name):
    """(seconds, peak RSS in MiB, bytes of NDJSON) of `vapro analyze`."""
    ndjson = os.path.join(jobs.directory, name + ".ndjson")
    job = jobs.start([VAPRO, "analyze", "--output", ndjson, capture], name)
    begin, peak = time.monotonic(), 0.0
    while job.process.poll() is None and time.monotonic() < begin + 600:
        try:
            with open(f"/proc/{job.pid}/status", encoding="utf-8") as file:
                peak = max(peak, int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024)
        except (OSError, AttributeError):
            pass  # it has just ended
        time.sleep(0.01)
    seconds = time.monotonic() - begin
    well(jobs.wait(job, 1), job)
    size = os.path.getsize(ndjson)
    os.remove(ndjson)
    return seconds, peak, size


def taken_in(jobs, directory, ranks, per_bundle, bundles_per_s):
    """A row of how fast `vapro analyze` takes in such a capture, and (bundles, seconds)."""
    name = f"{ranks}_{per_bundle}"
    capture = os.path.join(directory, name + ".vap")
    code, job = jobs.run([MAKE_CAPTURE, "--ranks", ranks, "--seconds", 65, "--bundles", bundles_per_s, "--fragments", per_bundle,
                          capture], "make" + name, 300)
    well(code, job)
    bundles, fragments = (int(n) for n in re.findall(r"(\d+) (?:bundles|fragments)", job.out())[:2])
    runs = [analyse(jobs, capture, "analyze" + name) for _ in range(repeat(3, 1))]
    os.remove(capture)
    seconds = min(r[0] for r in runs)
    wanted = (SINGLES_TARGET if per_bundle == 1 else BUNDLES_TARGET) if ranks == JUDGED_RANKS else None
    what = "single fragments" if per_bundle == 1 else f"bundles of {per_bundle}"
    return row(f"{ranks} ranks, 65 s: {what} a second",
               f"{bundles / seconds:.0f} ({bundles} in {seconds:.2f} s, {runs[0][1]:.0f} MiB, {runs[0][2] / 1e6:.1f} MB of lines)",
               f"at least {wanted}" if wanted else "-", bundles / seconds >= wanted if wanted else None, bundles=bundles,
               fragments=fragments, seconds=[r[0] for r in runs], peak_mib=runs[0][1], ndjson_bytes=runs[0][2]), (bundles, seconds)


def part_analysis():
    if not os.access(MAKE_CAPTURE, os.X_OK):
        return [row("analysis", f"no {os.path.basename(MAKE_CAPTURE)} in this build: not measured")]
    rows, points, directory = [], [], scratch("analysis")
    with Jobs(directory) as jobs:
        for ranks in (16, 64, 256, 1024, 4096) if not QUICK else (16, 256):
            # the same number of bundles per rank: what grows is the job
            line, point = taken_in(jobs, directory, ranks, 1, 100 if ranks < 1024 else 20)
            rows.append(line)
            points.append(point)
        rows.append(taken_in(jobs, directory, JUDGED_RANKS, 20, 100)[0])
    (few, quick), (most, slow) = points[0], points[-1]
    slope = math.log(slow / quick) / math.log(most / few)
    rows.append(row("time by bundles, fewest to most ranks: exponent", f"{slope:.2f}", "at most 1.15 (1: linear)", slope <= 1.15, exponent=slope))
    return rows


# the same job as one host and as many: ranks, bundles a second, fragments in each, seconds, ranks of a host, bar
BY_HOSTS = ((4096, 20, 20, 65, 64, 1.3), (1024, 20, 20, 65, 16, 1.3), (256, 100, 1, 65, 64, 1.3), (1024, 20, 20, 45, 1, 2))


def user_time(command):
    """User time of a command, seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 4):
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return usage.ru_utime


def part_hosts():
    """How much longer the same job takes where its ranks are on many hosts, by user time."""
    rows, directory = [], scratch("hosts")
    for ranks, bundles, fragments, seconds, per_host, most in BY_HOSTS if not QUICK else BY_HOSTS[2:]:
        captures = [os.path.join(directory, f"{name}.vap") for name in ("one", "many")]
        for capture, ranks_per_host in zip(captures, (ranks, per_host)):
            subprocess.run([MAKE_CAPTURE, "--ranks", str(ranks), "--seconds", str(seconds), "--bundles", str(bundles), "--fragments",
                            str(fragments), "--ranks-per-host", str(ranks_per_host), capture], check=True, stdout=subprocess.DEVNULL)
        times = [[user_time([VAPRO, "analyze", capture]) for capture in captures] for _ in range(repeat(3, 1))]
        one, many = (min(t[i] for t in times) for i in range(2))
        for capture in captures:
            os.remove(capture)
        rows.append(row(f"{ranks} ranks on {ranks // per_host} hosts: user time, as one host 1", f"{many / one:.2f} ({many:.2f} s)",
                        f"at most {most}", many / one <= most, ratio=many / one, seconds=many, one_host_seconds=one))
    return rows


def part_ndjson():
    seconds, directory = repeat(45, 12), scratch("ndjson")
    watch_demo(directory, watch=seconds)
    size, by_type = os.path.getsize(os.path.join(directory, "vapro.ndjson")), {}
    with open(os.path.join(directory, "vapro.ndjson"), encoding="utf-8") as file:
        for line in file:
            kind = re.search(r'"type":"(\w+)"', line).group(1)
            by_type[kind] = by_type.get(kind, 0) + len(line)
    most = ", ".join(f"{kind} {n / size:.0%}" for kind, n in sorted(by_type.items(), key=lambda item: -item[1])[:4])
    return [row(f"NDJSON of demo at defaults, {seconds} s: bytes a second and process", f"{size / seconds / 2:.0f} ({most})",
                f"at most {NDJSON_TARGET}", size / seconds / 2 <= NDJSON_TARGET, bytes_per_second=size / seconds / 2, by_type=by_type)]
