#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
A program of mpi4py with the same work in every round: a loop of Python, an exchange of pickled objects, a loop, a
reduction of a buffer. Checks what arrives and writes the truth log of tools/workloads/truth.h.

  mpirun -n 2 python3 mpi4py_steps.py [--seconds T | --rounds N] [--log DIR] [--bind]
"""
import argparse
import array
import os
import resource
import sys
import time

from mpi4py import MPI

FIRST, SECOND = 90000, 50000  # additions: some milliseconds


def add_up(count, seed):
    total = seed
    for i in range(count):
        total = (total * 3 + i) & 0xFFFFFFFF
    return total


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--log")
    parser.add_argument("--bind", action="store_true")
    args = parser.parse_args()
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    if args.bind:
        os.sched_setaffinity(0, {rank % os.cpu_count()})
    file = open(os.path.join(args.log, f"truth.{rank}"), "w", encoding="utf-8") if args.log else None
    if file:
        print(f"# vapro truth 1, rank {rank}, pid {os.getpid()}\n# name 1 first loop\n# name 2 second loop", file=file, flush=True)
    segments, wrong, number = [], 0, 0
    comm.Barrier()
    begin, begin_cpu = time.monotonic_ns(), cpu_s()
    left_at = begin
    over = False
    while not over:
        value = add_up(FIRST, number)
        now = time.monotonic_ns()
        segments.append((1, left_at, now - left_at))
        got = comm.sendrecv({"from": rank, "round": number, "value": value}, dest=right, source=left)
        left_at = time.monotonic_ns()
        wrong += got != {"from": left, "round": number, "value": value}
        value = add_up(SECOND, number)
        number += 1
        ends = number >= args.rounds if args.rounds else time.monotonic_ns() - begin > args.seconds * 1e9
        mine, summed = array.array("d", [value, rank == 0 and ends]), array.array("d", [0, 0])
        now = time.monotonic_ns()
        segments.append((2, left_at, now - left_at))
        comm.Allreduce(mine, summed)
        left_at = time.monotonic_ns()
        wrong += summed[0] != size * value
        over = summed[1] > 0
    wall, spent = (time.monotonic_ns() - begin) / 1e9, cpu_s() - begin_cpu
    if file:
        file.writelines(f"{one} {start} {duration}\n" for one, start, duration in segments)
        print(f"# end {len(segments)}", file=file)
        file.close()
    wrong, spent = comm.allreduce(wrong), comm.allreduce(spent)
    if rank == 0:
        print(f'{{"program":"mpi4py_steps","ranks":{size},"rounds":{number},"wrong":{wrong},"wall_s":{wall:.6f},"cpu_s":{spent:.6f}}}')
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
