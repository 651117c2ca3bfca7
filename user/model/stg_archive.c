// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The graph in checkpoints: see stg.h. The index (stg_index.c) follows from what is written.
 */
#include "model/stg_private.h"

#include <errno.h>
#include <stdlib.h>

static const struct archive_column thread_columns[] = {
    ARCHIVE_ONE(struct stg_thread, about.id),	  ARCHIVE_ONE(struct stg_thread, about.rank),
    ARCHIVE_ONE(struct stg_thread, about.thread), ARCHIVE_ONE(struct stg_thread, about.world_size),
    ARCHIVE_ONE(struct stg_thread, about.pid),	  ARCHIVE_ONE(struct stg_thread, about.tid),
    ARCHIVE_ONE(struct stg_thread, about.job),	  ARCHIVE_ONE(struct stg_thread, about.host),
    ARCHIVE_ONE(struct stg_thread, about.user),	  ARCHIVE_ONE(struct stg_thread, job),
    ARCHIVE_ONE(struct stg_thread, row),	  ARCHIVE_ONE(struct stg_thread, next),
    ARCHIVE_ONE(struct stg_thread, watched),	  ARCHIVE_ONE(struct stg_thread, used),
    ARCHIVE_ONE(struct stg_thread, from_ns),	  ARCHIVE_ONE(struct stg_thread, to_ns),
    ARCHIVE_ONE(struct stg_thread, work_from),	  ARCHIVE_ONE(struct stg_thread, work_to),
    ARCHIVE_ONE(struct stg_thread, on_cpu_ns),	  ARCHIVE_ONE(struct stg_thread, attributed_ns),
    ARCHIVE_ONE(struct stg_thread, processor),	  ARCHIVE_ONE(struct stg_thread, last_ns),
    ARCHIVE_ONE(struct stg_thread, last_state),	  ARCHIVE_ONE(struct stg_thread, stopped_by),
    ARCHIVE_ONE(struct stg_thread, busy_from),	  ARCHIVE_ONE(struct stg_thread, busy_to),
    ARCHIVE_ONE(struct stg_thread, stopped_to),
};
static const struct archive_table thread_table = ARCHIVE_TABLE("threads", struct stg_thread, thread_columns);

static const struct archive_column state_columns[] = {
    ARCHIVE_ONE(struct stg_state, about.id),
    ARCHIVE_ONE(struct stg_state, about.class),
    ARCHIVE_ONE(struct stg_state, about.from),
    ARCHIVE_ONE(struct stg_state, about.to),
    ARCHIVE_ONE(struct stg_state, about.labels),
    ARCHIVE_ONE(struct stg_state, about.common),
    ARCHIVE_ONE(struct stg_state, about.from_symbol),
    ARCHIVE_ONE(struct stg_state, about.to_symbol),
    ARCHIVE_ONE(struct stg_state, kind),
    ARCHIVE_ONE(struct stg_state, common),
    ARCHIVE_ONE(struct stg_state, group),
    ARCHIVE_ONE(struct stg_state, peer),
    ARCHIVE_ONE(struct stg_state, no_return),
    ARCHIVE_ONE(struct stg_state, no_bytes),
    ARCHIVE_ONE(struct stg_state, together),
    ARCHIVE_ONE(struct stg_state, one_sided),
    ARCHIVE_ONE(struct stg_state, gone),
};
static const struct archive_table state_table = ARCHIVE_TABLE("states", struct stg_state, state_columns);

static const struct archive_column job_columns[] = {
    ARCHIVE_ONE(struct stg_job, name),
    ARCHIVE_ONE(struct stg_job, user),
    ARCHIVE_ONE(struct stg_job, announced),
    ARCHIVE_ONE(struct stg_job, world_size),
    ARCHIVE_ONE(struct stg_job, host_count),
    ARCHIVE_ONE(struct stg_job, typical_computing_ns),
    ARCHIVE_ONE(struct stg_job, most_computing_ns),
    ARCHIVE_ONE(struct stg_job, typical_per_call_ns),
    ARCHIVE_ONE(struct stg_job, most_per_call_ns),
};
static const struct archive_table job_table = ARCHIVE_TABLE("jobs", struct stg_job, job_columns);

static const struct archive_column row_columns[] = {
    ARCHIVE_ONE(struct stg_row, rank),	 ARCHIVE_ONE(struct stg_row, thread),
    ARCHIVE_ONE(struct stg_row, leader), ARCHIVE_ONE(struct stg_row, pid),
    ARCHIVE_ONE(struct stg_row, tid),	 ARCHIVE_ONE(struct stg_row, first),
    ARCHIVE_ONE(struct stg_row, host),	 ARCHIVE_ONE(struct stg_row, host_number),
    ARCHIVE_ONE(struct stg_row, socket), ARCHIVE_ONE(struct stg_row, from_ns),
    ARCHIVE_ONE(struct stg_row, to_ns),	 ARCHIVE_ONE(struct stg_row, computing_ns),
    ARCHIVE_ONE(struct stg_row, calls),	 ARCHIVE_ONE(struct stg_row, full_speed),
};
static const struct archive_table row_table = ARCHIVE_TABLE("rows", struct stg_row, row_columns);

/* Numbers of a job's rows, all of them unordered. */
static void make_order(struct archive *archive, struct stg_job *job)
{
	job->order_capacity = job->place_capacity = job->neighbour_capacity = job->row_capacity;
	job->order = archive__take(archive, job->row_capacity, sizeof(*job->order));
	job->place = archive__take(archive, job->row_capacity, sizeof(*job->place));
	job->neighbours = archive__take(archive, job->row_capacity, sizeof(*job->neighbours));
	for (size_t row = 0; !archive__error(archive) && row < job->row_count; row++)
		job->order[row] = job->neighbours[row] = (uint32_t)row;
	job->unordered = true;
}

static void check_job(struct archive *archive, const struct stg *stg, const struct stg_job *job)
{
	archive__check(archive, job->name || !job->row_count, "a job has no name");
	for (size_t at = 0; at < job->row_count; at++) {
		const struct stg_row *row = &job->rows[at];

		archive__check(archive,
			       row->host && row->leader < job->row_count && row->host_number < job->host_count &&
				   job->host_count <= job->row_count && row->first <= stg->thread_count,
			       "a row contradicts others");
	}
}

/* Each thread is once in the list of its row. */
static void check_lists(struct archive *archive, const struct stg *stg)
{
	bool *met = archive__take(archive, stg->thread_count, sizeof(*met));

	for (uint32_t id = 0; met && id < stg->job_count; id++) {
		for (size_t row = 0; row < stg->jobs[id].row_count && !archive__error(archive); row++) {
			uint32_t at = stg->jobs[id].rows[row].first;

			for (; at; at = stg->threads[at - 1].next) {
				if (!archive__check(archive,
						    at <= stg->thread_count && !met[at - 1] &&
							stg->threads[at - 1].job == id &&
							stg->threads[at - 1].row == row,
						    "a list of threads is damaged"))
					break;
				met[at - 1] = true;
			}
		}
	}
	for (size_t i = 0; met && i < stg->thread_count; i++)
		archive__check(archive, met[i] || stg->threads[i].job == STG_NONE, "a list of threads is damaged");
	free(met);
}

static void check_thread(struct archive *archive, const struct stg *stg, const struct stg_thread *thread)
{
	archive__check(archive,
		       thread->job == STG_NONE ||
			   (thread->about.job && thread->about.host && thread->job < stg->job_count &&
			    thread->row < stg->jobs[thread->job].row_count && stg->jobs[thread->job].name &&
			    thread->processor <= intern__count(stg->texts) &&
			    (!thread->last_ns ||
			     (thread->last_state < stg->state_count && stg->states[thread->last_state].about.to)) &&
			    thread->stopped_by < VAPRO_STOPPED_KINDS),
		       "a thread contradicts others");
}

static void check_state(struct archive *archive, const struct stg *stg, const struct stg_state *state)
{
	archive__check(archive,
		       !state->about.to ||
			   (state->about.class < VAPRO_CLASSES && state->about.labels && state->about.common &&
			    (state->group == STG_PROCESS || state->group < intern__count(stg->texts))),
		       "a state contradicts others");
}

static void read_index(struct archive *archive, struct stg *stg)
{
	int error;

	for (size_t i = 0; i < stg->job_count; i++) {
		make_order(archive, &stg->jobs[i]);
		check_job(archive, stg, &stg->jobs[i]);
	}
	for (size_t i = 0; i < stg->thread_count; i++)
		check_thread(archive, stg, &stg->threads[i]);
	for (size_t i = 0; i < stg->state_count; i++)
		check_state(archive, stg, &stg->states[i]);
	if (!archive__error(archive))
		check_lists(archive, stg);
	error = archive__error(archive) ? 0 : stg__index(stg);
	if (error)
		archive__fail(archive, error == -ENOMEM ? error : -EBADMSG,
			      error == -ENOMEM ? "out of memory" : "two threads or states have one number");
}

void stg__archive(struct archive *archive, struct stg *stg)
{
	archive__texts(archive, stg->texts);
	archive__rows(archive, &thread_table, &stg->threads, &stg->thread_count, &stg->thread_capacity);
	archive__rows(archive, &state_table, &stg->states, &stg->state_count, &stg->state_capacity);
	archive__rows(archive, &job_table, &stg->jobs, &stg->job_count, &stg->job_capacity);
	for (size_t i = 0; i < stg->job_count; i++)
		archive__rows(archive, &row_table, &stg->jobs[i].rows, &stg->jobs[i].row_count,
			      &stg->jobs[i].row_capacity);
	if (archive__reads(archive))
		read_index(archive, stg);
}
