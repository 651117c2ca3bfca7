// SPDX-License-Identifier: GPL-2.0-or-later
/* Stands for an MPI library (libmpi.so.40): vaprod probes what defines MPI_Init and PMPI_Init. Its functions do
 * nothing. */
#define CALL(name)                                                                                                     \
	__attribute__((noinline)) int name(void *buffer, int count, void *type, int peer, int tag, void *comm)         \
	{                                                                                                              \
		(void)buffer, (void)count, (void)type, (void)peer, (void)tag, (void)comm;                              \
		__asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop" ::: "memory");                               \
		return 0;                                                                                              \
	}

int MPI_Send(void *buffer, int count, void *type, int peer, int tag, void *comm);
int MPI_Recv(void *buffer, int count, void *type, int peer, int tag, void *comm);

CALL(MPI_Send)
CALL(MPI_Recv)
int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv);

int MPI_Init(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return 0;
}

int PMPI_Init(int *argc, char ***argv)
{
	return MPI_Init(argc, argv);
}

long ompi_mpi_comm_world[64], ompi_mpi_byte[64];
