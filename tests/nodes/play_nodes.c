// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plays captures as the vaprods that wrote them, each with a connection, a ring and a back-off of its own, and what a
 * vaprod does where the ring is full: blocks are discarded and counted. For tests of what brokers do to nodes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/capture_file.h"
#include "daemon/publishing.h"

#define S 1000000000ULL
#define STEP_NS 10000000L /* of this machine's time, between looks */

struct options {
	const char *nats, *cluster;
	double speed, flush_s, settle_s;
	uint64_t memory_bytes;
};

struct node {
	char host[256];
	struct capture_file *file; /* NULL: it ended */
	struct publishing *publishing;
	struct stream_clock clock;
	struct stream_event event; /* the next one, not yet put */
	bool has_event;
	uint64_t time_ns; /* UTC of the latest event */
	pthread_t end;
	const struct options *options;
};

static void say_news(struct node *node)
{
	char text[512];
	bool trouble;

	while (publishing__news(node->publishing, text, sizeof(text), &trouble))
		fprintf(stderr, "%s: %s%s\n", node->host, trouble ? "warning: " : "", text);
}

static int open_node(struct node *node, const char *path, const struct options *options)
{
	struct publishing_options publishing = {
	    .broker = {.servers = options->nats}, .cluster = options->cluster, .memory_bytes = options->memory_bytes};
	struct capture_info info;
	char err[512] = "out of memory";

	if (capture__info(path, &info, err, sizeof(err)))
		goto failed;
	snprintf(node->host, sizeof(node->host), "%s", info.host);
	node->file = capture_file__open(path, CAPTURE_LAST_RUN, err, sizeof(err));
	if (!node->file)
		goto failed;
	node->publishing =
	    publishing__new(&publishing, node->host, capture_file__tunables(node->file), err, sizeof(err));
	if (node->publishing)
		return 0;
failed:
	fprintf(stderr, "play_nodes: %s: %s\n", path, err);
	return -1;
}

/* UTC of an event, that of the one before where it has no time. */
static uint64_t time_of(const struct node *node, const struct stream_event *event)
{
	uint64_t utc_ns = 0;

	if (event->type == STREAM_CLOCK)
		utc_ns = event->clock.utc_ns;
	else if (event->type == STREAM_BUNDLE)
		utc_ns = event->bundle.end_ns + node->clock.utc_ns - node->clock.mono_ns;
	else if (event->type == STREAM_WINDOW)
		utc_ns = event->window.end_ns;
	return utc_ns > node->time_ns ? utc_ns : node->time_ns;
}

/* Puts a node's events up to a time, UTC. Returns 0, or -1 after a message. */
static int play_until(struct node *node, uint64_t utc_ns)
{
	char err[512] = "";
	int ret = 1;

	for (;;) {
		if (!node->has_event)
			ret = capture_file__next(node->file, &node->event, err, sizeof(err));
		if (ret <= 0)
			break;
		node->has_event = true;
		if (time_of(node, &node->event) > utc_ns)
			return 0;
		node->time_ns = time_of(node, &node->event);
		if (node->event.type == STREAM_CLOCK)
			node->clock = node->event.clock;
		publishing__step(node->publishing, node->time_ns);
		ret = publishing__put(node->publishing, &node->event);
		node->has_event = false;
		if (ret)
			break;
		ret = 1;
	}
	if (ret)
		fprintf(stderr, "play_nodes: %s: %s\n", node->host, err[0] ? err : strerror(-ret));
	capture_file__close(node->file);
	node->file = NULL;
	return ret ? -1 : 0;
}

/* Whether all that the nodes have sent is acknowledged. */
static bool settled(struct node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (publishing__totals(nodes[i].publishing).waiting)
			return false;
	}
	return true;
}

/* Plays all nodes at their pace. Returns 0 or -1. */
static int play(struct node *nodes, size_t count, const struct options *options)
{
	uint64_t first_ns = UINT64_MAX, begun_ns = mono_now();
	uint64_t settle_ns = (uint64_t)(options->settle_s * 1e9);
	bool more = true, settling = false;

	for (size_t i = 0; i < count; i++) {
		char err[512];

		/* up to the first event with a time */
		while (capture_file__next(nodes[i].file, &nodes[i].event, err, sizeof(err)) > 0) {
			uint64_t at_ns = time_of(&nodes[i], &nodes[i].event);

			if (at_ns) {
				nodes[i].has_event = true;
				first_ns = at_ns < first_ns ? at_ns : first_ns;
				break;
			}
			if (publishing__put(nodes[i].publishing, &nodes[i].event))
				return -1;
		}
	}
	/* for measurements: when, on this machine's clock, the first event was */
	printf("{\"began\": %.6f, \"first\": %.6f}\n", (double)utc_now() * 1e-9, (double)first_ns * 1e-9);
	fflush(stdout);
	while (more) {
		uint64_t played_ns = (uint64_t)((double)(mono_now() - begun_ns) * options->speed), now_ns;

		if (settle_ns && played_ns > settle_ns) {
			played_ns = settle_ns;
			if (!settling)
				puts("{\"settling\": true}");
			fflush(stdout);
			settling = true;
			begun_ns = mono_now() - (uint64_t)((double)settle_ns / options->speed);
			if (settled(nodes, count))
				settle_ns = 0;
		}
		now_ns = first_ns + played_ns;
		more = false;
		for (size_t i = 0; i < count; i++) {
			say_news(&nodes[i]);
			if (nodes[i].file && play_until(&nodes[i], now_ns))
				return -1;
			/* what waits for its second is packed, and drops are counted, as each step of vaprod does */
			if (nodes[i].file)
				publishing__step(nodes[i].publishing, now_ns);
			more |= nodes[i].file != NULL;
		}
		nanosleep(&(struct timespec){0, STEP_NS}, NULL);
	}
	return 0;
}

static void *finish(void *arg)
{
	struct publisher_totals totals;
	struct node *node = arg;
	char text[512];

	if (!publishing__finish(node->publishing, (uint64_t)(node->options->flush_s * 1e9), text, sizeof(text)))
		fprintf(stderr, "%s: warning: %s\n", node->host, text);
	say_news(node);
	totals = publishing__totals(node->publishing);
	printf("{\"host\": \"%s\", \"acknowledged\": %llu, \"duplicates\": %llu, \"again\": %llu, \"dropped\": %llu, "
	       "\"fragments\": %llu, \"waiting\": %llu}\n",
	       node->host, (unsigned long long)totals.acknowledged, (unsigned long long)totals.duplicates,
	       (unsigned long long)totals.again, (unsigned long long)totals.dropped,
	       (unsigned long long)totals.fragments, (unsigned long long)totals.waiting);
	return NULL;
}

/* Ends all nodes at the same time, as vaprods on hosts of their own do: one after another, 256 of them need 20 s. */
static int finish_all(struct node *nodes, size_t count, const struct options *options)
{
	size_t started = 0;

	for (; started < count; started++) {
		nodes[started].options = options;
		if (pthread_create(&nodes[started].end, NULL, finish, &nodes[started]))
			break;
	}
	for (size_t i = 0; i < started; i++)
		pthread_join(nodes[i].end, NULL);
	return started == count ? 0 : -1;
}

static bool parse(struct options *options, int argc, char **argv, int *first)
{
	int i = 1;

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (!strcmp(name, "--nats"))
			options->nats = value;
		else if (!strcmp(name, "--cluster"))
			options->cluster = value;
		else if (!strcmp(name, "--speed"))
			options->speed = strtod(value, NULL);
		else if (!strcmp(name, "--memory"))
			options->memory_bytes = strtoull(value, NULL, 10);
		else if (!strcmp(name, "--settle-at"))
			options->settle_s = strtod(value, NULL);
		else if (!strcmp(name, "--flush"))
			options->flush_s = strtod(value, NULL);
		else
			return false;
	}
	*first = i;
	return options->nats && options->speed > 0 && i < argc && argv[i][0] != '-';
}

int main(int argc, char **argv)
{
	struct options options = {.cluster = "test", .speed = 1, .flush_s = 30};
	struct node *nodes;
	size_t count;
	int first, ret = 0;

	if (!parse(&options, argc, argv, &first)) {
		fputs("Usage: play_nodes --nats URL [option]... CAPTURE...\n"
		      "  --cluster NAME   (test)\n"
		      "  --speed X        X seconds of the captures in a second (1)\n"
		      "  --memory BYTES   of each node's ring (16 MiB)\n"
		      "  --settle-at SECONDS  of the captures: goes on once all is acknowledged\n"
		      "  --flush SECONDS  that the end waits for acknowledgements (30)\n"
		      "Prints when it began, when it settles, and what became of the blocks of each node, as JSON.\n",
		      stderr);
		return 2;
	}
	count = (size_t)(argc - first);
	nodes = calloc(count, sizeof(*nodes));
	for (size_t i = 0; nodes && !ret && i < count; i++)
		ret = open_node(&nodes[i], argv[first + (int)i], &options);
	if (!nodes || (!ret && (play(nodes, count, &options) || finish_all(nodes, count, &options))))
		ret = -1;
	for (size_t i = 0; nodes && i < count; i++) {
		publishing__free(nodes[i].publishing);
		capture_file__close(nodes[i].file);
	}
	free(nodes);
	return ret ? 1 : 0;
}
