#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
vaprod on other kernels and CPUs, in emulated machines: which rung it finds there or why it refuses,
and on each rung what tests/live/attach.t tests on this machine's kernel. The graph of one sequence of
calls is compared with the one of this machine, its C and Open MPI, as tests/live/fortran.t does here:
that needs root.

usage: kernels.t [ARCH-SUITE...]     prove tests/vm/kernels.t :: arm64-trixie runs one guest
"""
import json
import os
import re
import subprocess
import sys
import traceback
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "..", "tools", "vm")]
import guest  # noqa: E402
import stg_compare  # noqa: E402
from live import ROOT, SCRATCH, Jobs, Tap, capture_run, losses, of_type, records, tool  # noqa: E402

# kernel: how its release begins. Expected there: the rung, or the words of the refusal. pmu: whether
# instructions can be counted.
Guest = namedtuple("Guest", "arch suite kernel rung refusal pmu")
GUESTS = [
    Guest("amd64", "bullseye", "5.10.", None, "cannot attach probes on this kernel", False),
    Guest("amd64", "bookworm", "6.1.", "perf", None, False),
    Guest("amd64", "trixie", "6.12.", "multi", None, False),
    Guest("amd64", "trixie-backports", "", "session", None, False),
    Guest("arm64", "bookworm", "6.1.", "perf", None, True),
    Guest("arm64", "trixie", "6.12.", "multi", None, True),
    Guest("arm64", "trixie-backports", "", "session", None, True),
]


class Results:
    """What a guest's scenario left."""

    def __init__(self, directory):
        self.directory = directory

    def text(self, *name):
        with open(os.path.join(self.directory, *name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def code(self, part, name):
        return int(self.text(part, name + ".code"))

    def records(self, part, name="out.ndjson"):
        return records(os.path.join(self.directory, part, name))

    def output(self, part, name):
        """Output and errors of a program, to explain a failure."""
        return self.text(part, name + ".out")[-1500:] + self.text(part, name + ".err")[-1500:]


def check_kernel(tap, row, found):
    """Which kernel runs, and what vaprod and vapro check report of it."""
    code, errors, check = found.code("check", "vaprod"), found.text("check", "vaprod.err"), found.text("check", "check.out")
    release = re.search(r"^ *kernel +(\S+)", check, re.M)
    tap.ok(release and release.group(1).startswith(row.kernel), f"a kernel {row.kernel or 'of its suite'}", check)
    tap.ok(re.search(rf"^ *instruction counter +{'yes' if row.pmu else 'no'}\b", check, re.M), "vapro check reports the PMU", check)
    if row.refusal:
        tap.equal(code, 3, "vaprod refuses with exit code 3")
        tap.ok(row.refusal in errors, "the refusal has a reason", errors)
        tap.equal(found.code("check", "check"), 3, "vapro check fails with exit code 3")
        return
    tap.equal(code, 0, "vaprod runs" + ("" if code == 0 else ": " + errors[-600:]))
    tap.equal(found.code("check", "check"), 0, "vapro check finds all it needs")
    if code == 0:
        hello = json.loads(found.text("check", "vaprod.out").splitlines()[0])
        tap.equal(hello["attach_mode"], row.rung, "vaprod uses the rung for this kernel")
        tap.ok(hello["costs"]["entry_ns"] > 0 and hello["costs"]["return_ns"] > 0, "cost of a call is measured", hello["costs"])


def check_schema(tap, found, part):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"),
                           os.path.join(found.directory, part, "out.ndjson")], capture_output=True, text=True, check=False)
    tap.equal(done.returncode, 0, f"{part}: every line is valid by the schema" + done.stdout[-600:] * (done.returncode != 0))


def check_counts(tap, _row, found):
    """Every call of a program that counts its own is in a bundle or counted as lost."""
    tap.equal(found.code("counts", "program"), 0, "counts: the program ends well")
    tap.equal(found.code("counts", "vaprod"), 0, "counts: vaprod ends with its target")
    calls = int(found.text("counts", "program.out").rsplit('"calls":', 1)[1].split(",")[0])
    lines = found.records("counts")
    fragments = sum(w["fragments"] for w in of_type(lines, "window"))
    lost = sum(sum(w["lost"].values()) for w in of_type(lines, "window"))
    # a vertex a call, an edge between two; and MPI_Finalize
    tap.equal(fragments + lost, 2 * calls + 1, "counts: every call is in a bundle or counted as lost")
    tap.ok(lost <= calls / 100, "counts: at most 1 % is lost", lost)
    tap.equal(of_type(lines, "process")[-1]["state"], "exited", "counts: the end of the process is reported")


def states(text):
    """From what vapro stg prints: calls of each vertex (function, peer), and of each edge between two functions."""
    vertices, edges = {}, {}
    for line in text.splitlines():
        match = re.match(r" *(\d+) .* (?:computation|communication|io) .*\[(.*)\]$", line)
        if not match:
            continue
        labels = dict(label.split("=", 1) for label in match.group(2).split() if "=" in label)
        if "function" in labels:
            key, into = (labels["function"], labels.get("peer")), vertices
        else:
            key, into = (labels.get("from.function"), labels.get("to.function")), edges
        into[key] = into.get(key, 0) + int(match.group(1))
    return vertices, edges


def check_job(tap, row, found):
    """Two ranks: their numbers, their calls and the order of these, and their result."""
    tap.equal(found.code("job", "program"), 0, "job: the program ends well")
    tap.ok('"ok":true' in found.text("job", "program.out"), "job: its result is right", found.output("job", "program"))
    tap.equal(found.code("job", "vaprod"), 0, "job: vaprod ends with its targets")
    lines = found.records("job")
    ranks = {r["rank"]: r for r in of_type(lines, "process") if r["state"] == "attached"}
    tap.equal(sorted(ranks), [0, 1], "job: both ranks are known by number")
    tap.equal({r["world_size"] for r in ranks.values()}, {2}, "job: the world's size is known")
    images = [image for r in ranks.values() for image in r["images"]]
    tap.ok(images and all(image["functions"] > 0 for image in images), "job: functions of libmpi are probed", images)
    if row.arch == "arm64":
        tap.ok(all(image["shifted"] == 0 for image in images),
               "job: all functions are probed at their entry", images)
    windows = of_type(lines, "window")
    tap.ok(windows, "job: windows are reported")
    lost = {cause: n for w in windows for cause, n in w["lost"].items() if n}
    tap.ok(not set(lost) - {"vanished"}, "job: nothing is lost", lost)
    tap.equal(lines[-1]["type"], "bye", "job: bye comes last")
    check_schema(tap, found, "job")
    tap.equal(found.code("job", "stg"), 0, "job: the graph is shown")
    graph = found.text("job", "stg.out")
    vertices, edges = states(graph)
    sent = [vertices.get(("MPI_Sendrecv", peer), 0) for peer in ("0", "1")]
    reduced = vertices.get(("MPI_Allreduce", None), 0)
    tap.ok(min(sent) > 40 and abs(sent[0] - sent[1]) <= 1, "job: each rank sends to the other, equally often", graph)
    # before the first exchange and after the last there are a few reductions more
    tap.ok(abs(reduced - sum(sent)) <= 6, "job: the ranks reduce as often as they exchange", graph)
    there, back = edges.get(("MPI_Sendrecv", "MPI_Allreduce"), 0), edges.get(("MPI_Allreduce", "MPI_Sendrecv"), 0)
    tap.ok(abs(there - sum(sent)) <= 4, "job: a computation lies between each exchange and its reduction", graph)
    tap.ok(0.8 * sum(sent) <= back <= sum(sent),
           "job: a computation follows each reduction, but where the program writes its log", graph)
    tap.ok(vertices.get(("write", None), 0) > 0, "job: its IO is seen", graph)
    tap.equal(vertices.get(("MPI_Finalize", None)), 2, "job: MPI_Finalize of both ranks is seen")


def reference(tap):
    """The graph of this machine, which all others must equal."""
    directory = os.path.join(SCRATCH, "kernels")
    os.makedirs(directory, exist_ok=True)
    os.environ["VAPRO_GO"] = os.path.join(directory, "go")
    try:
        with Jobs(directory) as jobs:
            capture, _, _ = capture_run(tap, jobs, "steps")
        return stg_compare.Graph(capture, tool("steps"))
    except (RuntimeError, OSError) as problem:
        tap.ok(False, "the graph of this machine can be made", problem)
        return None


def check_graphs(wanted):
    def check(tap, _row, found):
        """Each program's graph is this machine's, by the lines of source that were reported in the guest."""
        codes = {name: found.code("graphs", name) for name in (*guest.GRAPHS, "vaprod", "stg")}
        tap.equal(set(codes.values()), {0}, f"graphs: programs and vaprod end well {codes}")
        tap.equal(losses(found.records("graphs")), {}, "graphs: no fragment is lost or approximate")
        states = {name: [] for name in guest.GRAPHS}
        outside = set()
        for line in found.text("graphs", "stg.out").splitlines():
            images = {site.partition("@")[0] for site in stg_compare.sites_of([json.loads(line)])}
            program = images.pop()
            if images or program not in states:
                outside |= images | {program}
            else:
                states[program].append(line)
        tap.equal(outside, set(), "graphs: every call-site is in a program")
        for name, lines in states.items():
            path = os.path.join(found.directory, "graphs", name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(line + "\n" for line in lines))
            source = "steps.F90" if name.endswith(("_h", "_f08")) else "steps.c"
            seen = stg_compare.Graph(path, os.path.join(ROOT, "tools", "workloads", source))
            differences = stg_compare.compare(wanted, seen) if wanted else ["nothing to compare with"]
            tap.ok(not differences, f"graphs: the graph of {name} equals this machine's", "\n".join(differences))
    return check


def check_leave(part, code, how):
    def check(tap, _row, found):
        """Code of the program as before, and its result."""
        tap.equal(found.code(part, "vaprod"), code, f"{part}: {how}")
        tap.equal([found.code(part, name) for name in ("before", "while", "after")], [0, 0, 0], f"{part}: the program's code can be read")
        tap.equal(found.text(part, "before.out"), "", f"{part}: the code equals its files before attachment")
        probed = {line.split()[0] for line in found.text(part, "while.out").splitlines()}
        tap.equal(len(probed), 2, f"{part}: probes are in both ranks while it runs")
        tap.equal(found.text(part, "after.out"), "", f"{part}: no probe is left")
        tap.equal(found.code(part, "program"), 0, f"{part}: the program ends well")
        tap.ok('"ok":true' in found.text(part, "program.out"), f"{part}: its result is right", found.output(part, "program"))
    return check


def check_dmesg(tap, _row, found):
    trouble = [line for line in found.text("dmesg").splitlines() if re.search(r"WARNING:|BUG:|Oops|Call trace:|uprobe.*fail", line, re.I)]
    tap.equal(trouble, [], "the kernel's log has no error")


CHECKS = [check_counts, check_job, check_leave("detach", 0, "SIGINT ends vaprod with exit code 0"),
          check_leave("kill", 137, "vaprod is killed by SIGKILL")]


class GuestTap:
    """Results of one guest, with its name before each, stored until it is clear that they count."""

    def __init__(self, name):
        self.name, self.results = name, []

    def ok(self, good, name, why=""):
        self.results.append((bool(good), f"{self.name}: {name}", why))

    def equal(self, found, wanted, name):
        self.ok(found == wanted, name, f"found {found!r}, wanted {wanted!r}")

    def failed(self):
        return [name for good, name, _ in self.results if not good]


def run_guest(row, checks):
    """
    Boots a guest and judges what its scenario left. Emulation of two CPUs is not always exact: a guest
    with failures runs once more, and the failures are printed.
    """
    name = f"{row.arch}-{row.suite}"
    for chance in range(2):
        tap = GuestTap(name)
        try:
            judge(tap, row, guest.run(row.arch, row.suite, os.path.join(HERE, "scenario.sh")), checks)
        except guest.GuestFailed as failure:
            tap.ok(False, "the guest runs", failure)
        if not tap.failed():
            break
        if not chance:
            print(f"# {name}: once more, for of {len(tap.results)} these failed: {'; '.join(tap.failed())}", flush=True)
    return tap


def boot(rows, checks):
    """Runs guests: those of one CPU one after the other, beside those of the other. Their results, later."""
    lanes = {row.arch: ThreadPoolExecutor(1) for row in rows}
    return [lanes[row.arch].submit(run_guest, row, checks) for row in rows]


def judge(tap, row, directory, checks):
    found = Results(directory)
    for check in [check_kernel] + (checks if row.rung else []) + [check_dmesg]:
        try:
            check(tap, row, found)
        except Exception:  # a part that left nothing is a failure of that part
            tap.ok(False, "results can be judged", traceback.format_exc())


def main(names):
    tap = Tap()
    unknown = set(names) - {f"{row.arch}-{row.suite}" for row in GUESTS}
    if unknown:
        sys.exit(f"kernels.t: no such guest: {' '.join(sorted(unknown))}")
    rows = [row for row in GUESTS if not names or f"{row.arch}-{row.suite}" in names]
    checks = [*CHECKS, check_graphs(reference(tap))] if any(row.rung for row in rows) else []
    for run in boot(rows, checks):
        for good, name, why in run.result().results:
            tap.ok(good, name, why)
    print(f"1..{tap.count}")


main(sys.argv[1:])
