// SPDX-License-Identifier: GPL-2.0-or-later
/* A site's library between the application and MPI, as libwrapper.so; see wrapped.c. */
#include <mpi.h>

double wrapped_sum(double value);

double wrapped_sum(double value)
{
	double sum = 0;

	MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum + 1;
}
