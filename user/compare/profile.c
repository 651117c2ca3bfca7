// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/profile.h"

#include <math.h>
#include <stdio.h>

#include "base/grow.h"
#include "base/table.h"
#include "functions/functions.h"
#include "model/histogram.h"
#include "model/series.h"

enum { LEAST_BINS = 65536 }; /* bins, 3.6 h: the begin of a longer run stands for all of it */
#define LEAST_KEY (1ULL << 63)

const enum vapro_factor profile_causes[PROFILE_CAUSES] = {VAPRO_PREEMPTED, VAPRO_WAKEUP_WAIT, VAPRO_THROTTLED,
							  VAPRO_STEAL,	   VAPRO_STOPPED,     VAPRO_IRQ};

struct profile *profile__new(bool by_instructions)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->by_instructions = by_instructions;
	profile->stg = stg__new();
	profile->by_key = table__new();
	if (profile->stg && profile->by_key)
		return profile;
	profile__free(profile);
	return NULL;
}

void profile__free(struct profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->cell_count; i++)
		samples__clear(&profile->cells[i].samples);
	for (size_t i = 0; i < profile->least_count; i++)
		free(profile->leasts[i].ns);
	for (size_t i = 0; i < profile->thread_capacity; i++)
		free(profile->threads[i].slices);
	stg__free(profile->stg);
	table__free(profile->by_key);
	free(profile->cells);
	free(profile->leasts);
	free(profile->kinds);
	free(profile->threads);
	free(profile);
}

int profile__add_thread(struct profile *profile, const struct vapro_thread *thread)
{
	struct profile_thread *own;

	if (grow(&profile->threads, &profile->thread_capacity, (size_t)thread->id + 1, sizeof(*own)))
		return -ENOMEM;
	own = &profile->threads[thread->id];
	if (!own->slices)
		own->slices = calloc(PROFILE_SLICES, sizeof(*own->slices));
	return own->slices ? stg__add_thread(profile->stg, thread) : -ENOMEM;
}

/* Returns whether a function is a blocking collective: all ranks of a communicator, no peer, no requests. */
static bool collective(const char *labels)
{
	const char *at = strstr(labels, "function=");
	const struct function_row *row;
	char symbol[64];
	int number;

	if (!at)
		return false;
	at += strlen("function=");
	snprintf(symbol, sizeof(symbol), "%.*s", (int)strcspn(at, " "), at);
	number = functions__find(symbol);
	row = number < 0 ? NULL : functions__row((unsigned int)number);
	return row && row->blocking && !row->threads && row->roles.comm && !row->roles.peer && !row->roles.requests &&
	       !row->roles.request;
}

static enum profile_mode mode_of(const struct stg_state *state)
{
	switch (state->about.class) {
	case VAPRO_COMPUTATION:
		return PROFILE_OWN;
	case VAPRO_IO:
		return state->peer || state->no_return || strstr(state->about.labels, "_all") ? PROFILE_NONE
											      : PROFILE_OWN;
	default:
		return !state->about.from && !state->no_return && state->group != STG_PROCESS &&
			       collective(state->about.labels)
			   ? PROFILE_LEAST
			   : PROFILE_NONE;
	}
}

int profile__add_state(struct profile *profile, const struct vapro_state *state)
{
	const struct stg_state *added;
	struct profile_kind *kind;
	int error = stg__add_state(profile->stg, state);

	if (error)
		return error;
	added = stg__state(profile->stg, state->id);
	if (grow(&profile->kinds, &profile->kind_capacity, (size_t)added->kind + 1, sizeof(*kind)))
		return -ENOMEM;
	kind = &profile->kinds[added->kind];
	if (kind->used)
		return 0;
	*kind = (struct profile_kind){.state = state->id, .mode = mode_of(added), .used = true};
	return 0;
}

/* The middle of a bundle's amount of work; 0: unknown, or of no size. */
static double size_of(const struct profile *profile, enum vapro_class class, const struct vapro_bundle *bundle)
{
	int magnitude = class == VAPRO_COMPUTATION ? VAPRO_INSTRUCTIONS : VAPRO_BYTES;

	if (class == VAPRO_COMPUTATION && !profile->by_instructions)
		return 0;
	return (bundle->magnitude_min[magnitude] + bundle->magnitude_max[magnitude]) / 2;
}

static uint32_t bucket_of(double size)
{
	return size < 1 ? 0 : histogram__index(size) / HISTOGRAM_PER_CELL + 1;
}

static struct profile_cell *cell_of(struct profile *profile, uint32_t thread, uint32_t kind, uint32_t bucket)
{
	uint64_t a = (uint64_t)thread << 32 | kind;
	uint32_t at;

	if (table__get(profile->by_key, a, bucket, &at))
		return &profile->cells[at];
	at = (uint32_t)profile->cell_count;
	if (grow(&profile->cells, &profile->cell_capacity, (size_t)at + 1, sizeof(*profile->cells)) ||
	    table__put(profile->by_key, a, bucket, at))
		return NULL;
	profile->cell_count++;
	profile->cells[at] = (struct profile_cell){.thread = thread, .kind = kind, .bucket = bucket};
	return &profile->cells[at];
}

static struct profile_least *least_of(struct profile *profile, uint32_t kind, uint32_t bucket)
{
	uint32_t at;

	if (table__get(profile->by_key, LEAST_KEY | kind, bucket, &at))
		return &profile->leasts[at];
	at = (uint32_t)profile->least_count;
	if (grow(&profile->leasts, &profile->least_capacity, (size_t)at + 1, sizeof(*profile->leasts)) ||
	    table__put(profile->by_key, LEAST_KEY | kind, bucket, at))
		return NULL;
	profile->least_count++;
	profile->leasts[at] = (struct profile_least){.kind = kind, .bucket = bucket};
	return &profile->leasts[at];
}

static int add_least(struct profile *profile, uint32_t kind, uint64_t bin, const struct vapro_bundle *bundle,
		     double size)
{
	struct profile_least *least = least_of(profile, kind, bucket_of(size));
	size_t at;

	if (!least)
		return -ENOMEM;
	if (!least->n)
		least->first = bin;
	least->size = (least->size * (double)least->n + size * bundle->n) / (double)(least->n + bundle->n);
	least->n += bundle->n;
	if (bin < least->first || bin - least->first >= LEAST_BINS)
		return 0;
	at = (size_t)(bin - least->first);
	if (grow(&least->ns, &least->capacity, at + 1, sizeof(*least->ns)))
		return -ENOMEM;
	if (at >= least->count)
		least->count = at + 1;
	if (least->ns[at] <= 0 || (float)bundle->min_ns < least->ns[at])
		least->ns[at] = (float)bundle->min_ns;
	return 0;
}

/* Makes slices twice as long until a bin lies in one of them. */
static struct profile_slice *slice_at(struct profile_thread *thread, uint64_t bin)
{
	if (!thread->width)
		thread->width = 1;
	while ((bin - thread->first) / thread->width >= PROFILE_SLICES) {
		for (size_t i = 0; i < PROFILE_SLICES; i++) {
			struct profile_slice slice = thread->slices[i];

			thread->slices[i] = (struct profile_slice){0};
			thread->slices[i / 2].busy_ns += slice.busy_ns;
			for (int k = 0; k < PROFILE_CAUSES; k++)
				thread->slices[i / 2].cause_ns[k] += slice.cause_ns[k];
		}
		thread->width *= 2;
	}
	return &thread->slices[(bin - thread->first) / thread->width];
}

/* Notes the obstacles of a bundle of own work. Returns its time without them, ns. */
static double add_causes(struct profile_thread *thread, uint64_t bin, const struct vapro_bundle *bundle)
{
	struct profile_slice *slice = slice_at(thread, bin < thread->first ? thread->first : bin);
	double ns = (double)bundle->sum_ns;

	slice->busy_ns += ns;
	for (int i = 0; i < PROFILE_CAUSES; i++) {
		double lost = bundle->factor[profile_causes[i]];

		slice->cause_ns[i] += lost;
		thread->cause_s[i] += lost * 1e-9;
		ns -= lost;
	}
	return fmax(ns, 0);
}

static int add_own(struct profile *profile, uint32_t kind, uint64_t bin, const struct vapro_bundle *bundle,
		   enum vapro_class class)
{
	double net = add_causes(&profile->threads[bundle->thread], bin, bundle);
	double size = size_of(profile, class, bundle);
	struct profile_cell *cell;

	if (class == VAPRO_COMPUTATION && profile->by_instructions && size <= 0) {
		profile->unmeasured += bundle->n;
		return 0;
	}
	cell = cell_of(profile, bundle->thread, kind, bucket_of(size));
	if (!cell)
		return -ENOMEM;
	if (cell->met < SERIES_WARM_UP) {
		cell->met += bundle->n;
		return 0;
	}
	cell->elapsed_s += (double)bundle->sum_ns * 1e-9;
	return samples__add(&cell->samples, bin, bundle->n, net, size);
}

int profile__add_bundle(struct profile *profile, const struct vapro_bundle *bundle)
{
	uint64_t bin = bundle->end_ns ? (bundle->end_ns - 1) / VAPRO_BIN_NS : 0;
	const struct stg_state *state;
	struct profile_thread *thread;
	struct profile_kind *kind;
	double seconds = (double)bundle->sum_ns * 1e-9;
	int error;

	if (bundle->thread >= stg__threads(profile->stg) || bundle->state >= stg__states(profile->stg))
		return -EINVAL;
	if (bundle->flags & VAPRO_BUNDLE_OPEN || !bundle->n)
		return 0;
	error = stg__touch(profile->stg, bundle->thread, bundle->start_ns, true);
	if (error)
		return error;
	state = stg__state(profile->stg, bundle->state);
	kind = &profile->kinds[state->kind];
	thread = &profile->threads[bundle->thread];
	if (!thread->end)
		thread->first = bundle->start_ns / VAPRO_BIN_NS;
	thread->end = bin + 1 > thread->end ? bin + 1 : thread->end;
	kind->seconds += seconds;
	profile->fragments += bundle->n;
	switch (kind->mode) {
	case PROFILE_OWN:
		thread->own_s += seconds;
		return add_own(profile, state->kind, bin, bundle, state->about.class);
	case PROFILE_LEAST:
		thread->least_s += seconds;
		return add_least(profile, state->kind, bin, bundle, size_of(profile, state->about.class, bundle));
	default:
		thread->none_s += seconds;
		return 0;
	}
}

int profile__end(struct profile *profile)
{
	size_t jobs = stg__jobs(profile->stg), used = 0;
	double *seconds = calloc(jobs + 1, sizeof(*seconds));
	int error = 0;

	if (!seconds)
		return -ENOMEM;
	for (uint32_t i = 0; i < stg__threads(profile->stg); i++) {
		const struct profile_thread *thread = &profile->threads[i];

		seconds[stg__thread(profile->stg, i)->job] += thread->own_s + thread->least_s + thread->none_s;
	}
	for (uint32_t i = 0; i < jobs; i++) {
		used += seconds[i] > 0;
		if (seconds[i] > seconds[profile->job])
			profile->job = i;
	}
	profile->other_jobs = used ? (uint32_t)used - 1 : 0;
	free(seconds);
	for (size_t i = 0; !error && i < profile->cell_count; i++)
		error = samples__close(&profile->cells[i].samples);
	return error ? error : used ? 0 : -ENODATA;
}

double profile__length_s(const struct profile *profile)
{
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < stg__threads(profile->stg); i++) {
		const struct profile_thread *thread = &profile->threads[i];

		if (stg__thread(profile->stg, i)->job != profile->job || !thread->end)
			continue;
		first = thread->first < first ? thread->first : first;
		end = thread->end > end ? thread->end : end;
	}
	return end > first ? (double)(end - first) * VAPRO_BIN_NS * 1e-9 : 0;
}

const struct vapro_state *profile__main(const struct profile *profile)
{
	const struct vapro_state *found = NULL;
	double most = 0;

	for (size_t i = 0; i < profile->kind_capacity; i++) {
		if (!profile->kinds[i].used || profile->kinds[i].seconds <= most)
			continue;
		most = profile->kinds[i].seconds;
		found = &stg__state(profile->stg, profile->kinds[i].state)->about;
	}
	return found;
}
