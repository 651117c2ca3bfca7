/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The true work of each computation between two MPI calls, logged by the program itself: how often each
 * of its loops and branches ran. Two computations with equal counts did the same work, whatever their
 * durations.
 *
 *   path__ran(&path, BLOCK, times);   a loop or a branch ran `times` times
 *   path__call(&path);                the next MPI call is due: the computation ends here
 *
 * Records stay in memory that was touched at start. File DIR/path.RANK, text: one line of counts per
 * computation, in order, from the first observed MPI call on. The last line is "end N".
 */
#ifndef VAPRO_WORKLOAD_PATH_H
#define VAPRO_WORKLOAD_PATH_H

#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>

#include "common.h"

#define PATH_BLOCKS 10
#define PATH_RECORDS 65536

struct path {
	uint32_t ran[PATH_BLOCKS];
	uint32_t (*records)[PATH_BLOCKS];
	size_t count;
	bool begun; /* work before the first call was not observed */
	int rank;
	const char *directory;
};

static inline void path__ran(struct path *path, int block, size_t times)
{
	path->ran[block] += (uint32_t)times;
}

static inline void path__call(struct path *path)
{
	if (path->begun && path->count < PATH_RECORDS)
		memcpy(path->records[path->count++], path->ran, sizeof(path->ran));
	path->begun = true;
	memset(path->ran, 0, sizeof(path->ran));
}

/* Allocates size bytes and touches them: no page faults later. */
static inline void *touched(size_t size)
{
	void *memory = malloc(size);

	if (!memory) {
		fprintf(stderr, "no memory for %zu bytes\n", size);
		exit(1);
	}
	return memset(memory, 0, size);
}

/* Reads --rounds N and --log DIR; other options end the program with code 2. */
static inline void path__options(int argc, char **argv, int *rounds, const char **directory)
{
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'}, {"log", required_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
	int opt;

	*directory = ".";
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			*rounds = (int)number("--rounds", optarg, 1, 1e6);
		else if (opt == 'l')
			*directory = optarg;
		else
			exit(2);
	}
}

/* Prints {"ready":true,"pid":P}, and waits for the observer. */
static inline void path__open(struct path *path, const char *directory)
{
	memset(path, 0, sizeof(*path));
	path->records = touched(sizeof(*path->records) * PATH_RECORDS);
	path->directory = directory;
	MPI_Comm_rank(MPI_COMM_WORLD, &path->rank);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	wait_for_observer(1);
}

/* Writes the log. Returns 0, or 1 where the log could not be written or is not complete. */
static inline int path__close(struct path *path)
{
	char name[4096];
	FILE *file;
	int failed;

	snprintf(name, sizeof(name), "%s/path.%d", path->directory, path->rank);
	file = fopen(name, "w");
	if (!file) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return 1;
	}
	for (size_t i = 0; i < path->count; i++)
		for (int k = 0; k < PATH_BLOCKS; k++)
			fprintf(file, "%u%c", path->records[i][k], k + 1 < PATH_BLOCKS ? ' ' : '\n');
	fprintf(file, "end %zu\n", path->count);
	failed = ferror(file) || path->count == PATH_RECORDS;
	failed |= fclose(file) != 0;
	free(path->records);
	return failed;
}

#endif
