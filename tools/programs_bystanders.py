# SPDX-License-Identifier: GPL-2.0-or-later
"""
Part bystanders: the cost for processes that are not tracked, two that switch contexts as fast as they can and one that
reads; and the cost of the pair of probes of a tracked MPI_Send. One run alternates between no vaprod, vaprod, and the
vaprod of another build where --reference names one; medians, beside the scatter of neighbours without vaprod.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import attached, last_json, well  # noqa: E402
from bench_common import LAST_CPU, start_calls  # noqa: E402
from jobs import Jobs, path, until  # noqa: E402
from programs_common import VAPROD, Unit, end_vaprod, in_group, rows_of_units, shielded, t  # noqa: E402
from programs_list import PROGRAMS, ranks_of  # noqa: E402

ROUNDS = 10
SEND_CALLS, SEND_BATCHES = 250, 80


def scatter(values):
    """The 90 % quantile of the differences of neighbours that should be equal."""
    apart = sorted(abs(b - a) for a, b in zip(values, values[1:])) or [0.0]
    return apart[min(len(apart) - 1, len(apart) * 9 // 10)]


def added(values):
    """
    values: [{"none": before, "this": .., "reference": .., "after": ..}]: (medians of what each build adds to the mean of the
    neighbours without it, scatter of these).
    """
    found = {}
    for name in ("this", "reference"):
        if all(name in one for one in values):
            found[name] = statistics.median(one[name] - (one["none"] + one["after"]) / 2 for one in values)
    return found, scatter([values[0]["none"]] + [one["after"] for one in values])


class Watching:
    """vaprod of a build on one process while the block lasts."""

    def __init__(self, jobs, groups, binary, pid, *options):
        self.jobs, self.pid, self.binary, self.groups, self.options = jobs, pid, binary, groups, options

    def __enter__(self):
        ndjson = os.path.join(self.jobs.directory, "vaprod.ndjson")
        if os.path.exists(ndjson):
            os.unlink(ndjson)
        command = [self.binary, "--pid", self.pid, "--output", ndjson, *self.options]
        self.daemon = self.jobs.start(in_group(self.groups, "job", command), "vaprod")
        if not until(lambda: self.daemon.process.poll() is not None or attached(ndjson, self.pid), 30) or \
                self.daemon.process.poll() is not None:
            raise RuntimeError("vaprod did not attach: " + self.daemon.err().strip()[-300:])
        time.sleep(0.5)

    def __exit__(self, *unused):
        end_vaprod(self.jobs, self.daemon)


def rounds_of(jobs, groups, binaries, pid, measure, number, options):
    values, before = [], measure()
    for number_of_round in range(number):
        one = {"none": before}
        for name in sorted(binaries, reverse=bool(number_of_round % 2)):
            with Watching(jobs, groups, binaries[name], pid, *options):
                one[name] = measure()
        one["after"] = before = measure()
        values.append(one)
    return values


def entry_of(what, unit, values, free):
    """free: there must be no cost; a cost that cannot be avoided is compared with the reference only."""
    found, apart = added(values)
    bare = statistics.median(one["none"] for one in values)
    wanted = "inside the A/A scatter"
    rows = [t.row(f"{what} ({bare:.1f} {unit}), with vaprod, {len(values)} rounds",
                  f"{found['this']:+.1f} {unit}, A/A scatter {apart:.1f}",
                  wanted if free else "- (information; --reference compares)", not free or abs(found["this"]) <= apart)]
    if "reference" in found:
        differ = statistics.median(one["this"] - one["reference"] for one in values)
        apart = max(apart, *(scatter([one[name] for one in values]) for name in ("this", "reference")))
        rows.append(t.row(f"{what}: against the reference's {found['reference']:+.1f} {unit}",
                          f"{differ:+.1f} {unit}, scatter of each {apart:.1f}", "inside the scatter", differ <= apart))
    return {"rows": rows, "values": values, "brief": rows[0]["measured"]}


def binaries_of(options):
    binaries = {"this": VAPROD}
    if options.reference:
        binaries["reference"] = os.path.join(options.reference, "vaprod")
        if not os.access(binaries["reference"], os.X_OK):
            raise RuntimeError(f"{binaries['reference']} is no program")
    return binaries


def bystander_unit(mode, what, extra, options):
    """A job of one rank is watched on CPU 0; the bystander has the last CPU."""
    def measure(directory, progress):
        program = PROGRAMS["demo_mpi"]
        with shielded(options) as groups, Jobs(directory) as jobs:
            job = program.start(jobs, groups, directory, directory, ranks=1, seconds=3600)
            pid = ranks_of(job, program, 1)[0]

            def once():
                command = in_group(groups, "job", [path("tools", "bystander"), "--mode", mode, "--seconds", 1, "--cpu", LAST_CPU])
                code, done = jobs.run(command, "bystander", 30)
                well(code, done)
                return last_json(done.out())["median"]
            once()
            os.sched_setaffinity(pid, {0})
            values = rounds_of(jobs, groups, binaries_of(options), pid, once, options.repeat(ROUNDS, 3), extra)
        return entry_of(what, "ns", values, mode == "read" and "on" not in extra)
    return Unit("bystanders", mode + ("_io" if "on" in extra else ""), 150, measure)


def send_unit(options):
    def measure(directory, progress):
        with shielded(options) as groups, Jobs(directory) as jobs:
            target = start_calls(jobs)
            if groups:
                groups.move("job", target.pid)

            def once():
                target.request("send", SEND_CALLS, 10)
                return target.request("send", SEND_CALLS, SEND_BATCHES)["median_ns"]
            # without a cap, so that the pair of probes is always on
            values = rounds_of(jobs, groups, binaries_of(options), target.pid, once, options.repeat(ROUNDS, 3),
                               ("--overhead-cap", "0", "--io", "off"))
            target.leave()
        return entry_of("MPI_Send and its pair", "ns", values, False)
    return Unit("bystanders", "send", 90, measure)


def units(options):
    return [bystander_unit("switch", "a context switch", ("--io", "off"), options),
            bystander_unit("read", "a bystander's read()", ("--io", "off"), options),
            bystander_unit("read", "a bystander's read(), IO traced", ("--io", "on"), options), send_unit(options)]


def table(joined, left):
    return rows_of_units(joined, left)
