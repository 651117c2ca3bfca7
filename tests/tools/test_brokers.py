#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The broker's configuration of deploy/nats, with a nats-server of its own: `vapro publish` as each role. A node publishes
under its own name only, and no other role publishes as a node. test_brokers.py [BUILD]
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.join(ROOT, "build")
DEPLOY = os.path.join(ROOT, "deploy", "nats")

HOST = "sim0"  # of make_capture


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@unittest.skipUnless(shutil.which("nats-server"), "nats-server is not installed")
class Brokers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.port, cls.monitor = free_port(), free_port()
        cls.addresses = {words: cls.add(*words) for words in
                         (("node", "main", "sim0"), ("node", "main", "other.site"), ("node", "blue", "sim0x"), ("worker", "main", "w1"), ("reader", "main", "r1"), ("analyst", "main", "a1"))}
        with open(os.path.join(DEPLOY, "broker.conf"), encoding="utf-8") as file:
            text = file.read()
        for before, after in (("0.0.0.0:4222", f"127.0.0.1:{cls.port}"), ("127.0.0.1:8222", f"127.0.0.1:{cls.monitor}"),
                              ("/var/lib/nats", cls.path("store"))):
            assert before in text
            text = text.replace(before, after)
        # streams are the administrator's: a user of this test alone
        with open(cls.path("users.conf"), encoding="utf-8") as file:
            users = file.read().replace("users = [", 'users = [\n  { user: "admin", password: "admin" }')
        with open(cls.path("users.conf"), "w", encoding="utf-8") as file:
            file.write(users)
        with open(cls.path("broker.conf"), "w", encoding="utf-8") as file:
            file.write(text)
        cls.broker = subprocess.Popen(["nats-server", "-c", cls.path("broker.conf")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "2", "--seconds", "20", cls.path("mine")],
                       check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.broker.kill()
        cls.broker.communicate()
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def add(cls, *words):
        line = subprocess.run([os.path.join(DEPLOY, "add_user.sh"), cls.path("users.conf"), *words], capture_output=True, text=True, check=True).stdout
        return line.strip().replace("BROKER:4222", f"127.0.0.1:{cls.port}")

    def publish(self, address, *options):
        return subprocess.run([os.path.join(BUILD, "vapro"), "publish", "--broker", address, "--wait", "3s", *options, self.path("mine")],
                              capture_output=True, text=True, check=False, timeout=60)

    def stored(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/jsz?streams=1") as answer:
            return json.load(answer).get("messages", 0)

    def test_roles(self):
        before = self.stored()
        done = self.publish(f"nats://admin:admin@127.0.0.1:{self.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        blocks = int(re.search(r"(\d+) blocks", done.stderr).group(1))
        self.assertGreater(blocks, 10)
        self.assertEqual(self.stored(), before + blocks)
        for words, address in self.addresses.items():
            with self.subTest(words):
                before = self.stored()
                done = self.publish(address, "--cluster", words[1])
                self.assertNotIn(address.split(":")[2].split("@")[0], done.stderr, "no password is printed")
                if words == ("node", "main", HOST):
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(self.stored(), before + blocks)
                else:
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("does not permit", done.stderr)
                    self.assertEqual(self.stored(), before)
        # the right host, of another cluster
        done = self.publish(self.addresses["node", "main", HOST], "--cluster", "blue")
        self.assertEqual(done.returncode, 1)

    def from_broker(self, command, words, *operands):
        return subprocess.run([os.path.join(BUILD, "vapro"), command, "--broker", self.addresses[words], "--cluster", "main", *operands],
                              capture_output=True, text=True, check=False, timeout=60)

    def test_readers(self):
        """People read results, an analyst blocks, too; a node nothing of both."""
        self.assertEqual(self.publish(f"nats://admin:admin@127.0.0.1:{self.port}").returncode, 0)
        worker = subprocess.Popen([os.path.join(BUILD, "vapro-worker"), "--broker", self.addresses["worker", "main", "w1"], "--output", self.folder.name],
                                  stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + 30
            while self.from_broker("view", ("reader", "main", "r1")).returncode and time.monotonic() < end:
                time.sleep(0.2)
            for role, name in (("reader", "r1"), ("analyst", "a1")):
                done = self.from_broker("view", (role, "main", name))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("rank 0", done.stdout)
            done = self.from_broker("analyze", ("analyst", "main", "a1"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('"type":"window"', done.stdout)
            for command, words in (("view", ("node", "main", HOST)), ("analyze", ("reader", "main", "r1"))):
                done = self.from_broker(command, words)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("add_user.sh", done.stderr)
                self.assertNotIn(self.addresses[words].split(":")[2].split("@")[0], done.stderr, "no password is printed")
        finally:
            worker.terminate()
            worker.wait()
        done = subprocess.run([os.path.join(BUILD, "vapro"), "view", "--broker", f"nats://reader-r1:wrong@127.0.0.1:{self.port}"],
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn("credentials", done.stderr)

    def test_add_user(self):
        script = os.path.join(DEPLOY, "add_user.sh")
        for words, code in ((["node", "main", "a*"], 2), (["king", "main", "a"], 2), (["node", "main"], 2), (["node", "main", "sim0"], 1)):
            done = subprocess.run([script, self.path("users.conf"), *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code, words)
        self.assertEqual(os.stat(self.path("users.conf")).st_mode & 0o077, 0)
        with open(self.path("users.conf"), encoding="utf-8") as file:
            self.assertIn("vapro.v1.in.main.*.other=2Esite", file.read())

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder.name, check=True, capture_output=True)

    def test_tls(self):
        """A broker whose certificate is of a known authority and names it; any other is refused, in words."""
        for name in ("ca", "stranger"):
            self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "broker.key", "-out", "broker.csr")
        with open(self.path("names"), "w", encoding="utf-8") as file:
            file.write("subjectAltName = DNS:localhost\n")
        self.openssl("x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "names", "-out", "broker.pem")
        port = free_port()
        with open(self.path("tls.conf"), "w", encoding="utf-8") as file:
            file.write(f'listen: 127.0.0.1:{port}\njetstream {{ store_dir: "{self.path("tls")}", max_file: 64M }}\n'
                       f'tls {{ cert_file: "{self.path("broker.pem")}", key_file: "{self.path("broker.key")}" }}\n')
        broker = subprocess.Popen(["nats-server", "-c", self.path("tls.conf")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for address, ca, code, says in ((f"tls://localhost:{port}", "ca.pem", 0, "are stored"), (f"tls://localhost:{port}", "stranger.pem", 1, "certificate"),
                                            (f"tls://127.0.0.1:{port}", "ca.pem", 1, "certificate"), (f"tls://localhost:{port}", None, 1, "certificate")):
                with self.subTest(address=address, ca=ca):
                    done = self.publish(address, *(("--broker-ca", self.path(ca)) if ca else ()))
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(says, done.stderr)
        finally:
            broker.kill()
            broker.wait()

    def test_cluster_is_valid(self):
        with open(os.path.join(DEPLOY, "cluster.conf"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("cluster.conf"), "w", encoding="utf-8") as file:
            file.write(text.replace("/var/lib/nats", self.path("other")))
        done = subprocess.run(["nats-server", "-t", "-c", self.path("cluster.conf")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
