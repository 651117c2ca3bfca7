#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Boots a Debian kernel in an emulated machine with a scenario, and fetches the files that the scenario left.

usage: guest.py ARCH SUITE SCENARIO     by hand; ARCH amd64 or arm64, SUITE as in fetch.sh

Emulation (TCG) even where /dev/kvm exists: that may run special kernels only.
arm64 has one CPU and a clock that counts instructions, so that a run can be repeated exactly and
its PMU counts; amd64 has two CPUs and no PMU.
"""
import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
from initramfs import TRIPLES, Initramfs  # noqa: E402

WORK = os.path.join(ROOT, "build", "vm")
HOST_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)

MACHINES = {
    "arm64": ["qemu-system-aarch64", "-M", "virt,dtb-randomness=off", "-cpu", "cortex-a72", "-smp", "1", "-accel", "tcg",
              "-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm"],
    "amd64": ["qemu-system-x86_64", "-M", "q35", "-cpu", "Nehalem", "-smp", "2", "-accel", "tcg,thread=multi"],
}
# QEMU 7.2 computes the flags of cmpxchg16b wrongly, which crashes kernel 6.12; kernels 7 cannot create task
# storage in a BPF program without this instruction.
INSTEAD = {("amd64", "trixie"): {"Nehalem": "Nehalem,-cx16"}}
# Other CPUs of these machines, and the options that they need.
NEEDS = {"a64fx": ",gic-version=3"}
CONSOLES = {"arm64": "ttyAMA0", "amd64": "ttyS0"}
MEMORY = "2G"

# below the build directory; the Makefile's guest-programs builds them
GRAPHS = ("steps", "mpich_steps", "steps_f08", "mpich_steps_h")
KERNELS = ("cg", "ft", "ep", "pagerank")
PROGRAMS = ("vaprod", "vapro", "tests/changed_text", "tests/slow_rank",
            *("tools/" + name for name in ("classes", "hog", "iterate", "flat_out", "stalls", "mpich_demo_mpi", *GRAPHS, *KERNELS)))


class GuestFailed(Exception):
    """The guest did not come to the end of its scenario."""


def build_directory(arch):
    return os.path.join(ROOT, "build") if arch == HOST_ARCH else os.path.join(ROOT, "build", arch)


def fetch(*what):
    """A directory of fetch.sh."""
    done = subprocess.run([os.path.join(HERE, "fetch.sh"), *what], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise GuestFailed(f"fetch.sh {' '.join(what)} failed")
    return done.stdout.strip()


def module(arch, suite, source):
    """Builds the kernel module in the directory source for the kernel of a guest; returns its file."""
    headers = os.path.join(fetch("headers", arch, suite), "usr", "src")
    kernel = [name for name in os.listdir(headers) if name.endswith("-" + arch)][0]
    name = os.path.basename(source)
    work = os.path.join(WORK, f"module-{name}-{arch}-{suite}")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(source, work)
    cross = [] if arch == HOST_ARCH else [f"CROSS_COMPILE={TRIPLES[arch]}-"]
    done = subprocess.run(["make", "-s", "-C", os.path.join(headers, kernel), "ARCH=" + arch.replace("amd64", "x86"), *cross,
                           "M=" + work, "modules"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        raise GuestFailed(f"the module {name} could not be built for {kernel}:\n{done.stdout[-2000:]}")
    return os.path.join(work, name + ".ko")


def pack(arch, scenario, out, files=()):
    """The initramfs of a scenario: PROGRAMS and files lie in /vapro, which is in PATH."""
    build = build_directory(arch)
    image = Initramfs(arch, "/" if arch == HOST_ARCH else fetch("sysroot", arch))
    image.program(os.path.join(fetch("guest", arch), "bin", "busybox"), "/usr/bin/busybox")
    image.program(os.path.join(HERE, "init"), "/init")
    image.program(scenario, "/vapro/scenario")
    for name in [os.path.join(build, program) for program in PROGRAMS] + list(files):
        image.program(name, "/vapro/" + os.path.basename(name))
    image.mpi()
    image.write(out)


def boot(arch, suite, initramfs, log, limit, cpu=None):
    """Runs the machine until it powers off; its console goes to the file log."""
    kernel = os.path.join(fetch("kernel", arch, suite), "vmlinuz")
    if not shutil.which(MACHINES[arch][0]):
        raise GuestFailed(f"{MACHINES[arch][0]} is missing: tools/deps.sh vm installs it")
    machine = [INSTEAD.get((arch, suite), {}).get(word, word) for word in MACHINES[arch]]
    if cpu:
        machine[machine.index("-cpu") + 1] = cpu
        machine[machine.index("-M") + 1] += NEEDS.get(cpu, "")
    # the machine ends with this process, however that ends
    command = ["setpriv", "--pdeathsig", "KILL", *machine, "-m", MEMORY, "-nographic", "-nodefaults", "-no-reboot",
               "-serial", "stdio", "-kernel", kernel, "-initrd", initramfs, "-append",
               f"console={CONSOLES[arch]} quiet panic=-1 nokaslr norandmaps"]
    with open(log, "wb") as out:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise GuestFailed(f"the guest did not end within {limit} s; its console is in {log}") from None


def results(log, directory):
    """Unpacks the files that the scenario left into directory."""
    with open(log, encoding="utf-8", errors="replace") as file:
        console = file.read().replace("\r", "")
    match = re.search(r"vm-results-begin\n(.*?)\nvm-results-end ([0-9a-f]{32})", console, re.S)
    if not match:
        raise GuestFailed("no results from the guest; its console ends with:\n" + "\n".join(console.splitlines()[-15:]))
    data = base64.b64decode(match.group(1))
    if hashlib.md5(data).hexdigest() != match.group(2):
        raise GuestFailed(f"the results are damaged; the console is in {log}")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            if member.isfile() and not member.name.startswith("/") and ".." not in member.name.split("/"):
                tar.extract(member, directory)


def run(arch, suite, scenario, limit=900, name=None, cpu=None, files=()):
    """Boots a guest, of another CPU perhaps, with a scenario; returns the directory of its results, run-NAME."""
    name = name or f"{arch}-{suite}"
    directory = os.path.join(WORK, "run-" + name)
    os.makedirs(directory, exist_ok=True)
    for old, _, names in os.walk(directory):
        for file in names:
            os.unlink(os.path.join(old, file))
    initramfs, log = os.path.join(directory, "initramfs"), os.path.join(directory, "console")
    pack(arch, scenario, initramfs, files)
    boot(arch, suite, initramfs, log, limit, cpu)
    results(log, directory)
    return directory


def main(arguments):
    if len(arguments) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    arch, suite, scenario = arguments
    begin = time.monotonic()
    directory = run(arch, suite, scenario)
    with open(os.path.join(directory, "console"), encoding="utf-8", errors="replace") as file:
        print("".join(line for line in file if line.startswith("vm: ")), end="")
    print(f"{directory}, {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except GuestFailed as failure:
        sys.exit(f"guest.py: {failure}")
