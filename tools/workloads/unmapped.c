// SPDX-License-Identifier: GPL-2.0-or-later
/* A library that is unloaded while it is observed (unmap.c); by its functions it is an MPI library. */
int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv);
int MPI_Barrier(void *comm);

int MPI_Init(int *argc, char ***argv)
{
	return argc && argv;
}

int PMPI_Init(int *argc, char ***argv)
{
	return MPI_Init(argc, argv);
}

int MPI_Barrier(void *comm)
{
	static int calls;

	calls++;
	return comm ? 1 : 2;
}
