#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make demo-nodes: one MPI job on two nodes, vaprod on each, which publishes what it observes to a NATS broker, and a worker
that analyses the job as a whole. A CPU hog runs on one node; the worker's verdict stands beside the nodes' own and
beside what really happened. Both nodes are network namespaces of this machine (nodes.py). About 50 s.
Leaves its files in build/demo-nodes.
"""
import glob
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from nodes import Nodes, NodesError, end  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
OUT = os.path.abspath(os.path.join(BUILD, "demo-nodes"))
WATCH_S, HOG_AFTER_S, HOG_FOR_S = 30, 14, 3
CLUSTER = "demo"
PATIENCE_S = 30 # for the worker's last window


class Failed(Exception):
    """What went wrong, in a sentence."""


def program(*path):
    name = os.path.join(BUILD, *path)
    if not os.access(name, os.X_OK):
        raise Failed(f"{name} is missing; run make demo-nodes")
    return os.path.abspath(name)


def pids(truth, count):
    """Waits until each rank has written the first line of its log."""
    for _ in range(200):
        files = glob.glob(os.path.join(truth, "truth.*"))
        if len(files) == count and all(os.path.getsize(file) for file in files):
            return
        time.sleep(0.1)
    raise Failed("the MPI program did not start")


def log(name):
    return open(os.path.join(OUT, name), "w", encoding="utf-8")


def view(title, path, *options):
    print(f"\n=== {title} ===\n", flush=True)
    subprocess.run([program("vapro"), "view", "--no-pager", *options, path], check=False)


def results():
    """Waits until the worker has seen the end of the job. Returns the file of its records."""
    for _ in range(PATIENCE_S * 10):
        with open(os.path.join(OUT, "worker.log"), encoding="utf-8") as file:
            ended = ": ended;" in file.read()
        found = glob.glob(os.path.join(OUT, "results", "**", "*.ndjson"), recursive=True)
        if ended and found:
            return found[0]
        time.sleep(0.1)
    raise Failed(f"the worker did not finish the job; see {OUT}/worker.log")


def demo():
    truth = os.path.join(OUT, "truth")
    scratch = os.path.join(OUT, "scratch")
    daemon, worker, hog = program("vaprod"), program("vapro-worker"), program("tools", "hog")
    shutil.rmtree(OUT, ignore_errors=True)
    for directory in (truth, scratch, os.path.join(OUT, "results")):
        os.makedirs(directory)
    with Nodes(os.path.join(OUT, "nodes"), 2) as nodes:
        print("1. A NATS broker with JetStream and a worker start, apart from the nodes.", flush=True)
        nodes.broker()
        work = nodes.start(0, [worker, "--broker", nodes.url(), "--cluster", CLUSTER, "--output", os.path.join(OUT, "results")],
                           stdout=log("worker.out"), stderr=log("worker.log"))
        print("2. One MPI job starts on node1 and node2, one rank on each. It logs the time of its segments,\n"
              "   which is the truth to compare with.", flush=True)
        job = nodes.mpirun(program("tools", "demo_mpi"), ["--seconds", str(WATCH_S + 5), "--log", truth, "--scratch", scratch,
                                                          "--bind"], stdout=log("demo_mpi.out"), stderr=subprocess.STDOUT)
        pids(truth, 2)
        time.sleep(1)
        print(f"3. vaprod attaches on each node and publishes to {nodes.url()} for {WATCH_S} s. Each sees one of the two ranks.",
              flush=True)
        daemons = [nodes.start(node, [daemon, "--exe", nodes.program_glob(node), "--output",
                                      os.path.join(OUT, f"node{node}.ndjson"), "--duration", str(WATCH_S), "--socket", "",
                                      "--broker", nodes.url(), "--cluster", CLUSTER],
                               stdout=log(f"vaprod{node}.out"), stderr=subprocess.STDOUT) for node in (1, 2)]
        print(f'4. After {HOG_AFTER_S} s a process called "hog" takes half of the core of rank 1, on node2, for {HOG_FOR_S} s.',
              flush=True)
        nodes.start(2, [hog, "--cpu", "1", "--start-after", str(HOG_AFTER_S), "--seconds", str(HOG_FOR_S), "--log",
                        os.path.join(OUT, "hog.json")])
        codes = [process.wait() for process in daemons]
        if any(codes):
            raise Failed(f"vaprod ended with {codes}; see {OUT}/vaprod1.out and vaprod2.out")
        if job.wait():
            raise Failed(f"the MPI program's results are wrong; see {OUT}/demo_mpi.out")
        found = results()
        end(work)
    view("What node1 alone can say: it sees one of two ranks", os.path.join(OUT, "node1.ndjson"))
    view(f"What the worker says of the whole job (vapro view {found})", found)
    print("\n=== What really happened (the program's own log, the hog's own log) ===\n", flush=True)
    tool = ["/usr/bin/python3", os.path.join(ROOT, "tools", "truth.py")]
    known = ["--hog", os.path.join(OUT, "hog.json")]
    subprocess.run([*tool, "show", truth, *known], check=False)
    print("\n=== The job's alarms against the truth ===\n", flush=True)
    return subprocess.run([*tool, "check", "--truth", truth, *known, found], check=False).returncode


def main():
    if os.geteuid():
        print("demo-nodes: vaprod and network namespaces need root", file=sys.stderr)
        return 3
    try:
        return demo()
    except (Failed, NodesError) as error:
        print(f"demo-nodes: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
