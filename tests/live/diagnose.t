#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: quiet
"""vapro diagnose: a running vaprod says why a region was slow, and no client can harm it."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from live import ROOT, VAPRO, VAPROD, attached, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))


def query(jobs, name, *words, limit=70, **more):
    """Exit code, standard output and standard error of vapro diagnose."""
    code, job = jobs.run([VAPRO, "diagnose", *words], name, limit, **more)
    return code, job.out(), job.err()


def program(jobs, seconds, name="demo_mpi"):
    """Two ranks at work, and their pids."""
    logs = os.path.join(jobs.directory, name)
    os.makedirs(logs, exist_ok=True)
    for old in os.listdir(logs):
        os.unlink(os.path.join(logs, old))
    job = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", seconds, "--log", logs, "--scratch", logs, "--bind"), name)
    return job, rank_pids(job, logs, 2)


def valid(path):
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), path], capture_output=True,
                           text=True, check=False)
    return check.returncode == 0, check.stdout[-600:]


def test_usage(tap, jobs):
    code, out, _ = query(jobs, "help", "--help")
    tap.ok(code == 0 and "RANKS@BEGIN..END" in out and "--socket" in out, "--help")
    for words, named in (([], "a region is needed"), (["0@2..1"], "ends before"), (["3-1@0..1"], "invalid ranks"), (["0"], "RANKS@BEGIN..END"),
                         (["all@..", "more"], "not also 'more'"), (["--job", "", "all@.."], "--job"), (["--nonsense", "all@.."], "nonsense"),
                         (["--socket", "/" + "a" * 200, "all@.."], "at most 107 bytes")):
        code, out, err = query(jobs, "usage", *words)
        tap.ok(code == 2 and named in err and not out, "diagnose " + " ".join(words)[:40] + " is refused", f"{code} {err}")
    nowhere = os.path.join(jobs.directory, "nowhere")
    for where in (nowhere, nowhere + "/"):
        code, out, err = query(jobs, "no_vaprod", "--socket", where, "all@..")
        tap.ok(code == 1 and "no running vaprod found" in err, "without a vaprod, vapro diagnose says that none is running",
               f"{code} {err}")
    copy = f"/tmp/vapro-test-{os.getpid()}"
    shutil.copy(VAPRO, copy)
    os.chmod(copy, 0o755)
    try:
        code, job = jobs.run([copy, "diagnose", "all@.."], "unprivileged", 20, user=65534, cwd="/")
    finally:
        os.unlink(copy)
    tap.ok(code == 1 and "without root" in job.err() and "no running vaprod found" in job.err(),
           "a user other than root is sent to the node's vaprod, of which there is none", f"{code} {job.err()}")
    for where in ("relative", "/dev/null", "/tmp/vapro-test-socket"):
        out = os.path.join(jobs.directory, "out.ndjson")
        daemon = jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--output", out, "--socket", where], "badly")
        tap.equal(jobs.wait(daemon, 30), 0, f"vaprod runs on without a socket at {where}")
        tap.equal([w["code"] for w in of_type(records(out), "warning")], ["no_socket"], "a warning says that there is no socket")
    daemon = jobs.start([VAPROD, "--pid", os.getpid(), "--duration", "0.3", "--output", out, "--socket", ""], "none")
    tap.equal((jobs.wait(daemon, 30), of_type(records(out), "warning")), (0, []),
              "without a socket by request there is no warning")


def test_answers(tap, jobs):
    """Queries about a hog on rank 1's CPU while the job runs; the run's lines are those of its replay."""
    mpi, pids = program(jobs, 22)
    out, capture, where = (os.path.join(jobs.directory, name) for name in ("out.ndjson", "run.capture", "socket"))
    daemon = jobs.start([VAPROD, *select(pids), "--output", out, "--capture", capture, "--window", "3", "--socket", where], "vaprod")
    attached(out, pids)

    # a client connects and sends a part of a request only
    hung = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    hung.connect(where)
    hung.sendall(b"vapro/1 dia")
    hung.settimeout(20)
    tap.equal(os.stat(where).st_mode & 0o777, 0o600, "only root may use the socket")

    def future():
        code, _, err = query(jobs, "future", "--socket", where, "0@10000..")
        return code == 1 and "in the future; available: ranks " in err
    tap.ok(until(future, 20), "a query about the future is refused with the time of the data")
    hog = jobs.start([tool("hog"), "--cpu", CPUS[1 % len(CPUS)], "--start-after", 5, "--seconds", 5], "hog")
    tap.equal(jobs.wait(hog, 30), 0, "a hog has run on the CPU of rank 1")
    reported = len(of_type(records(out), "window"))

    code, text, err = query(jobs, "json", "--socket", where, "--json", "1@..")
    tap.ok(code == 0 and not err, "a query is answered while the job runs", f"{code} {err}")
    path = os.path.join(jobs.directory, "answer.ndjson")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    answers = {r["region"]["class"]: r for r in records(path)}
    tap.ok(all(r["type"] == "diagnosis" and r["variance"] == 0 and r["region"]["ranks"] == "1" for r in answers.values()),
           "the answer is about the ranks of the query", text)
    tap.ok(*((good := valid(path))[0], "the answer is valid by the schema", good[1]))
    slow = answers.get("computation", {"factors": [], "interferers": [], "region": {"lost_seconds": 0}})
    tap.ok(slow["region"]["lost_seconds"] > 0.5, "the region was slow", slow["region"])
    tap.ok("suspension" in {f["name"] for f in slow["factors"] if f["major"]}, "suspension is a major factor", slow["factors"])
    tap.ok("hog" in {i["comm"] for i in slow["interferers"]}, "the hog is an interferer", slow["interferers"])

    code, text, err = query(jobs, "text", "--socket", where, "all@..")
    said = " ".join(text.split())
    tap.ok(code == 0 and "of ranks 0-1" in said and "% of their time judged" in said and "why" in said,
           "the answer as text is about all ranks",
           text + err)
    head = said
    tap.ok("demo_mpi (pmix " in head and ", user " in head and f") on host {socket.gethostname()}: " in head,
           "the head of the answer has program, user and host", head[:300])
    code, text, err = query(jobs, "since", "--socket", where, "--since", "0", "1")
    tap.ok(code == 0 and "of rank 1:" in text, "--since takes ranks without a time", text + err)
    code, text, err = query(jobs, "twice", "--socket", where, "--until", "9", "1@0..2")
    tap.ok(code == 2 and "ranks alone" in err, "a region with a time and --until is refused", f"{code} {err}")
    job = slow["job"]
    code, text, err = query(jobs, "job", "--socket", where, "--job", job, "0@..")
    tap.ok(code == 0 and "demo_mpi (pmix " in text and "of rank 0:" in text, "a query with --job is answered for this job", text + err)
    code, text, err = query(jobs, "no_job", "--socket", where, "--job", "unknown:0", "all@..")
    tap.ok(code == 1 and job in err, "a query about an unknown job is refused with the known jobs", f"{code} {err}")
    code, text, err = query(jobs, "no_rank", "--socket", where, "7-9@..")
    tap.ok(code == 1 and "no such ranks" in err and "ranks 0-1" in err,
           "a query about unknown ranks is refused with the known ranks", f"{code} {err}")
    code, text, err = query(jobs, "old", "--socket", where, "all@2001-01-01T00:00:00Z..2001-01-01T00:00:01Z")
    tap.ok(code == 1 and "over and dropped; available: ranks " in err,
           "a query about dropped data is refused with the time of the data", f"{code} {err}")

    # a client that hangs is dropped, and the daemon continues meanwhile
    said = hung.recv(1000).decode()
    tap.ok("no request came" in said and hung.recv(1) == b"", "a client without a complete request is refused", said)
    hung.close()
    strange = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    strange.connect(where)
    strange.sendall(b"GET / HTTP/1.0\r\n\r\n")
    strange.settimeout(20)
    tap.ok("error usage" in strange.recv(1000).decode(), "a client with another request is refused")
    strange.close()
    os.chmod(where, 0o666)
    other = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); "
             "print(s.recv(1000).decode())")
    deep = [where]
    while deep[-1] != "/":
        deep.append(os.path.dirname(deep[-1]))
    if all(os.stat(d).st_mode & 1 for d in deep[1:]):
        code, job = jobs.run(["/usr/bin/python3", "-c", other, where], "other_user", 30, user=65534, cwd="/")
        tap.ok("only root may query" in job.out(), "another user is refused, were the socket open to all", job.out() + job.err())
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.connect(where)
    deaf.sendall(b"vapro/1 diagnose\nregion all@..\nformat json\n\n")  # and does not read the answer

    tap.ok(until(lambda: len(of_type(records(out), "window")) > reported, 20), "windows are still emitted")
    tap.equal(jobs.wait(mpi, 60), 0, "the program ends well")
    tap.equal(jobs.wait(daemon, 20), 0, "vaprod ends with its targets")
    deaf.close()
    tap.ok(not os.path.exists(where), "vaprod removes its socket")
    again = os.path.join(jobs.directory, "again.ndjson")
    code, job = jobs.run([VAPRO, "analyze", capture, "--output", again], "analyze", 30)

    def lines(name):
        return [{k: v for k, v in r.items() if not (k == "time" and r["type"] in ("hello", "bye"))} for r in records(name)]
    tap.ok(code == 0 and lines(again) == lines(out), "no query has changed the records of the run", job.err())


def test_several_and_killed(tap, jobs):
    mpi, pids = program(jobs, 40)
    run = os.path.join(jobs.directory, "run")
    shutil.rmtree(run, ignore_errors=True)
    outs = [os.path.join(jobs.directory, f"out{i}.ndjson") for i in range(4)]

    def start(i, where, *words):
        daemon = jobs.start([VAPROD, *select(pids), "--output", outs[i], "--window", "3", "--socket", where, *words], f"vaprod{i}")
        attached(outs[i], pids)
        return daemon
    first, second = start(0, run + "/"), start(1, run + "/")
    tap.equal(os.stat(run).st_mode & 0o777, 0o755, "only root may write to the directory")
    tap.equal([os.stat(os.path.join(run, f"vaprod.{d.pid}")).st_mode & 0o777 for d in (first, second)], [0o600] * 2,
              "only root may use the sockets")
    names = [os.path.join(run, f"vaprod.{d.pid}") for d in (first, second)]
    tap.equal(sorted(os.path.join(run, n) for n in os.listdir(run) if n.rpartition(".")[2].isdigit()), sorted(names),
              "each vaprod has its own socket")
    code, _, err = query(jobs, "which", "--socket", run + "/", "all@..")
    tap.ok(code == 2 and all(n in err for n in names),
           "with several vaprods a query is refused with the names of their sockets", f"{code} {err}")
    tap.ok(all(f"pid {d.pid}: " in err for d in (first, second)) and err.count("(2 processes)") == 2,
           "it lists the PID and the jobs of each", err)

    # a vaprod that is killed leaves its socket; only the other one answers
    os.kill(first.pid, signal.SIGKILL)
    jobs.wait(first, 10)
    tap.ok(os.path.exists(names[0]), "the socket of a killed vaprod remains")
    code, _, err = query(jobs, "killed", "--socket", names[0], "all@..")
    tap.ok(code == 1 and "no running vaprod found" in err, "a query at this socket finds no vaprod", f"{code} {err}")

    def answered(where, name):
        return until(lambda: query(jobs, name, "--socket", where, "all@..")[0] == 0, 30)
    tap.ok(answered(run + "/", "one"), "a query of the directory is answered by the other vaprod")
    third = start(2, names[1])
    tap.ok("another vaprod listens there" in str(of_type(records(outs[2]), "warning")),
           "the socket of a running vaprod is not replaced")
    tap.ok(answered(names[1], "retained"), "the running vaprod still answers at its socket")
    tap.equal(jobs.interrupt(third), 0, "the vaprod without a socket ends well")
    fourth = start(3, names[0])
    tap.ok(not of_type(records(outs[3]), "warning"),
           "the socket of the killed vaprod is replaced", of_type(records(outs[3]), "warning"))
    tap.ok(answered(names[0], "again"), "a query at the replaced socket is answered")
    tap.equal([jobs.interrupt(d) for d in (second, fourth)], [0, 0], "all vaprods end well")
    tap.equal(os.listdir(run), [".lock"], "no socket remains")
    tap.equal(mpi.process.poll(), None, "the program runs on")


main(test_usage, test_answers, test_several_and_killed, held=False)
