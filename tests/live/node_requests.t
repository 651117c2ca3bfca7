#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker requests of a node that does not analyse itself what it should sample; what others request harms nothing."""
import json
import os
import signal
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import VAPROD, attached, clocks, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402
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
        daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--publish", nodes.url, "--publish-only", "--io", "off",
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


if nodes_common.NO_SERVER:
    print(f"1..0 # SKIP {nodes_common.NO_SERVER}")
else:
    main(test_requests)
