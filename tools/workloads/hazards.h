/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that hazards.c and hazards_stacks.c share. */
#ifndef VAPRO_WORKLOAD_HAZARDS_H
#define VAPRO_WORKLOAD_HAZARDS_H

#include <mpi.h>
#include <stdbool.h>

#define TIMES 200

static inline void allreduce(int *sum)
{
	int one = 1, got = 0;

	MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	*sum += got;
}

/* Gives MPI_COMM_SELF an attribute; whenever MPI copies that communicator it calls `in_copy`. Returns its key. */
int call_in_copy(void (*in_copy)(void));

/* The hazards that leave or switch a stack; they return the exit code. */
int jump(void);
int switch_contexts(void);
int callback(bool above);
int take_signals(void);

#endif
