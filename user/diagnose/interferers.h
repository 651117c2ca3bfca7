/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks that ran instead of the threads of a variance: their time, added by (comm, pid), and where and when they did.
 */
#ifndef VAPRO_INTERFERERS_H
#define VAPRO_INTERFERERS_H

#include <vapro/analysis.h>

#include <stddef.h>

enum { INTERFERER_JOB = 64 }; /* bytes of the name of another job; a longer one is cut */
enum { INTERFERER_ROWS = 4 }; /* a task is on one CPU at a time: few rows of a job lose to it */

struct interferer {
	struct result_interferer task; /* its seconds are those of all rows; it names no job */
	char job[INTERFERER_JOB];      /* the other job that it is a rank of; "": none */
	uint64_t begin, end;	       /* bins of which it took a twentieth or more of a row; equal: none */
	uint32_t row_count;	       /* more than INTERFERER_ROWS: some are not listed */
	uint32_t rows[INTERFERER_ROWS];
	double row_seconds[INTERFERER_ROWS];
};

struct interferers {
	struct interferer *items;
	size_t count, capacity;
	double forgotten; /* seconds of tasks that are no longer in items */
};

/*
 * Adds what a task took from a row of the job in a bin, but not pid 0: the idle task displaces no other. Of very many
 * tasks those that took least so far are forgotten, so that one which takes much is emitted, however late it comes.
 * Returns 0 or -ENOMEM.
 */
int interferers__add(struct interferers *interferers, const struct result_interferer *task, uint32_t row, uint64_t bin);
int interferers__merge(struct interferers *into, const struct interferers *from);

/* Returns the seconds of all tasks that were added. */
double interferers__seconds(const struct interferers *interferers);

/* Returns the seconds of this monitor's processes. */
double interferers__monitor(const struct interferers *interferers);

/* Returns the seconds of the job's own threads. */
double interferers__own(const struct interferers *interferers);

/*
 * Returns the task that a diagnosis names: the one that took most among tasks that are not the job's own or, where the
 * job's own took more than all these together, listed or not, among its own. NULL where there is none.
 */
const struct result_interferer *interferers__named(const struct result_diagnosis *diagnosis);

/* Names of enum vapro_relation in records. */
extern const char *const interferers__relation[VAPRO_RELATIONS];

/* Returns whether a task belongs to neither the job nor this monitor. */
bool interferers__is_foreign(const struct result_interferer *task);

#define INTERFERER_WORDS (INTERFERER_JOB + 32)

/* Writes what a task is to the job, for people, at most INTERFERER_WORDS bytes; "" for a foreign one. Returns buf. */
const char *interferers__says(const struct result_interferer *task, char *buf);

/* Sorts by seconds, most first. */
void interferers__sort(struct interferers *interferers);
void interferers__clear(struct interferers *interferers);

#endif
