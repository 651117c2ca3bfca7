// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/state_totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/table.h"
#include "report/regions.h"
#include "report/summary.h"

struct named_job {
	char *name;
	uint32_t user;
};

struct state_totals {
	struct vapro_state *states; /* copies, by their numbers */
	size_t state_count, state_capacity;
	uint32_t *jobs_of; /* by the numbers of threads: which job */
	size_t thread_count, thread_capacity;
	struct named_job *jobs;
	size_t job_count, job_capacity;
	struct state_total *items;
	size_t count, capacity;
	struct table *places; /* of the items, by state and job */
};

struct state_totals *state_totals__new(void)
{
	struct state_totals *totals = calloc(1, sizeof(*totals));

	if (totals)
		totals->places = table__new();
	if (totals && totals->places)
		return totals;
	free(totals);
	return NULL;
}

static void free_state(struct vapro_state *state)
{
	free((char *)state->from);
	free((char *)state->to);
	free((char *)state->labels);
	free((char *)state->from_symbol);
	free((char *)state->to_symbol);
	free((char *)state->from_path);
	free((char *)state->to_path);
}

void state_totals__free(struct state_totals *totals)
{
	if (!totals)
		return;
	for (size_t i = 0; i < totals->state_count; i++)
		free_state(&totals->states[i]);
	for (size_t i = 0; i < totals->job_count; i++)
		free(totals->jobs[i].name);
	for (size_t i = 0; i < totals->count; i++)
		free(totals->items[i].text);
	free(totals->states);
	free(totals->jobs_of);
	free(totals->jobs);
	free(totals->items);
	table__free(totals->places);
	free(totals);
}

/* Returns the number of a thread's job; UINT32_MAX when out of memory. Threads of a job follow each other. */
static uint32_t job_of(struct state_totals *totals, const struct vapro_thread *thread)
{
	char *name = regions__defuse(strdup(thread->job ? thread->job : ""));
	uint32_t at = name ? (uint32_t)totals->job_count : 0;

	while (at > 0 && (totals->jobs[at - 1].user != thread->user || strcmp(totals->jobs[at - 1].name, name)))
		at--;
	if (at || !name || grow(&totals->jobs, &totals->job_capacity, totals->job_count + 1, sizeof(*totals->jobs))) {
		free(name);
		return at ? at - 1 : UINT32_MAX;
	}
	totals->jobs[totals->job_count] = (struct named_job){.name = name, .user = thread->user};
	return (uint32_t)totals->job_count++;
}

int state_totals__add_thread(struct state_totals *totals, const struct vapro_thread *thread)
{
	uint32_t job = job_of(totals, thread);

	if (job == UINT32_MAX ||
	    grow(&totals->jobs_of, &totals->thread_capacity, (size_t)thread->id + 1, sizeof(*totals->jobs_of)))
		return -ENOMEM;
	while (totals->thread_count <= thread->id)
		totals->jobs_of[totals->thread_count++] = job;
	totals->jobs_of[thread->id] = job;
	return 0;
}

static char *copy_of(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

int state_totals__add_state(struct state_totals *totals, const struct vapro_state *state)
{
	struct vapro_state *own;
	bool failed = false;

	if (state->id != totals->state_count)
		return 0;
	if (grow(&totals->states, &totals->state_capacity, totals->state_count + 1, sizeof(*totals->states)))
		return -ENOMEM;
	own = &totals->states[totals->state_count++];
	*own = (struct vapro_state){.id = state->id,
				    .class = state->class,
				    .from = copy_of(state->from, &failed),
				    .to = copy_of(state->to, &failed),
				    .labels = copy_of(state->labels, &failed),
				    .from_symbol = copy_of(state->from_symbol, &failed),
				    .to_symbol = copy_of(state->to_symbol, &failed),
				    .from_path = copy_of(state->from_path, &failed),
				    .to_path = copy_of(state->to_path, &failed)};
	return failed ? -ENOMEM : 0;
}

/* Finds or makes the total of a state in a job. Returns NULL when out of memory. */
static struct state_total *total_of(struct state_totals *totals, uint32_t state, uint32_t job)
{
	struct state_total *total;
	uint32_t at;

	if (table__get(totals->places, state, job, &at))
		return &totals->items[at];
	if (grow(&totals->items, &totals->capacity, totals->count + 1, sizeof(*totals->items)) ||
	    table__put(totals->places, state, job, (uint32_t)totals->count))
		return NULL;
	total = &totals->items[totals->count++];
	*total = (struct state_total){.state = state,
				      .job = totals->jobs[job].name,
				      .user = totals->jobs[job].user,
				      .class = totals->states[state].class,
				      .least_s = INFINITY};
	return total;
}

int state_totals__add_bundle(struct state_totals *totals, const struct vapro_bundle *bundle)
{
	struct state_total *total;

	/* what is open comes again when it has ended; the analysis refuses the others, and counts them */
	if (!bundle->n || bundle->flags & VAPRO_BUNDLE_OPEN || bundle->thread >= totals->thread_count ||
	    bundle->state >= totals->state_count)
		return 0;
	total = total_of(totals, bundle->state, totals->jobs_of[bundle->thread]);
	if (!total)
		return -ENOMEM;
	total->fragments += bundle->n;
	total->seconds += (double)bundle->sum_ns * 1e-9;
	total->least_s = fmin(total->least_s, (double)bundle->min_ns * 1e-9);
	total->most_s = fmax(total->most_s, (double)bundle->max_ns * 1e-9);
	return 0;
}

int state_totals__describe(struct state_totals *totals, const struct source_names *names)
{
	for (size_t i = 0; i < totals->count; i++) {
		struct state_total *total = &totals->items[i];

		free(total->text);
		total->text = summary__describe(&totals->states[total->state], names);
		if (!total->text)
			return -ENOMEM;
	}
	return 0;
}

const struct state_total *state_totals__items(const struct state_totals *totals, size_t *count)
{
	*count = totals->count;
	return totals->items;
}
