// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sum_counts CAPTURE: the counts of the computations of a capture's main threads, as one JSON object:
 * sums, also of each factor, and of single ones [call number, 3 magnitudes, start, end, ns of
 * backend, memory, core, L1, L2, DRAM] in the order of calls; changes of what is counted as [begin, end, stage,
 * counted].
 */
#include <stdio.h>
#include <stdlib.h>

#include "capture/capture.h"

#define IDS 4096
#define SINGLES 65536
#define STAGES 256

static const int reported[] = {VAPRO_BACKEND, VAPRO_MEMORY, VAPRO_CORE, VAPRO_L1, VAPRO_L2, VAPRO_DRAM};

#define REPORTED (sizeof(reported) / sizeof(reported[0]))

struct sums {
	struct stream_sink sink; /* first */
	bool main_thread[IDS], computation[IDS];
	double ns, away_ns, parts_ns, migrations, factor[VAPRO_FACTORS];
	uint64_t fragments, singles;
	struct single {
		uint64_t call;
		double magnitude[VAPRO_MAGNITUDES], reported[REPORTED];
		uint64_t start_ns, end_ns;
	} single[SINGLES];
	struct stream_stage stage[STAGES];
	size_t stages;
};

static void add(struct sums *sums, const struct vapro_bundle *bundle)
{
	sums->fragments += bundle->n;
	sums->ns += (double)bundle->sum_ns;
	for (int i = VAPRO_PREEMPTED; i <= VAPRO_THROTTLED; i++)
		sums->away_ns += bundle->factor[i];
	sums->away_ns += bundle->factor[VAPRO_STOPPED];
	for (int i = VAPRO_KERNEL; i <= VAPRO_BACKEND; i++)
		sums->parts_ns += bundle->factor[i];
	sums->migrations += bundle->factor[VAPRO_MIGRATIONS];
	for (int i = 0; i < VAPRO_FACTORS; i++)
		sums->factor[i] += bundle->factor[i];
	if (bundle->n != 1 || sums->singles == SINGLES)
		return;
	sums->single[sums->singles].call = bundle->first_call;
	sums->single[sums->singles].start_ns = bundle->start_ns;
	sums->single[sums->singles].end_ns = bundle->end_ns;
	for (size_t i = 0; i < REPORTED; i++)
		sums->single[sums->singles].reported[i] = bundle->factor[reported[i]];
	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		sums->single[sums->singles].magnitude[i] = bundle->magnitude_min[i];
	sums->singles++;
}

static int compare_calls(const void *a, const void *b)
{
	const struct single *x = a, *y = b;

	return x->call > y->call ? 1 : x->call < y->call ? -1 : 0;
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct sums *sums = (struct sums *)sink;

	if (event->type == STREAM_THREAD && event->thread.id < IDS)
		sums->main_thread[event->thread.id] = event->thread.thread == 0;
	else if (event->type == STREAM_STATE && event->state.id < IDS)
		sums->computation[event->state.id] = event->state.class == VAPRO_COMPUTATION;
	else if (event->type == STREAM_BUNDLE && event->bundle.thread < IDS && event->bundle.state < IDS &&
		 sums->main_thread[event->bundle.thread] && sums->computation[event->bundle.state])
		add(sums, &event->bundle);
	else if (event->type == STREAM_STAGE && sums->stages < STAGES)
		sums->stage[sums->stages++] = event->stage;
	return 0;
}

int main(int argc, char **argv)
{
	static struct sums sums = {.sink = {.put = put}};
	const char *path = argv[1];
	char err[256];

	if (argc != 2) {
		fputs("usage: sum_counts CAPTURE\n", stderr);
		return 2;
	}
	if (capture__replay(&path, 1, &sums.sink, err, sizeof(err)) < 0) {
		fprintf(stderr, "sum_counts: %s\n", err);
		return 1;
	}
	qsort(sums.single, sums.singles, sizeof(sums.single[0]), compare_calls);
	printf("{\"fragments\":%llu,\"ns\":%.0f,\"away_ns\":%.0f,\"parts_ns\":%.0f,\"migrations\":%.0f,\"factors\":{",
	       (unsigned long long)sums.fragments, sums.ns, sums.away_ns, sums.parts_ns, sums.migrations);
	for (int i = 0; i < VAPRO_FACTORS; i++)
		printf("%s\"%s\":%.0f", i ? "," : "", vapro_factor_name[i], sums.factor[i]);
	printf("},\"singles\":[");
	for (uint64_t i = 0; i < sums.singles; i++) {
		const double *magnitude = sums.single[i].magnitude;

		printf("%s[%llu,%.0f,%.0f,%.0f,%llu,%llu", i ? "," : "", (unsigned long long)sums.single[i].call,
		       magnitude[VAPRO_INSTRUCTIONS], magnitude[VAPRO_NAMED], magnitude[VAPRO_NAMED + 1],
		       (unsigned long long)sums.single[i].start_ns, (unsigned long long)sums.single[i].end_ns);
		for (size_t k = 0; k < REPORTED; k++)
			printf(",%.0f", sums.single[i].reported[k]);
		printf("]");
	}
	printf("],\"stages\":[");
	for (size_t i = 0; i < sums.stages; i++)
		printf("%s[%llu,%llu,%u,%s]", i ? "," : "", (unsigned long long)sums.stage[i].begin_ns,
		       (unsigned long long)sums.stage[i].end_ns, sums.stage[i].stage,
		       sums.stage[i].refused ? "false" : "true");
	puts("]}");
	return 0;
}
