#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Several nodes on one machine, for the demonstration and tests of jobs that span nodes: each node is a network namespace
with a host name of its own, connected by a bridge in a further namespace, the hub, where the broker and the worker
run. A node has its own copies of the program and of the MPI library, so that each vaprod probes files of its own
node only. Processes, CPUs and the file system are those of the machine.

    with Nodes(directory, 2) as nodes:
        nodes.broker()
        job = nodes.mpirun(program, arguments)
        daemon = nodes.start(1, [vaprod, "--exe", nodes.program_glob(1)])

Whatever was started ends with the block. Needs root, Debian's iproute2, util-linux, Open MPI and, for a broker, nats-server.
"""
import os
import shutil
import signal
import socket
import subprocess
import time

SUBNET = "10.231.7"
HUB = SUBNET + ".1"
PORT = 4222


class NodesError(Exception):
    """What could not be set up, in a sentence."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodesError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def library(program, name):
    """The path of a shared library that the program loads."""
    for line in run("ldd", program).splitlines():
        words = line.split()
        if words and words[0].startswith(name) and len(words) > 2:
            return os.path.realpath(words[2])
    raise NodesError(f"{program} does not load {name}")


class Nodes:
    """Nodes 1 to count, named node1 and so on."""

    def __init__(self, directory, count):
        self.directory, self.count = os.path.abspath(directory), count
        self.prefix = f"vp{os.getpid()}"
        self.holders, self.spaces, self.started = {}, [], []

    def __enter__(self):
        try:
            os.makedirs(self.directory, exist_ok=True)
            self._network()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        for process in reversed(self.started):
            end(process)
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)

    def _space(self, name):
        space = self.prefix + name
        run("ip", "netns", "add", space)
        self.spaces.append(space)
        run("ip", "-n", space, "link", "set", "lo", "up")
        return space

    def _network(self):
        hub = self._space("hub")
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "addr", "add", HUB + "/24", "dev", "bridge")
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        for node in range(1, self.count + 1):
            space, port = self._space(f"n{node}"), f"port{node}"
            run("ip", "-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            run("ip", "-n", hub, "link", "set", port, "master", "bridge", "up")
            run("ip", "-n", space, "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            holder = subprocess.Popen(["ip", "netns", "exec", space, "unshare", "--uts", "sh", "-c",
                                       f"hostname node{node} && echo ready && exec sleep infinity"],
                                      stdout=subprocess.PIPE, text=True)
            self.started.append(holder)
            if holder.stdout.readline() != "ready\n":
                raise NodesError(f"node{node} could not be created")
            self.holders[node] = holder.pid
        agent = os.path.join(self.directory, "agent.sh")
        lines = "".join(f"{self.address(node)}) holder={pid} ;;\n" for node, pid in self.holders.items())
        with open(agent, "w", encoding="utf-8") as file: # in place of ssh: host, command
            file.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1\nshift\n'
                       f'case $host in\n{lines}*) echo "no node has the address $host" >&2; exit 1 ;;\nesac\n'
                       'exec nsenter --target "$holder" --uts --net sh -c "$*"\n')
        os.chmod(agent, 0o755)

    @staticmethod
    def address(node):
        return f"{SUBNET}.{10 + node}"

    @staticmethod
    def host(node):
        return f"node{node}"

    def inside(self, node, command):
        """The command line that runs a command on a node; node 0 is the hub."""
        if not node:
            return ["ip", "netns", "exec", self.prefix + "hub", *command]
        return ["nsenter", "--target", str(self.holders[node]), "--uts", "--net", *command]

    def start(self, node, command, **options):
        """Starts a command on a node (0: the hub). It ends with the block at the latest."""
        process = subprocess.Popen(self.inside(node, command), stdin=subprocess.DEVNULL, **options)
        self.started.append(process)
        return process

    def broker(self, number=0, port=PORT, lines=()):
        """Starts a NATS server with JetStream in the hub and returns its process; lines are added to its configuration."""
        store = os.path.join(self.directory, f"broker{number}")
        os.makedirs(store, exist_ok=True)
        config = store + ".conf"
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join([f"server_name: broker{number}", f"listen: {HUB}:{port}",
                                  f'jetstream {{ store_dir: "{store}", max_mem: 64M, max_file: 1G }}', *lines, ""]))
        with open(store + ".log", "w", encoding="utf-8") as log:
            process = self.start(0, ["nats-server", "-c", config], stdout=log, stderr=log)
        for _ in range(100):
            if process.poll() is not None:
                break
            probe = subprocess.run(self.inside(0, ["python3", "-c", "import socket, sys; socket.create_connection("
                                                   f"('{HUB}', {port}), 1)"]), capture_output=True, check=False)
            if not probe.returncode:
                return process
            time.sleep(0.05)
        raise NodesError(f"the broker did not start, see {store}.log")

    @staticmethod
    def url(port=PORT):
        return f"nats://{HUB}:{port}"

    def _copies(self, program):
        """Gives each node its own program and MPI library. Returns the script that starts them."""
        mpi = library(program, "libmpi.so")
        name = os.path.basename(program)
        for node in self.holders:
            os.makedirs(os.path.join(self.directory, self.host(node)), exist_ok=True)
            shutil.copy(program, os.path.join(self.directory, self.host(node), name))
            shutil.copy(mpi, os.path.join(self.directory, self.host(node), os.path.basename(os.path.realpath(mpi))))
            link = os.path.join(self.directory, self.host(node), "libmpi.so.40")
            if not os.path.lexists(link):
                os.symlink(os.path.basename(mpi), link)
        start = os.path.join(self.directory, "start.sh")
        with open(start, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nhere={self.directory}/$(hostname)\nLD_LIBRARY_PATH=$here exec "$here/{name}" "$@"\n')
        os.chmod(start, 0o755)
        return start

    def program_glob(self, node):
        """What vaprod's --exe selects on a node."""
        return os.path.join(self.directory, self.host(node), "*")

    def mpirun(self, program, arguments, ranks=1, **options):
        """Starts an Open MPI job from node1 with so many ranks on each node."""
        hosts = ",".join(f"{self.address(node)}:{ranks}" for node in self.holders)
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = ["mpirun", "--mca", "plm_rsh_agent", os.path.join(self.directory, "agent.sh")]
        for layer in ("oob_tcp", "btl_tcp"):
            command += ["--mca", layer + "_if_include", "eth0"]
        command += ["--bind-to", "none", "-H", hosts, "-n", str(ranks * self.count), self._copies(program), *arguments]
        return self.start(1, command, env=environment, **options)


def end(process, patience_s=5):
    """Ends a process that was started here: SIGTERM, then SIGKILL. Returns its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def free_port():
    """A port of the loopback interface that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
