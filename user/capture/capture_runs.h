/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the runs of a capture lie. A run is added at a file's end, and begins with a head of its own;
 * the run before may end anywhere, because its daemon was killed.
 */
#ifndef VAPRO_COLLECT_CAPTURE_RUNS_H
#define VAPRO_COLLECT_CAPTURE_RUNS_H

#include <stddef.h>
#include <stdint.h>

struct capture_run {
	uint64_t begin, end; /* bytes of the file */
};

/*
 * Finds the runs of an open file, which is read from its start; a file that is not regular is one run
 * without an end. Returns 0 with an array to free, of at least one run, or a negative errno.
 */
int capture_runs__find(int fd, struct capture_run **runs, size_t *count);

#endif
