// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * print_fragments CAPTURE: the single computations of a capture's main threads, as NDJSON
 * fragments (`vapro analyze --format ndjson`) with one field more, `call`: the call number they follow.
 * Named magnitudes are called named_1 and named_2; what was not counted is left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"

#define IDS 4096

struct printer {
	struct stream_sink sink; /* first */
	struct vapro_thread threads[IDS];
	struct {
		char from[256], to[256];
		bool computation;
	} states[IDS];
	uint64_t merged;
};

static void print(const struct printer *printer, const struct vapro_bundle *bundle)
{
	static const char *const names[VAPRO_MAGNITUDES] = {"instructions", NULL, "named_1", "named_2"};
	const struct vapro_thread *thread = &printer->threads[bundle->thread];
	const char *separator = "";

	printf("{\"rank\":%d,\"thread\":0,\"call\":%llu,\"class\":\"computation\",\"from\":\"%s\",\"to\":\"%s\","
	       "\"start_ns\":%llu,\"duration_ns\":%llu,\"workload\":{",
	       thread->rank, (unsigned long long)bundle->first_call, printer->states[bundle->state].from,
	       printer->states[bundle->state].to, (unsigned long long)bundle->start_ns,
	       (unsigned long long)bundle->sum_ns);
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (!names[i] || !(bundle->magnitude_max[VAPRO_INSTRUCTIONS] > 0))
			continue;
		printf("%s\"%s\":%.0f", separator, names[i], bundle->magnitude_min[i]);
		separator = ",";
	}
	puts("}}");
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct printer *printer = (struct printer *)sink;

	if (event->type == STREAM_THREAD && event->thread.id < IDS) {
		printer->threads[event->thread.id] = event->thread;
	} else if (event->type == STREAM_STATE && event->state.id < IDS) {
		snprintf(printer->states[event->state.id].from, sizeof(printer->states[0].from), "%s",
			 event->state.from ? event->state.from : "");
		snprintf(printer->states[event->state.id].to, sizeof(printer->states[0].to), "%s", event->state.to);
		printer->states[event->state.id].computation = event->state.class == VAPRO_COMPUTATION;
	} else if (event->type == STREAM_BUNDLE && event->bundle.thread < IDS && event->bundle.state < IDS &&
		   !printer->threads[event->bundle.thread].thread && printer->states[event->bundle.state].computation) {
		if (event->bundle.n == 1)
			print(printer, &event->bundle);
		else
			printer->merged += event->bundle.n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct printer printer = {.sink = {.put = put}};
	const char *path = argv[1];
	char err[256];

	if (argc != 2) {
		fputs("usage: print_fragments CAPTURE\n", stderr);
		return 2;
	}
	if (capture__replay(&path, 1, &printer.sink, err, sizeof(err)) < 0) {
		fprintf(stderr, "print_fragments: %s\n", err);
		return 1;
	}
	if (printer.merged)
		fprintf(stderr, "print_fragments: %llu were merged and are left out\n",
			(unsigned long long)printer.merged);
	return printer.merged != 0;
}
