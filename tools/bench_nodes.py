# SPDX-License-Identifier: GPL-2.0-or-later
"""
What many nodes cost: bytes on the wire, a worker's CPU, memory and profile, the delay of its records, and what
--broker costs a vaprod. Part nodes. The broker is on the same machine; only what is named is counted.
"""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nodes_common  # noqa: E402
from accept_common import rank_pids, vaprod  # noqa: E402
from bench_common import *  # noqa: E402,F401,F403 - the parts' own vocabulary
from nodes_common import Nodes, delays_of, wait_for  # noqa: E402

HOSTS, RANKS = repeat(64, 8), 64  # of a host
SECONDS = repeat(65, 25)
WINDOW_S = 10
CORE, MEMORY_MIB, WIRE_BYTES, MORE_PCT = 0.5, 1024, 1500, 0.1  # wanted
TOP = 12  # of the profile
ROUNDS, SETTLED_S, MEASURED_S = repeat(2, 1), 3, repeat(8, 4)


def cpu_of(pid):
    """Seconds of a process' CPU time, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid() makes it


def peak_of(pid):
    """MiB of memory at most."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


class Profile:
    """What a process does, by a clock: it needs no PMU."""

    def __init__(self, pid, directory):
        self.data = os.path.join(directory, "perf.data")
        self.perf = None
        if shutil.which("perf"):
            self.perf = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "199", "-p", str(pid), "-o", self.data],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        """[(percent, file, function)], most first; empty without perf."""
        if not self.perf:
            return []
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait(30)
        text = subprocess.run(["perf", "report", "--stdio", "-i", self.data, "--sort", "dso,symbol"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False, timeout=120).stdout
        found = re.findall(r"^\s*([\d.]+)%\s+(\S+)\s+\[[.k]\]\s+(\S+)", text, re.MULTILINE)
        return [(float(percent), file, function) for percent, file, function in found]


def shares(profile):
    """Percent of a profile by file."""
    found = {}
    for percent, file, _ in profile:
        found[file] = found.get(file, 0) + percent
    return sorted(found.items(), key=lambda item: -item[1])


def make_stream(nodes):
    client = nodes.client()
    client.make_stream("vapro_in", "in")
    client.close()


def state_of(nodes, stream):
    client = nodes.client()
    state = client.request(f"$JS.API.STREAM.INFO.{stream}")["state"]
    client.close()
    return state


def worker_rows(hosts_count=HOSTS):
    """One job at its pace: what its worker needs, and when its records are there."""
    processes = hosts_count * RANKS
    with Nodes(path()) as nodes:
        captures = nodes.captures(hosts_count, RANKS, noise=0.01, seconds=SECONDS)
        worker, broker = nodes.start_worker("--lease", "5s", "--late-after", "10s"), nodes.servers[0]
        used, brokered, begin = cpu_of(worker.pid), cpu_of(broker.pid), time.monotonic()
        profile = Profile(worker.pid, nodes.directory)
        player = nodes.start_playing(captures)
        samples = [(begin, used)]
        while player.poll() is None:
            time.sleep(1)
            samples.append((time.monotonic(), cpu_of(worker.pid)))
        began, hosts = nodes.played(player)
        wait_for(lambda: "ended;" in nodes.log(), 60, "the end of the job")
        used, brokered = cpu_of(worker.pid) - used, cpu_of(broker.pid) - brokered
        found, peak, broker_peak = profile.end(), peak_of(worker.pid), peak_of(broker.pid)
        state, out = state_of(nodes, "vapro_in"), state_of(nodes, "vapro_out")
        client = nodes.client()
        late = delays_of(client, began)
        client.close()
    lost = sum(host["dropped"] + host["waiting"] for host in hosts.values())
    busiest = max((b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(samples, samples[10:])) if len(samples) > 10 else float("nan")
    each = state["bytes"] / processes / SECONDS
    of = f"{processes} ranks of {hosts_count} hosts, 20 bundles a second each, {SECONDS} s: "
    most = late[min(len(late) - 1, int(0.99 * len(late)))]
    core, memory = (CORE, MEMORY_MIB) if hosts_count == HOSTS else (1, 4 * MEMORY_MIB)
    rows = [row(of + "a worker's share of a core; in its busiest 10 s", f"{used / SECONDS:.3f}; {busiest:.3f}", f"under {core}",
                used / SECONDS < core, cpu_s=used, busiest=busiest),
            row("a worker's memory at most", f"{peak:.0f} MiB", f"under {memory} MiB", peak < memory, peak_mib=peak),
            # it keeps the pace where the last windows are not later than a window is long
            row(f"delay of {len(late)} windows' records: median, 99 %", f"{statistics.median(late):.2f} s, {most:.2f} s",
                f"at most {WINDOW_S} s", most <= WINDOW_S, delays_s=late),
            row("the stream of blocks: bytes a second and process, blocks; lost blocks",
                f"{each:.0f}, {state['messages']}; {lost}", f"at most {WIRE_BYTES}; 0", each <= WIRE_BYTES and not lost, bytes=state["bytes"]),
            row("a broker: MB of blocks for 1,000 ranks and an hour; share of a core; memory",
                f"{each * 3.6:.0f}; {brokered / SECONDS:.3f}; {broker_peak:.0f} MiB", cpu_s=brokered, peak_mib=broker_peak),
            row("the stream of results: bytes a second and rank", f"{out['bytes'] / processes / SECONDS:.1f}", bytes=out["bytes"])]
    if not found:
        rows.append(row("a worker's profile", "perf is not installed"))
    rows += [row("profile: a worker's CPU time by file", ", ".join(f"{file} {share:.0f} %" for file, share in shares(found)[:5]),
                 profile=found)] if found else []
    rows += [row(f"profile: {function}", f"{percent:.1f} %") for percent, _, function in found[:TOP]]
    return rows


def wire_rows():
    """Bytes a process on the wire where captures have counters, and where a node has one process."""
    rows = []
    for what, ranks, options in (("64 processes on a node, with counters", 64, ["--counters"]), ("one process on a node, with counters", 1, ["--counters"]),
                                 ("one process on a node", 1, [])):
        with Nodes(path()) as nodes:
            capture = nodes.path("one.capture")
            subprocess.run([path("tests", "make_capture"), "--ranks", str(ranks), "--bundles", "20", "--noise", "0.01", *options, capture],
                           check=True, stdout=subprocess.DEVNULL)
            make_stream(nodes)
            nodes.send([capture])
            each = state_of(nodes, "vapro_in")["bytes"] / ranks / 65
        rows.append(row(f"the same, {what}: bytes a second and process", f"{each:.0f}", f"at most {WIRE_BYTES}", each <= WIRE_BYTES, bytes=each))
    return rows


def published(ndjson):
    """Bundles that a vaprod with an analysis of its own has counted."""
    return of_type(t.load_records(ndjson), "bye")[-1]["totals"]["bundles"]


def daemon_rows(what, comm, *arguments):
    """CPU of vaprod for one job of two ranks that goes on: without --broker, with it, and with --publish-only, in turn."""
    ways = {"alone": [], "publish": ["--broker"], "only": ["--publish-only", "--broker"]}
    found, used, sent, rates = {way: [] for way in ways}, {way: [] for way in ways}, [], []
    with Nodes(path()) as nodes, Jobs(scratch("nodes", comm)) as jobs:
        make_stream(nodes)
        job = jobs.start(mpirun(2, tool(comm), *arguments), comm)
        pids = until(lambda: rank_pids(job, comm, 2), 20)
        if not pids:
            raise RuntimeError(f"{comm} did not start: " + job.err().strip()[-300:])
        for number, way in enumerate([*ways, *reversed(ways)] * ROUNDS):
            daemon, ndjson = vaprod(jobs, f"{way}{number}", pids, None, *ways[way], *([nodes.url] if ways[way] else []))
            if not until(lambda ndjson=ndjson: all(attached(ndjson, pid) for pid in pids), 20):
                raise RuntimeError("vaprod did not attach: " + daemon.err().strip()[-300:])
            time.sleep(SETTLED_S)
            stored = state_of(nodes, "vapro_in")["bytes"]
            begin, before, ranks = time.monotonic(), cpu_of(daemon.pid), sum(map(cpu_of, pids))
            time.sleep(MEASURED_S)
            found[way].append((cpu_of(daemon.pid) - before) / (time.monotonic() - begin))
            used[way].append((sum(map(cpu_of, pids)) - ranks) / (time.monotonic() - begin))
            seconds, stored = time.monotonic() - begin, state_of(nodes, "vapro_in")["bytes"] - stored
            well(jobs.interrupt(daemon), daemon)
            if way == "publish":
                rates.append(published(ndjson) / (SETTLED_S + seconds))
                sent.append(stored / seconds / rates[-1])
        jobs.stop(job)
    rows = [row(f"vaprod of {what}, 2 ranks of {statistics.median(rates) / 2:.0f} bundles a second, {len(found['alone'])} times {MEASURED_S} s: of a core",
                f"{100 * statistics.median(found['alone']):.2f} %", cpu=found["alone"])]
    for way, name in (("publish", "with --broker"), ("only", "with --publish-only")):
        ratio, half = interval([math.log(one / other) for one, other in zip(found[way], found["alone"])])
        more = [100 * (one / ranks - other / its) for one, ranks, other, its in zip(found[way], used[way], found["alone"], used["alone"])]
        mean, width = interval(more)
        rows.append(row(f"the same {name}: of a core; times that without; more, of the CPU time of the ranks",
                        f"{100 * statistics.median(found[way]):.2f} %; {math.exp(ratio):.2f} ({math.exp(ratio - half):.2f} .. {math.exp(ratio + half):.2f}); {mean:+.3f} % +- {width:.3f}",
                        f"at most {MORE_PCT} %", mean <= MORE_PCT, cpu=found[way], more_pct=more))
    rows.append(row("bytes that it sends for a bundle", f"{statistics.median(sent):.0f}", f"at most {WIRE_BYTES / 20:.0f}",
                    statistics.median(sent) <= WIRE_BYTES / 20, bytes=sent, rates=rates))
    return rows


def part_nodes():
    if nodes_common.NO_SERVER:
        return [row("many nodes", nodes_common.NO_SERVER)]
    # pieces of 0.2 s make some 20 bundles a second; the demo makes more
    return [*worker_rows(), *worker_rows(4 * HOSTS), *wire_rows(), *daemon_rows("the demo", "demo_mpi", "--seconds", 3600, "--bind"),
            *daemon_rows("equal pieces", "stalls", "--pieces", 20000, "--us", 190000, "--idle-us", 0)]
