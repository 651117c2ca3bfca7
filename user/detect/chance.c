// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/chance.h"

#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOL_ENOUGH 200	   /* fragments of the sizes at hand; with fewer all sizes of the state are looked at */
#define TAIL_THIN 1e-3	   /* no tail thins out faster */
#define STALL_RATIO 1.5	   /* stalls take so many times as long as the next fragments, at least */
enum { TAIL_STEPS = 16 };  /* parts of the tail beyond the longest fragment */
enum { TILTS = 60 };	   /* steps of a search by halves */
enum { RATIO_ONE = 1024 }; /* in the histogram of a pool, for a fragment that takes its reference */
enum { RATIO_BUCKETS = (27 * HISTOGRAM_PER_OCTAVE) }; /* up to two million times a reference */

/* Durations of a state's fragments in units of their references. */
struct drawn {
	double n, count[RATIO_BUCKETS], sum[RATIO_BUCKETS];
	size_t end; /* buckets in use */
};

/* What a variance has of one row's work of one size. */
struct part {
	uint32_t head, workload, row;
	double n, ratios, lost, longest; /* ratios: sum over the fragments, and longest: in units of the reference */
};

/* The parts of one state, of all its sizes. */
struct parts {
	const struct part *items;
	size_t count;
	double n, ratios, lost, longest;
	size_t rows;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *left = a, *right = b;

	if (left->head != right->head)
		return left->head < right->head ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->workload > right->workload) - (left->workload < right->workload);
}

/* What others had of a series' time, by the kernel: waits for a CPU, stops and their kind. */
static double suspended(const struct tally *tally, const struct tally_series *entry)
{
	double ns = 0;

	for (uint32_t at = entry->causes; at; at = tally->causes[at - 1].next) {
		const struct tally_cause *cause = &tally->causes[at - 1];

		if (cause->part != TALLY_OTHER && cause->part != TALLY_BLOCKED_IO && cause->part != TALLY_BLOCKED_OTHER)
			ns += cause->lost;
	}
	return ns;
}

/* Returns the present reference of a series, ns: those of a variance that left the view are older. */
static double reference_of(const struct series *series)
{
	return series->reference_ns + series->asleep_ns;
}

/* Returns the work of a variance in a class by state and row. NULL when out of memory. */
static struct part *parts_of(const struct variance *variance, const struct evidence_input *input,
			     enum vapro_class class, size_t *count)
{
	const struct tally *tally = &variance->total;
	struct part *parts = calloc(tally->series_count + 1, sizeof(*parts));

	*count = 0;
	for (size_t i = 0; parts && i < tally->series_count; i++) {
		const struct tally_series *entry = &tally->series[i];
		const struct series *series = &input->series->series[entry->series];
		double reference = reference_of(series);

		if (series->class != class || !(entry->n > 0) || !(reference > 0))
			continue;
		parts[(*count)++] = (struct part){
		    .head = input->series->workloads[series->workload].head,
		    .workload = series->workload,
		    .row = series->row,
		    .n = entry->n,
		    .ratios = (entry->dur - suspended(tally, entry)) / reference,
		    .lost = fmax(0, entry->lost),
		    .longest = entry->longest / reference,
		};
	}
	if (*count)
		qsort(parts, *count, sizeof(*parts), compare_parts);
	return parts;
}

static void pool_add(struct drawn *pool, double ratio, double n)
{
	size_t at = histogram__index(fmin(ratio * RATIO_ONE, 1e12));

	if (!(n > 0))
		return;
	at = at < RATIO_BUCKETS ? at : RATIO_BUCKETS - 1;
	pool->n += n;
	pool->count[at] += n;
	pool->sum[at] += n * ratio;
	pool->end = at >= pool->end ? at + 1 : pool->end;
}

/* Adds the fragments of a workload's rows. in: rows to leave out, or NULL. */
static void pool_workload(struct drawn *pool, const struct series_book *book, uint32_t workload,
			  const unsigned char *in)
{
	for (uint32_t i = book->workloads[workload].series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		const struct histogram *durations = series->net.n > 0 ? &series->net : &series->cpu;
		double reference = reference_of(series);

		if ((in && in[series->row]) || !(reference > 0))
			continue;
		for (size_t b = 0; b < durations->count; b++)
			pool_add(pool, durations->buckets[b].sum_ns / durations->buckets[b].n / reference,
				 durations->buckets[b].n);
	}
}

static double mean_at(const struct drawn *pool, size_t bucket)
{
	return pool->sum[bucket] / pool->count[bucket];
}

/*
 * How the longest fragments of a pool's buckets before `end` thin out: the mean of ln(ratio to the shortest of them),
 * as in a Pareto tail.
 */
static double tail_of(const struct drawn *pool, size_t end)
{
	double most = fmax(LEAST_MEMBERS, SHARE_TAIL * pool->n), seen = 0, logs = 0, shortest = 0;

	for (size_t b = end; b-- > 0 && seen < most;) {
		double n = fmin(pool->count[b], most - seen);

		if (!(n > 0))
			continue;
		shortest = mean_at(pool, b);
		seen += n;
		logs += n * log(shortest);
	}
	return seen > 0 ? logs / seen - log(shortest) : 0;
}

/*
 * Removes the few longest fragments where they lie so far beyond all others that the tail does not reach them: stalls,
 * which are no scatter of the work, however often they come.
 */
static void pool_trim(struct drawn *pool)
{
	double seen = 0, above = 0;
	size_t cut = pool->end;

	for (size_t b = pool->end; b-- > 0 && seen <= SHARE_STALLS * pool->n;) {
		if (!(pool->count[b] > 0))
			continue;
		if (above > STALL_RATIO * mean_at(pool, b) &&
		    pow(above / mean_at(pool, b), -seen / fmax(tail_of(pool, b + 1), TAIL_THIN)) < CHANCE_MOST / seen)
			cut = b + 1;
		above = mean_at(pool, b);
		seen += pool->count[b];
	}
	for (size_t b = cut; b < pool->end; b++) {
		pool->n -= pool->count[b];
		pool->count[b] = pool->sum[b] = 0;
	}
	pool->end = cut;
}

/*
 * Adds what lies beyond the longest fragment of a pool, up to a longer one: of so many more fragments as the pool has
 * one is longer, and the tail goes on as it came.
 */
static void pool_extend(struct drawn *pool, double longest)
{
	double from = pool->end ? mean_at(pool, pool->end - 1) : 0, tail = tail_of(pool, pool->end), left = 1;

	if (!(longest > from) || !(from > 0))
		return;
	for (int i = 1; i <= TAIL_STEPS; i++) {
		double ratio = pow(longest / from, (double)i / TAIL_STEPS);
		double beyond = tail > 0 && i < TAIL_STEPS ? pow(ratio, -1 / tail) : 0;

		pool_add(pool, from * ratio, left - beyond);
		left = beyond;
	}
}

/*
 * The mean of a pool in which fragments shorter than the longest weigh less by exp(-tilt x difference), and the
 * logarithm of the mean weight.
 */
static double tilted(const struct drawn *pool, double tilt, double *weight)
{
	double top = mean_at(pool, pool->end - 1), n = 0, sum = 0;

	for (size_t b = 0; b < pool->end; b++) {
		double at;

		if (!(pool->count[b] > 0))
			continue;
		at = exp(tilt * (mean_at(pool, b) - top));
		n += pool->count[b] * at;
		sum += pool->sum[b] * at;
	}
	*weight = log(n / pool->n);
	return sum / n;
}

/*
 * The logarithm of the chance that n fragments of a pool have at least this mean: Chernoff's bound, which is right for
 * the many small deviations as well as for one long fragment of a heavy tail.
 */
static double log_chance(const struct drawn *pool, double n, double mean)
{
	double top = mean_at(pool, pool->end - 1), low = 0, high = 1, weight;

	if (tilted(pool, 0, &weight) >= mean)
		return 0;
	if (mean > top * (1 + 1.0 / HISTOGRAM_PER_OCTAVE)) /* the width of a bucket */
		return -INFINITY;
	mean = fmin(mean, top);
	for (int i = 0; i < TILTS && tilted(pool, high, &weight) < mean; i++)
		high *= 2;
	for (int i = 0; i < TILTS; i++) {
		double middle = (low + high) / 2;

		if (tilted(pool, middle, &weight) < mean)
			low = middle;
		else
			high = middle;
	}
	tilted(pool, low, &weight);
	return n * (weight + low * (top - mean));
}

/* Takes the parts of the next state. */
static struct parts next_state(const struct part *parts, size_t count)
{
	struct parts state = {.items = parts};

	for (; state.count < count && parts[state.count].head == parts->head; state.count++) {
		const struct part *at = &parts[state.count];

		state.rows += !state.count || at->row != at[-1].row;
		state.n += at->n;
		state.ratios += at->ratios;
		state.lost += at->lost;
		state.longest = fmax(state.longest, at->longest);
	}
	return state;
}

static bool is_earlier(const struct parts *state, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (state->items[i].workload == state->items[at].workload)
			return true;
	}
	return false;
}

/* Fills a pool with what other rows show of a state; where there are none, with what all show. */
static void fill(struct drawn *pool, const struct series_book *book, const struct parts *state, const unsigned char *in)
{
	for (int all = 0; all < 2 && pool->n < LEAST_FRAGMENTS; all++) {
		const unsigned char *without = all ? NULL : in;

		memset(pool, 0, sizeof(*pool));
		for (size_t i = 0; i < state->count; i++) {
			if (!is_earlier(state, i))
				pool_workload(pool, book, state->items[i].workload, without);
		}
		if (pool->n >= POOL_ENOUGH)
			return;
		memset(pool, 0, sizeof(*pool));
		for (uint32_t at = state->items->head; at != SERIES_NONE; at = book->workloads[at].next)
			pool_workload(pool, book, at, without);
	}
}

/* The places where a region might be: bins of all rows since the job's begin. */
static double places(const struct evidence_input *input)
{
	uint64_t begin = UINT64_MAX;

	for (size_t row = 0; row < input->job->row_count; row++) {
		uint64_t from = input->job->rows[row].from_ns;

		begin = from && from < begin ? from : begin;
	}
	return (double)input->job->row_count * fmax(1, (double)input->end - (double)begin / VAPRO_BIN_NS);
}

bool chance__explains(const struct variance *variance, const struct evidence_input *input, enum vapro_class class)
{
	unsigned char *in = calloc(input->job->row_count + 1, 1);
	struct drawn *pool = calloc(1, sizeof(*pool));
	double known = 0, unknown = 0, least = 0, lost = 0;
	size_t count = 0, states = 0;
	struct part *parts = parts_of(variance, input, class, &count);

	for (size_t i = 0; in && i < variance->row_count; i++)
		in[variance->rows[i]] = 1;
	for (size_t i = 0; i < count; i++)
		lost += parts[i].lost;
	for (size_t i = 0; in && pool && parts && i < count;) {
		struct parts state = next_state(&parts[i], count - i);

		i += state.count;
		if (state.lost < SHARE_MEANINGFUL * lost)
			continue;
		pool->n = 0;
		fill(pool, input->series, &state, in);
		*(pool->n < LEAST_FRAGMENTS ? &unknown : &known) += state.lost;
		if (pool->n < LEAST_FRAGMENTS)
			continue;
		states++;
		pool_trim(pool);
		pool_extend(pool, state.longest);
		/* rows that are slow together may have one reason: they are one witness */
		least = fmin(least, log_chance(pool, state.n / (double)state.rows, state.ratios / state.n));
	}
	free(in);
	free(pool);
	free(parts);
	return known > unknown && (double)states * places(input) * exp(least) > CHANCE_MOST;
}
