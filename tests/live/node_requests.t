#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
A worker requests of a node that does not analyse itself what it should sample, count and time; what others request harms
nothing.
"""
import json
import os
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, clocks, j, main, of_type, rank_pids, ready_pid, records, select, tool, until  # noqa: E402
import nodes_common  # noqa: E402

HOST = socket.gethostname()
SUBJECT = "vapro.v1.req.main." + "".join(c if c.isalnum() or c in "-_" else f"={ord(c):02X}" for c in HOST)


def reasons(out):
    return [w["text"] for w in of_type(records(out), "warning") if w["code"] == "request_refused"]


def send_hostile(client, job, uid, pid):
    """What no worker sends."""
    head = {"version": 1, "job": job, "user": uid + 1}
    requests = [
        b"\0\xff\xfe", b"[" * 4000, b"x" * 100000, json.dumps({**head, "kind": "exec", "command": "reboot"}).encode(),
        json.dumps({**head, "version": 9, "kind": "stage"}).encode(),
        json.dumps({**head, "job": "none:pid-1@x", "kind": "inside", "tids": [pid]}).encode(),
        json.dumps({**head, "kind": "inside", "tids": [1, 2, pid]}).encode(),
        json.dumps({**head, "kind": "hop", "site": "/etc/passwd@0+0x10", "symbol": "", "hop": "up"}).encode(),
        json.dumps({**head, "kind": "stage", "stage": 2, "expand": "nothing", "variance": 7, "interrupts": False}).encode()]
    for request in requests:
        client.publish(SUBJECT, request)
    for _ in range(500):
        client.publish(SUBJECT, requests[0])


def test_requests(tap, jobs):
    seconds = 40
    with nodes_common.Nodes(os.path.dirname(VAPROD)) as nodes:
        logs = os.path.join(jobs.directory, "logs")
        os.makedirs(logs, exist_ok=True)
        for old in os.listdir(logs):
            os.unlink(os.path.join(logs, old))
        out = os.path.join(logs, "out.ndjson")
        nodes.start_worker()
        job = jobs.start(j.mpirun(2, tool("two_parts"), "--seconds", seconds, "--log", logs, "--late-share", 40), "job")
        pids = rank_pids(job, logs, 2)
        daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--broker", nodes.url, "--publish-only", "--io", "off",
                             "--window", "3"], "vaprod")
        attached(out, pids)
        process = of_type(records(out), "process")[0]
        before = clocks(daemon.pid)
        client = nodes.client()
        send_hostile(client, process["job"]["identity"], process["job"]["uid"], os.getpid())
        until(lambda: len(reasons(out)) >= 6, 8)
        client.close()
        said = reasons(out)
        for words in ("no JSON", "'exec'", "version is 9", "no process of job none:pid-1@x", "cannot be counted", "dropped"):
            tap.ok(any(words in text for text in said), f"refused and reported: {words}", said)
        tap.ok(len(said) <= 10, "each reason is reported once", said)
        tap.equal(clocks(daemon.pid), before, "no thread of another program is sampled")
        until(lambda: any(r["type"] == "window" for r in nodes.records()), 15)
        os.kill(pids[1], signal.SIGUSR1)
        sampled = until(lambda: clocks(daemon.pid) > before, 15)
        tap.ok(sampled, "a slow thread is sampled, as the worker requests", reasons(out))

        def inside():
            return [v["inside"] for v in nodes.records() if v["type"] == "variance" and v.get("inside")]
        until(lambda: any(functions[0]["function"] == "growing" for functions in inside()), 15)
        tap.ok(any(functions[0]["function"] == "growing" for functions in inside()), "the worker names the function that became slow",
               (inside(), nodes.log()))
        os.kill(pids[1], signal.SIGUSR2)
        tap.equal(jobs.wait(job, 60), 0, "the program's result is right")
        tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends well")
        refused = [r["text"] for r in nodes.records() if r.get("code") == "request_refused"]
        tap.ok(refused, "the worker's records have the refusals")


def test_stages(tap, jobs):
    """
    Clocks in the place of counters (tests/live/stages.t): the node counts the parts that the worker's diagnosis requests,
    and times interrupts. It has no analysis that could want either.
    """
    out, capture = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture"))
    with nodes_common.Nodes(os.path.dirname(VAPROD)) as nodes:
        nodes.start_worker()
        program = jobs.start(j.mpirun(1, tool("stalls"), "--alone", "--pieces", 3600, "--from", 550, "--to", 3400, "--us", 3000,
                                      "--more-us", 2000, "--idle-us", 1000, "--delay", 3), "stalls")
        pid = ready_pid(program)
        daemon = jobs.start([VAPROD, "--pid", pid, "--output", out, "--capture", capture, "--io", "off", "--overhead-cap", "0",
                             "--counters", "test", "--cluster-tolerance", "0.95", "--reference", "fastest", "--window", "1.5s",
                             "--long-fragment", "0s", "--broker", nodes.url, "--publish-only"], "vaprod")
        attached(out, [pid])

        def counted():
            return [s for s in of_type(nodes.records(), "stage") if (s["stage"], s["parts_of"], s["counted"]) == (2, "backend", True)]

        def parts(variance):
            """The parts of the backend by the latest diagnosis of a variance that has them, in percent."""
            found = [[f["contribution_pct_of_level"] for f in d["factors"] if f["name"] in ("memory", "core")]
                     for d in of_type(nodes.records(), "diagnosis") if d["variance"] == variance]
            return ([[]] + [pair for pair in found if len(pair) == 2])[-1]

        stages = until(counted, 40)
        tap.ok(stages, "the node counts the parts of the backend", (of_type(nodes.records(), "stage"), reasons(out), nodes.log()))
        if stages:
            tap.ok(stages[0]["variance"] in {v["id"] for v in of_type(nodes.records(), "variance")},
                   "for a variance that the worker has found", stages[0])
            until(lambda: parts(stages[0]["variance"]), 15)
            found = parts(stages[0]["variance"])
            tap.ok(found and all(30 <= part <= 70 for part in found), "and the worker's diagnosis has them, as the clocks count them",
                   (found, of_type(nodes.records(), "diagnosis")))
        tap.ok(until(lambda: any("the parts of memory cannot be counted here: no events" in text for text in reasons(out)), 15),
               "what has no events here is refused", reasons(out))
        tap.equal(jobs.wait(program, 60), 0, "the program ends well")
        tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with it")
        tap.ok(not of_type(records(out), "variance"), "the node itself has judged nothing")
    sums = json.loads(subprocess.run([j.path("tests", "sum_counts"), capture], capture_output=True, text=True, check=True).stdout)
    timed = sums["factors"]["hard_irq"] + sums["factors"]["soft_irq"]
    tap.ok(0 < timed < 0.5 * sums["ns"], "interrupts are timed, since the worker's diagnosis needs that", sums["factors"])


def test_hung_broker(tap, jobs):
    """A broker that accepts connections and answers nothing, such as one with a full disk, does not keep vaprod from its end."""
    out = os.path.join(jobs.directory, "out.ndjson")
    with nodes_common.Nodes(os.path.dirname(VAPROD)) as nodes:
        daemon = jobs.start([VAPROD, "--pid", os.getpid(), "--output", out, "--broker", nodes.url, "--window", "1"], "vaprod")
        tap.ok(until(lambda: os.path.exists(out) and of_type(records(out), "window"), 20), "vaprod publishes")
        nodes.servers[0].send_signal(signal.SIGSTOP)
        count = len(of_type(records(out), "window"))
        tap.ok(until(lambda: len(of_type(records(out), "window")) > count + 2, 20), "its own analysis goes on")
        tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
        tap.ok("were not published: no broker took them in time" in daemon.err(), "and says what was not published", daemon.err())


if nodes_common.NO_SERVER:
    print(f"1..0 # SKIP {nodes_common.NO_SERVER}")
else:
    main(test_requests, test_stages, test_hung_broker)
