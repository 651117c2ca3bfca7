# SPDX-License-Identifier: GPL-2.0-or-later
"""Users whose files make others wait: what tests/live/held.t and `make accept WHAT=held` have in common."""
import os
import shutil
import stat
import struct

import jobs as j

ATTACKER, BYSTANDER = 60001, 60002  # numbers without accounts
PROGRAM = j.path("tools", "hostile")
LIBRARY = j.path("tools", "unmapped", "libmpi.so.40")
SKIPPED = 77
FIRST, PAGE, HEADER, PROGRAM_HEADER, SYMBOL, SECTION = 0x100000, 0x1000, 64, 56, 24, 64


def slow_elf(path, loads=60000, symbols=1000000):
    """An ELF file that is slow to read: each symbol lies in the last of very many segments."""
    names = b"\0MPI_Send\0"
    names_at = HEADER + PROGRAM_HEADER * loads
    symbols_at = names_at + len(names)
    sections_at = (symbols_at + SYMBOL * symbols + 63) & ~63
    last = FIRST + (loads - 1) * PAGE

    def section(kind, at, size, link, entry):
        return struct.pack("<IIQQQQIIQQ", 0, kind, 2, 0, at, size, link, 1, 8, entry)
    data = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    data += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, HEADER, sections_at, 0, HEADER, PROGRAM_HEADER, loads, SECTION, 3, 0)
    data += b"".join(struct.pack("<IIQQQQQQ", 1, 5, 0, FIRST + i * PAGE, 0, 64, 64, PAGE) for i in range(loads))
    data += names + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, last, 16) * symbols
    with open(path, "wb") as file:
        file.write(data.ljust(sections_at, b"\0"))
        file.write(bytes(SECTION) + section(11, symbols_at, SYMBOL * symbols, 2, SYMBOL) + section(3, names_at, len(names), 0, 0))


class Users:
    """Places and processes of users; each has a directory of its own."""

    def __init__(self, jobs, environment=None):
        self.jobs, self.count, self.environment = jobs, 0, environment or {}

    def place(self, user):
        self.count += 1
        directory = os.path.join(self.jobs.directory, f"user.{self.count}")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        os.chown(directory, user, user)
        return directory

    def library(self, user, source=LIBRARY):
        path = shutil.copy(source, os.path.join(self.place(user), "libmpi.so.40"))
        os.chown(path, user, user)
        return path

    def start(self, user, kind, library, seconds, *more):
        """Starts a process of hostile.c; returns its job once it is ready, None where it cannot do that here."""
        # distributions give every user the device; here it may be root's alone
        device = os.path.join(self.jobs.directory, f"fuse.{self.count}")
        if os.path.exists(device):
            os.unlink(device)
        os.mknod(device, stat.S_IFCHR, os.makedev(10, 229))
        os.chmod(device, 0o666)
        job = self.jobs.start([PROGRAM, kind, library, seconds, *more], f"{kind}.{self.count}", cwd=self.place(user),
                              env={"FUSE_DEVICE": device, **self.environment}, user=user or None)
        j.until(lambda: "ready" in job.out() or job.process.poll() is not None, 10)
        os.unlink(device)
        if job.process.poll() == SKIPPED:
            return None
        if "ready" not in job.out():
            raise RuntimeError(f"hostile {kind}: {job.process.poll()} {job.err().strip()}")
        return job

    def bystander(self, seconds=60):
        return self.start(BYSTANDER, "map", self.library(BYSTANDER), seconds)
