// SPDX-License-Identifier: GPL-2.0-or-later
/* Looks at a job: when its ranks made progress last, in which calls they are, and who uses a CPU. */
#include "detect/hang_private.h"

#include "model/job_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RESUMED_BINS 5 /* 1 s of work on end outside of calls is progress; less, a look around */

bool hang__is_collective(const char *function)
{
	static const char *const names[] = {
	    "Barrier",	  "Bcast",     "Gather",     "Gatherv",	       "Scatter",
	    "Scatterv",	  "Allgather", "Allgatherv", "Alltoall",       "Alltoallv",
	    "Alltoallw",  "Reduce",    "Allreduce",  "Reduce_scatter", "Reduce_scatter_block",
	    "Scan",	  "Exscan",    "Comm_dup",   "Comm_split",     "Win_fence",
	    "Win_create", "Finalize",
	};
	size_t length = strlen(function);

	if (strncmp(function, "MPI_", 4))
		return false;
	if (!strncmp(function, "MPI_File_", 9))
		return length > 4 && !strcmp(function + length - 4, "_all");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(function + 4, names[i]))
			return true;
	}
	return false;
}

static const struct stg_state *state_of(const struct hang_input *input, const struct bundle_rec *rec)
{
	return stg__state(input->stg, input->series->series[rec->series].state);
}

uint64_t hang_look__last(const struct hang_input *input, const struct stg_job *job)
{
	const struct stg_thread *thread;
	uint64_t last = 0;

	for (size_t row = 0; row < job->row_count; row++) {
		if (!is_rank(job, row))
			continue;
		for (thread = thread_after(input, job->rows[row].first); thread;
		     thread = thread_after(input, thread->next)) {
			if (!thread->about.thread && thread->last_ns > last)
				last = thread->last_ns;
		}
	}
	return last;
}

/* Notes fragments that have ended: of first threads, and of further ones that call the communication library. */
static void note_fragments(struct hang_look *look)
{
	const struct hang_input *input = look->input;
	struct series_ids ids = job_series__ids(input->series, input->job);

	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];
		const struct stg_thread *thread = stg__thread(input->stg, series->thread);

		if (!series->members)
			continue;
		if (thread->about.thread && (series->class != VAPRO_COMMUNICATION ||
					     stg__state(input->stg, series->state)->group == STG_PROCESS))
			continue;
		later(&look->progress_ns, thread->last_ns);
		if (!look->job->rows[thread->row].to_ns)
			later(&look->resumed_ns, thread->last_ns);
	}
}

/* Finds the open call of each rank: one of the communication library rather than a wait for a thread of the rank. */
static void note_open(struct hang_look *look)
{
	const struct hang_input *input = look->input;

	for (size_t i = 0; i < input->open_count; i++) {
		const struct bundle_rec *rec = &input->open[i];
		const struct series *series = &input->series->series[rec->series];
		const struct stg_state *state = stg__state(input->stg, series->state);
		const struct stg_thread *thread = stg__thread(input->stg, series->thread);
		uint32_t rank = look->job->rows[thread->row].leader;
		const struct bundle_rec *known = look->open[rank] ? &input->open[look->open[rank] - 1] : NULL;
		bool own = state->group == STG_PROCESS;

		look->in_call[series->thread] = series->class == VAPRO_IO ? 2 : 1;
		if (thread->about.thread && (own || series->class != VAPRO_COMMUNICATION))
			continue;
		if (known && (own || state_of(input, known)->group != STG_PROCESS))
			continue;
		look->open[rank] = (uint32_t)i + 1;
		later(&look->progress_ns, rec->start_ns);
	}
}

/* Whether all ranks that live are in one function. */
static bool all_are_in(const struct hang_look *look, const char *function)
{
	char other[64];

	for (size_t row = 0; row < look->job->row_count; row++) {
		if (!is_rank(look->job, row) || look->job->rows[row].to_ns)
			continue;
		if (!look->open[row])
			return false;
		stg__label(state_of(look->input, &look->input->open[look->open[row] - 1])->about.labels, "function",
			   other, sizeof(other));
		if (strcmp(other, function))
			return false;
	}
	return true;
}

/* A call of IO that uses a CPU is at work, but for one of several ranks in which it may wait for one of them. */
static void exclude_waiting_io(struct hang_look *look)
{
	const struct hang_input *input = look->input;
	char function[64];

	for (size_t i = 0; i < input->open_count; i++) {
		uint32_t thread = input->series->series[input->open[i].series].thread;

		if (look->in_call[thread] != 2)
			continue;
		stg__label(state_of(input, &input->open[i])->about.labels, "function", function, sizeof(function));
		if (!strncmp(function, "MPI_", 4) && !all_are_in(look, function))
			look->in_call[thread] = 1;
	}
}

/* Notes when threads outside of calls, or at work in calls of IO, used a CPU. */
static void note_work(struct hang_look *look)
{
	const struct hang_input *input = look->input;

	look->active_ns = look->progress_ns;
	for (size_t row = 0; row < look->job->row_count; row++) {
		const struct stg_thread *thread = thread_after(input, look->job->rows[row].first);

		for (; thread; thread = thread_after(input, thread->next)) {
			uint64_t to_ns = thread->busy_to * VAPRO_BIN_NS;

			if (look->in_call[thread->about.id] == 1 || thread->to_ns)
				continue;
			to_ns = to_ns > input->end_ns ? input->end_ns : to_ns;
			later(&look->active_ns, to_ns);
			if (thread->busy_to - thread->busy_from >= RESUMED_BINS)
				later(&look->resumed_ns, to_ns);
		}
	}
}

/*
 * Whether something of the job is missing in the window: the facts of a process, of which each node sends those of all
 * that it watches, or blocks. Input without facts misses none.
 */
static bool misses_data(const struct hang_look *look)
{
	const struct coverage_facts *facts = look->input->facts;
	unsigned living = 0;

	for (size_t row = 0; row < look->job->row_count; row++)
		living += is_rank(look->job, row) && !look->job->rows[row].to_ns;
	return facts->processes && (facts->processes < living || facts->lost[VAPRO_LOST_PUBLISHED]);
}

static bool was_heard(const struct hang_look *look, const struct stg_thread *thread)
{
	uint64_t begin_ns = look->input->begin_ns;

	return look->in_call[thread->about.id] || thread->last_ns > begin_ns ||
	       thread->work_to >= begin_ns / VAPRO_BIN_NS + 2;
}

/* Where something is missing, finds out of which ranks anything came. Returns 0 or -ENOMEM. */
static int note_heard(struct hang_look *look)
{
	if (!misses_data(look))
		return 0;
	look->heard = calloc(look->job->row_count + 1, 1);
	if (!look->heard)
		return -ENOMEM;
	for (size_t row = 0; row < look->job->row_count; row++) {
		const struct stg_thread *thread = thread_after(look->input, look->job->rows[row].first);

		for (; thread; thread = thread_after(look->input, thread->next))
			look->heard[look->job->rows[row].leader] |= was_heard(look, thread);
	}
	return 0;
}

void hang_look__end(struct hang_look *look)
{
	free(look->open);
	free(look->heard);
	free(look->in_call);
}

int hang_look__begin(struct hang_look *look, const struct hang_input *input)
{
	*look = (struct hang_look){.input = input, .job = stg__job(input->stg, input->job)};
	look->open = calloc(look->job->row_count + 1, sizeof(*look->open));
	look->in_call = calloc(stg__threads(input->stg) + 1, 1);
	if (!look->open || !look->in_call) {
		hang_look__end(look);
		return -ENOMEM;
	}
	note_fragments(look);
	note_open(look);
	if (note_heard(look)) {
		hang_look__end(look);
		return -ENOMEM;
	}
	exclude_waiting_io(look);
	note_work(look);
	return 0;
}

int hang_look__started(const struct hang_look *look, bool *started)
{
	const struct hang_input *input = look->input;
	struct series_ids ids = job_series__ids(input->series, input->job);
	unsigned char *met = calloc(look->job->row_count + 1, 1);
	char function[64];

	if (!met)
		return -ENOMEM;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];

		if (series->class != VAPRO_COMMUNICATION || !series->members)
			continue;
		stg__label(stg__state(input->stg, series->state)->about.labels, "function", function, sizeof(function));
		met[look->job->rows[stg__thread(input->stg, series->thread)->row].leader] |=
		    hang__is_collective(function);
	}
	*started = look->job->row_count > 0;
	for (size_t row = 0; row < look->job->row_count; row++)
		*started &= !is_rank(look->job, row) || met[row];
	free(met);
	return 0;
}

bool hang_look__waits_for_input(const struct hang_input *input, const struct series *call)
{
	static const char *const kinds[] = {"fifo", "pipe", "char", "chr", "tty"};
	const char *labels = stg__state(input->stg, call->state)->about.labels, *others;
	struct series_ids ids = job_series__ids(input->series, input->job);
	char kind[32], function[64], file[32], value[64];
	bool of_kind = false;

	stg__label(labels, "function", function, sizeof(function));
	stg__label(labels, "fd_kind", kind, sizeof(kind));
	stg__label(labels, "file", file, sizeof(file));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		of_kind |= !strcmp(kind, kinds[i]);
	if (call->class != VAPRO_IO || !of_kind || strncmp(function, "read", 4))
		return false;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &input->series->series[ids.ids[i]];

		if (series->thread != call->thread || series->class != VAPRO_IO || !series->members)
			continue;
		others = stg__state(input->stg, series->state)->about.labels;
		stg__label(others, "function", value, sizeof(value));
		if (strncmp(value, "read", 4))
			continue;
		stg__label(others, "fd_kind", value, sizeof(value));
		if (strcmp(value, kind))
			continue;
		stg__label(others, "file", value, sizeof(value));
		if (!strcmp(value, file))
			return false;
	}
	return true;
}
