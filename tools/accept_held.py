# SPDX-License-Identifier: GPL-2.0-or-later
"""Does vaprod wait for files that do not answer? Check held: each attack alone and all at once, beside another user's job."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hostile  # noqa: E402
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402
from hostile import ATTACKER, BYSTANDER, PROGRAM  # noqa: E402

SECONDS = 16  # of the bystander
REAL_LIBRARY = os.path.realpath("/usr/lib/x86_64-linux-gnu/libmpi.so.40")


def held_by_user(users, jobs):
    return [users.start(ATTACKER, "held", hostile.LIBRARY, 60, 0)]


def silent(users, jobs):
    return [users.start(0, "held", hostile.LIBRARY, 60, 0)]


def lease(users, jobs):
    return [users.start(ATTACKER, "lease", users.library(ATTACKER), 60)]


def fifo(users, jobs):
    path = users.library(ATTACKER)
    job = users.start(ATTACKER, "map", path, 60)
    os.unlink(path)
    os.mkfifo(path)
    return [job]


def slow(users, jobs):
    path = os.path.join(jobs.directory, "slow")
    hostile.slow_elf(path, 1000)  # one segment more and it is refused at once
    return [users.start(ATTACKER, "touch", users.library(ATTACKER, path), 60) for _ in range(8)]


def evict(users, jobs):
    return [users.start(ATTACKER, "evict", users.library(ATTACKER), 60) for _ in range(4)]


def everything(users, jobs):
    return [job for attack in (held_by_user, silent, lease, fifo, slow, evict) for job in attack(users, jobs)]


ATTACKS = {"none": lambda users, jobs: [], "a mount of the user's": held_by_user, "a silent file system": silent, "a lease": lease,
           "a FIFO": fifo, "8 slow ELF files, touched": slow, "4 evicting processes": evict, "all at once": everything}


NOT_SEEN = ("not_seen", "lost", "governed", "shed")


def seen(window):
    """Share of a window's time of which the fragments were seen, whether they could be judged or not."""
    return 1 - sum(gap["time_pct_of_job"] for gap in window["uncovered"] if gap["reason"] in NOT_SEEN) / 100


def warnings():
    """Kernel warnings so far, where the log can be read."""
    code = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    return code.stdout.count("WARNING:")


def forget_warnings():
    """Has the kernel warn again of what it has warned of already."""
    try:
        with open("/sys/kernel/debug/clear_warn_once", "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        pass


def forks(seconds):
    """99.9th percentile of the time of a fork, ms."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        pid = os.fork()
        if not pid:
            os._exit(0)
        times.append(time.monotonic() - begin)
        os.waitpid(pid, 0)
        time.sleep(0.002)
    return 1000 * sorted(times)[len(times) * 999 // 1000]


def bystander_under(name, attack, away):
    """
    One attack beside a job: {"attached": s or None, "coverage", "seen", "term": s, "forks": ms}; None where it cannot be made.
    away: vaprod keeps away from the attackers, and forks are timed without it.
    """
    with Jobs(scratch("held", name.replace(" ", "_").replace("'", "") + ("_away" if away else ""))) as jobs:
        users = hostile.Users(jobs, {"VAPRO": "off"} if away else {})
        ndjson = os.path.join(jobs.directory, "vapro.ndjson")
        command = [VAPROD, "--exe", PROGRAM, "--exe", tool("flat_out"), "--window", 4, "--io", "off", "--output", ndjson]
        if away:
            attackers = attack(users, jobs)
            slowest_fork = forks(3)
        daemon = jobs.start(command, "vapro")
        until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson), 10)
        if not away:
            attackers = attack(users, jobs)
        if None in attackers:
            return None
        time.sleep(1)
        home = users.place(BYSTANDER)
        job = jobs.start(mpirun(1, tool("flat_out"), "--rate", 300, "--seconds", SECONDS, "--delay", 3), "flat_out", cwd=home,
                         user=BYSTANDER, env={"HOME": home, "TMPDIR": home})
        pids = until(lambda: rank_pids(job, "flat_out", 1), 10)
        begin = time.monotonic()
        found = until(lambda: all(attached(ndjson, pid) for pid in pids), 20, 0.02)
        seconds = time.monotonic() - begin
        if not away:
            slowest_fork = forks(3)
        well(jobs.wait(job, SECONDS + 30), job)
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        well(jobs.wait(daemon, 30), daemon)
        term = time.monotonic() - begin
        records = t.load_records(ndjson)
        jobs_of = {r["job"]["identity"] for r in records if r.get("type") == "process" and r.get("pid") in pids}
        windows = [r for r in records if r.get("type") != "window" or r["job"] in jobs_of]
        return {"attached": seconds if found else None, "coverage": mean_over_windows(windows, lambda w: w["coverage"]["total"]),
                "seen": mean_over_windows(windows, seen), "term": term, "forks": slowest_fork}


def links_of(pid):
    count = 0
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += "bpf_link" in os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            pass
    return count


def links_under_eviction(wanted):
    """(links made, processes attached) to copies of a library whose pages are dropped all the time."""
    made = processes = 0
    with Jobs(scratch("held", "links")) as jobs:
        users = hostile.Users(jobs)
        ndjson = os.path.join(jobs.directory, "vapro.ndjson")
        daemon = jobs.start([VAPROD, "--exe", PROGRAM, "--window", 4, "--io", "off", "--output", ndjson], "vapro")
        until(lambda: os.path.exists(ndjson) and os.path.getsize(ndjson), 10)
        end = time.monotonic() + 240
        while made < wanted and time.monotonic() < end:
            before = links_of(daemon.pid)
            evicting = [users.start(ATTACKER, "evict", users.library(ATTACKER, REAL_LIBRARY), 60) for _ in range(8)]
            if not until(lambda: all(attached(ndjson, job.pid) for job in evicting), 30):
                break
            made += links_of(daemon.pid) - before
            processes += len(evicting)
            for job in evicting:
                jobs.stop(job)
            until(lambda: links_of(daemon.pid) <= before, 20)
        well(jobs.interrupt(daemon), daemon)
    return made, processes


def rows_of_attack(name, found, away):
    seconds, loss = found["attached"], 100 * (away["coverage"] - found["coverage"])
    return [t.row(f"{name}: another user's job is attached after", f"{seconds:.2f} s" if seconds is not None else "never", "2 s",
                  seconds is not None and seconds < 2),
            t.row(f"{name}: its coverage", f"{found['coverage']:.1%}", f"5 points of {away['coverage']:.1%} (VAPRO=off)", loss < 5),
            t.row(f"{name}: its time seen, judged or not", f"{found['seen']:.1%}", f"5 points of {away['seen']:.1%} (VAPRO=off)",
                  100 * (away["seen"] - found["seen"]) < 5 and away["seen"] > 0.5),
            t.row(f"{name}: SIGTERM ends vaprod within", f"{found['term']:.2f} s", "2 s", found["term"] < 2),
            t.row(f"{name}: forks of others, 99.9th percentile", f"{found['forks']:.1f} ms ({away['forks']:.1f} without vaprod)",
                  "10 ms or that", found["forks"] < max(10, 1.5 * away["forks"]))]


def check_held():
    forget_warnings()
    warned, rows = warnings(), []
    for name, attack in ATTACKS.items():
        away, found = (bystander_under(name, attack, away) for away in (True, False))
        rows += rows_of_attack(name, found, away) if found and away else [t.row(f"{name}: cannot be made here", "-", "-", True)]
    made, processes = links_under_eviction(repeat(1000, 100))
    rows.append(t.row("links made while their pages are dropped", f"{made} ({processes} processes)", f"{repeat(1000, 100)}", made >= repeat(1000, 100)))
    rows.append(t.row("kernel warnings", warnings() - warned, 0, warnings() == warned))
    return rows


CHECKS = {"held": check_held}
