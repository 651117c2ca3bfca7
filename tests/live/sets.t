#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The budget of one node leaves functions out, and a worker requests the same of the other: one set for the job."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, graph, main, of_type, records, tool, until  # noqa: E402
import nodes_common  # noqa: E402
from nodes import Nodes, end  # noqa: E402

WORKER = os.path.join(os.path.dirname(VAPROD), "vapro-worker")


def warned(lines, code):
    return [w["text"] for w in of_type(lines, "warning") if w["code"] == code]


def coarse(jobs, capture):
    """{(call-site, labels)} of the vertices that were seen while functions were left out."""
    return {(s["at"], s["labels"]) for s in graph(jobs, capture) if "at" in s and "without=" in s["labels"]}


def request(nodes, **members):
    """Publishes a request to node2 from the hub, as anybody who may could."""
    text = json.dumps({"version": 1, "kind": "set", "host": "node1", "worker": "test", **members})
    script = (f"import socket; s = socket.create_connection(('{nodes.url()[7:].split(':')[0]}', {nodes.url().split(':')[-1]}), 5); "
              f"body = {text!r}.encode(); s.sendall(b'CONNECT {{\"verbose\":false}}\\r\\nPUB vapro.v1.req.main.node2 %d\\r\\n' % len(body) "
              "+ body + b'\\r\\nPING\\r\\n'); f = s.makefile('rb')\nwhile f.readline().strip() != b'PONG': pass")
    process = nodes.start(0, [sys.executable, "-c", script])
    return process.wait(10)


class Watched:
    """Two nodes, a broker and a worker in the directory of the test; what is published goes there."""

    def __init__(self, jobs):
        self.directory = jobs.directory
        self.nodes = Nodes(os.path.join(jobs.directory, "nodes"), 2)

    def __enter__(self):
        results = os.path.join(self.directory, "results")
        os.makedirs(results, exist_ok=True)
        self.nodes.__enter__()
        self.nodes.broker()
        with open(os.path.join(self.directory, "worker.log"), "w", encoding="utf-8") as log:
            self.nodes.start(0, [WORKER, "--nats", self.nodes.url(), "--output", results, "--late-after", "2s"], stdout=log, stderr=log)
        return self

    def __exit__(self, *unused):
        self.nodes.__exit__()

    def path(self, node, ending):
        return os.path.join(self.directory, f"node{node}.{ending}")

    def records(self, node):
        path = self.path(node, "ndjson")
        return records(path) if os.path.exists(path) else []

    def watch(self, node, *options):
        """Starts vaprod on a node, and returns it once it is there."""
        daemon = self.nodes.start(node, [VAPROD, "--exe", self.nodes.program_glob(node), "--output", self.path(node, "ndjson"),
                                         "--capture", self.path(node, "capture"), "--io", "off", "--window", "3", "--socket", "",
                                         "--publish", self.nodes.url(), *options])
        if not until(lambda: of_type(self.records(node), "hello"), 30):
            raise RuntimeError(f"vaprod does not start on node{node}")
        return daemon

    def attached(self):
        return until(lambda: all(of_type(self.records(node), "process") for node in (1, 2)), 30)


def test_one_set(tap, jobs):
    with Watched(jobs) as watched:
        nodes = watched.nodes
        # only the first node's budget is too small for these calls
        daemons = [watched.watch(node, "--overhead-budget", budget, "--overhead-cap", "60") for node, budget in ((1, "0.2"), (2, "30"))]
        job = nodes.mpirun(tool("busy_calls"), ["--rate", "4000", "--seconds", "20", "--delay", "3"])
        tap.ok(watched.attached(), "both ranks are watched")
        followed = until(lambda: warned(watched.records(2), "coarser"), 25)
        tap.ok(followed and "budget of node node1" in followed[0] and "for all nodes of job" in followed[0],
               "node2 leaves out what node1 needs, and says why", (followed, warned(watched.records(1), "coarser")))
        process = of_type(watched.records(2), "process")[0]
        head = {"job": process["job"]["identity"], "user": process["job"]["uid"] + 1, "image": "libmpi.so.40", "without": "Isend"}
        for members in ({**head, "without": "Waitall"}, {**head, "image": "none.so"}, {**head, "user": head["user"] + 1},
                        {**head, "without": "Isend," * 600}):
            tap.equal(request(nodes, **members), 0, "a wrong request is sent")
        tap.equal(job.wait(120), 0, "the program's result is right")
        for daemon in daemons:
            tap.equal(end(daemon, 30), 0, "vaprod ends well")
        said = warned(watched.records(2), "request_refused")
        for words in ("'Waitall' is no list", "maps none.so", "no process of job", "a member of the kind set"):
            tap.ok(any(words in text for text in said), f"refused and reported: {words}", said)
        states = {node: coarse(jobs, watched.path(node, "capture")) for node in (1, 2)}
        tap.ok(states[1] and states[1] & states[2], "states of one set are seen on both nodes", states)


def test_one_refinement(tap, jobs):
    """A node that begins later, and decides nothing alone, gets the call-sites that are distinguished by their callers."""
    with Watched(jobs) as watched:
        daemons = [watched.watch(1, "--overhead-cap", "0")]
        log = open(os.path.join(jobs.directory, "job.log"), "w", encoding="utf-8")
        job = watched.nodes.mpirun(tool("nested"), ["--seconds", "3", "--rounds", "100000000", "--scale", "0.1"], stdout=log, stderr=log)
        first = until(lambda: warned(watched.records(1), "hopped"), 60)
        tap.ok(first, "node1 distinguishes calls by their callers")
        daemons.append(watched.watch(2, "--overhead-cap", "0", "--publish-only"))
        same = until(lambda: set(first or "?") <= set(warned(watched.records(2), "hopped")), 40)
        tap.ok(same, "node2 does so at the same call-sites", (first, warned(watched.records(2), "hopped")))
        for daemon in daemons:
            tap.equal(end(daemon, 30), 0, "vaprod ends well")
        end(job)


if nodes_common.NO_SERVER:
    print(f"1..0 # SKIP {nodes_common.NO_SERVER}")
else:
    main(test_one_set, test_one_refinement, held=False)
