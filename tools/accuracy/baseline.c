/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "baseline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_RATIO 0.18
#define DEVIATIONS (6 * 1.4826)
#define GAP 3 /* bins */
#define OVERLAP 0.5
#define LEAST_LOST_S 0.1
#define LOOK_BACK 256 /* alarms that a run may belong to */

/* The bundles of a state of a rank that ended in a bin. */
struct cell {
	uint32_t state, rank;
	uint64_t bin;
	double begin, end, sum, work; /* ns */
};

/* Slow cells of a state of a rank, or several of those. */
struct slow {
	enum vapro_class class;
	uint32_t rank;
	double begin, end, lost;
};

struct baseline {
	struct stream_sink sink, *inner;
	uint32_t ranks;
	bool counts, failed;
	enum vapro_class class[JOB_STEPS];
	uint32_t states;
	struct cell *cells;
	size_t cell_count, cell_capacity;
	size_t *last; /* of a state of a rank: its last cell, from 1 */
	struct slow *slows;
	size_t slow_count, slow_capacity;
};

static bool grow(void **items, size_t *capacity, size_t count, size_t size)
{
	size_t fresh = *capacity ? 2 * *capacity : 1024;
	void *larger = count < *capacity ? *items : realloc(*items, fresh * size);

	if (!larger)
		return false;
	*capacity = count < *capacity ? *capacity : fresh;
	*items = larger;
	return true;
}

static void add_bundle(struct baseline *baseline, const struct vapro_bundle *bundle)
{
	bool counts = baseline->counts && baseline->class[bundle->state] == VAPRO_COMPUTATION;
	double mean = (bundle->magnitude_min[VAPRO_INSTRUCTIONS] + bundle->magnitude_max[VAPRO_INSTRUCTIONS]) / 2;
	size_t *last = &baseline->last[bundle->state * baseline->ranks + bundle->thread];
	uint64_t bin = bundle->end_ns / VAPRO_BIN_NS;
	void *items = baseline->cells;
	struct cell *cell;

	if (!*last || baseline->cells[*last - 1].bin != bin) {
		if (!grow(&items, &baseline->cell_capacity, baseline->cell_count, sizeof(*cell))) {
			baseline->failed = true;
			return;
		}
		baseline->cells = items;
		baseline->cells[baseline->cell_count++] =
		    (struct cell){bundle->state, bundle->thread, bin, (double)bundle->start_ns, 0, 0, 0};
		*last = baseline->cell_count;
	}
	cell = &baseline->cells[*last - 1];
	cell->begin = fmin(cell->begin, (double)bundle->start_ns);
	cell->end = fmax(cell->end, (double)bundle->end_ns);
	cell->sum += (double)bundle->sum_ns;
	cell->work += bundle->n * (counts ? mean : 1);
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct baseline *baseline = (struct baseline *)sink;

	if (event->type == STREAM_STATE)
		baseline->class[baseline->states++] = event->state.class;
	if (event->type == STREAM_BUNDLE && !(event->bundle.flags & VAPRO_BUNDLE_OPEN))
		add_bundle(baseline, &event->bundle);
	return stream__put(baseline->inner, event);
}

static int finish(struct stream_sink *sink)
{
	struct baseline *baseline = (struct baseline *)sink;

	free(baseline->cells);
	free(baseline->last);
	free(baseline->slows);
	free(baseline);
	return 0;
}

struct stream_sink *baseline__sink(struct stream_sink *inner, const struct job *job, enum vapro_workload_source source)
{
	struct baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline)
		return NULL;
	*baseline = (struct baseline){
	    .sink = {put, finish},
	    .inner = inner,
	    .ranks = (uint32_t)job->ranks,
	    .counts = source == VAPRO_BY_INSTRUCTIONS,
	    .last = calloc((size_t)job->ranks * JOB_STEPS, sizeof(*baseline->last)),
	};
	if (baseline->last)
		return &baseline->sink;
	free(baseline);
	return NULL;
}

static int by_rank(const void *a, const void *b)
{
	const struct cell *left = a, *right = b;

	if (left->state != right->state)
		return left->state < right->state ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return (left->bin > right->bin) - (left->bin < right->bin);
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count ? values[count / 2] : 0;
}

/* Runs of slow cells of one state. values has room for them. */
static void find_slow(struct baseline *baseline, const struct cell *cells, size_t count, double *values)
{
	struct slow *open = NULL;
	double usual, limit;
	uint64_t bin = 0;

	for (size_t i = 0; i < count; i++)
		values[i] = cells[i].sum / cells[i].work;
	usual = median(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - usual);
	limit = usual + fmax(DEVIATIONS * median(values, count), LEAST_RATIO * usual);
	for (size_t i = 0; i < count; i++) {
		const struct cell *cell = &cells[i];
		void *items = baseline->slows;

		if (cell->sum / cell->work <= limit)
			continue;
		if (!open || open->rank != cell->rank || cell->bin > bin + GAP + 1) {
			if (!grow(&items, &baseline->slow_capacity, baseline->slow_count, sizeof(*open))) {
				baseline->failed = true;
				return;
			}
			baseline->slows = items;
			open = &baseline->slows[baseline->slow_count++];
			*open =
			    (struct slow){baseline->class[cell->state], cell -> rank, cell -> begin, cell -> end, 0};
		}
		bin = cell->bin;
		open->end = cell->end;
		open->lost += (cell->sum - usual * cell->work) / 1e9;
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct slow *left = a, *right = b;

	if (left->class != right->class)
		return left->class < right->class ? -1 : 1;
	return (left->begin > right->begin) - (left->begin < right->begin);
}

static bool join(struct found_variance *alarm, const struct slow *slow)
{
	double begin = (slow->begin - (double)JOB_MONO_NS) / 1e9, end = (slow->end - (double)JOB_MONO_NS) / 1e9;
	double both = fmin(end, alarm->end) - fmax(begin, alarm->begin);
	double all = fmax(end, alarm->end) - fmin(begin, alarm->begin);
	int32_t *ranks;
	uint32_t at = 0;

	if (alarm->class != slow->class || (alarm->rank_count && both < OVERLAP * all))
		return false;
	while (at < alarm->rank_count && alarm->ranks[at] < (int32_t)slow->rank)
		at++;
	if (at == alarm->rank_count || alarm->ranks[at] != (int32_t)slow->rank) {
		ranks = realloc(alarm->ranks, (alarm->rank_count + 1) * sizeof(*ranks));
		if (!ranks)
			return false;
		memmove(ranks + at + 1, ranks + at, (alarm->rank_count - at) * sizeof(*ranks));
		ranks[at] = (int32_t)slow->rank;
		alarm->ranks = ranks;
		alarm->rank_count++;
	}
	alarm->begin = fmin(alarm->begin, begin);
	alarm->end = fmax(alarm->end, end);
	alarm->lost += slow->lost;
	return true;
}

/* An alarm has lost enough, and is no waiting beside slow computation. */
static bool stands(const struct findings *findings, const struct found_variance *alarm)
{
	if (alarm->lost < LEAST_LOST_S)
		return false;
	for (size_t i = 0; alarm->class == VAPRO_COMMUNICATION && i < findings->variance_count; i++) {
		const struct found_variance *at = &findings->variances[i];

		if (at->class == VAPRO_COMPUTATION && at->lost >= LEAST_LOST_S && at->begin < alarm->end &&
		    at->end > alarm->begin)
			return false;
	}
	return true;
}

static int unite(struct baseline *baseline, struct findings *findings)
{
	if (baseline->slow_count)
		qsort(baseline->slows, baseline->slow_count, sizeof(*baseline->slows), by_begin);
	for (size_t i = 0; i < baseline->slow_count; i++) {
		const struct slow *slow = &baseline->slows[i];
		size_t first = findings->variance_count > LOOK_BACK ? findings->variance_count - LOOK_BACK : 0;
		void *items = findings->variances;
		bool joined = false;

		for (size_t at = findings->variance_count; !joined && at-- > first;)
			joined = join(&findings->variances[at], slow);
		if (joined)
			continue;
		if (!grow(&items, &findings->variance_capacity, findings->variance_count, sizeof(*findings->variances)))
			return -ENOMEM;
		findings->variances = items;
		findings->variances[findings->variance_count] = (struct found_variance){
		    .id = findings->variance_count + 1,
		    .class = slow->class,
		    .begin = INFINITY,
		    .end = -INFINITY,
		    .raised = NAN,
		    .dropped = NAN,
		    .severity = VAPRO_WARNING,
		};
		join(&findings->variances[findings->variance_count++], slow);
	}
	for (size_t i = 0; i < findings->variance_count; i++)
		findings->variances[i].alarm = stands(findings, &findings->variances[i]);
	return 0;
}

int baseline__find(struct stream_sink *sink, struct findings *findings)
{
	struct baseline *baseline = (struct baseline *)sink;
	double *values = calloc(baseline->cell_count + 1, sizeof(*values));

	if (!values || baseline->failed) {
		free(values);
		return -ENOMEM;
	}
	if (baseline->cell_count)
		qsort(baseline->cells, baseline->cell_count, sizeof(*baseline->cells), by_rank);
	for (size_t begin = 0, end; begin < baseline->cell_count; begin = end) {
		for (end = begin;
		     end < baseline->cell_count && baseline->cells[end].state == baseline->cells[begin].state;)
			end++;
		find_slow(baseline, &baseline->cells[begin], end - begin, values);
	}
	free(values);
	return baseline->failed ? -ENOMEM : unite(baseline, findings);
}
