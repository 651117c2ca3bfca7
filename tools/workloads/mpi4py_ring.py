#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
A program of mpi4py: pickled objects, buffers, collectives and non-blocking calls, the same work in
every step. Prints one line with a number that depends on every message; two ranks or more.

  mpirun -n 2 python3 mpi4py_ring.py [STEPS]
"""
import array
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
total = 0
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
    received = comm.sendrecv({"from": rank, "step": step}, dest=right, sendtag=1, source=left, recvtag=1)
    total += received["from"] * 3 + received["step"]
    sent, got = array.array("d", [rank + step] * 512), array.array("d", bytes(8 * 512))
    requests = [comm.Irecv(got, source=left, tag=2), comm.Isend(sent, dest=right, tag=2)]
    MPI.Request.Waitall(requests)
    total += int(sum(got))
    total += comm.allreduce(step * (rank + 1), op=MPI.SUM)
    total += sum(comm.allgather(rank + step))
    total += comm.bcast(total if rank == step % size else None, root=step % size) % 1000
    if step % 10 == 0:
        comm.Barrier()
        parts = comm.gather((rank, total), root=0)
        if rank == 0:
            total += sum(part[0] for part in parts)
half = comm.Split(rank % 2, rank)
total += half.allreduce(rank)
half.Free()
totals = comm.gather(total, root=0)
if rank == 0:
    print("totals", *totals)
