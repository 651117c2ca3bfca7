/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the objects of the graph (stg.c) and the lives of its threads (stg_life.c) share. */
#ifndef VAPRO_STG_PRIVATE_H
#define VAPRO_STG_PRIVATE_H

#include "base/intern.h"
#include "base/numbers.h"
#include "base/table.h"
#include "model/stg.h"

struct stg {
	struct intern *texts;
	struct table *jobs_by_name, *rows, *kinds, *commons, *tasks, *processes, *hosts;
	struct stg_thread *threads;
	size_t thread_count, thread_capacity;
	struct stg_state *states;
	size_t state_count, state_capacity;
	struct stg_job *jobs;
	size_t job_count, job_capacity;
	uint32_t kind_count, common_count;
	struct numbers thread_numbers, state_numbers; /* by announced number */
	uint32_t next_thread, next_state;	      /* announced numbers */
	size_t free_thread, free_state, free_job;     /* no number below it is free */
	size_t gone;				      /* states that are gone */
};

/* stg_index.c: fills the orders of a job's rows (order, place, neighbours). Rows come in any order, and many at once:
 * one call orders all of them. */
void stg__order_rows(struct stg_job *job);

/* Finds the row of a thread's rank or process with this number, or adds it. Returns 0 or -ENOMEM. */
int stg__find_row(struct stg *stg, const struct stg_thread *thread, int32_t number, uint32_t *row);

/* What distinguishes a row from others of its job: its rank, or, where that is unknown, its process. */
static inline uint64_t stg__row_key(int32_t rank, uint32_t host, uint32_t pid)
{
	return rank < 0 ? 1ULL << 63 | (uint64_t)host << 32 | pid : (uint64_t)rank;
}

/* stg_index.c: an empty index, and one of all objects. Return 0, -EINVAL where two have one number, or -ENOMEM. */
int stg__new_index(struct stg *stg);
int stg__index(struct stg *stg);
void stg__free_index(struct stg *stg);

void stg__free_job(struct stg_job *job);

/* Adds a thread to the list of its row, and takes it out of it. */
void stg__link_thread(struct stg *stg, uint32_t id);
void stg__unlink_thread(struct stg *stg, uint32_t id);

/* Adds a thread of a known process to the list of the process. Returns 0 or -ENOMEM. */
int stg__join_process(struct stg *stg, uint32_t id);

/* The first thread in the list of a thread's process, + 1; 0: the process is not known. */
uint32_t stg__process(const struct stg *stg, const struct stg_thread *thread);

#endif
