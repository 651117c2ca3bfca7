#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Data-parallel training without MPI: torch's DistributedDataParallel over gloo. Each rank is started by hand or by a launcher with
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Every step does the same work; prints the last loss.

  RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29533 python3 ddp_steps.py [--seconds T | --rounds N]
"""
import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH = 256, 64


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    model = DistributedDataParallel(torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(100 + rank)
    data, target = torch.randn(BATCH, WIDTH), torch.randn(BATCH, 1)
    begin, done, over = time.monotonic(), 0, torch.zeros(1)
    loss = None
    while not over.item():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        done += 1
        if rank == 0:
            over[0] = done >= args.rounds if args.rounds else time.monotonic() - begin > args.seconds
        if args.rounds or done % 10 == 0:
            dist.broadcast(over, 0)
        else:
            over[0] = 0
    if rank == 0:
        print(f"loss {loss.item():.6f} after {done} steps" if args.rounds else f"{done} steps")
    dist.destroy_process_group()


main()
