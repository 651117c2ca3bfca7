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
	OBSTACLE_NO_MPI,     /* it has a rank, and no MPI library was found in it */
	OBSTACLE_CODE_MOVED, /* its MPI library's code lies in memory where no probe takes effect */
	OBSTACLE_PARTLY,     /* it is watched in part: it maps no MPI library, for example */
	OBSTACLE_KINDS
};

struct obstacles;

/* Returns NULL when out of memory. */
struct obstacles *obstacles__new(void);
void obstacles__free(struct obstacles *obstacles);

/*
 * Adds an obstacle of a process; texts are copied and made harmless. job: as reported, NULL: of no known job; user: of
 * the job, as in struct vapro_thread; rank: of a process that is refused, -1: unknown; text: a sentence without its
 * stop, which names the process. Returns 0 or -ENOMEM.
 */
int obstacles__add(struct obstacles *obstacles, enum obstacle_kind kind, const char *job, uint32_t user, uint32_t pid,
		   int64_t rank, const char *text);

/* Removes refusals of a process that is watched by now, and of children that have the rank of a watched one. */
void obstacles__watched(struct obstacles *obstacles, const char *job, uint32_t user, uint32_t pid, int64_t rank);

/*
 * Returns the text of the first obstacle of a job by kind, that kind, and how many obstacles the job has; of all jobs
 * where `job` is NULL. Returns NULL where there is none.
 */
const char *obstacles__first(const struct obstacles *obstacles, const char *job, uint32_t user,
			     enum obstacle_kind *kind, size_t *count);

/* Returns the text of the nth obstacle in the order of their coming, from 0 on; NULL after the last one. */
const char *obstacles__text(const struct obstacles *obstacles, size_t n);

/* Counts all, also those that came when there were OBSTACLES_MOST. */
uint64_t obstacles__count(const struct obstacles *obstacles);

/* Returns the kind of obstacle that warnings of this code are about; OBSTACLE_KINDS: they are about none. */
enum obstacle_kind obstacles__of_warning(const char *code);

/* Returns what would help, to follow "What would help: "; NULL where the obstacle's text has it. */
const char *obstacles__help(enum obstacle_kind kind);

#endif
