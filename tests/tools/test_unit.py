#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The systemd units: what they expose; the drop-in that opens the network for publishing, and the warning of --check-config where
the unit forbids it; the directory and the addresses of the worker. test_unit.py [BUILD]
"""
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.path.join(ROOT, "build"))
UNITS = os.path.join(ROOT, "deploy")
SCRIPT = os.path.join(UNITS, "systemd", "publish-unit.sh")
MOST, MOST_WITH_PUBLISH = 2.5, 3.0
OPEN = "LoadState=loaded\nPrivateNetwork=no\nIPAddressDeny=::/0 0.0.0.0/0\nRestrictAddressFamilies=AF_UNIX AF_INET6 AF_INET\n"


def program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def run(*words, **env):
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Publish(Folder):
    def drop_in(self, brokers, servers=""):
        settings = self.write("settings", "[publishing]\n" + (f"broker = {brokers}\n" if brokers else "#broker =\n"))
        return run(SCRIPT, VAPROD=program(self.folder, "vaprod", f"cat {settings}\n"), RESOLV_CONF=self.write("resolv.conf", servers))

    def test_addresses(self):
        """An address needs no name server."""
        code, out, err = self.drop_in("nats://192.0.2.7:4222,nats://[2001:db8::1]:4333", "nameserver 192.0.2.53\n")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(re.findall(r"^IPAddressAllow=(.*)$", out, re.M), ["192.0.2.7", "2001:db8::1"])
        self.assertIn("\nPrivateNetwork=no\n", out)
        self.assertNotIn("any", re.sub("#.*", "", out))

    def test_names(self):
        code, out, err = self.drop_in("tls://localhost", "search x\nnameserver 192.0.2.53\nnameserver 192.0.2.54\n")
        self.assertEqual((code, err), (0, ""))
        allowed = re.findall(r"^IPAddressAllow=(.*)$", out, re.M)
        self.assertEqual(allowed[-2:], ["192.0.2.53", "192.0.2.54"])
        self.assertTrue(set(allowed[:-2]) <= {"127.0.0.1", "::1"} and allowed[:-2], out)

    def test_none(self):
        code, out, err = self.drop_in("")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("names no broker", err)
        self.assertEqual(self.drop_in("nats://no-such-host.invalid")[0], 1)

    def exposure(self, unit, drop_in=None):
        with open(os.path.join(UNITS, unit), encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M)
        if drop_in:
            # systemd-analyze has no drop-ins offline: later assignments hold, lists are added to
            text = text.replace("[Install]", "[Service]\n" + drop_in.partition("[Service]\n")[2] + "[Install]")
        code, out, err = run("systemd-analyze", "security", "--offline=true", self.write(unit, text))
        found = re.search(r"Overall exposure level for \S+: (\d+\.\d+)", out)
        self.assertTrue(found, out + err)
        self.assertEqual(code, 0, err)
        return float(found.group(1))

    def test_exposure(self):
        self.assertLessEqual(self.exposure("vaprod.service"), MOST)
        self.assertLessEqual(self.exposure("vapro-worker.service"), MOST)
        published = self.exposure("vaprod.service", self.drop_in("nats://192.0.2.7")[1])
        self.assertGreater(published, self.exposure("vaprod.service"))
        self.assertLessEqual(published, MOST_WITH_PUBLISH)


class CheckConfig(Folder):
    def warned(self, unit, broker="nats://192.0.2.7:4222"):
        """What --check-config says on standard error where systemctl says this of the unit."""
        program(self.folder, "systemctl", f"cat <<EOF\n{unit}EOF\n")
        config = self.write("vapro.conf", f"broker = {broker}\n" if broker else "")
        code, _, err = run(os.path.join(BUILD, "vaprod"), "--config", config, "--check-config", PATH=self.folder + ":" + os.environ["PATH"])
        self.assertEqual(code, 0, err)
        return err

    def test_forbidden(self):
        self.assertIn("PrivateNetwork=yes", self.warned("LoadState=loaded\nPrivateNetwork=yes\n"))
        self.assertIn("RestrictAddressFamilies=AF_UNIX", self.warned("LoadState=loaded\nPrivateNetwork=no\nRestrictAddressFamilies=AF_UNIX\n"))
        self.assertIn("192.0.2.7", self.warned(OPEN + "IPAddressAllow=192.0.2.8/32\n"))
        self.assertIn("2001:db8::1", self.warned(OPEN + "IPAddressAllow=192.0.2.0/24\n", "nats://192.0.2.7,nats://[2001:db8::1]:1"))

    def test_allowed(self):
        for unit in (OPEN + "IPAddressAllow=192.0.2.7/32\n", OPEN + "IPAddressAllow=192.0.0.0/16\n", "LoadState=not-found\n",
                     "LoadState=loaded\nPrivateNetwork=no\nRestrictAddressFamilies=~AF_PACKET\n"):
            self.assertEqual(self.warned(unit), "", unit)
        self.assertEqual(self.warned("LoadState=loaded\nPrivateNetwork=yes\n", ""), "")


class Worker(Folder):
    def test_directory(self):
        """The worker makes its directory before it looks for the broker, which is not there."""
        path = os.path.join(self.folder, "results")
        code, _, err = run(os.path.join(BUILD, "vapro-worker"), "--broker", "nats://127.0.0.1:1", "--output", path)
        self.assertEqual(code, 1, err)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o750)
        code, _, err = run(os.path.join(BUILD, "vapro-worker"), "--broker", "nats://127.0.0.1:1", "--output", path + "/a/b")
        self.assertEqual(code, 2, err)
        self.assertIn("cannot be made", err)

    def test_environment(self):
        with open(os.path.join(UNITS, "vapro-worker.service"), encoding="utf-8") as file:
            unit = file.read()
        with open(os.path.join(UNITS, "vapro-worker.env"), encoding="utf-8") as file:
            example = file.read()
        self.assertIn("\nEnvironmentFile=-/etc/vapro/vapro-worker.env\n", unit)
        for name in re.findall(r"\$\{?(VAPRO_\w+)", unit):
            self.assertIn(f"\n#{name}=", example)


if __name__ == "__main__":
    unittest.main()
