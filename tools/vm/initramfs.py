# SPDX-License-Identifier: GPL-2.0-or-later
"""
Packs what a guest boots: programs with the shared libraries they need, Open MPI and MPICH, a shell and
an init. The same input gives the same bytes: names are sorted, times and owners fixed.

    image = Initramfs("arm64", sysroot)        # libraries come from sysroot; "/" is this machine
    image.program("build/arm64/vaprod", "/vapro/vaprod")
    image.mpi()
    image.write("initramfs")
"""
import glob
import os
import re
import stat
import subprocess

TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
MTIME = 1700000000
DIRECTORIES = ["dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/share", "var"]


class Initramfs:
    """Files of the guest by name: contents, or where a symbolic link goes."""

    def __init__(self, arch, sysroot):
        self.sysroot = sysroot
        self.libraries = "usr/lib/" + TRIPLES[arch]
        self.entries = {}
        self.elf = []  # files of this machine whose libraries are still to be looked for
        for name in DIRECTORIES:
            self._entry(name, stat.S_IFDIR | 0o755, b"")
        for name in ("bin", "sbin", "lib", "lib64"):
            self._entry(name, stat.S_IFLNK | 0o777, f"usr/{name}".encode())
        self.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
        self.text("etc/group", "root:x:0:\n")
        self.text("etc/hosts", "127.0.0.1 localhost vm\n")

    def _entry(self, name, mode, data):
        parent = os.path.dirname(name)
        if parent and parent not in self.entries:
            self._entry(parent, stat.S_IFDIR | 0o755, b"")
        self.entries[name] = mode, data

    def text(self, name, content, mode=0o644):
        self._entry(name.lstrip("/"), stat.S_IFREG | mode, content.encode())

    def link(self, name, target):
        self._entry(name.lstrip("/"), stat.S_IFLNK | 0o777, target.encode())

    def program(self, source, name):
        """A file; where it is an ELF file, with all libraries that it needs."""
        with open(source, "rb") as file:
            data = file.read()
        executable = os.access(source, os.X_OK)
        self._entry(name.lstrip("/"), stat.S_IFREG | (0o755 if executable else 0o644), data)
        if data[:4] == b"\x7fELF":
            self.elf.append(source)

    def tree(self, name, keep=lambda path: True):
        """A directory of the sysroot."""
        for directory, _, files in os.walk(os.path.join(self.sysroot, name)):
            for file in files:
                path = os.path.join(directory, file)
                if keep(path) and os.path.isfile(path):
                    self.program(path, os.path.relpath(path, self.sysroot))

    def mpi(self):
        """The runtimes of Open MPI and MPICH, to start jobs on this one node."""
        def plugin(path):
            return not path.endswith((".la", ".a"))
        self.tree(self.libraries + "/openmpi/lib/openmpi3", plugin)
        self.tree(self.libraries + "/pmix2/lib/pmix", plugin)
        for name in ("usr/share/openmpi", "etc/openmpi", "usr/share/pmix2", "etc/pmix2"):
            self.tree(name, lambda path: path.endswith((".txt", ".conf", "default-hostfile")))
        for name in ("orterun", "orted", "mpiexec.hydra", "hydra_pmi_proxy"):
            self.program(os.path.join(self.sysroot, "usr/bin", name), "usr/bin/" + name)
        self.link("usr/bin/mpirun", "orterun")
        self.link("usr/bin/mpirun.mpich", "mpiexec.hydra")

    def _library(self, name):
        for directory in (self.libraries, "usr/lib", "lib64", *(os.path.relpath(d, self.sysroot) for d in glob.glob(
                os.path.join(self.sysroot, self.libraries, "*/lib")))):
            path = os.path.join(self.sysroot, directory, name)
            if os.path.exists(path):
                return directory, path
        raise FileNotFoundError(f"{name}, needed by a program of the guest, is not in {self.sysroot}")

    def _close(self):
        """Adds libraries until none is missing."""
        while self.elf:
            out = subprocess.run(["readelf", "-W", "-l", "-d", *self.elf], capture_output=True, text=True, check=True).stdout
            self.elf = []
            for loader in set(re.findall(r"program interpreter: (/[^]]*)]", out)):
                if self._resolved(loader) not in self.entries:
                    self.program(os.path.realpath(os.path.join(self.sysroot, loader.lstrip("/"))), self._resolved(loader))
            for name in sorted(set(re.findall(r"\(NEEDED\).*\[(.*)]", out))):
                directory, path = self._library(name)
                guest = self._resolved(os.path.join(directory, name))
                if guest not in self.entries:
                    self.program(path, guest)

    @staticmethod
    def _resolved(name):
        """Its place in the guest, past the links at the root."""
        return re.sub(r"^/?(bin|sbin|lib|lib64)/", r"usr/\1/", name).lstrip("/")

    def write(self, path):
        """As an archive of cpio's newc format, the one that the kernel unpacks."""
        self._close()
        with open(path, "wb") as out:
            for number, name in enumerate(sorted(self.entries), 1):
                mode, data = self.entries[name]
                self._archive(out, number, name, mode, data)
            self._archive(out, 0, "TRAILER!!!", 0, b"")

    @staticmethod
    def _archive(out, number, name, mode, data):
        encoded = name.encode() + b"\0"
        fields = [number, mode, 0, 0, 1, MTIME if mode else 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        out.write(b"\0" * (-(110 + len(encoded)) % 4))
        out.write(data + b"\0" * (-len(data) % 4))
