// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An LD_PRELOAD library that counts a rank's MPI calls: an independent count to compare with vaprod's.
 * It wraps MPI_X and PMPI_X of every function that vaprod attaches (Fortran libraries call the
 * latter) and passes calls on to libmpi, so the probes see every call. Only top-level calls count:
 * vaprod attributes calls of MPI inside MPI to the outer call.
 *
 *   VAPRO_COUNT=DIR   MPI_Finalize writes DIR/count.RANK: lines "MPI_Send 42"; and "nested N", calls
 *                     inside others. At its start a process writes DIR/here.PID.PROGRAM and waits for
 *                     DIR/go.PID.PROGRAM: thus it is attached before its first call. 20 s at most.
 *
 * All these functions take integers and pointers only and return an int, so one prototype serves.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000

typedef long word;
typedef word function(word, word, word, word, word, word, word, word, word, word, word, word, word, word);

enum index {
#define WRAP(name) AT_##name,
#include "count_functions.h"
#undef WRAP
	FUNCTIONS
};

static const char *const names[] = {
#define WRAP(name) "PMPI_" #name,
#include "count_functions.h"
#undef WRAP
};

static function *real[FUNCTIONS];
static atomic_ulong calls[FUNCTIONS], nested;
static __thread unsigned int depth;

static function *enter(enum index at)
{
	if (!real[at])
		*(void **)&real[at] = dlsym(RTLD_NEXT, names[at]);
	if (!real[at]) {
		fprintf(stderr, "count: no %s in this MPI library\n", names[at]);
		abort();
	}
	if (depth++)
		atomic_fetch_add(&nested, 1);
	else
		atomic_fetch_add(&calls[at], 1);
	return real[at];
}

static void write_counts(void)
{
	const char *directory = getenv("VAPRO_COUNT"), *rank = getenv("OMPI_COMM_WORLD_RANK");
	char path[PATH_MAX];
	FILE *file;

	if (!rank)
		rank = getenv("PMI_RANK");
	if (!directory || !rank)
		return;
	snprintf(path, sizeof(path), "%s/count.%s", directory, rank);
	file = fopen(path, "w");
	if (!file)
		return;
	for (int i = 0; i < FUNCTIONS; i++)
		if (calls[i])
			fprintf(file, "%s %lu\n", names[i] + 1, calls[i]);
	fprintf(file, "nested %lu\n", nested);
	fclose(file);
}

static word leave(enum index at, word result)
{
	depth--;
	if (at == AT_Finalize && !depth)
		write_counts();
	return result;
}

/* clang-format off */
#define WRAP(name)                                                                                                     \
	word MPI_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k,        \
			word l, word m, word n);                                                                       \
	word MPI_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k,        \
			word l, word m, word n)                                                                        \
	{                                                                                                              \
		return leave(AT_##name, enter(AT_##name)(a, b, c, d, e, f, g, h, i, j, k, l, m, n));                   \
	}                                                                                                              \
	function PMPI_##name __attribute__((alias("MPI_" #name)));
#include "count_functions.h"
/* clang-format on */

__attribute__((constructor)) static void wait_for_attachment(void)
{
	const struct timespec step = {.tv_nsec = 5000000};
	const char *directory = getenv("VAPRO_COUNT"), *program;
	char exe[PATH_MAX], path[2 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int fd;

	if (!directory || length <= 0)
		return;
	exe[length] = '\0';
	program = strrchr(exe, '/') + 1;
	snprintf(path, sizeof(path), "%s/here.%d.%s", directory, getpid(), program);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "%s/go.%d.%s", directory, getpid(), program);
	for (int ms = 0; ms < WAIT_MS && access(path, F_OK); ms += 5)
		nanosleep(&step, NULL);
}
