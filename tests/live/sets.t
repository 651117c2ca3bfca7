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


def test_one_set(tap, jobs):
    directory = os.path.join(jobs.directory, "nodes")
    results = os.path.join(jobs.directory, "results")
    os.makedirs(results, exist_ok=True)
    with Nodes(directory, 2) as nodes:
        nodes.broker()
        with open(os.path.join(jobs.directory, "worker.log"), "w", encoding="utf-8") as log:
            worker = nodes.start(0, [WORKER, "--nats", nodes.url(), "--output", results, "--late-after", "2s"], stdout=log, stderr=log)
        outs = {node: os.path.join(jobs.directory, f"node{node}.ndjson") for node in (1, 2)}
        captures = {node: os.path.join(jobs.directory, f"node{node}.capture") for node in (1, 2)}
        # only the first node's budget is too small for these calls
        daemons = [nodes.start(node, [VAPROD, "--exe", nodes.program_glob(node), "--output", outs[node], "--capture", captures[node],
                                      "--io", "off", "--window", "3", "--socket", "", "--publish", nodes.url(), "--overhead-budget",
                                      budget, "--overhead-cap", "60"])
                   for node, budget in ((1, "0.2"), (2, "30"))]
        tap.ok(until(lambda: all(os.path.exists(out) and of_type(records(out), "hello") for out in outs.values()), 30), "vaprods start")
        job = nodes.mpirun(tool("busy_calls"), ["--rate", "4000", "--seconds", "20", "--delay", "3"])
        tap.ok(until(lambda: all(of_type(records(out), "process") for out in outs.values()), 30), "both ranks are watched")
        followed = until(lambda: warned(records(outs[2]), "coarser"), 25)
        tap.ok(followed and "budget of node node1" in followed[0] and "for all nodes of job" in followed[0],
               "node2 leaves out what node1 needs, and says why", (followed, warned(records(outs[1]), "coarser")))
        process = of_type(records(outs[2]), "process")[0]
        head = {"job": process["job"]["identity"], "user": process["job"]["uid"] + 1, "image": "libmpi.so.40", "without": "Isend"}
        for members in ({**head, "without": "Waitall"}, {**head, "image": "none.so"}, {**head, "user": head["user"] + 1},
                        {**head, "without": "Isend," * 600}):
            tap.equal(request(nodes, **members), 0, "a wrong request is sent")
        tap.equal(job.wait(120), 0, "the program's result is right")
        for daemon in daemons:
            tap.equal(end(daemon, 30), 0, "vaprod ends well")
        said = warned(records(outs[2]), "request_refused")
        for words in ("'Waitall' is no list", "maps none.so", "no process of job", "a member of the kind set"):
            tap.ok(any(words in text for text in said), f"refused and reported: {words}", said)
        end(worker)
        states = {node: coarse(jobs, captures[node]) for node in (1, 2)}
        tap.ok(states[1] and states[1] & states[2], "states of one set are seen on both nodes", states)


if nodes_common.NO_SERVER:
    print(f"1..0 # SKIP {nodes_common.NO_SERVER}")
else:
    main(test_one_set, held=False)
