# SPDX-License-Identifier: GPL-2.0-or-later
"""
The time from a disturbance to the webhook of Alertmanager (check site:alert): by the metrics of vaprod, the textfile collector of
node_exporter, Prometheus with the shipped rules and Alertmanager, all on loopback.
"""
import http.server
import json
import os
import shutil
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import ROOT, t  # noqa: E402

WEBHOOK_S, EVERY_S = 60, 5
QUIET_S, HOG_S = 30, 20
PROGRAMS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Webhook(http.server.ThreadingHTTPServer):
    """Notes when an alert of each name came first: {name: (time, summary)}."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.first = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802 - the name that the base class calls
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in body["alerts"]:
            if alert["status"] == "firing":
                self.server.first.setdefault(alert["labels"]["alertname"], (time.time(), alert["annotations"].get("summary", "")))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)
    return os.path.join(directory, name)


def alertmanager(directory, port, webhook):
    config = write(directory, "alertmanager.yml", f"""route:
  receiver: webhook
  group_wait: 0s
  group_by: ['...']
receivers:
  - name: webhook
    webhook_configs:
      - url: {webhook.url()}
""")
    return ["prometheus-alertmanager", f"--config.file={config}", f"--storage.path={directory}/alerts",
            f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]


def exporter(shown, port):
    return ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults",
            "--collector.textfile", f"--collector.textfile.directory={shown}"]


def prometheus(directory, port, manager, node):
    rules = shutil.copy(os.path.join(ROOT, "deploy", "prometheus", "vapro.rules.yml"), directory)
    config = write(directory, "prometheus.yml", f"""global:
  scrape_interval: {EVERY_S}s
  evaluation_interval: {EVERY_S}s
rule_files: ['{rules}']
alerting:
  alertmanagers:
    - static_configs: [{{targets: ['127.0.0.1:{manager}']}}]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{node}']}}]
""")
    return ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory}/data", f"--web.listen-address=127.0.0.1:{port}"]


def start_monitoring(jobs, directory, shown, webhook):
    manager, node, monitor = free_port(), free_port(), free_port()
    jobs.start(alertmanager(directory, manager, webhook), "alertmanager")
    jobs.start(exporter(shown, node), "exporter")
    jobs.start(prometheus(directory, monitor, manager, node), "prometheus")
    for port in (manager, node, monitor):
        if not until(lambda: answers(port), 30):  # pylint: disable=cell-var-from-loop
            raise RuntimeError(f"{' or '.join(PROGRAMS)} does not answer: see {directory}/*.err")


def check_alert():
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)} (tools/deps.sh install bench)")
    directory = scratch("alert")
    shown = os.path.join(directory, "shown")
    os.makedirs(shown)
    webhook = Webhook()
    with Jobs(directory) as jobs:
        start_monitoring(jobs, directory, shown, webhook)
        job = jobs.start(mpirun(2, tool("demo_mpi"), "--seconds", QUIET_S + WEBHOOK_S + 40, "--log", directory, "--bind"), "demo")
        pids = pids_of(job, directory, 2)
        daemon, _ = vaprod(jobs, "vapro", pids, None, "--metrics", os.path.join(shown, "vaprod.prom"))
        time.sleep(QUIET_S)
        early = sorted(webhook.first)
        begun = time.time()
        jobs.start([tool("hog"), "--cpu", min(os.sched_getaffinity(0)), "--seconds", HOG_S], "hog")
        until(lambda: "JobSlow" in webhook.first, WEBHOOK_S + 20, 0.1)
        jobs.interrupt(daemon, 60)
        jobs.interrupt(job, 30)
    webhook.shutdown()
    came, summary = webhook.first.get("JobSlow", (float("inf"), "did not come"))
    return [t.row("alerts at the webhook before the disturbance", ", ".join(early) or "none", "none", not early),
            t.row(f"hog of {HOG_S} s beside a job of 2 ranks: JobSlow at the webhook", f"{came - begun:.0f} s: {summary}", f"{WEBHOOK_S} s",
                  came - begun <= WEBHOOK_S)]
