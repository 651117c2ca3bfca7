# SPDX-License-Identifier: GPL-2.0-or-later
"""What one call costs: bare, with an empty probe pair, with vaprod, with other tools. Parts calls, hits."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary

# WHAT of tests/bench/calls.c: (function, library)
KINDS = {"send": ("MPI_Send", r"libmpi\.so.*"), "waitall": ("MPI_Waitall", r"libmpi\.so.*"),
         "test": ("MPI_Test", r"libmpi\.so.*"), "read": ("read", r"libc\.so.*|libc-.*\.so")}
SYS_READ = 63 if os.uname().machine == "aarch64" else 0
CALLS_OF_BATCH, BATCHES = 250, 80  # batches of a quarter of a millisecond: most are not disturbed
COLD_BYTES, COLD_CALLS = 2 << 20, 400  # what a program goes through between two calls
SEND_TARGET, SHIFTED_TARGET, PROCESSES_TARGET = 1.25, 1.2, 1.1


def time_call(target, what, which="least_ns"):
    """ns of one call: the least batch, in which no other task had the CPU, or the median one."""
    return target.request(what, CALLS_OF_BATCH, BATCHES)[which]


def alternated(names, cycle):
    """The order in which names are measured: reversed in every other cycle."""
    return names if cycle % 2 == 0 else names[::-1]


def times_of(target, probes, kinds, cycles):
    """Of kinds of calls, {what: {state: command}}, bare and with what each command probes: {what: {state: [times]}} and the last
    answer for each kind. The measurements alternate, since hosts have slow minutes."""
    found, answers = {what: {state: [] for state in ("bare", *commands)} for what, commands in kinds.items()}, {}
    for cycle in range(cycles):
        for what in alternated(list(kinds), cycle):
            for state in alternated(list(found[what]), cycle):
                if state in kinds[what]:
                    answers[what] = probes.request(*kinds[what][state])
                target.request(what, CALLS_OF_BATCH, 10)  # warm
                found[what][state].append(target.request(what, CALLS_OF_BATCH, BATCHES))
                probes.request("off")
    return found, answers


def pairs_of(target, what):
    """{state: command} of pairs of probes at one function, empty ones and vaprod's. No read has ours."""
    name, library = KINDS[what]
    where = mapped(target.pid, library)
    return {state: ("pair", state, where, name, target.pid) for state in (("empty", "ours") if what != "read" else ("empty",))}


def extra(found, state, which="least_ns"):
    """What a state adds to a call, cycle by cycle."""
    return [a[which] - b[which] for a, b in zip(found.get(state, []), found["bare"])]


def ratios_of(found, which):
    pairs = zip(extra(found, "empty", which), extra(found, "ours", which))
    return [ours / empty for empty, ours in pairs if empty > 0]


def bystander(jobs, probes, cycles):
    """What tracing of IO adds to a read of a process that is not tracked: by the kernel alone, and with vaprod."""
    target = start_calls(jobs, "bystander")
    found, _ = times_of(target, probes, {"read": {state: ("syscalls", state) for state in ("empty", "ours")}}, cycles)
    target.leave()
    empty, ours = extra(found["read"], "empty"), extra(found["read"], "ours")
    return [row("read of a bystander: empty programs at the tracepoints, added", ns(empty), ns=empty),
            row("read of a bystander: vaprod's IO tracing, added", ns(ours), ns=ours),
            row("read of a bystander: of that vaprod's own", ns([a - b for a, b in zip(ours, empty)]))]


def cold(target, probes, cycles):
    """What MPI_Send's probes add where the program has used the caches for something else since the call before."""
    where = mapped(target.pid, KINDS["send"][1])
    found = {"bare": [], "empty": [], "ours": []}
    for cycle in range(cycles):
        for state in alternated(list(found), cycle):
            if state != "bare":
                probes.request("pair", state, where, "MPI_Send", target.pid)
            target.request("send", CALLS_OF_BATCH, 10)  # its states are known
            found[state].append(target.request("cold", "send", COLD_CALLS, COLD_BYTES))
            probes.request("off")
    empty, ours = extra(found, "empty", "median_ns"), extra(found, "ours", "median_ns")
    after = f"MPI_Send after {COLD_BYTES >> 20} MiB of other memory"
    return [row(f"{after}: empty pair, added", ns(empty), ns=empty), row(f"{after}: vaprod's pair, added", ns(ours), ns=ours),
            row(f"{after}: vaprod's pair / empty pair", times(ratios_of(found, "median_ns")), ratios=ratios_of(found, "median_ns"))]


def outside(jobs, target, name, command, what, cycles, limit=30):
    """ns per call that another tool adds, in alternation with bare calls; raises where the tool does not work."""
    added = []
    for cycle in range(cycles):
        bare = time_call(target, what)
        job = jobs.start(command, f"{name}{cycle}")
        seen = until(lambda before=bare, tracer=job: tracer.process.poll() is not None
                     or time_call(target, what) > 1.3 * before + 30, limit, 0.1)
        if not seen or job.process.poll() is not None:
            jobs.stop(job)
            said = [line for line in (job.err() + job.out()).splitlines() if re.search(r"\w", line)]
            raise RuntimeError(said[-1][:160] if said else f"no effect within {limit} s")
        time.sleep(0.3)
        with_it = time_call(target, what)
        job.process.send_signal(signal.SIGINT)
        jobs.wait(job, 60)
        added.append(with_it - (bare + time_call(target, what)) / 2)
    return added


def mount_tracefs():
    """Mounts tracefs, where other tools find tracepoints; vaprod does not need it, so it may not be mounted."""
    if not os.path.isdir("/sys/kernel/tracing/events"):
        subprocess.run(["mount", "-t", "tracefs", "none", "/sys/kernel/tracing"], check=False)


def others(jobs, target, cycles):
    """What other tools add to the same calls, or why they cannot."""
    mount_tracefs()
    mpi, pid = mapped(target.pid, KINDS["send"][1]), target.pid
    keep = "@begin[tid] = nsecs;", "/@begin[tid]/ { @ns = sum(nsecs - @begin[tid]); @n = count(); delete(@begin[tid]); }"
    tools = [
        ("bpftrace", "send", ["bpftrace", "-p", pid, "-e", f"uprobe:{mpi}:MPI_Send {{ {keep[0]} }} uretprobe:{mpi}:MPI_Send {keep[1]}"]),
        ("bpftrace", "read", ["bpftrace", "-e", f"tracepoint:raw_syscalls:sys_enter /pid == {pid} && args->id == {SYS_READ}/ {{ {keep[0]} }} "
                                                f"tracepoint:raw_syscalls:sys_exit {keep[1]}"]),
        ("perf trace", "read", ["perf", "trace", "-e", "read", "-o", os.devnull, "-p", pid]),
        ("perf trace -s", "read", ["perf", "trace", "-s", "-o", os.devnull, "-p", pid]),
    ]
    rows = []
    for name, what, command in tools:
        label = f"{KINDS[what][0]}: {name}, added"
        if not shutil.which(command[0]):
            rows.append(row(label, f"no {command[0]} here"))
            continue
        try:
            added = outside(jobs, target, f"{command[0]}_{what}", command, what, cycles)
            rows.append(row(label, ns(added), ns=added))
        except (RuntimeError, TimeLimit, OSError) as error:
            rows.append(row(label, f"does not run: {error}"))
    return rows


def shim(jobs, cycles):
    """The lower bound: MPI_Send through a preloaded library, against PMPI_Send in the same program."""
    target = start_calls(jobs, "shimmed", {"LD_PRELOAD": SHIM})
    added = []
    for _ in range(cycles):
        added.append(target.request("send", 5000, 12)["least_ns"] - target.request("psend", 5000, 12)["least_ns"])
    target.leave()
    return row("MPI_Send: PMPI shim that keeps the same, added", ns(added), ns=added)


def daemon_itself(jobs, target, cycles):
    """What vaprod adds as it runs: with its draining and its windows, counters, IO tracing."""
    rows, found = [], {what: ([], []) for what in ("send", "waitall", "exchange", "read")}
    for cycle in range(cycles):
        def measure(which):
            for what, values in found.items():
                time_call(target, what)
                values[which].append(time_call(target, what))
        if cycle % 2 == 0:
            measure(0)
        with Watching(jobs, "vaprod", target.pid, "--overhead-cap", "0", "--io", "on", "--learn", "0"):
            measure(1)
        if cycle % 2:
            measure(0)
    for what, (bare, watched) in found.items():
        added = [a - b for a, b in zip(watched, bare)]
        name = "Irecv + Isend + Waitall" if what == "exchange" else KINDS[what][0]
        rows.append(row(f"{name}: vaprod itself, added", ns(added), ns=added, bare_ns=bare))
    return rows


def part_calls():
    rows, extras = [], {}
    with Jobs(scratch("calls")) as jobs:
        target = start_calls(jobs)
        probes = Talker(jobs, [PROBES], "probes")
        costs = probes.request("costs")
        rows.append(row("calibrated at start: entry, entry + return, system call",
                        f"{costs['entry_ns']:.0f}, {costs['call_ns']:.0f}, {costs['syscall_ns']:.0f} ns on rung {costs['rung']}", **costs))
        probes.request("track", target.pid)
        found, sites = times_of(target, probes, {what: pairs_of(target, what) for what in KINDS}, repeat(40, 8))
        for what, (name, _) in KINDS.items():
            extras[what] = extra(found[what], "empty"), extra(found[what], "ours")
            bare = [f["least_ns"] for f in found[what]["bare"]]
            site = f"+{sites[what]['shift']} ({sites[what]['instruction']})"
            rows.append(row(f"{name}: bare", ns(bare), ns=bare))
            rows.append(row(f"{name}: empty pair at {site}, added", ns(extras[what][0]), ns=extras[what][0]))
            if extras[what][1]:
                rows.append(row(f"{name}: vaprod's pair, added", ns(extras[what][1]), ns=extras[what][1]))
        rows += cold(target, probes, repeat(12, 3))
        rows += bystander(jobs, probes, repeat(12, 3))
        counts = probes.request("counts")
        rows.append(row("vaprod's pairs: calls, fragments lost", f"{counts['enter']}, {counts['lost']}", **counts))
        probes.leave()
        for what, most in (("send", SEND_TARGET), ("waitall", None), ("test", None)):
            for which, word in (("least_ns", "minima"), ("median_ns", "medians")):
                ratios = ratios_of(found[what], which)
                limit = most if which == "least_ns" else None
                rows.append(row(f"{KINDS[what][0]}: vaprod's pair / empty pair at the same site, {word}", times(ratios),
                                f"at most {limit}" if limit else "-", statistics.median(ratios) <= limit if limit else None, ratios=ratios))
        for what in ("waitall", "test"):
            ratios = [shifted / plain for plain, shifted in zip(extras["send"][1], extras[what][1]) if plain > 0]
            rows.append(row(f"{KINDS[what][0]} / MPI_Send, vaprod's pairs", times(ratios), f"at most {SHIFTED_TARGET}",
                            statistics.median(ratios) <= SHIFTED_TARGET, ratios=ratios))
        rows += daemon_itself(jobs, target, repeat(12, 3))
        rows.append(shim(jobs, repeat(20, 5)))
        rows += others(jobs, target, repeat(6, 1))
        target.leave()
    return rows


def start_sleepers(jobs, ranks, name="sleepers"):
    """Ranks that sleep: (their job, their pids)."""
    job = jobs.start(mpirun(ranks, tool("sleepers"), "--seconds", 3000, "--period", 20), name)
    if not until(lambda: '"ready"' in job.out(), 120):
        raise RuntimeError(f"{ranks} ranks did not start: {job.err()[-300:]}")

    def look():
        found = []
        for pid in descendants(job.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    if file.read().strip() == "sleepers":
                        found.append(pid)
            except OSError:
                pass
        return sorted(found) if len(found) == ranks else None
    pids = until(look, 10)
    if not pids:
        raise RuntimeError("the ranks are not found")
    return job, pids


def part_hits():
    """What a hit costs where many processes are tracked."""
    cycles, found = repeat(15, 3), {1: [], 8: [], 64: [], "own": []}
    with Jobs(scratch("hits")) as jobs:
        _, pids = start_sleepers(jobs, 63)
        target = start_calls(jobs)
        where = mapped(target.pid, KINDS["send"][1])
        bare = []
        for cycle in range(cycles):
            for state in alternated(list(found), cycle):
                watched = [target.pid, *pids[:(8 if state == "own" else state) - 1]]
                probes = Talker(jobs, [PROBES], "probes")
                probes.request("track", *watched)
                bare.append(time_call(target, "send"))
                probes.request("many", where, 1000, *(watched if state == "own" else []))  # all there are
                time_call(target, "send")
                found[state].append(time_call(target, "send") - bare[-1])
                probes.request("off")
                probes.leave()
        target.leave()
    if min(min(values) for values in found.values()) < 50:
        raise RuntimeError("MPI_Send was not hit")
    rows = [row(f"MPI_Send with {n} watched process{'es' if n > 1 else ''}, one link: added", ns(found[n]), ns=found[n]) for n in (1, 8, 64)]
    rows.append(row("MPI_Send with 8, each with a link of its own: added", ns(found["own"]), ns=found["own"]))
    for n in (8, 64):
        ratios = [many / one for one, many in zip(found[1], found[n])]
        limit = PROCESSES_TARGET if n == 64 else None
        rows.append(row(f"cost of a hit with {n} / with 1", times(ratios), f"at most {limit}" if limit else "-",
                        statistics.median(ratios) <= limit if limit else None, ratios=ratios))
    return rows


def part_attach():
    """How long many functions of many processes take to be attached, and to be detached."""
    rows = []
    with Jobs(scratch("attach")) as jobs:
        for ranks in (2, 16, 64):
            job, pids = start_sleepers(jobs, ranks, f"sleepers{ranks}")
            where = mapped(pids[0], KINDS["send"][1])
            probes = Talker(jobs, [PROBES], "probes")
            probes.request("track", *pids)
            for functions in (60, 400):
                for own in (False, True) if ranks <= 16 else (False,):
                    attach, detach = [], []
                    for _ in range(repeat(7, 2)):
                        answer = probes.request("many", where, functions, *(pids if own else []))
                        attach.append(answer["attach_ms"])
                        detach.append(probes.request("off")["detach_ms"])
                    judged = ranks == 16 and functions == 400 and not own
                    label = f"{answer['functions']} functions x {ranks} processes{', a link each' if own else ''}"
                    for word, values in (("attach", attach), ("detach", detach)):
                        rows.append(row(f"{label}: {word}", f"{statistics.median(values):.1f} ms (most {max(values):.1f})",
                                        "under 200 ms" if judged else "-",
                                        statistics.median(values) < 200 if judged else None, ms=values))
            probes.leave()
            jobs.stop(job)
    return rows
