/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/ndjson_private.h"

static int compare_texts(const char *a, const char *b)
{
	return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

static int compare_threads(const void *a, const void *b)
{
	const struct vapro_thread *x = a, *y = b;
	int order = compare_texts(x->job, y->job);

	if (order)
		return order;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	order = compare_texts(x->host, y->host);
	return order ? order : (x->thread > y->thread) - (x->thread < y->thread);
}

static int compare_states(const void *a, const void *b)
{
	const struct vapro_state *x = a, *y = b;
	int order;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	order = compare_texts(x->from, y->from);
	if (!order)
		order = compare_texts(x->to, y->to);
	if (!order)
		order = compare_texts(x->labels, y->labels);
	return order ? order : compare_texts(x->common, y->common);
}

#define COMPARE(member)                                                                                                \
	do {                                                                                                           \
		if (x->member != y->member)                                                                            \
			return x->member < y->member ? -1 : 1;                                                         \
	} while (0)

/* Compares all that can differ: equal bundles may swap. */
static int compare_bundles(const void *a, const void *b)
{
	const struct vapro_bundle *x = a, *y = b;

	COMPARE(end_ns);
	COMPARE(thread);
	COMPARE(start_ns);
	COMPARE(state);
	COMPARE(n);
	COMPARE(flags);
	COMPARE(sum_ns);
	COMPARE(min_ns);
	COMPARE(max_ns);
	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		COMPARE(magnitude_min[i]);
	for (int i = 0; i < VAPRO_FACTORS; i++)
		COMPARE(factor[i]);
	return 0;
}

static int renumber(struct ndjson *ndjson)
{
	size_t most = ndjson->thread_count > ndjson->state_count ? ndjson->thread_count : ndjson->state_count;
	uint32_t *threads = calloc(most + 1, sizeof(*threads)), *states = calloc(most + 1, sizeof(*states));
	struct stream_seen *seen = calloc(ndjson->thread_count + 1, sizeof(*seen));
	struct vapro_place *places = calloc(ndjson->thread_count + 1, sizeof(*places));
	int ret = -ENOMEM;

	if (!threads || !states || !seen || !places)
		goto cleanup;
	if (ndjson->thread_count)
		qsort(ndjson->threads, ndjson->thread_count, sizeof(*ndjson->threads), compare_threads);
	if (ndjson->state_count)
		qsort(ndjson->states, ndjson->state_count, sizeof(*ndjson->states), compare_states);
	for (uint32_t i = 0; i < ndjson->thread_count; i++) {
		seen[i] = ndjson->seen[ndjson->threads[i].id];
		seen[i].thread = i;
		places[i] = ndjson->places[ndjson->threads[i].id];
		places[i].thread = i;
		threads[ndjson->threads[i].id] = i;
		ndjson->threads[i].id = i;
	}
	for (uint32_t i = 0; i < ndjson->state_count; i++) {
		states[ndjson->states[i].id] = i;
		ndjson->states[i].id = i;
	}
	for (size_t i = 0; i < ndjson->count; i++) {
		ndjson->bundles[i].thread = threads[ndjson->bundles[i].thread];
		ndjson->bundles[i].state = states[ndjson->bundles[i].state];
	}
	free(ndjson->seen);
	ndjson->seen = seen;
	seen = NULL;
	free(ndjson->places);
	ndjson->places = places;
	places = NULL;
	ret = 0;
cleanup:
	free(threads);
	free(states);
	free(seen);
	free(places);
	return ret;
}

static void swap_doubles(double *a, double *b)
{
	double other = *a;

	*a = *b;
	*b = other;
}

/* Sorts the slots of the user's magnitudes, which were given by first sight, by name. */
static void order_magnitudes(struct ndjson *ndjson)
{
	char **names = ndjson->names.magnitude;

	_Static_assert(NDJSON_NAMED == 2, "two are swapped");
	char *other = names[0];

	if (!names[0] || !names[1] || strcmp(names[0], names[1]) < 0)
		return;
	names[0] = names[1];
	names[1] = other;
	for (size_t i = 0; i < ndjson->count; i++) {
		struct vapro_bundle *bundle = &ndjson->bundles[i];

		swap_doubles(&bundle->magnitude_min[VAPRO_NAMED], &bundle->magnitude_min[VAPRO_NAMED + 1]);
		swap_doubles(&bundle->magnitude_max[VAPRO_NAMED], &bundle->magnitude_max[VAPRO_NAMED + 1]);
	}
}

static int number_calls(struct ndjson *ndjson)
{
	uint64_t *calls = calloc(ndjson->thread_count + 1, sizeof(*calls));

	if (!calls)
		return -ENOMEM;
	for (size_t i = 0; i < ndjson->count; i++) {
		struct vapro_bundle *bundle = &ndjson->bundles[i];

		bundle->first_call = calls[bundle->thread] + 1;
		bundle->last_call = calls[bundle->thread] += bundle->n;
	}
	free(calls);
	return 0;
}

int ndjson__order(struct ndjson *ndjson)
{
	int ret = renumber(ndjson);

	if (ret)
		return ret;
	order_magnitudes(ndjson);
	if (ndjson->count)
		qsort(ndjson->bundles, ndjson->count, sizeof(*ndjson->bundles), compare_bundles);
	return number_calls(ndjson);
}
