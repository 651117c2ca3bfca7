/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is a target, and who shares an image with targets. */
#ifndef VAPRO_SELECTION_H
#define VAPRO_SELECTION_H

#include "target/process.h"

/* Who is a target. Without any selection: every process that maps libmpi. With one also those without MPI that
 * have threads to tell of. */
struct selection {
	const pid_t *pids;
	size_t pid_count;
	const char *const *globs; /* of the executable's path or base name */
	size_t glob_count;
	pid_t ancestor; /* 0, or: only its descendants */
};

/* Whether a process is a target, by what was asked for. */
bool selection__takes(const struct selection *selection, const struct process *process);

/* Whether it was asked for by its number: then it must be attachable. */
bool selection__names(const struct selection *selection, pid_t pid);

/*
 * Calls visit for every process of the node that can be read and that wants() of what it runs and maps
 * (process__glance), until visit returns false.
 */
void process__each(bool (*wants)(void *ctx, const struct process *process),
		   bool (*visit)(void *ctx, const struct process *process), void *ctx);

/* How many targets and how many others map an image; who opted out or is traced is no target. */
void selection__sharers(const struct selection *selection, const struct process_mapping *mapping, size_t *targets,
			size_t *others);

#endif
