#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The budget of one node leaves functions out, and a worker requests the same of the other: one set for the job."""
import json
import os
import re
import shutil
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


LISTENER = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
s.sendall(b'CONNECT {"verbose":false}\\r\\nSUB vapro.v1.req.main.node2 1\\r\\n')
f = s.makefile('rb')
s.settimeout(None)
while line := f.readline():
    words = line.split()
    if words[:1] == [b'PING']:
        s.sendall(b'PONG\\r\\n')
    if words[:1] == [b'MSG']:
        print(f.read(int(words[-1])).decode(), flush=True)
"""


class Watched:
    """Two nodes, a broker and workers in the directory of the test; what is published goes there."""

    def __init__(self, jobs, workers=1):
        self.directory = jobs.directory
        shutil.rmtree(os.path.join(jobs.directory, "nodes"), ignore_errors=True)  # jobs of an earlier run
        self.nodes = Nodes(os.path.join(jobs.directory, "nodes"), 2)
        self.worker_count, self.workers = workers, []

    def __enter__(self):
        self.nodes.__enter__()
        self.nodes.broker()
        for number in range(self.worker_count):
            results = os.path.join(self.nodes.directory, f"results{number}")
            os.makedirs(results)
            with open(results + ".log", "w", encoding="utf-8") as log:
                self.workers.append((results, self.nodes.start(0, [WORKER, "--broker", self.nodes.url(), "--output", results, "--late-after",
                                                                  "2s", "--lease", "2s"], stdout=log, stderr=log)))
        return self

    def __exit__(self, *unused):
        self.nodes.__exit__()

    def holder(self):
        """The worker that has the job: that of the file with the highest epoch, CLUSTER.JOB.EPOCH.ndjson."""
        return max((int(name.split(".")[-2]), number) for number, (results, _) in enumerate(self.workers) for name in os.listdir(results))[1]

    def listen(self):
        """The requests to node2 go to a file, of which the path is returned."""
        path = os.path.join(self.directory, "requests")
        with open(path, "w", encoding="utf-8") as out:
            self.nodes.start(0, [sys.executable, "-c", LISTENER, *self.nodes.url()[7:].split(":")], stdout=out)
        return path

    def path(self, node, ending):
        return os.path.join(self.directory, f"node{node}.{ending}")

    def records(self, node):
        path = self.path(node, "ndjson")
        return records(path) if os.path.exists(path) else []

    def watch(self, node, *options):
        """Starts vaprod on a node, and returns it once it is there."""
        daemon = self.nodes.start(node, [VAPROD, "--exe", self.nodes.program_glob(node), "--output", self.path(node, "ndjson"),
                                         "--capture", self.path(node, "capture"), "--io", "off", "--window", "3", "--socket", "",
                                         "--broker", self.nodes.url(), *options])
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


def sets_in(path):
    """{worker: [what its requests for a set say, in their order]}."""
    found = {}
    for request in records(path):
        if request["kind"] == "set":
            found.setdefault(request["worker"], []).append({key: value for key, value in request.items() if key != "worker"})
    return found


def test_take_over(tap, jobs):
    """The worker that requests a set dies: the next one requests the same before the set ends, and goes on with it."""
    with Watched(jobs, workers=2) as watched:
        heard = watched.listen()
        daemons = [watched.watch(node, "--overhead-budget", budget, "--overhead-cap", "60") for node, budget in ((1, "0.2"), (2, "30"))]
        job = watched.nodes.mpirun(tool("busy_calls"), ["--rate", "4000", "--seconds", "26", "--delay", "3"])
        tap.ok(watched.attached(), "both ranks are watched")
        followed = until(lambda: warned(watched.records(2), "coarser"), 25)
        tap.ok(followed and "for all nodes of job" in followed[0], "node2 leaves out what node1 needs", followed)
        holder = watched.workers[watched.holder()][1]
        holder.kill()
        holder.wait()
        before = sets_in(heard)
        tap.equal(len(before), 1, "one worker has made requests until then")
        until(lambda: any(len(requests) > 1 for worker, requests in sets_in(heard).items() if worker not in before), 20)
        after = [requests for worker, requests in sets_in(heard).items() if worker not in before]
        last = list(before.values())[0][-1] if before else {}
        # what node1 leaves out may have become more meanwhile
        tap.ok(len(after) == 1 and len(after[0]) > 1 and all(
            {**request, "without": ""} == {**last, "without": ""} and set(last["without"].split(",")) <= set(request["without"].split(","))
            for request in after[0]), "another one makes the same request, after each window", (last, after))
        tap.equal(job.wait(120), 0, "the program's result is right")
        for daemon in daemons:
            tap.equal(end(daemon, 30), 0, "vaprod ends well")


def places(texts):
    """The call-sites of warnings, as IMAGE@BUILD+OFFSET."""
    return set(re.findall(r"\((\S+@\S+\+0x[0-9a-f]+)\)", " ".join(texts)))


def test_one_refinement(tap, jobs):
    """A node that begins later, and decides nothing alone, gets the call-sites that are distinguished by their callers."""
    with Watched(jobs) as watched:
        daemons = [watched.watch(1, "--overhead-cap", "0")]
        log = open(os.path.join(jobs.directory, "job.log"), "w", encoding="utf-8")
        job = watched.nodes.mpirun(tool("nested"), ["--seconds", "3", "--rounds", "100000000", "--scale", "0.1"], stdout=log, stderr=log)
        # where other tests interrupt its computations, 20 s of them have to spread before a call-site is hopped
        first = until(lambda: warned(watched.records(1), "hopped"), 180)
        tap.ok(first and places(first), "node1 distinguishes calls by their callers", first)
        daemons.append(watched.watch(2, "--overhead-cap", "0", "--publish-only"))
        # node2 may not have read the names yet: the places in the image are the same
        same = until(lambda: first and places(first) <= places(warned(watched.records(2), "hopped")), 90)
        tap.ok(same, "node2 does so at the same call-sites", (first, warned(watched.records(2), "hopped")))
        for daemon in daemons:
            tap.equal(end(daemon, 30), 0, "vaprod ends well")
        end(job)


if nodes_common.NO_SERVER:
    print(f"1..0 # SKIP {nodes_common.NO_SERVER}")
else:
    main(test_one_set, test_take_over, test_one_refinement, held=False)
