// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sum_counts CAPTURE: what the computations of a capture's main threads counted, as one JSON object:
 * sums, and of those that travelled singly [call number, magnitudes] in the order of calls.
 */
#include <stdio.h>
#include <stdlib.h>

#include "collect/capture.h"

#define IDS 4096
#define SINGLES 65536

struct sums {
	struct stream_sink sink; /* first */
	bool main_thread[IDS], computation[IDS];
	double ns, away_ns, parts_ns, migrations;
	uint64_t fragments, singles;
	struct single {
		uint64_t call;
		double magnitude[VAPRO_MAGNITUDES];
	} single[SINGLES];
};

static void add(struct sums *sums, const struct vapro_bundle *bundle)
{
	sums->fragments += bundle->n;
	sums->ns += (double)bundle->sum_ns;
	for (int i = VAPRO_PREEMPTED; i <= VAPRO_BLOCKED_OTHER; i++)
		sums->away_ns += bundle->factor[i];
	for (int i = VAPRO_KERNEL; i <= VAPRO_BACKEND; i++)
		sums->parts_ns += bundle->factor[i];
	sums->migrations += bundle->factor[VAPRO_MIGRATIONS];
	if (bundle->n != 1 || sums->singles == SINGLES)
		return;
	sums->single[sums->singles].call = bundle->first_call;
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
	printf("{\"fragments\":%llu,\"ns\":%.0f,\"away_ns\":%.0f,\"parts_ns\":%.0f,\"migrations\":%.0f,\"singles\":[",
	       (unsigned long long)sums.fragments, sums.ns, sums.away_ns, sums.parts_ns, sums.migrations);
	for (uint64_t i = 0; i < sums.singles; i++) {
		const double *magnitude = sums.single[i].magnitude;

		printf("%s[%llu,%.0f,%.0f,%.0f]", i ? "," : "", (unsigned long long)sums.single[i].call,
		       magnitude[VAPRO_INSTRUCTIONS], magnitude[VAPRO_NAMED], magnitude[VAPRO_NAMED + 1]);
	}
	puts("]}");
	return 0;
}
