# SPDX-License-Identifier: GPL-2.0-or-later
"""Cgroups of one test that have the CPU controller, of either version; they are removed when the test ends."""
import os
import re

from live import until


class NoCgroups(Exception):
    """The reason why no cgroup can be created on this machine."""


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(str(text))


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _hierarchy():
    """(mount point, version) of the CPU controller."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for _, where, kind, options, *_ in mounts:
        if kind == "cgroup" and "cpu" in options.split(","):
            return where, 1
    for _, where, kind, *_ in mounts:
        if kind == "cgroup2" and "cpu" in _read(os.path.join(where, "cgroup.controllers")).split():
            return where, 2
    raise NoCgroups("no hierarchy with the CPU controller is mounted")


class Cgroups:
    """
    A cgroup with a large share of the CPUs, so that other work on the machine does not disturb its processes, and below it
    a cgroup for each of the names.
    """

    def __init__(self, name, *names):
        self.root, self.version = _hierarchy()
        self.path = "/" + name
        self.top = self.root + self.path
        self.names = names
        self.switched = False

    def __enter__(self):
        try:
            if self.version == 2 and "cpu" not in _read(self.root + "/cgroup.subtree_control").split():
                _write(self.root + "/cgroup.subtree_control", "+cpu")
                self.switched = True
            os.mkdir(self.top)
            if self.version == 2:
                _write(self.top + "/cgroup.subtree_control", "+cpu")
                _write(self.top + "/cpu.weight", 10000)
            else:
                _write(self.top + "/cpu.shares", 100000)
            for name in self.names:
                os.mkdir(f"{self.top}/{name}")
            if not os.path.exists(f"{self.top}/{self.names[0]}/{'cpu.max' if self.version == 2 else 'cpu.cfs_quota_us'}"):
                raise NoCgroups("this kernel has no CPU quotas (CONFIG_CFS_BANDWIDTH)")
        except OSError as error:
            self.__exit__()
            raise NoCgroups(f"{self.top} cannot be created: {error}") from None
        except NoCgroups:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        """A process that is still in them goes back to the root."""
        for directory in [f"{self.top}/{name}" for name in self.names] + [self.top]:
            if not os.path.isdir(directory):
                continue
            for pid in _read(directory + "/cgroup.procs").split():
                try:
                    _write(self.root + "/cgroup.procs", pid)
                except OSError:
                    pass
            until(lambda: self._remove(directory), 5)
        if self.switched:
            _write(self.root + "/cgroup.subtree_control", "-cpu")

    @staticmethod
    def _remove(directory):
        try:
            os.rmdir(directory)
        except OSError:
            return False
        return True

    def move(self, name, pid):
        _write(f"{self.top}/{name}/cgroup.procs", pid)

    def limit(self, name, quota_us=None, period_us=100000):
        """Sets the quota of a cgroup, or removes it."""
        directory = f"{self.top}/{name}"
        if self.version == 2:
            _write(directory + "/cpu.max", f"{quota_us or 'max'} {period_us}")
        else:
            _write(directory + "/cpu.cfs_period_us", period_us)
            _write(directory + "/cpu.cfs_quota_us", quota_us or -1)

    def throttled_s(self, name):
        """Seconds for which a cgroup was throttled so far, as the kernel sums them."""
        stat = _read(f"{self.top}/{name}/cpu.stat")
        usec = re.search(r"^throttled_usec (\d+)", stat, re.M)
        return int(usec[1]) / 1e6 if usec else int(re.search(r"^throttled_time (\d+)", stat, re.M)[1]) / 1e9
