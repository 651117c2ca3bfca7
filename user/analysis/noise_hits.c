// SPDX-License-Identifier: GPL-2.0-or-later
#include "analysis/noise_hits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_CHANGE 0.25 /* a component is emitted again once its slices or their time grew by this share */
#define NOISE_RANK 0.05	  /* a rank is named that lost this share of what the rank lost that lost most */

static int compare_hits(const void *a, const void *b)
{
	const struct noise_hit *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return (left->pid > right->pid) - (left->pid < right->pid);
}

static int compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

double noise_hits__observed_ns(const struct builder *builder, const struct stg_thread *thread)
{
	uint64_t end = thread->to_ns ? thread->to_ns : builder->span->end_ns;

	if (thread->work_from)
		return (double)(thread->work_to - thread->work_from) * VAPRO_BIN_NS;
	return thread->from_ns && thread->from_ns < end ? (double)(end - thread->from_ns) : 0;
}

struct noise_hit noise_hits__of(const struct builder *builder, const struct stg_thread *thread)
{
	return (struct noise_hit){.rank = thread->about.rank,
				  .pid = thread->about.rank < 0 ? thread->about.pid : 0,
				  .host = thread->about.host,
				  .observed_ns = noise_hits__observed_ns(builder, thread)};
}

size_t noise_hits__merge(struct noise_hit *hits, size_t count)
{
	size_t merged = 0;

	if (count)
		qsort(hits, count, sizeof(*hits), compare_hits);
	for (size_t i = 0; i < count; i++) {
		struct noise_hit *into = merged ? &hits[merged - 1] : NULL;

		if (!into || compare_hits(into, &hits[i])) {
			hits[merged++] = hits[i];
			continue;
		}
		into->slices += hits[i].slices;
		into->ns += hits[i].ns;
		if (hits[i].observed_ns > into->observed_ns)
			into->observed_ns = hits[i].observed_ns;
	}
	return merged;
}

int noise_hits__describe(const struct builder *builder, const struct noise_hit *hits, size_t count,
			 struct result_noise *out)
{
	int32_t *ranks = result__take(builder, count, sizeof(*ranks));
	const char **hosts = result__take(builder, count, sizeof(*hosts));
	double *periods = calloc(count, sizeof(*periods));
	double observed = 0;
	uint64_t most = 0, lost = 0;
	size_t named = 0;

	if (!ranks || !hosts || !periods) {
		free(periods);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		most = hits[i].ns > most ? hits[i].ns : most;
	for (size_t i = 0; i < count; i++) {
		if ((double)hits[i].ns < NOISE_RANK * (double)most)
			continue;
		lost += hits[i].ns;
		observed += hits[i].observed_ns;
		if (!out->rank_count || ranks[out->rank_count - 1] != hits[i].rank)
			ranks[out->rank_count++] = hits[i].rank;
		hosts[named] = hits[i].host;
		periods[named++] = hits[i].observed_ns / 1e9 / (double)hits[i].slices;
	}
	qsort(periods, named, sizeof(*periods), compare_numbers);
	qsort(hosts, named, sizeof(*hosts), compare_texts);
	for (size_t i = 0; i < named; i++) {
		if (!out->host_count || strcmp(hosts[out->host_count - 1], hosts[i]))
			hosts[out->host_count++] = hosts[i];
	}
	out->ranks = ranks;
	out->hosts = hosts;
	out->period_s = named % 2 ? periods[named / 2] : (periods[named / 2 - 1] + periods[named / 2]) / 2;
	out->period_least_s = periods[0];
	out->period_most_s = periods[named - 1];
	out->share = observed > 0 ? (double)lost / observed : 0;
	free(periods);
	return 0;
}

bool noise_hits__changed(uint64_t slices, uint64_t ns, uint64_t emitted_slices, uint64_t emitted_ns)
{
	return (double)slices - (double)emitted_slices > NOISE_CHANGE * (double)emitted_slices ||
	       (double)ns - (double)emitted_ns > NOISE_CHANGE * (double)emitted_ns;
}
