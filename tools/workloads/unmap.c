// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unmaps an observed library, and maps other code at its address.
 *
 *   unmap LIBRARY [GO [LOADS]]
 *
 * LIBRARY defines int MPI_Barrier(void *) and is named like an MPI library (tools/workloads/unmapped.c). Loads
 * it, prints {"ready":true,"pid":P}, waits until the file GO exists, and calls it; then LOADS times (10)
 * unloads it, runs own code at the function's address, loads it again and calls it. Last line:
 * result unmap TEXT calls MPI_Barrier=N.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

#include "common.h"

#define TIMES 200

typedef int barrier_function(void *);

static void *library;
static barrier_function *barrier;

static bool load(const char *file)
{
	library = dlopen(file, RTLD_NOW);
	if (library)
		*(void **)&barrier = dlsym(library, "MPI_Barrier");
	if (!library || !barrier)
		fprintf(stderr, "unmap: %s\n", dlerror());
	return library && barrier;
}

static int call(void)
{
	int sum = 0;

	for (int i = 0; i < TIMES; i++)
		sum += barrier(&sum);
	return sum;
}

/* Runs an own function at the address of the library's function. */
static int run_other_code(void)
{
	static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3}; /* mov $7, %eax; ret */
	unsigned long at = (unsigned long)barrier;
	int result;
	unsigned char *place = mmap((void *)(at & ~4095UL), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (place == MAP_FAILED)
		return -1;
	memcpy(place + (at & 4095), code, sizeof(code));
	result = barrier(NULL);
	munmap(place, 4096);
	return result;
}

int main(int argc, char **argv)
{
	const struct timespec rest = {.tv_nsec = 10000000};
	int sum, other = 0, loads = argc > 3 ? atoi(argv[3]) : 10;

	if (argc < 2 || !load(argv[1]))
		return 2;
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	while (argc > 2 && access(argv[2], F_OK))
		nanosleep(&rest, NULL);
	sum = call();
	for (int again = 0; again < loads; again++) {
		dlclose(library);
		other += run_other_code();
		if (!load(argv[1]))
			return 1;
		sum += call();
	}
	printf("result unmap sum %d, other %d calls MPI_Barrier=%d\n", sum, other, (loads + 1) * TIMES);
	return 0;
}
