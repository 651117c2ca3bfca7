// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Samples where slow computation runs, while it is slow: the analysis requests threads after a window, and what their
 * clocks found enters the stream before the next window ends (ARCHITECTURE section 3.11).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/daemon_private.h"
#include "overhead/sample_cost.h"
#include "probe/bpf/sampler.h"
#include "report/pipeline.h"

#define PLACES_MOST 48 /* of a thread's computation after one call, in a window; the others are unlisted */

static void warn(struct daemon *daemon, int status)
{
	if (daemon->inside_warned)
		return;
	daemon->inside_warned = true;
	tracker__warn(
	    daemon->tracker, "no_inside", 0,
	    "the kernel refuses to sample threads by a software clock (%s): functions inside slow computation "
	    "are not known",
	    strerror(-status));
}

void daemon__open_inside(struct daemon *daemon)
{
	enum vapro_tristate wanted = daemon->options->config.inside;
	int status = wanted == VAPRO_OFF ? 0 : sample_cost__measure(daemon->side, &daemon->costs.sample_ns);

	if (status && wanted == VAPRO_ON)
		log__warning("--inside on: the kernel refuses to sample threads by a software clock (%s)",
			     strerror(-status));
	if (!status && wanted != VAPRO_OFF)
		daemon->sampler = sampler__new(daemon->side);
}

/* Orders by thread and computation, there by samples, most first. */
static int compare(const void *a, const void *b)
{
	const struct sampler_entry *left = a, *right = b;

	if (left->key.tid != right->key.tid)
		return left->key.tid < right->key.tid ? -1 : 1;
	if (left->key.vertex != right->key.vertex)
		return left->key.vertex < right->key.vertex ? -1 : 1;
	if (left->inside.samples != right->inside.samples)
		return left->inside.samples > right->inside.samples ? -1 : 1;
	return (left->key.block > right->key.block) - (left->key.block < right->key.block);
}

/* Puts the samples of one computation of a thread: of unknown threads and states there is nothing to say. */
static void put(struct daemon *daemon, const struct sampler_entry *entries, size_t count)
{
	struct stream_event event = {.type = STREAM_INSIDE};
	int64_t thread, state;
	char text[512];
	uint32_t tgid;
	size_t i;

	state = resolver__state(daemon->resolver, entries[0].key.vertex, &tgid);
	thread = state < 0 ? state : resolver__thread(daemon->resolver, entries[0].key.tid, tgid);
	if (thread < 0)
		return;
	event.inside = (struct stream_inside){.thread = (uint32_t)thread, .state = (uint32_t)state};
	for (i = 0; i < count && i < PLACES_MOST; i++) {
		event.inside.samples = entries[i].inside.samples;
		event.inside.site = VAPRO_IN_KERNEL;
		if (entries[i].key.block) {
			if (resolver__place(daemon->resolver, (pid_t)tgid, entries[i].inside.address, text,
					    sizeof(text)))
				return;
			event.inside.site = text;
		}
		stream__put(&daemon->tee.sink, &event);
	}
	event.inside.site = NULL;
	for (event.inside.samples = 0; i < count; i++)
		event.inside.samples += entries[i].inside.samples;
	if (event.inside.samples)
		stream__put(&daemon->tee.sink, &event);
}

void daemon__drain_inside(struct daemon *daemon)
{
	struct sampler_entry *entries;
	size_t count, end;
	uint64_t lost;

	if (!daemon->sampler || !sampler__count(daemon->sampler))
		return;
	count = sampler__drain(daemon->sampler, &entries, &lost);
	if (lost)
		log__warning("%llu samples of slow computation found the kernel's table full",
			     (unsigned long long)lost);
	if (count)
		qsort(entries, count, sizeof(*entries), compare);
	resolver__begin(daemon->resolver);
	for (size_t i = 0; i < count; i = end) {
		end = i + 1;
		while (end < count && entries[end].key.tid == entries[i].key.tid &&
		       entries[end].key.vertex == entries[i].key.vertex)
			end++;
		put(daemon, &entries[i], end - i);
	}
}

void daemon__select_inside(struct daemon *daemon)
{
	struct vapro_inside_request request;
	pid_t tids[VAPRO_INSIDE_THREADS];
	int status;

	if (daemon->options->config.inside == VAPRO_OFF)
		return;
	pipeline__inside_request(daemon->tee.pipeline, &request);
	daemon__add_remote_inside(daemon, &request);
	if (!daemon->sampler) {
		if (request.count)
			warn(daemon, -EOPNOTSUPP);
		return;
	}
	for (uint32_t i = 0; i < request.count; i++)
		tids[i] = (pid_t)request.tids[i];
	status = sampler__select(daemon->sampler, tids, request.count);
	if (status)
		warn(daemon, status);
}
