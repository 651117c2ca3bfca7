#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Mistakes of newcomers: each message names what is wrong and the cure. None of these gets as far as loading a probe, so that
root is not needed; what needs a daemon is in tests/live/tool.t.
"""
import bz2
import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else "build")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import contradictions  # noqa: E402
FAILED, USAGE, REFUSED = 1, 2, 3


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chmod(cls.folder.name, 0o755)
        subprocess.run([os.path.join(BUILD, "tests", "make_capture"), "--ranks", "4", "--seconds", "20", "--noise", "0.02",
                        cls.path("run.capture")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join(BUILD, "vapro"), "analyze", "-o", cls.path("run.ndjson"), cls.path("run.capture")], check=True)
        contradictions.demand_none(cls.path("run.ndjson"))
        with open(cls.path("run.ndjson"), "rb") as file:
            records = file.read()
        for name, data in (("run.ndjson.gz", gzip.compress(records)), ("run.ndjson.bz2", bz2.compress(records)),
                           ("run.ndjson.xz", lzma.compress(records)), ("run.ndjson.zst", b"\x28\xb5\x2f\xfd" + bytes(9)), ("empty", b""),
                           ("fragments", b'{"rank":0,"class":"io","start_ns":1,"duration_ns":2}\n')):
            with open(cls.path(name), "wb") as file:
                file.write(data)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def mistake(self, words, code, *named, before=()):
        """Runs a command of words, in the folder; its standard error must have one line with everything in named."""
        program, *rest = words.split()
        done = subprocess.run([*before, os.path.join(BUILD, program), *rest], capture_output=True, text=True, check=False, cwd=self.folder.name,
                              timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (code, ""), words + ": " + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, words + ": " + done.stderr)
        for text in named:
            self.assertIn(text, done.stderr, words)

    def test_misspelt(self):
        self.mistake("vaprod --pdi 1", USAGE, "unknown option '--pdi'", "did you mean '--pid'?")
        self.mistake("vaprod --thresold 85%", USAGE, "did you mean '--threshold'?")
        self.mistake("vaprod --dur 1", USAGE, "did you mean '--duration'?")
        self.mistake("vapro veiw run.ndjson", USAGE, "unknown command 'veiw'", "did you mean 'view'?")
        self.mistake("vapro view --bogus run.ndjson", USAGE, "vapro view: unknown option '--bogus'")
        self.mistake("vapro view --wid 60 run.ndjson", USAGE, "vapro view: unknown option '--wid'", "did you mean '--width'?")
        self.mistake("vaprod run.ndjson", USAGE, "unknown argument 'run.ndjson'", "--help")

    def test_configuration(self):
        for line, named in (("windw = 3", "did you mean 'window'?"), ("[outptu]", "did you mean [output]?"), ("a: b", "name = value")):
            with open(self.path("site.conf"), "w", encoding="utf-8") as file:
                file.write("\n" + line + "\n")
            self.mistake("vaprod --config site.conf", USAGE, "site.conf:2: ", named)
            self.mistake("vapro check --config site.conf", USAGE, "site.conf:2: ", named)
        self.mistake("vaprod --config none.conf", USAGE, "none.conf: No such file")

    def test_values(self):
        self.mistake("vaprod --memory-cap lots", USAGE, "--memory-cap: invalid size 'lots'", "256M")
        self.mistake("vaprod --threshold 85", USAGE, "--threshold: invalid share '85'", "1% to 100%")
        self.mistake("vaprod --window 1d", USAGE, "--window: invalid duration '1d'", "5m or 1h")
        self.mistake("vaprod --no-return=maybe", USAGE, "--no-return: invalid word 'maybe'; expected yes or no")
        self.mistake("vaprod --io some", USAGE, "--io: invalid word 'some'; expected off, on or auto")
        self.mistake("vaprod --pid mpirun", USAGE, "--pid: invalid PID 'mpirun'", "pgrep")
        self.mistake("vaprod --fail-on bad", USAGE, "expected info, warning or critical")
        self.mistake("vaprod --output", USAGE, "--output needs a value: FILE|-")
        self.mistake("vapro view --rows 0 run.ndjson", USAGE, "--rows: invalid number '0'; expected 1 to 1000000")
        self.mistake("vapro view --class foo run.ndjson", USAGE, "--class: invalid word 'foo'", "computation, communication or io")
        self.mistake("vapro stg --rank x run.capture", USAGE, "--rank: invalid rank 'x'; expected 0 or more")
        self.mistake("vaprod --fail-on bad", USAGE, "--fail-on: invalid severity 'bad'; expected")
        self.mistake("vaprod --duration 5x", USAGE, "--duration: invalid duration '5x'; expected a time", "5m or 1h")
        self.mistake("vaprod --counters tests", USAGE, "--counters: invalid word 'tests'; expected auto, hardware or none")
        self.mistake("vaprod --min-cells 3", USAGE, "unknown option '--min-cells'")
        self.mistake("vaprod --exe=", USAGE, "--exe: invalid pattern ''; expected a glob")
        self.mistake("vapro diff --threshold 0 run.capture run.capture", USAGE, "--threshold: invalid percentage '0'", "more than 0%")
        self.mistake("vapro diff --fail-on faster run.capture run.capture", USAGE, "--fail-on: invalid word 'faster'; expected never or slower")
        self.mistake("vapro diff --run 1,x run.capture run.capture", USAGE, "--run: invalid run '1,x'; expected 1, 2, ...")
        self.mistake("vapro top --interval 1ms", USAGE, "--interval: invalid duration '1ms'; expected 500ms to 1h")
        self.mistake("vapro top --count 0", USAGE, "--count: invalid number '0'; expected a number from 1 on")
        self.mistake("vapro top --user no-such-user", USAGE, "--user: invalid user 'no-such-user'; expected the name or number")
        self.mistake("vapro publish --speed 0 run.capture", USAGE, "--speed: invalid number '0'; expected a number above 0")
        self.mistake("vapro-worker --replicas 2", USAGE, "--replicas: invalid number '2'; expected 1, 3 or 5")
        self.mistake("vapro-worker --memory 1M", USAGE, "--memory: invalid size '1M'; expected at least 16M")
        self.mistake("vapro-worker --lease 5x", USAGE, "--lease: invalid duration '5x'; expected 1s to ")
        self.mistake("vapro report --class foo run.ndjson", USAGE, "--class: invalid word 'foo'", "computation, communication or io")
        self.mistake("vapro analyze --run 0 run.capture", USAGE, "--run: invalid run '0'; expected 1, 2, ...")

    def test_wrong_file(self):
        self.mistake("vapro view run.capture", FAILED, "run.capture is a capture", "`vapro analyze --summary -o run.ndjson run.capture`")
        self.mistake("vapro stg run.ndjson", FAILED, "records", "`vapro view run.ndjson`")
        self.mistake("vapro analyze run.ndjson", FAILED, "records", "`vapro view run.ndjson`")
        self.mistake("vapro analyze --format ndjson run.ndjson", FAILED, "records", "`vapro view run.ndjson`")
        self.mistake("vapro analyze --format ndjson run.capture", FAILED, "`vapro analyze run.capture`, without --format ndjson")
        self.mistake("vapro analyze fragments", FAILED, "fragments", "`vapro analyze --format ndjson")
        self.mistake("vapro view fragments", FAILED, "fragments", "`vapro analyze --format ndjson")
        self.mistake("vapro view empty", FAILED, "empty is empty")
        self.mistake("vapro view .", FAILED, ". is a directory")
        self.mistake("vapro view none", FAILED, "none: No such file")
        for suffix, program in (("gz", "gzip"), ("bz2", "bzip2"), ("xz", "xz"), ("zst", "zstd")):
            self.mistake(f"vapro view run.ndjson.{suffix}", FAILED, f"`{program} -dc run.ndjson.{suffix} | vapro view -`")

    def test_missing_argument(self):
        self.mistake("vapro run", USAGE, "a command is needed: vapro run [options] -- mpirun ...")
        self.mistake("vapro view", USAGE, "a file of NDJSON output is needed")
        self.mistake("vapro stg", USAGE, "a capture is needed")
        self.mistake("vapro analyze", USAGE, "a capture is needed")
        self.mistake("vapro diagnose", USAGE, "a region is needed, such as all@..")
        self.mistake("vapro publish run.capture", USAGE, "--broker is needed")
        self.mistake("vapro-worker", USAGE, "--broker URL is needed")
        self.mistake("vapro view --job a run.ndjson", USAGE, "--job needs --broker URL")
        self.mistake("vapro view --broker nats://b run.ndjson", USAGE, "a file or --broker is read, not both")
        self.mistake("vaprod --publish-only", USAGE, "--publish-only needs --broker")
        self.mistake("vaprod --dry-run --broker-ca run.capture", USAGE, "--broker-ca needs --broker URL")
        self.mistake("vaprod --check-config -c /dev/zero", USAGE, "/dev/zero:1: not a line of text")
        self.mistake("vaprod --broker-cert run.capture --broker nats://b", USAGE, "--broker: a certificate needs its key")
        self.mistake("vapro help vaprod", USAGE, "'vaprod' is no command of vapro", "`vaprod --help`")
        self.mistake("vapro help veiw", USAGE, "unknown command 'veiw'", "did you mean 'view'?")
        self.mistake("vapro run --pid 1 -- true", USAGE, "--pid, --exe, --duration and --dry-run are vaprod's")

    def test_command_that_is_not_there(self):
        self.mistake("vapro run -- /nonexistent/program", 127, "cannot run /nonexistent/program: No such file or directory")
        self.mistake("vapro run -- no-such-program-anywhere", 127, "cannot run no-such-program-anywhere: No such file")
        with open(self.path("plain"), "w", encoding="utf-8"):
            os.chmod(self.path("plain"), 0o644)
        self.mistake("vapro run -- ./plain", 126, "cannot run ./plain: Permission denied")

    def test_disk_space(self):
        with open(self.path("disk.conf"), "w", encoding="utf-8") as file:
            file.write("[output]\noutput = /nonexistent/run.ndjson\ncapture = run.capture\n")
        done = subprocess.run([*self.unprivileged(), os.path.join(BUILD, "vapro"), "check", "--config", self.path("disk.conf")],
                              capture_output=True, text=True, check=False, cwd=self.folder.name, timeout=60)
        self.assertRegex(done.stdout, r"disk space +no +/nonexistent/: No such file")
        self.assertRegex(done.stdout, r"disk space +(yes|no) +[0-9.]+ GiB free for run\.capture")

    def test_region(self):
        self.mistake("vapro analyze -o /dev/null --region 9@1..2 run.capture", FAILED, "no such ranks; available: ranks 0-3")
        self.mistake("vapro analyze --region 1 run.capture", USAGE, "RANKS@BEGIN..END")

    def test_no_such_process(self):
        with open("/proc/sys/kernel/pid_max", encoding="utf-8") as file:
            pid = int(file.read()) - 1
        while os.path.exists(f"/proc/{pid}"):
            pid -= 1
        if os.geteuid():
            self.skipTest("without root the privileges are missing first")
        self.mistake(f"vaprod --pid {pid}", FAILED, f"there is no process {pid}", "pgrep")

    def unprivileged(self):
        """The words that run a command without any privilege."""
        if os.geteuid():
            return ()
        return ("setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set=-all")

    def test_not_root(self):
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("setpriv is not installed")
        programs = tempfile.mkdtemp(dir="/tmp")
        os.chmod(programs, 0o755)
        try:
            for name in ("vaprod", "vapro"):
                shutil.copy(os.path.join(BUILD, name), programs)
            for words in (["vaprod"], ["vapro", "run", "--socket", "/nowhere/", "--", "true"]):
                done = subprocess.run([*self.unprivileged(), os.path.join(programs, words[0]), *words[1:]], capture_output=True, text=True,
                                      check=False, cwd="/", timeout=60)
                self.assertEqual((done.returncode, done.stdout), (REFUSED, ""))
                self.assertRegex(done.stderr, r"missing privileges \(CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE.*\): run it as root; `vapro check`")
            done = subprocess.run([*self.unprivileged(), os.path.join(programs, "vapro"), "diagnose", "--socket", "/nowhere/", "all@.."], capture_output=True, text=True,
                                  check=False, cwd="/", timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "without root: .* your own jobs\n.*no running vaprod found")
            done = subprocess.run([*self.unprivileged(), os.path.join(programs, "vapro"), "check"], capture_output=True, text=True, check=False,
                                  cwd="/", timeout=60)
            self.assertEqual(done.returncode, REFUSED)
            self.assertTrue(re.search(r"CAP_SYS_PTRACE +MISSING +without it", done.stdout), done.stdout)
        finally:
            shutil.rmtree(programs)


if __name__ == "__main__":
    unittest.main(verbosity=int("-v" in sys.argv) + 1)
