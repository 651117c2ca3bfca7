// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data that vaprod stores of MPI_Send, stored inside the program: an LD_PRELOAD library that times the
 * call and the computation before it, and adds both up by call-site. It is the lower bound for `make bench`:
 * no tool that stores as much can cost less, but such a library cannot be added to a running program.
 */
#include <mpi.h>
#include <stdint.h>
#include <time.h>

#define PLACES 256

struct sums {
	uint64_t n, sum, least, most, bytes;
};

static __thread struct {
	struct sums call, before;
	uintptr_t site;
} places[PLACES];
static __thread uint64_t left_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void keep(struct sums *sums, uint64_t duration, uint64_t bytes)
{
	sums->n++;
	sums->sum += duration;
	if (!sums->least || duration < sums->least)
		sums->least = duration;
	if (duration > sums->most)
		sums->most = duration;
	sums->bytes += bytes;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
	uintptr_t site = (uintptr_t)__builtin_return_address(0);
	uint64_t begin = now_ns();
	int result, size = 0;

	PMPI_Type_size(type, &size);
	while (places[site % PLACES].site && places[site % PLACES].site != site)
		site++; /* as many sites as there are places were never seen */
	places[site % PLACES].site = site;
	keep(&places[site % PLACES].before, begin - left_ns, 0);
	result = PMPI_Send(buffer, count, type, to, tag, comm);
	left_ns = now_ns();
	keep(&places[site % PLACES].call, left_ns - begin, (uint64_t)count * (uint64_t)size);
	return result;
}
