/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kept processes from being seen, as records of processes and warnings have it: refused, under a translator or a
 * tracer, without an MPI library, or without any call since they were attached (stopped, hung, asleep, or in one long
 * computation). Where nothing was found and nothing could be compared, the first of these is the reason, and not how
 * long the run was. This is the one place where such a reason is chosen: a new kind is a row in obstacles.c.
 */
#ifndef VAPRO_REPORT_OBSTACLES_H
#define VAPRO_REPORT_OBSTACLES_H

#include <stddef.h>
#include <stdint.h>

#define OBSTACLES_MOST 256 /* those that come later are counted only */

/* In the order in which they are named. */
enum obstacle_kind {
	OBSTACLE_NO_CALLS,   /* no call was seen since it was attached */
	OBSTACLE_TRANSLATOR, /* a binary translator executes it */
	OBSTACLE_REFUSED,    /* it is not watched */
	OBSTACLE_TRACED,     /* a debugger or tracer was attached to it */
	OBSTACLE_PARTLY,     /* it is watched in part: it maps no MPI library, for example */
	OBSTACLE_KINDS
};

struct obstacle {
	enum obstacle_kind kind;
	const char *job; /* as reported; NULL: of no known job */
	uint32_t user;	 /* of the job, as in struct vapro_thread */
	uint32_t pid;
	int64_t rank;	  /* of a process that is refused; -1: unknown */
	const char *text; /* a sentence without its stop, which names the process */
};

struct obstacles {
	struct obstacle *items; /* own their texts */
	size_t count, capacity;
	uint64_t more; /* that came when there were OBSTACLES_MOST */
};

/* Adds an obstacle; texts are copied and made harmless. Returns 0 or -ENOMEM. */
int obstacles__add(struct obstacles *obstacles, const struct obstacle *obstacle);

/* Removes refusals of a process that is watched by now, and of children that have the rank of a watched one. */
void obstacles__watched(struct obstacles *obstacles, const char *job, uint32_t user, uint32_t pid, int64_t rank);

/* Returns the first obstacle of a job by kind, and counts all of that job; of all jobs where `job` is NULL. */
const struct obstacle *obstacles__first(const struct obstacles *obstacles, const char *job, uint32_t user,
					size_t *count);

/* Returns the kind of obstacle that warnings of this code are about; OBSTACLE_KINDS: they are about none. */
enum obstacle_kind obstacles__of_warning(const char *code);

/* Returns what would help, to follow "What would help: "; NULL where the obstacle's text has it. */
const char *obstacles__help(enum obstacle_kind kind);

void obstacles__free(struct obstacles *obstacles);

#endif
