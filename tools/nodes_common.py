# SPDX-License-Identifier: GPL-2.0-or-later
"""
Brokers, workers and nodes on loopback, for tests of many nodes: nodes are captures that send_blocks sends. Nothing that
was started here stays; ports are free ones, directories temporary.
"""
import base64
import datetime
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import contradictions

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IGNORED = ("epoch", "pass", "clock", "host")
NO_SERVER = None if shutil.which("nats-server") else "nats-server is not installed"


def wait_for(condition, seconds, what):
    """The first true value of the condition; an error that says what did not happen in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether a broker answers there: one that starts accepts connections before that."""
    try:
        client = Client(port)
        client.close()
        return True
    except OSError:
        return False


class Client:
    """Requests to a broker, by its text protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nSUB _r.> 1\r\nPING\r\n')
        while self.file.readline().strip() != b"PONG":
            pass

    def request(self, subject, body=b""):
        """The response as an object."""
        self.socket.sendall(b"PUB %s _r.1 %d\r\n%s\r\n" % (subject.encode(), len(body), body))
        while True:
            words = self.file.readline().split()
            if words and words[0] in (b"MSG", b"HMSG"):
                data = self.file.read(int(words[-1]) + 2)[:-2]
                return json.loads(data[int(words[-2]):] if words[0] == b"HMSG" else data or b"{}")

    def publish(self, subject, body):
        """Publishes a message without a reply."""
        self.socket.sendall(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(body), body))

    def stored(self, stream):
        """All messages that a stream holds, in order: (headers, data, time of storage)."""
        state = self.request(f"$JS.API.STREAM.INFO.{stream}")["state"]
        for number in range(state["first_seq"], state["last_seq"] + 1):
            message = self.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"seq": number}).encode()).get("message")
            if message:
                yield base64.b64decode(message.get("hdrs", "")), base64.b64decode(message.get("data", "")), message["time"]

    def messages(self, stream):
        """The data of all messages that a stream holds, in order, but those that are compressed."""
        return (data for headers, data, _ in self.stored(stream) if b"Vapro-Encoding" not in headers)

    def make_stream(self, name, role, **limits):
        """Makes a stream as an administrator would have it."""
        answer = self.request(f"$JS.API.STREAM.CREATE.{name}", json.dumps({
            "name": name, "subjects": [f"vapro.v1.{role}.>"], "storage": "file", "retention": "limits", "num_replicas": 1,
            **limits}).encode())
        assert "error" not in answer, answer

    def close(self):
        self.file.close()
        self.socket.close()


class Nodes:
    """A directory with brokers and workers, which end with it."""

    def __init__(self, build, brokers=1):
        self.build, self.directory = build, tempfile.mkdtemp(prefix="vapro-nodes-")
        self.ports = [free_port() for _ in range(brokers)]
        self.routes = [free_port() for _ in range(brokers)] if brokers > 1 else []
        self.url = ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)
        self.servers, self.workers, self.others = [None] * brokers, [], []
        for number in range(brokers):
            self.start_broker(number)
        if brokers > 1:
            time.sleep(4)  # until the brokers have a leader; requests before that are refused

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.workers, *self.others, *filter(None, self.servers)]:
            self.end(process, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    def end(process, number=signal.SIGTERM):
        """Ends a process that was started here; returns its exit code."""
        if process.poll() is None:
            process.send_signal(number)
            if number == signal.SIGKILL:
                process.send_signal(signal.SIGCONT)
        return process.wait(20)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def start_broker(self, number=0):
        cluster = ""
        if self.routes:
            routes = ", ".join(f"nats-route://127.0.0.1:{route}" for route in self.routes)
            cluster = f"cluster {{ name: vapro, listen: 127.0.0.1:{self.routes[number]}, routes: [ {routes} ] }}\n"
        with open(self.path(f"broker{number}.conf"), "w", encoding="utf-8") as file:
            file.write(f"server_name: n{number}\nlisten: 127.0.0.1:{self.ports[number]}\n"
                       f"jetstream {{ store_dir: \"{self.path(f'store{number}')}\", max_mem: 64M, max_file: 32G }}\n{cluster}")
        with open(self.path(f"broker{number}.log"), "a", encoding="utf-8") as log:
            self.servers[number] = subprocess.Popen(["nats-server", "-c", self.path(f"broker{number}.conf")], stdout=log,
                                                    stderr=log)
        wait_for(lambda: answers(self.ports[number]), 20, "the broker answers")

    def stop_broker(self, number=0, how=signal.SIGTERM):
        self.end(self.servers[number], how)
        self.servers[number] = None

    def client(self):
        return Client(next(port for port, server in zip(self.ports, self.servers) if server))

    def start_worker(self, *options):
        """A worker with a directory of its own; both are attributes of the process."""
        directory = self.path(f"worker{len(self.workers)}")
        os.mkdir(directory)
        with open(directory + ".log", "w", encoding="utf-8") as log:
            worker = subprocess.Popen([os.path.join(self.build, "vapro-worker"), "--broker", self.url, "--output", directory,
                                       "--lease", "2s", "--late-after", "2s", *options], stderr=log)
        worker.directory, worker.log = directory, directory + ".log"
        self.workers.append(worker)
        return worker

    def captures(self, hosts, ranks_per_host, job="sim:1", bundles=20, noise=0.02, seconds=65, seed=1):
        """Captures of the hosts of one job."""
        paths = []
        for host in range(1, hosts + 1):
            paths.append(self.path(f"{job.replace(':', '_')}-{host}.capture"))
            subprocess.run([os.path.join(self.build, "tests", "make_capture"), "--ranks", str(hosts * ranks_per_host),
                            "--ranks-per-host", str(ranks_per_host), "--host", str(host), "--job", job, "--bundles",
                            str(bundles), "--noise", str(noise), "--seconds", str(seconds), "--seed", str(seed), paths[-1]],
                           check=True, stdout=subprocess.DEVNULL)
        return paths

    def start_sending(self, captures, *options):
        sender = subprocess.Popen([os.path.join(self.build, "tests", "send_blocks"), "--nats", self.url, *options, *captures],
                                  stdout=subprocess.DEVNULL)
        self.others.append(sender)
        return sender

    def send(self, captures, *options):
        """Sends all blocks."""
        code = self.start_sending(captures, *options).wait(300)
        assert code == 0, f"send_blocks ended with {code}"

    def start_playing(self, captures, *options):
        """Plays captures as vaprods; what it prints and says is in files, of which the paths are attributes."""
        out, log = (self.path(f"played{len(self.others)}.{kind}") for kind in ("out", "log"))
        with open(out, "wb") as stdout, open(log, "wb") as stderr:
            player = subprocess.Popen([os.path.join(self.build, "tests", "play_nodes"), "--nats", self.url, *options, *captures],
                                      stdout=stdout, stderr=stderr)
        player.out, player.log = out, log
        self.others.append(player)
        return player

    @staticmethod
    def played(player, seconds=120):
        """Waits for the end. Returns when it began, and for each host what became of its blocks."""
        code = player.wait(seconds)
        with open(player.log, encoding="utf-8") as file:
            assert code == 0, f"play_nodes ended with {code}: {file.read()}"
        began, *lines = Nodes.said(player)
        return began, {line["host"]: line for line in lines if "host" in line}

    @staticmethod
    def said(player):
        """What a player has printed so far."""
        with open(player.out, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def unpacked(self):
        """Captures of the blocks that the stream holds, by host: what was lost on the way is missing in them."""
        directory = self.path("unpacked")
        os.makedirs(directory, exist_ok=True)
        client = self.client()
        blocks = b"".join(struct.pack("<I", len(data)) + data for _, data, _ in client.stored("vapro_in"))
        client.close()
        return sorted(subprocess.run([os.path.join(self.build, "tests", "unpack_blocks"), directory], input=blocks, check=True,
                                     stdout=subprocess.PIPE).stdout.decode().splitlines())

    def expected(self, captures):
        """What `vapro analyze` finds in the captures."""
        text = subprocess.run([os.path.join(self.build, "vapro"), "analyze", *captures], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        records = [json.loads(line) for line in text.splitlines()]
        found = contradictions.contradictions(records)
        assert not found, found
        return [comparable(record) for record in records]

    def lines(self, job=None):
        """The files of all workers: {(job, epoch): lines}, less a line that is being written."""
        found = {}
        for worker in self.workers:
            for name in os.listdir(worker.directory):
                token, epoch, _ = name.rsplit(".", 2)
                if job and f".{job.replace(':', '=3A')}=" not in token:
                    continue
                with open(os.path.join(worker.directory, name), encoding="utf-8") as file:
                    found[token, int(epoch)] = [line for line in file if line.endswith("\n")]
        return found

    def records(self, job=None):
        """Records of all workers' files, by epoch."""
        lines = self.lines(job)
        return [json.loads(line) for key in sorted(lines) for line in lines[key]]

    def published(self):
        """Records of the stream of results."""
        client = self.client()
        try:
            return [json.loads(line) for message in client.messages("vapro_out") for line in message.splitlines()]
        finally:
            client.close()

    def log(self):
        texts = []
        for worker in self.workers:
            with open(worker.log, encoding="utf-8") as file:
                texts.append(file.read())
        return "".join(texts)


def comparable(record):
    """A record without what differs between a worker and `vapro analyze`."""
    return json.dumps({key: value for key, value in record.items() if key not in IGNORED}, sort_keys=True)


def utc(text):
    """Seconds since 1970 of a time with any number of decimals."""
    whole, _, decimals = text.rstrip("Z").partition(".")
    return datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc).timestamp() + float("0." + (decimals or "0"))


def delays_of(client, began):
    """Seconds from the end of each window, on the clock of nodes that were played at their pace, to its record in the stream; sorted."""
    late = []
    for headers, data, stored in client.stored("vapro_out"):
        if b"Vapro-Encoding" in headers:
            continue
        for record in map(json.loads, data.splitlines()):
            if record["type"] == "window":
                late.append(utc(stored) - began["began"] - (utc(record["end"]) - began["first"]))
    return sorted(late)


def valid(records):
    """What counts of a job's records: each judging replaces what was said of windows after its begin."""
    remaining = []
    latest = (0, 0)
    for record in records:
        number = record["epoch"], record["pass"]
        if number < latest:
            continue  # of an epoch or pass that was replaced
        latest = number
        if record["type"] == "judging":
            remaining = [other for other in remaining if record["from"] and other["time"] <= record["from"]]
        else:
            remaining.append(record)
    return remaining


def final(records, without=()):
    """The valid records, comparable, without warnings of these codes."""
    return [comparable(record) for record in valid(records) if record.get("code") not in without]
