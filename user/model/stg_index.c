// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What finds the objects of the graph by name and number, made from the objects: after reading a checkpoint, and
 * where some are over; and the order of a job's rows. See stg.h.
 */
#include "model/stg_private.h"

#include "base/grow.h"

#include <string.h>

static int compare_announced(const void *a, const void *b, void *threads)
{
	const struct stg_thread *left = (const struct stg_thread *)threads + *(const uint32_t *)a;
	const struct stg_thread *right = (const struct stg_thread *)threads + *(const uint32_t *)b;

	return (left->about.id > right->about.id) - (left->about.id < right->about.id);
}

static void free_index(struct stg *stg)
{
	table__free(stg->jobs_by_name);
	table__free(stg->rows);
	table__free(stg->kinds);
	table__free(stg->commons);
	table__free(stg->tasks);
	table__free(stg->processes);
	table__free(stg->hosts);
	numbers__clear(&stg->thread_numbers);
	numbers__clear(&stg->state_numbers);
}

int stg__new_index(struct stg *stg)
{
	free_index(stg);
	stg->jobs_by_name = table__new();
	stg->rows = table__new();
	stg->kinds = table__new();
	stg->commons = table__new();
	stg->tasks = table__new();
	stg->processes = table__new();
	stg->hosts = table__new();
	return stg->jobs_by_name && stg->rows && stg->kinds && stg->commons && stg->tasks && stg->processes &&
		       stg->hosts
		   ? 0
		   : -ENOMEM;
}

void stg__free_index(struct stg *stg)
{
	free_index(stg);
}

static int index_job(struct stg *stg, uint32_t id)
{
	const struct stg_job *job = &stg->jobs[id];

	if (table__put(stg->jobs_by_name, intern__id(stg->texts, job->name), job->user, id))
		return -ENOMEM;
	for (size_t at = 0; at < job->row_count; at++) {
		const struct stg_row *row = &job->rows[at];
		uint32_t host = intern__id(stg->texts, row->host);

		if (table__put(stg->rows, id | (uint64_t)row->thread << 32, stg__row_key(row->rank, host, row->pid),
			       (uint32_t)at) ||
		    table__put(stg->hosts, id, host, row->host_number))
			return -ENOMEM;
	}
	return 0;
}

static int index_thread(struct stg *stg, uint32_t id)
{
	const struct vapro_thread *about = &stg->threads[id].about;

	if (numbers__get(&stg->thread_numbers, about->id) != STG_NONE)
		return -EINVAL;
	if (numbers__set(&stg->thread_numbers, about->id, id))
		return -ENOMEM;
	if (about->tid &&
	    table__put(stg->tasks, (uint64_t)about->pid << 32 | about->tid, intern__id(stg->texts, about->host), id))
		return -ENOMEM;
	return stg__join_process(stg, id);
}

/* In the order in which they were announced: of two tasks with one number the later one counts. */
static int index_threads(struct stg *stg)
{
	uint32_t *order = malloc((stg->thread_count + 1) * sizeof(*order));
	size_t count = 0;
	int error = order ? 0 : -ENOMEM;

	for (uint32_t id = 0; !error && id < stg->thread_count; id++) {
		if (stg->threads[id].job != STG_NONE)
			order[count++] = id;
		if (stg->threads[id].about.id >= stg->next_thread)
			stg->next_thread = stg->threads[id].about.id + 1;
	}
	if (count)
		qsort_r(order, count, sizeof(*order), compare_announced, stg->threads);
	for (size_t i = 0; !error && i < count; i++)
		error = index_thread(stg, order[i]);
	free(order);
	return error;
}

static int index_state(struct stg *stg, uint32_t id)
{
	const struct stg_state *state = &stg->states[id];
	const struct vapro_state *about = &state->about;
	uint32_t common = intern__id(stg->texts, about->common);

	if (numbers__get(&stg->state_numbers, about->id) != STG_NONE)
		return -EINVAL;
	if (state->kind >= stg->kind_count)
		stg->kind_count = state->kind + 1;
	if (state->common >= stg->common_count)
		stg->common_count = state->common + 1;
	stg->gone += state->gone != 0;
	return numbers__set(&stg->state_numbers, about->id, id) ||
		       table__put(stg->kinds,
				  (uint64_t)intern__id(stg->texts, about->from) << 32 |
				      intern__id(stg->texts, about->to),
				  (uint64_t)common << 2 | about->class, state->kind) ||
		       table__put(stg->commons, common, about->class, state->common)
		   ? -ENOMEM
		   : 0;
}

int stg__index(struct stg *stg)
{
	int error = stg__new_index(stg);

	stg->free_thread = stg->free_state = stg->free_job = stg->gone = 0;
	for (uint32_t id = 0; !error && id < stg->job_count; id++) {
		if (stg->jobs[id].name)
			error = index_job(stg, id);
	}
	if (!error)
		error = index_threads(stg);
	for (uint32_t id = 0; !error && id < stg->state_count; id++) {
		if (stg->states[id].about.id >= stg->next_state)
			stg->next_state = stg->states[id].about.id + 1;
		if (stg->states[id].about.to)
			error = index_state(stg, id);
	}
	return error;
}

/* ---- what is over */

void stg__free_job(struct stg_job *job)
{
	free(job->rows);
	free(job->order);
	free(job->place);
	free(job->neighbours);
	*job = (struct stg_job){0};
}

/* A number that is free still has the latest announced number that it stood for: the next one follows from them all. */
static void free_objects(struct stg *stg, const struct stg_over *over)
{
	for (size_t i = 0; i < stg->thread_count; i++) {
		struct stg_thread *thread = &stg->threads[i];

		if (thread->job != STG_NONE && over->jobs[thread->job])
			*thread = (struct stg_thread){.about = {.id = thread->about.id}, .job = STG_NONE};
	}
	for (size_t i = 0; i < stg->job_count; i++) {
		if (over->jobs[i])
			stg__free_job(&stg->jobs[i]);
	}
	for (size_t i = 0; i < stg->state_count; i++) {
		if (over->states[i])
			stg->states[i] = (struct stg_state){.about = {.id = stg->states[i].about.id}};
	}
}

/* Gives back room at the ends of arrays. */
static void shorten(struct stg *stg)
{
	while (stg->thread_count && stg->threads[stg->thread_count - 1].job == STG_NONE &&
	       stg->threads[stg->thread_count - 1].about.id + 1 != stg->next_thread)
		stg->thread_count--;
	while (stg->state_count && !stg->states[stg->state_count - 1].about.to &&
	       stg->states[stg->state_count - 1].about.id + 1 != stg->next_state)
		stg->state_count--;
	while (stg->job_count && !stg->jobs[stg->job_count - 1].name)
		stg->job_count--;
	grow_less(&stg->threads, &stg->thread_capacity, stg->thread_count, sizeof(*stg->threads));
	grow_less(&stg->states, &stg->state_capacity, stg->state_count, sizeof(*stg->states));
	grow_less(&stg->jobs, &stg->job_capacity, stg->job_count, sizeof(*stg->jobs));
}

static void use(struct stg *stg, unsigned char *used, const char *text)
{
	used[intern__id(stg->texts, text)] = 1;
}

static void use_texts(struct stg *stg, unsigned char *used)
{
	for (size_t i = 0; i < stg->thread_count; i++) {
		const struct stg_thread *thread = &stg->threads[i];

		use(stg, used, thread->about.job);
		use(stg, used, thread->about.host);
		if (thread->processor)
			used[thread->processor - 1] = 1;
	}
	for (size_t i = 0; i < stg->state_count; i++) {
		const struct stg_state *state = &stg->states[i];
		const char *const texts[] = {state->about.from,	  state->about.to,	    state->about.labels,
					     state->about.common, state->about.from_symbol, state->about.to_symbol};

		for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
			use(stg, used, texts[k]);
		if (state->group != STG_PROCESS)
			used[state->group] = 1;
	}
	for (size_t i = 0; i < stg->job_count; i++) {
		use(stg, used, stg->jobs[i].name);
		for (size_t row = 0; row < stg->jobs[i].row_count; row++)
			use(stg, used, stg->jobs[i].rows[row].host);
	}
}

int stg__forget(struct stg *stg, const struct stg_over *over)
{
	free_objects(stg, over);
	shorten(stg);
	use_texts(stg, over->texts);
	return intern__retain(stg->texts, over->texts) ? -ENOMEM : stg__index(stg);
}

/* ---- the order of rows */

static int compare_rows(const struct stg_row *a, const struct stg_row *b)
{
	int host;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank < 0) {
		host = strcmp(a->host, b->host);
		if (host)
			return host;
		if (a->pid != b->pid)
			return a->pid < b->pid ? -1 : 1;
	}
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static int compare_places(const void *a, const void *b, void *rows)
{
	return compare_rows((const struct stg_row *)rows + *(const uint32_t *)a,
			    (const struct stg_row *)rows + *(const uint32_t *)b);
}

/* Hosts in the order of their first ranks. */
static int compare_neighbours(const void *a, const void *b, void *ctx)
{
	const struct stg_job *job = ctx;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct stg_row *x = &job->rows[left], *y = &job->rows[right];
	/* Threads stay with their rank. */
	int32_t x_socket = job->rows[x->leader].socket, y_socket = job->rows[y->leader].socket;

	if (x->host_place != y->host_place)
		return x->host_place < y->host_place ? -1 : 1;
	if (x_socket != y_socket)
		return x_socket < y_socket ? -1 : 1;
	return job->place[left] < job->place[right] ? -1 : job->place[left] > job->place[right];
}

void stg__order_rows(struct stg_job *job)
{
	uint32_t *first = job->neighbours; /* by host: there are no more hosts than rows */

	qsort_r(job->order, job->row_count, sizeof(*job->order), compare_places, job->rows);
	for (size_t place = job->row_count; place-- > 0;) {
		job->place[job->order[place]] = (uint32_t)place;
		first[job->rows[job->order[place]].host_number] = (uint32_t)place;
	}
	for (size_t row = 0; row < job->row_count; row++)
		job->rows[row].host_place = first[job->rows[row].host_number];
	memcpy(job->neighbours, job->order, job->row_count * sizeof(*job->neighbours));
	qsort_r(job->neighbours, job->row_count, sizeof(*job->neighbours), compare_neighbours, job);
	job->unordered = false;
}
