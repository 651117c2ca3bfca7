# SPDX-License-Identifier: GPL-2.0-or-later
"""Many nodes, one job: brokers on loopback, captures as nodes, workers that are killed and stopped."""
import os
import signal
import subprocess
import time

from accept_common import path, t
from nodes_common import NO_SERVER, Nodes, delays_of, final, valid, wait_for

HOSTS, JOBS = 8, 8
ROWS = []


def row(*columns):
    ROWS.append(t.row(*columns))
    print("  ".join(map(str, columns)), flush=True)


def same(nodes, jobs, seconds, without=()):
    """Waits until each job has the records of vapro analyze; returns the jobs that have not."""
    wrong = dict(jobs)

    def look():
        for job in list(wrong):
            if sorted(final(nodes.records(job), without)) == wrong[job]:
                del wrong[job]
        return not wrong

    try:
        wait_for(look, seconds, "the records of vapro analyze")
    except AssertionError:
        pass
    return sorted(wrong)


def make_jobs(nodes, count=JOBS):
    captures = {f"sim:{number}": nodes.captures(HOSTS, 8, job=f"sim:{number}", seed=number + 1) for number in range(count)}
    return [path for paths in captures.values() for path in paths], {job: sorted(nodes.expected(paths))
                                                                     for job, paths in captures.items()}


def shared(brokers, workers):
    """Eight jobs of eight hosts to some workers."""
    with Nodes(path(), brokers) as nodes:
        captures, jobs = make_jobs(nodes)
        for _ in range(workers):
            nodes.start_worker("--replicas", str(brokers))
        begun = time.monotonic()
        nodes.send(captures, "--shuffle", "5")
        wrong = same(nodes, jobs, 120)
        busy = sum(bool(os.listdir(worker.directory)) for worker in nodes.workers)
        row(f"{JOBS} jobs of {HOSTS} hosts, {brokers} brokers, {workers} workers: jobs with the records of analyze",
            f"{JOBS - len(wrong)} ({busy} workers busy, {time.monotonic() - begun:.0f} s)", str(JOBS), not wrong)


def leader_killed():
    """Three brokers; the one that leads the stream of blocks is killed while nodes send."""
    with Nodes(path(), 3) as nodes:
        captures, jobs = make_jobs(nodes, 2)
        nodes.start_worker("--replicas", "3", "--lease", "10s")
        time.sleep(4)
        sender = nodes.start_sending(captures, "--speed", "5")
        time.sleep(5)
        client = nodes.client()
        leader = client.request("$JS.API.STREAM.INFO.vapro_in")["cluster"]["leader"]
        client.close()
        nodes.stop_broker(int(leader[1:]), signal.SIGKILL)
        code = sender.wait(120)
        wrong = same(nodes, jobs, 90)
        row("the leader of 3 brokers killed: jobs with the records of analyze", f"{len(jobs) - len(wrong)}", str(len(jobs)),
            not wrong and not code)


def disturbed(what):
    """A worker that is killed, or stopped for 30 s, in the middle of a job."""
    with Nodes(path()) as nodes:
        captures, jobs = make_jobs(nodes, 1)
        for _ in range(2):
            nodes.start_worker("--lease", "5s", "--late-after", "10s")
        sender = nodes.start_sending(captures, "--speed", "2")
        wait_for(lambda: any(record["type"] == "window" for record in nodes.records()), 60, "a window")
        holder = next(worker for worker in nodes.workers if os.listdir(worker.directory))
        begun = time.monotonic()
        holder.send_signal(signal.SIGKILL if what == "killed" else signal.SIGSTOP)
        wait_for(lambda: len({record["epoch"] for record in nodes.records()}) > 1, 60, "the take-over")
        seconds = time.monotonic() - begun
        row(f"a worker is {what}: another has its job after", f"{seconds:.1f} s", "< 10 s", seconds < 10)
        if what == "stopped":
            time.sleep(30 - seconds)
            holder.send_signal(signal.SIGCONT)
        sender.wait(120)
        wrong = same(nodes, jobs, 60)
        windows = [record["time"] for record in nodes.published() if record["type"] == "window"]
        row(f"a worker is {what}: final records are those of analyze, windows published twice",
            f"{'no' if wrong else 'yes'}, {len(windows) - len(set(windows))}", "yes, 0", not wrong and len(windows) == len(set(windows)))


def large(brokers):
    """64 hosts of 64 ranks, at 20 bundles a second: what a worker needs of CPU and memory."""
    with Nodes(path(), brokers) as nodes:
        captures = nodes.captures(64, 64, noise=0.01, seconds=65)
        expected = {"sim:1": sorted(nodes.expected(captures))}
        worker = nodes.start_worker("--replicas", str(brokers))
        nodes.start_sending(captures)
        nodes.others[-1].wait(300)
        wrong = same(nodes, expected, 120)
        with open(f"/proc/{worker.pid}/status", encoding="utf-8") as file:
            peak = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
        with open(f"/proc/{worker.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        row(f"4,096 ranks on 64 hosts, {brokers} brokers: the records of analyze", "no" if wrong else "yes", "yes", not wrong)
        row(f"4,096 ranks on 64 hosts, {brokers} brokers: a worker's share of a core", f"{cpu / 65:.3f}", "< 0.5", cpu / 65 < 0.5)
        row(f"4,096 ranks on 64 hosts, {brokers} brokers: a worker's memory at most", f"{peak:.0f} MiB", "< 1024 MiB", peak < 1024)


def absent(when):
    """No broker for 60 s: what nodes discard is counted, and the rest is as if it had never been."""
    with Nodes(path()) as nodes:
        captures = nodes.captures(HOSTS, 8, seconds=165)
        if when == "at the start":
            nodes.stop_broker()
        else:
            nodes.start_worker("--lease", "5s", "--late-after", "10s")
        player = nodes.start_playing(captures, "--memory", "100000")
        if when != "at the start":
            wait_for(lambda: any(record["type"] == "window" for record in nodes.records()), 60, "a window")
            nodes.stop_broker(how=signal.SIGKILL)
        time.sleep(60)
        nodes.start_broker()
        if not nodes.workers:
            nodes.start_worker("--lease", "5s", "--late-after", "10s")
        hosts = nodes.played(player, 240)[1]
        wrong = same(nodes, {"sim:1": sorted(nodes.expected(nodes.unpacked()))}, 90, ("blocks_missing",))
        dropped, fragments = (sum(host[what] for host in hosts.values()) for what in ("dropped", "fragments"))
        named = sum(record["lost"]["published"] for record in valid(nodes.records()) if record["type"] == "window")
        row(f"no broker for 60 s {when}: the rest is as analyze has it; fragments lost, and named by windows",
            f"{'no' if wrong else 'yes'}; {fragments} in {dropped} blocks, {named}", "yes; equal", not wrong and fragments == named > 0)


def silent():
    """A host that sends nothing for 30 s."""
    with Nodes(path()) as nodes:
        captures = nodes.captures(3, 4)
        nodes.start_worker("--lease", "5s", "--late-after", "10s")
        nodes.send(captures, "--silent-host", "sim1", "--silent-at", "20", "--silent", "30", "--speed", "1")
        wrong = same(nodes, {"sim:1": sorted(nodes.expected(captures))}, 90)
        passes = sum(record["type"] == "judging" for record in nodes.records())
        row("a host silent for 30 s: the records of analyze, passes", f"{'no' if wrong else 'yes'}, {passes}", "yes, > 1",
            not wrong and passes > 1)


def delays():
    """From the end of a window on the nodes' clock to its first record in the stream of results."""
    with Nodes(path()) as nodes:
        captures, jobs = make_jobs(nodes)
        nodes.start_worker()
        player = nodes.start_playing(captures)
        began = nodes.played(player, 150)[0]
        wrong = same(nodes, jobs, 60)
        client = nodes.client()
        late = delays_of(client, began)
        client.close()
        median, most = (late[min(len(late) - 1, int(share * len(late)))] for share in (0.5, 0.99))
        row(f"delay of {len(late)} windows' records ({JOBS} jobs of {HOSTS} hosts): median, 99 %",
            f"{median:.2f} s, {most:.2f} s", "99 % < 5 s", not wrong and most < 5)


def check(*steps):
    """A part: each step with its arguments; what one could not measure is a row, and the next one is measured."""
    def rows():
        ROWS.clear()
        if NO_SERVER:
            row("many nodes", NO_SERVER, "nats-server", False)
            return ROWS
        for step, *arguments in steps:
            try:
                step(*arguments)
            except (AssertionError, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
                row(" ".join([step.__name__.replace("_", " "), *map(str, arguments)]), f"{type(error).__name__}: {error}"[:200], "a measurement", False)
        return ROWS
    return rows


CHECKS = {"nodes:shared": check((shared, 1, 2), (shared, 3, 1), (shared, 3, 2), (shared, 3, 4)),
          "nodes:killed": check((leader_killed,), (disturbed, "killed"), (disturbed, "stopped")),
          "nodes:silent": check((silent,)),
          "nodes:absent": check((absent, "at the start"), (absent, "in the middle")),
          "nodes:delays": check((delays,)),
          "nodes:large": check((large, 1), (large, 3))}
