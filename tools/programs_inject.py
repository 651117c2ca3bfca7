# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part inject: disturbances at random times, three of each kind into each program that it applies to, one of each kind in a
run; and two separate groups: while the governor has closed the probes, which is read from the process's memory, and
before any fragment of the program has ended.

The true loss comes from the kernel: run delay of the victim (schedstat), throttled time of the cgroup, length of a stop; of
a frozen file system and of a late rank it comes from the program's own log. Beside a hog and under a quota the log, where there
is one, is the upper bound: the kernel's time leaves out that work is slower after each wait, and that IO that has completed
waits for the rank (the table has the count by the kernel's time alone as well). All draws are by the seed and printed.
"""
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs_score as score  # noqa: E402
from jobs import Jobs, path  # noqa: E402
from programs_common import Unit, end_vaprod, in_group, of_type, rows_of_units, shielded, start_vaprod, t  # noqa: E402
from programs_kernel import Sampler, text_watch  # noqa: E402
from programs_list import CPUS, PROGRAMS, ranks_of, team_of, truths_of  # noqa: E402

RUNS = 3                # of each program, with one injection of each kind
LEAD, TAIL = (7.0, 10.0), 6.0
GAP = (3.5, 6.0)        # seconds between the end of one injection and the begin of the next
LENGTHS = {"hog": (1.2, 3.0), "duty": (2.0, 3.5), "quota": (1.5, 3.0), "stop": (1.0, 2.0), "freeze": (1.0, 2.0), "late": (2.0, 3.0)}
SHARES = {"duty": (0.35, 0.55), "quota": (0.4, 0.65)}
QUOTA_PERIOD_US = 100000
GROUP_KINDS = ("hog", "duty", "quota", "stop")
# (program, runs): CLOSED with a budget by which probes are nearly always closed, FIRST with a computation as long as the run
CLOSED = (("sendrecv", 2), ("posts", 1), ("omp_small", 1))
# the functions of these programs whose probes are examined: other functions may have none or stay open
CALLED = {"sendrecv": [("libmpi.so", ["MPI_Sendrecv"])], "posts": [("libmpi.so", ["MPI_Irecv", "MPI_Isend", "MPI_Waitall"])],
          "omp_small": [("libgomp.so", ["GOMP_parallel"]), ("omp_small", None)]}
CLOSED_BUDGET = ("--overhead-budget", "0.05", "--overhead-cap", "0.1")
CLOSED_LEAST = 0.8      # share of the samples during an injection that must have found no probe
FIRST = (("kernels3", 2), ("wrapped_twice", 1), ("hybrid_steps", 1))
GROUP_LEAST = 10
TRIES, OTHERS_MOST = 2, 0.03  # a run with more than this share of run delay beside the injections is repeated once


def plan(seed, program, run, kinds, cpus, lead=LEAD):
    """[{kind, onset_s, length_s, cpu, ...}] of one run, in the order of time."""
    draw = random.Random(f"{seed}/{program}/{run}")
    kinds, at, found = list(kinds), draw.uniform(*lead), []
    draw.shuffle(kinds)
    for kind in kinds:
        one = {"kind": kind, "onset_s": round(at, 2), "length_s": round(draw.uniform(*LENGTHS[kind]), 2), "cpu": draw.choice(cpus)}
        if kind in SHARES:
            one["share"] = round(draw.uniform(*SHARES[kind]), 2)
        found.append(one)
        at += one["length_s"] + draw.uniform(*GAP)
    return found


def length_of(injections):
    return injections[-1]["onset_s"] + injections[-1]["length_s"] + TAIL


def in_words(one):
    share = f" of {one['share']:.0%}" if "share" in one else ""
    return f"{one['kind']}{share}, CPU {one['cpu']}, {one['length_s']:.1f} s from {one['onset_s']:.1f} s"


@contextlib.contextmanager
def file_system(directory, wanted):
    """A separate file system on a loop device, which may be frozen; yields its mount point, or None."""
    if not wanted:
        yield None
        return
    image, where = os.path.join(directory, "image"), os.path.join(directory, "mounted")
    os.makedirs(where)

    def run(*command):
        subprocess.run(list(command), check=True, capture_output=True, timeout=60)
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    run("mkfs.ext4", "-q", "-F", image)
    run("mount", "-o", "loop", image, where)
    try:
        yield where
    finally:
        subprocess.run(["fsfreeze", "-u", where], check=False, capture_output=True, timeout=60)
        for _ in range(20):
            if subprocess.run(["umount", where], check=False, capture_output=True, timeout=60).returncode == 0:
                break
            time.sleep(0.25)
        os.unlink(image)


class Run:
    """A program under vaprod while injections are carried out."""

    def __init__(self, program, jobs, groups, directory, files, pids, team, sampler):
        self.program, self.jobs, self.groups, self.directory, self.files = program, jobs, groups, directory, files
        self.pids, self.team, self.sampler = pids, team, sampler

    def victims(self, one):
        """(rank, pid, [(pid, tid)]) on the injection's CPU."""
        rank, threads = self.team[one["cpu"]]
        pid = self.pids[rank]
        return rank, pid, [thread for thread in threads if thread[0] == pid]

    def carry_out(self, one, begun):
        """Waits for its time, disturbs, and returns the injection with its truth."""
        rank, pid, threads = self.victims(one)
        time.sleep(max(0, begun + one["onset_s"] - time.monotonic()))
        found = {**one, "rank": rank, "pid": pid, "ranks": list(range(len(self.pids))),
                 "tids": [tid for _, tid in threads] if self.program.threads > 1 else []}
        found.update(getattr(self, "_" + {"duty": "hog"}.get(one["kind"], one["kind"]))(one, pid))
        if one["kind"] in ("hog", "duty"):
            found["delay_of"] = [tid for _, tid in threads]
        elif one["kind"] in ("stop", "quota") and found["tids"]:  # all threads of the process
            found["tids"] = [tid for _, of in self.team.values() for owner, tid in of if owner == pid]
        return found

    def _hog(self, one, _):
        log = os.path.join(self.directory, f"hog{one['onset_s']}.json")
        share = ["--share", one["share"]] if "share" in one else []
        job = self.jobs.start(in_group(self.groups, "job", [path("tools", "hog"), "--cpu", one["cpu"], "--seconds", one["length_s"],
                                                            "--log", log, *share]), "hog")
        if self.jobs.wait(job, one["length_s"] + 20):
            raise RuntimeError("hog failed: " + job.err().strip()[-200:])
        event = t.load_events(log)[0]
        return {"begin": event["begin"], "end": event["end"]}

    def _for_a_while(self, one, begin, end):
        begin()
        start = time.monotonic_ns()
        try:
            time.sleep(one["length_s"])
        finally:
            last = time.monotonic_ns()
            end()
        return {"begin": start, "end": last}

    def _stop(self, one, pid):
        found = self._for_a_while(one, lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT))
        length = (found["end"] - found["begin"]) / 1e9
        # threads of a team that waited for another one have lost nothing
        return {**found, "lost_s": [length, length * self.program.threads]}

    def _late(self, one, pid):
        return {**self._for_a_while(one, lambda: os.kill(pid, signal.SIGUSR1), lambda: os.kill(pid, signal.SIGUSR2)), "by_log": True}

    def _freeze(self, one, _):
        def freezer(option):
            subprocess.run(["fsfreeze", option, self.files], check=True, capture_output=True, timeout=60)
        return {**self._for_a_while(one, lambda: freezer("-f"), lambda: freezer("-u")), "by_log": True}

    def _quota(self, one, pid):
        if self.groups is None:
            raise RuntimeError("no cgroups, so no quota")
        before = self.groups.throttled_s("rank")
        quota = int(QUOTA_PERIOD_US * (1 - one["share"]) * self.program.threads)

        def begin():
            self.groups.move("rank", pid)
            self.groups.limit("rank", quota, QUOTA_PERIOD_US)

        def end():
            self.groups.limit("rank")
            self.groups.move("job", pid)
        found = self._for_a_while(one, begin, end)
        return {**found, "lost_s": self.groups.throttled_s("rank") - before}


def log_losses(injections, truths):
    """Sets the true loss of injections for which only the program's own log has it."""
    for one in injections:
        if not one.get("by_log"):
            continue
        if one["kind"] == "freeze":
            lost = 0
            for truth in truths.values():
                lost += sum(took - truth.expected_call.get(sid, took) for sid, at, took in truth.calls()
                            if sid in truth.io and at < one["end"] and at + took > one["begin"])
            one["lost_s"] = lost / 1e9 if truths else None
        elif one["rank"] in truths:
            one["lost_s"] = truths[one["rank"]].lost_ns(one["begin"], one["end"]) / 1e9
        else:
            one["lost_s"] = None


def vaprod_options(directory, options, group):
    captured = ("--capture", os.path.join(directory, "vaprod.capture")) if options.capture else ()
    return (CLOSED_BUDGET if group == "closed" else ()) + captured


def one_run(directory, program, injections, options, group=None, load=None, judge=score.score_run):
    """
    Returns what judge finds, mostly the scores of the injections and the other alarms, and what was measured beside them.
    load: other work all the time, with start and finish.
    """
    os.makedirs(directory)
    seconds = length_of(injections)
    frozen = any(one["kind"] == "freeze" for one in injections)
    with shielded(options, "rank") as groups, file_system(directory, frozen) as mounted, Jobs(directory) as jobs:
        if hasattr(program, "prepare"):
            program.prepare()
        files = mounted or os.path.join(directory, "files")
        os.makedirs(files, exist_ok=True)
        daemon, ndjson = start_vaprod(jobs, groups, "vaprod", program.pattern(), *vaprod_options(directory, options, group))
        how = {"first": seconds + 2, "seconds": 4} if group == "first" else {"seconds": seconds + 2}
        job = program.start(jobs, groups, directory, files, **how)
        pids = ranks_of(job, program)
        if load:
            load.start(jobs, seconds)
        begun = time.monotonic()
        cpus = list(range(min(CPUS, len(pids) * program.threads)))
        sampler = Sampler(pids, cpus, daemon.pid, os.path.join(directory, "log") if program.log == "thermo" else None)
        sampler.start()
        time.sleep(1)  # MPI_Init
        if group == "closed":
            sampler.text = text_watch(pids[0], CALLED[program.name])
        team = team_of(pids, cpus)
        if not team:
            raise RuntimeError(f"{program.name}: its threads are not bound to CPUs {cpus}")
        run = Run(program, jobs, groups, directory, files, pids, team, sampler)
        done = [run.carry_out(one, begun) for one in injections]
        if program.ends:
            code = jobs.wait(job, seconds + 60)
            if code:
                raise RuntimeError(f"{program.name} failed with {code}: {job.err().strip()[-300:]}")
            program.check(job)
        else:
            time.sleep(TAIL)
            jobs.stop(job)
        sampler.finish()
        if load:
            load.finish(jobs)
        end_vaprod(jobs, daemon)
    truths = truths_of(program, directory, sampler)
    learn_outside(truths, done)
    for one in done:
        if "delay_of" in one:
            one["kernel_s"] = sampler.waited_s(one["delay_of"], one["begin"], one["end"])
        elif one["kind"] == "quota":
            one["kernel_s"] = one["lost_s"]
        if "kernel_s" in one:
            one["logged_s"] = logged_loss_s(truths[one["rank"]], one, done) if one["rank"] in truths else None
            one["lost_s"] = score.loss_of_cpu_time(one["kernel_s"], one["logged_s"])
        if group == "closed":
            # the probes of a stopped rank cost nothing and may be opened meanwhile
            sampled = (one["begin"] - 10**9, one["begin"]) if one["kind"] == "stop" else (one["begin"], one["end"])
            one["closed"] = sampler.closed_share(*sampled)
    log_losses(done, truths)
    records = t.load_records(ndjson)
    result = judge(records, done, truths, sampler.delay_s)
    overhead = [w["overhead_pct"]["mean"] for w in of_type(records, "window") if w["overhead_pct"]["mean"] is not None]
    result.update(overhead_pct=max(overhead, default=None), others=round(sampler.others_beside(done), 4),
                  warnings=sorted({w["code"] for w in of_type(records, "warning")}))
    with open(os.path.join(directory, "injections.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    return result


def learn_outside(truths, injections):
    """Sets the expected durations of segments and calls, as medians of the time without injections."""
    for truth in truths.values():
        quiet = t.Truth(truth.rank, truth.pid)
        quiet.segments = [s for s in truth.segments if not any(s[1] < one["end"] and s[1] + s[2] > one["begin"] for one in injections)]
        quiet.learn()
        truth.expected, truth.expected_call, truth.fastest = quiet.expected, quiet.expected_call, quiet.fastest


def logged_loss_s(truth, one, injections):
    """What a rank lost during an injection by its log: in its segments, and in IO beyond the mean outside all injections."""
    usual = {}
    for sid, at, took in truth.calls():
        if sid in truth.io and not any(at < other["end"] and at + took > other["begin"] for other in injections):
            usual.setdefault(sid, []).append(took)
    io = sum(took - statistics.fmean(usual[sid]) for sid, at, took in truth.calls()
             if sid in usual and at < one["end"] and at + took > one["begin"])
    return (truth.lost_ns(one["begin"], one["end"]) + io) / 1e9


def true_loss(one):
    if one["lost_s"] is None:
        return "an unknown loss"
    least, most = one["lost_s"] if isinstance(one["lost_s"], list) else (one["lost_s"], one["lost_s"])
    return f"{least:.2f} s" if least == most else f"{least:.2f} to {most:.2f} s"


def brief(result):
    found = sum(one["found"] for one in result["injections"])
    wrong = sum(not alarm["ok"] for alarm in result["alarms"])
    return f"{found} of {len(result['injections'])} found, {len(result['alarms'])} other alarms, {wrong} of them not confirmed"


def unit_of(program, name, run, kinds, options, group=None, judge=score.score_run):
    cpus = list(range(min(CPUS, program.ranks * program.threads)))
    # before any fragment has ended the first injection may be early; in group closed probes must be closed by then
    injections = plan(options.seed, f"{program.name}{group or ''}", run, kinds, cpus, (3.0, 5.0) if group == "first" else LEAD)
    for one in injections:
        if one["kind"] == "late" and program.threads > 1:
            one["cpu"] = cpus[-1]  # only the last thread can be late

    def measure(directory, progress):
        for one in injections:
            progress.say(f"  {program.name}, seed {options.seed}, run {run}: {in_words(one)}")
        result = None
        for attempt in range(1, options.repeat(TRIES, 1) + 1):
            latest = one_run(os.path.join(directory, str(attempt)), program, injections, options, group, judge=judge)
            if result is None or latest["others"] < result["others"]:
                result = latest
            if result["others"] < OTHERS_MOST or progress.over(length_of(injections) + 15):
                break
            progress.say(f"  {program.name}: others took {latest['others']:.1%} of its time beside the injections")
        for one in result["injections"]:
            if not one["found"]:
                progress.say(f"  {program.name}: missed {one['kind']}: {one['why']}")
            elif not one["borders"] or one["loss"] is False:
                progress.say(f"  {program.name}: {one['kind']} found, begins {one['begin_off_ms']:+} ms, ends {one['end_off_ms']:+} ms, "
                             f"lost {one['said_s']:.2f} s of {true_loss(one)}")
        return {"rows": [], "result": result, "group": group, "noisy": result["others"] >= OTHERS_MOST, "brief": brief(result)}
    return Unit(program.name, name, length_of(injections) + 12, measure)


def units(options):
    found = []
    for program in PROGRAMS.values():
        for run in range(1, options.repeat(RUNS, 1) + 1):
            found.append(unit_of(program, f"seed{options.seed}_run{run}", run, program.kinds, options))
    for group, members in (("closed", CLOSED), ("first", FIRST)):
        for name, runs in members:
            for run in range(1, options.repeat(runs, 1) + 1):
                found.append(unit_of(PROGRAMS[name], f"seed{options.seed}_{group}{run}", run, GROUP_KINDS, options, group))
    return found


def table(joined, left):
    rows, all_of, alarms = rows_of_units(joined, left), [], []
    groups = {"closed": [], "first": []}
    not_closed = 0
    for program, entries in joined.items():
        mine = []
        for entry in entries.values():
            if "result" not in entry:
                continue
            alarms += [(program, alarm) for alarm in entry["result"]["alarms"]]
            if entry["group"] == "closed":
                closed = [one for one in entry["result"]["injections"] if (one["closed"] or 0) >= CLOSED_LEAST]
                not_closed += len(entry["result"]["injections"]) - len(closed)
                groups["closed"] += closed
            elif entry["group"]:
                groups[entry["group"]] += entry["result"]["injections"]
            else:
                mine += entry["result"]["injections"]
        if mine:
            by_kind = []
            for kind in LENGTHS:
                some = [one for one in mine if one["kind"] == kind]
                if some:
                    by_kind.append(f"{kind} {sum(one['found'] for one in some)}/{len(some)}")
            rows.append(t.row(f"{program}: found by kind", ", ".join(by_kind), "all (information)", True))
        all_of += mine
    for kind in LENGTHS:
        some = [one for one in all_of if one["kind"] == kind]
        if some:
            rows.append(t.row(f"{kind}: found, borders, loss", f"{score.share(sum(o['found'] for o in some), len(some))}, "
                              f"{sum(bool(o['borders']) for o in some)}, {sum(o['loss'] is True for o in some)}", "all (information)", True))
    beside = [one for one in all_of if one.get("kernel_s") and one["found"]]
    if beside:
        alone = sum(score.loss_is_right(one["said_s"], one["kernel_s"]) for one in beside)
        whole = sum(score.loss_is_right(one["whole_s"], one["lost_s"]) for one in beside)
        rows.append(t.row("hog, duty, quota: loss as it is judged, by the kernel's time alone, and with what the CPU was slower",
                          f"{score.share(sum(o['loss'] is True for o in beside), len(beside))}, {score.share(alone, len(beside))}, "
                          f"{score.share(whole, len(beside))}", "all (information)", True))
    disturbed = sum(entry["result"]["others"] >= OTHERS_MOST for entries in joined.values() for entry in entries.values() if "result" in entry)
    rows.append(t.row(f"runs in which others took over {OTHERS_MOST:.0%} of the time beside the injections", disturbed, "0 (information)", True))
    rows += score.group_rows("injections", all_of)
    rows += score.group_rows("while the governor had closed the probes", groups["closed"], GROUP_LEAST)
    if not_closed:
        rows.append(t.row("of that group, probes were not closed during", not_closed, "0 (information)", True))
    rows += score.group_rows("before any fragment ended", groups["first"], GROUP_LEAST)
    wrong = [(program, alarm) for program, alarm in alarms if not alarm["ok"]]
    rows.append(t.row("other alarms that neither schedstat nor the program's log confirms", share_of(wrong, alarms), 0, not wrong))
    for program, alarm in wrong[:20]:
        rows.append(t.row(f"{program}: alarm {alarm['id']}, {alarm['class']}, ranks {alarm['ranks']}, {alarm['lost_s']:.2f} s lost",
                          alarm["text"], "half of it confirmed", False))
    return rows


def share_of(wrong, alarms):
    return f"{len(wrong)} of {len(alarms)}"
