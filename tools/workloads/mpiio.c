// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MPI-IO with synchronisation: in each round some work, then every rank writes its part of one file
 * (MPI_File_write_at) and synchronises it (MPI_File_sync), which is an fsync; now and then the part is read and
 * compared. Needs --scratch.
 *
 *   mpirun -n 2 mpiio --scratch DIR [options of loop.h]
 */
#include "loop_mpi.h"

enum { BYTES = 64 * 1024, PARTS = 32, READ_EVERY = 16, WORK_US = 6000, SEG_WORK = 1, SEG_SYNC, SEG_READ, SEG_REDUCE };

int main(int argc, char **argv)
{
	static unsigned char out[BYTES], in[BYTES];
	uint64_t round, wrong = 0, value = 31, mine[2], all[2];
	struct loop loop;
	MPI_File file;
	char path[4096];

	MPI_Init(&argc, &argv);
	loop__start(&loop, "mpiio", argc, argv, 500);
	if (!loop.scratch) {
		fprintf(stderr, "mpiio: --scratch is missing\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	truth__name(&loop.log, SEG_WORK, "work before the write");
	truth__name(&loop.log, SEG_SYNC, "between write and sync");
	truth__name(&loop.log, SEG_READ, "between sync and read");
	truth__name(&loop.log, SEG_REDUCE, "before Allreduce");
	truth__io(&loop.log, SEG_WORK);
	truth__io(&loop.log, SEG_SYNC);
	truth__io(&loop.log, SEG_READ);
	snprintf(path, sizeof(path), "%s/mpiio", loop.scratch);
	if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ||
	    MPI_File_preallocate(file, (MPI_Offset)BYTES * PARTS * loop.size)) {
		fprintf(stderr, "mpiio: %s cannot be opened\n", path);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	loop__first(&loop);
	MPI_Barrier(MPI_COMM_WORLD);
	loop__begin(&loop);
	for (round = 0;; round++) {
		MPI_Offset at = (MPI_Offset)BYTES * ((MPI_Offset)(round % PARTS) * loop.size + loop.rank);

		value = loop__compute(&loop, value, WORK_US);
		memset(out, (int)(round * 7 + (uint64_t)loop.rank + 1) & 0xff, BYTES);
		truth__enter(&loop.log, SEG_WORK);
		wrong += MPI_File_write_at(file, at, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
		truth__leave(&loop.log);
		truth__enter(&loop.log, SEG_SYNC);
		wrong += MPI_File_sync(file) != MPI_SUCCESS;
		truth__leave(&loop.log);
		if (round % READ_EVERY == READ_EVERY - 1) {
			truth__enter(&loop.log, SEG_READ);
			wrong += MPI_File_read_at(file, at, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
			truth__leave(&loop.log);
			wrong += memcmp(in, out, BYTES) != 0;
		}
		mine[0] = value >> 8;
		mine[1] = loop.rank == 0 && loop__over(&loop, round + 1);
		truth__enter(&loop.log, SEG_REDUCE);
		MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		truth__leave(&loop.log);
		wrong += all[0] != (uint64_t)loop.size * (value >> 8);
		if (all[1])
			break;
	}
	MPI_File_close(&file);
	return loop__finish(&loop, round + 1, wrong);
}
