# SPDX-License-Identifier: GPL-2.0-or-later
"""
Programs that people run, and programs like them. Check programs and its parts:

results     the same results as without vaprod, and every MPI call seen (here). Each runs bare, then under `vapro run` with
            tests/count preloaded, which counts the calls for itself
coverage, overhead, inject, bystanders, sentences
            programs_*.py, on the programs of programs_list.py
causes      programs_causes.py, on programs of its own beside a foreign load

Check strangers (programs_strangers.py) is about programs of others, which tools/deps.sh installs for it.
"""
import argparse
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from accept_common import *  # noqa: E402,F401,F403 - the checks' own vocabulary
from accept_common import t  # noqa: E402
import programs_bystanders  # noqa: E402
import programs_causes  # noqa: E402
import programs_common  # noqa: E402
import programs_coverage  # noqa: E402
import programs_inject  # noqa: E402
import programs_overhead  # noqa: E402
import programs_sentences  # noqa: E402
import programs_strangers  # noqa: E402
from programs_list import PROGRAMS as WATCHED  # noqa: E402

PARTS = {"coverage": programs_coverage, "overhead": programs_overhead, "inject": programs_inject, "bystanders": programs_bystanders, "causes": programs_causes,
         "sentences": programs_sentences}
OTHERS = {"strangers": programs_strangers}  # checks of their own
OPTIONS = programs_common.Options()
EXAML = "/usr/lib/examl/bin/examl-sse3"  # any processor has it, and the other builds round otherwise
EXAML_DATA = "/usr/share/doc/examl/testData"
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests"
LIMIT = 120


def numbers_without_times(text, pattern):
    """The lines that match, without the columns of times and speeds: numbers with a point."""
    return [re.sub(r"\s+\S*\d\.\d\S*", "", line) for line in text.splitlines() if re.search(pattern, line)]


class Program:
    """A command, the files it needs in its directory, and the part of its output that must not depend on vaprod."""
    ranks, mpi, quick_command = 2, "openmpi", None

    def prepare(self, jobs, directory):
        """Makes the input."""


class Hpcc(Program):
    name, command = "hpcc", ["hpcc"]

    def prepare(self, jobs, directory):
        hpcc_input(directory)

    def result(self, directory, out):
        return hpcc_result(directory)


class Lammps(Program):
    name = "lammps"
    command = ["lmp", "-in", os.path.join(ROOT, "tools", "lammps.in"), "-var", "steps", "200", "-log", "log", "-screen", "none"]

    def result(self, directory, out):
        return thermo(os.path.join(directory, "log"))


class Scalapack(Program):
    """Fortran on BLACS, of Debian's scalapack-mpi-test."""
    ranks = 4

    def __init__(self, test, data):
        self.name, self.data = f"scalapack {test}", data
        self.command = [os.path.join(SCALAPACK, test)]

    def prepare(self, jobs, directory):
        shutil.copy(os.path.join(SCALAPACK, self.data), directory)

    def result(self, directory, out):
        return numbers_without_times(out, r"PASSED|FAILED|tests ")


class Netpipe(Program):
    """Messages of many sizes between two ranks. -i: their content is compared."""

    def __init__(self, *options):
        self.name = "netpipe" + (" " + options[0] if options[0] == "-i" else "")
        self.command = ["NPopenmpi", *options, "-n", "40", "-u", "65536", "-o", "np.out"]

    def result(self, directory, out):
        with open(os.path.join(directory, "np.out"), encoding="utf-8") as file:
            return [line.split()[0] for line in file if line.strip()] + re.findall("Integrity check (?:passed|failed)", out)


class Examl(Program):
    name = "examl"
    command = [EXAML, "-t", f"{EXAML_DATA}/49.tree", "-m", "GAMMA", "-s", "align.binary", "-n", "run"]

    def prepare(self, jobs, directory):
        # a part of the package's own alignment; all of it takes long
        code, job = jobs.run(["gzip", "-dc", f"{EXAML_DATA}/49.gz"], "gzip", 20)
        well(code, job)
        with open(os.path.join(directory, "align"), "w", encoding="utf-8") as file:
            lines = [line.split() for line in job.out().splitlines() if line.strip()]
            file.write(f"{lines[0][0]} 300\n")
            file.writelines(f"{name} {text[:300]}\n" for name, text in lines[1:])
        code, job = jobs.run(["parse-examl", "-s", "align", "-m", "DNA", "-n", "align"], "parse-examl", 20, cwd=directory)
        well(code, job)

    def result(self, directory, out):
        with open(os.path.join(directory, "ExaML_result.run"), encoding="utf-8") as file:
            tree = file.read()
        return re.findall(r"^Likelihood.*", out, re.M) + [tree]


class Mpi4py(Program):
    name = "mpi4py"
    command = ["/usr/bin/python3", os.path.join(ROOT, "tools", "workloads", "mpi4py_ring.py"), "300"]

    def result(self, directory, out):
        return out.splitlines()


class MpichDemo(Program):
    name, mpi = "demo_mpi, MPICH", "mpich"
    command = [tool("mpich_demo_mpi"), "--seconds", "6", "--log", ".", "--scratch", "."]

    def result(self, directory, out):
        return re.findall(r'"wrong":\d+', out)


PROGRAMS = [Hpcc(), Lammps(), Scalapack("xdlu", "LU.dat"), Scalapack("xdqr", "QR.dat"), Netpipe("-a"), Netpipe("-i"),
            Examl(), Mpi4py(), MpichDemo()]


def launch(program, directory, preload):
    """The launcher's command line; preload only into the ranks."""
    library = path("tests", f"count_{program.mpi}.so")
    if program.mpi == "mpich":
        extra = ["-env", "LD_PRELOAD", library, "-env", "VAPRO_COUNT", directory] if preload else []
        return ["mpirun.mpich", *extra, "-n", str(program.ranks), *program.command]
    extra = ["-x", f"LD_PRELOAD={library}", "-x", f"VAPRO_COUNT={directory}"] if preload else []
    # more ranks than cores: waiting ranks yield
    return mpirun(program.ranks, *extra, "--mca", "mpi_yield_when_idle", "1", *program.command)


def release_attached(directory, ndjson):
    """Answers processes that wait (tests/count) and that vaprod has attached meanwhile."""
    waiting = {name[5:] for name in os.listdir(directory) if name.startswith("here.")}
    waiting -= {name[3:] for name in os.listdir(directory) if name.startswith("go.")}
    if not waiting or not os.path.exists(ndjson):
        return
    for record in of_type(t.load_records(ndjson), "process"):
        name = f"{record['pid']}.{os.path.basename(record['exe'])}"
        if record["state"] == "attached" and name in waiting:
            with open(os.path.join(directory, "go." + name), "w", encoding="utf-8"):
                pass


INFORMATION = {"hopped", "no_source"}  # warnings of what states are named by, in programs as Debian packs them


def counted(directory, rank):
    """({function: calls}, nested calls) of tests/count."""
    with open(os.path.join(directory, f"count.{rank}"), encoding="utf-8") as file:
        found = {name: int(number) for name, number in (line.split() for line in file)}
    return found, found.pop("nested")


def seen(jobs, capture, rank):
    """{function: calls} of a rank's vertices in a capture."""
    code, job = jobs.run([VAPRO, "stg", "--rank", rank, capture], "stg", 60)
    well(code, job)
    found = {}
    for line in job.out().splitlines():
        match = re.match(r" *(\d+) .*\[.*(?<!\.)\bfunction=(MPI_\w+).*\]$", line)
        if match:
            found[match.group(2)] = found.get(match.group(2), 0) + int(match.group(1))
    return found


def call_rows(name, counts, nested, found, lost):
    """Every call that was counted is in a state or counted as lost, and no state has a call that was not made."""
    missing, excess = 0, []
    for one, other in zip(counts, found):
        for function in {*one, *other}:
            difference = one.get(function, 0) - other.get(function, 0)
            missing += max(difference, 0)
            if difference < 0:
                excess.append(f"{function} {-difference}")
            elif difference > 0:
                excess.append(f"{function} lacks {difference}")
    made, held = (sum(sum(c.values()) for c in of) for of in (counts, found))
    functions = len({f for one in counts for f in one})
    lost_text = ", ".join(f"{n} {cause}" for cause, n in sorted(lost.items()) if n) or "none"
    good = made > 0 and missing <= sum(lost.values()) and not any(" lacks " not in e for e in excess)
    return t.row(f"{name}: calls counted by itself, seen; nested; lost",
                 f"{made} of {functions} functions, {held}; {nested}; {lost_text}"
                 f"{' (' + ', '.join(excess[:6]) + ')' if excess else ''}",
                 "equal but for the lost", good)


def difference(wanted, found):
    """The first value that differs."""
    if isinstance(wanted, dict) and found:
        wanted, found = ([f"{k}={of.get(k)}" for k in wanted] for of in (wanted, found))
    return next((f"{b} for {a}" for a, b in zip(wanted, found or []) if a != b), f"{len(found or [])} values")[:120]


def check_program(jobs, base, program):
    label = re.sub(r"\W+", "_", program.name)
    bare, watched = (os.path.join(base, label + suffix) for suffix in ("", "_vapro"))
    for directory in (bare, watched):
        os.makedirs(directory)
        program.prepare(jobs, directory)
    code, job = jobs.run(launch(program, bare, False), label, LIMIT, cwd=bare)
    well(code, job)
    wanted = program.result(bare, job.out())
    ndjson, capture = os.path.join(base, label + ".ndjson"), os.path.join(base, label + ".capture")
    job = jobs.start([VAPRO, "run", "--output", ndjson, "--capture", capture, "--overhead-cap", "0", "--io", "off", "--",
                      *launch(program, watched, True)], label + "_vapro", cwd=watched)

    def ended():
        release_attached(watched, ndjson)
        return job.process.poll() is not None
    until(ended, LIMIT)
    code = jobs.wait(job, 1)
    result = program.result(watched, job.out()) if code == 0 else None
    rows = [t.row(f"{program.name}: exit code, result",
                  f"{code}, {len(wanted)} values {'equal' if result == wanted else 'differ: ' + difference(wanted, result)}",
                  "0, as undisturbed",
                  code == 0 and len(wanted) > 0 and result == wanted)]
    records = t.load_records(ndjson)
    lost = {}
    for window in of_type(records, "window"):
        for cause, n in window["lost"].items():
            lost[cause] = lost.get(cause, 0) + n
    counts = [counted(watched, rank) for rank in range(program.ranks)]
    found = [seen(jobs, capture, rank) for rank in range(program.ranks)]
    rows.append(call_rows(program.name, [c for c, _ in counts], sum(n for _, n in counts), found, lost))
    skipped = {(s["function"], s["reason"]) for r in of_type(records, "process") for i in r["images"] for s in i["skipped"]}
    reported = {w["code"] for w in of_type(records, "warning")} - INFORMATION
    rows.append(t.row(f"{program.name}: functions skipped; warnings",
                      f"{len(skipped)}{': ' + ', '.join(sorted(f'{f} ({r})' for f, r in skipped)[:3]) if skipped else ''}; "
                      f"{', '.join(sorted(reported)) or 'none'}", "each with its reason; none",
                      all(reason for _, reason in skipped) and not reported))
    return rows


def check_results():
    base, rows = scratch("programs_results"), []
    for program in PROGRAMS:
        with Jobs(base) as jobs:
            try:
                rows += check_program(jobs, base, program)
            except (RuntimeError, OSError, KeyError, ValueError, TimeLimit) as error:
                rows.append(t.row(f"{program.name} could not be measured", f"{type(error).__name__}: {error}", "a measurement",
                                  False))
    return rows


def add_options(parser):
    """The command line's part that is about programs."""
    def names(text):
        wanted = text.split(",")
        unknown = set(wanted) - {*WATCHED, *(program.name for program in programs_causes.PROGRAMS), *programs_strangers.PROGRAMS, "random_work", "bystanders", "oversubscribed", "stopped_rank", "debugger"}
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: there are {', '.join(WATCHED)}")
        return wanted
    parser.add_argument("--program", type=names, metavar="NAME,...")
    parser.add_argument("--minutes", type=float, default=programs_common.MINUTES_MOST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--capture", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--reference", metavar="BUILD")


def use_options(args):
    global OPTIONS
    OPTIONS = programs_common.Options(args.program, args.minutes, args.seed, args.again, args.noisy, not args.bare,
                                      args.reference, args.quick, args.capture)
    if OPTIONS.shield:
        try:
            with programs_common.shielded(OPTIONS):
                pass
        except programs_common.NoCgroups as error:
            print(f"accept: no cgroups, and no quotas: {error}", file=sys.stderr)
            OPTIONS.shield = False


def check_part(name):
    """A part's rows of all that is known of this version."""
    def check():
        store = programs_common.Store(path("accept", "programs", programs_common.version_name()))
        progress = programs_common.Progress(name, OPTIONS.minutes)
        module = {**PARTS, **OTHERS}[name]
        left = programs_common.do_units(store, name, module.units(OPTIONS), OPTIONS, progress)
        progress.say(f"{left} units left; {store.join({**PARTS, **OTHERS})}")
        return module.table(store.joined(name), left)
    return check


CHECKS = {"programs:results": check_results, **{f"programs:{name}": check_part(name) for name in PARTS}}
STRANGERS = {name: check_part(name) for name in OTHERS}
