// SPDX-License-Identifier: GPL-2.0-or-later
/* A library that is unloaded while it is observed (unmap.c); built under an MPI library's name. */
int MPI_Barrier(void *comm);

int MPI_Barrier(void *comm)
{
	static int calls;

	calls++;
	return comm ? 1 : 2;
}
