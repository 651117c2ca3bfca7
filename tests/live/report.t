#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""vapro report of a running vaprod: what it retains is what it has written, and users get the records of their own jobs."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from live import ROOT, VAPRO, VAPROD, attached, j, main, of_type, rank_pids, records, select, tool, until  # noqa: E402
from trace_rules import faults  # noqa: E402

CPUS = sorted(os.sched_getaffinity(0))
USER, OTHER = 65534, 65533


def response(path, text=b"vapro/1 report\n\n"):
    """The records that the status socket sends, and the number of bytes that it has announced."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(30)
    client.connect(path)
    client.sendall(text)
    got = b""
    while part := client.recv(65536):
        got += part
    client.close()
    head, _, body = got.partition(b"\n")
    return [json.loads(line) for line in body.splitlines()], head.decode(), body


def cells(lines, until_time=None):
    """The latest value of each cell of the maps of ranks: (job, class, rank, bin) -> hundredths, or None."""
    found = {}
    for line in of_type(lines, "heatmap"):
        if until_time and line["time"] > until_time:
            continue
        begin = to_ns(line["begin"]) // line["bin_ns"]
        for row in line["rows"]:
            if "thread" in row:
                continue
            for at, value in enumerate(row["values"]):
                found[line["job"], line["class"], row["rank"], begin + at] = None if value is None else round(100 * value)
    return found


def to_ns(text):
    seconds, _, rest = text.rstrip("Z").partition(".")
    whole = subprocess.run(["date", "-u", "-d", seconds + "Z", "+%s"], capture_output=True, text=True, check=True).stdout
    return int(whole) * 10**9 + int(rest.ljust(9, "0"))


def page_data(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(re.search(r'id="data">(.*?)</script>', file.read(), re.S)[1])


def test_report(tap, jobs):
    where, home = f"/tmp/vapro-report-{os.getpid()}/", f"/tmp/vapro-report-{os.getpid()}-home"
    for left in (where, home):
        shutil.rmtree(left, ignore_errors=True)
    os.makedirs(home)
    os.chown(home, USER, USER)
    for file in (VAPRO, tool("crew")):
        shutil.copy(file, home)
        os.chmod(os.path.join(home, os.path.basename(file)), 0o755)
    logs, out = os.path.join(jobs.directory, "logs"), os.path.join(jobs.directory, "out.ndjson")
    shutil.rmtree(logs, ignore_errors=True)  # of an earlier run
    os.makedirs(logs)
    mpi = jobs.start(j.mpirun(2, tool("demo_mpi"), "--seconds", 90, "--log", logs, "--scratch", logs, "--bind"), "demo_mpi")
    pids = rank_pids(mpi, logs, 2)
    own = jobs.start([os.path.join(home, "crew"), "--seconds", "90"], "crew", user=USER, cwd=home)
    daemon = jobs.start([VAPROD, *select([*pids, own.pid]), "--output", out, "--window", "3", "--socket", where], "vaprod")
    attached(out, pids)
    hog = jobs.start([tool("hog"), "--cpu", CPUS[1 % len(CPUS)], "--start-after", 4, "--seconds", 12], "hog")
    tap.ok(until(lambda: of_type(records(out), "diagnosis") and len(of_type(records(out), "window")) >= 10, 60), "a slow region is diagnosed")
    path = f"{where}vaprod.{daemon.pid}.status"

    lines, head, body = response(path)
    tap.equal(head, f"ok {len(body)}", "root gets a response")
    tap.equal(lines[0]["type"], "hello", "which begins as a run does")
    last = max(line["time"] for line in of_type(lines, "window"))
    written = [line for line in records(out) if line.get("time", "") <= last]
    live, all_cells = cells(lines), cells(written, last)
    wrong = [(key, value, all_cells.get(key)) for key, value in live.items() if value is not None and all_cells.get(key) != value]
    tap.ok(len(live) > 100 and not wrong, f"the {len(live)} cells are those that were written", str(wrong[:5]))
    missing = [key for key, value in all_cells.items() if value is not None and live.get(key) is None]
    tap.ok(not missing, "and none of them is missing", str(missing[:5]))
    tap.equal(*(sorted((w["job"], w["end"]) for w in of_type(of, "window")) for of in (lines, written)), "so are the windows")
    ids = {line["id"] for line in of_type(lines, "variance")}
    tap.ok(ids and ids <= {line["id"] for line in of_type(written, "variance")}, "and the slow regions")
    file = os.path.join(jobs.directory, "response.ndjson")
    with open(file, "wb") as response_file:
        response_file.write(body)
    check = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests", "schema_check.py"), file], capture_output=True, text=True, check=False)
    tap.equal((check.returncode, check.stdout[-500:] if check.returncode else ""), (0, ""), "the records are those of the schema")

    job = of_type(lines, "job_status")
    mine, secret = ([one["job"] for one in job if any(p["pid"] in wanted for p in one["processes"])] for wanted in ([own.pid], pids))
    names = {name: os.path.join(jobs.directory, name) for name in ("page.html", "tables", "map.svg", "trace.json")}
    code, done = jobs.run([VAPRO, "report", "--socket", where, "--html", names["page.html"], "--csv", names["tables"], "--svg", names["map.svg"],
                           "--job", secret[0], "--trace", names["trace.json"]], "report", 60)
    tap.equal((code, all(os.path.exists(name) for name in names.values())), (0, True), "page, tables, picture and trace are written: " + done.err())
    data = page_data(names["page.html"])
    tap.ok(data["source"]["kind"] == "a running vaprod" and data["regions"] and data["maps"] and data["observer"]["shows"] == "all"
           and data["jobs"][0]["ranks"] == 2 and data["states"], "the page has the maps, regions and states of the job", json.dumps(data)[:2000])
    with open(names["trace.json"], encoding="utf-8") as trace:
        tap.equal(faults(json.load(trace)), [], "the trace obeys the rules of its format")

    # users
    code, page = jobs.run([os.path.join(home, "vapro"), "report", "--socket", where, "--html", "-"], "own", 60, user=USER, cwd=home)
    tap.ok(code == 0 and "crew" in page.out() and not any(text in page.out() for text in ["demo_mpi", *secret]), "a user's page has the user's job alone",
           page.err() + str(secret))
    code, page = jobs.run([os.path.join(home, "vapro"), "report", "--socket", where, "--html", "-"], "other", 60, user=OTHER, cwd="/")
    tap.ok(code == 0 and not any(text in page.out() for text in ["demo_mpi", "/crew", *mine, *secret]), "that of another user has none", page.err())
    windows = len(of_type(records(out), "window"))
    tap.ok(until(lambda: len(of_type(records(out), "window")) > windows, 30), "windows go on meanwhile")
    tap.equal(jobs.interrupt(daemon), 0, "vaprod ends well")
    code, none = jobs.run([VAPRO, "report", "--socket", path], "none", 20)
    tap.ok(code == 1 and "no running vaprod found" in none.err(), "without a vaprod it says so", none.err())
    jobs.stop(hog)
    jobs.interrupt(own)
    jobs.interrupt(mpi)
    for left in (where, home):
        shutil.rmtree(left, ignore_errors=True)


main(test_report, held=False)
