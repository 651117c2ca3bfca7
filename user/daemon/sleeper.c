// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/sleeper.h"

#include <bpf/libbpf.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "probe/bpf/kernel_side.h"
#include "target/finder.h"

#define WAKE_NS 4e6 /* cost of a thread's hits that wakes: a new process's allowance */

struct sleeper {
	struct kernel_side *side;
	struct ring_buffer *wakes;
	struct pollfd *fds; /* the last is that of wakes */
	size_t count;
};

static int ignore(void *ctx, void *record, size_t size)
{
	(void)ctx, (void)record, (void)size;
	return 0;
}

struct sleeper *sleeper__new(struct kernel_side *side, const struct finder *finder)
{
	struct sleeper *sleeper = calloc(1, sizeof(*sleeper));
	const struct pollfd *fds = NULL;
	int map = kernel_side__map(side, KERNEL_MAP_WAKES);
	size_t count = 0;

	if (!sleeper)
		return NULL;
	if (finder)
		fds = finder__fds(finder, &count);
	sleeper->side = side;
	sleeper->wakes = ring_buffer__new(map, ignore, NULL, NULL);
	sleeper->fds = calloc(count + 1, sizeof(*sleeper->fds));
	if (!sleeper->wakes || !sleeper->fds) {
		sleeper__free(sleeper);
		return NULL;
	}
	if (count)
		memcpy(sleeper->fds, fds, count * sizeof(*fds));
	sleeper->fds[count] = (struct pollfd){.fd = map, .events = POLLIN};
	sleeper->count = count + 1;
	return sleeper;
}

void sleeper__free(struct sleeper *sleeper)
{
	if (!sleeper)
		return;
	ring_buffer__free(sleeper->wakes);
	free(sleeper->fds);
	free(sleeper);
}

void sleeper__set_costs(struct sleeper *sleeper, const struct costs *costs)
{
	double hits = costs->call_ns > 0 ? 2 * WAKE_NS / costs->call_ns : 0;

	*kernel_side__shared(sleeper->side)->wake_hits = hits < UINT32_MAX ? (uint32_t)hits : UINT32_MAX;
}

void sleeper__sleep(struct sleeper *sleeper, long limit_ns)
{
	struct timespec limit = {.tv_sec = limit_ns / 1000000000L, .tv_nsec = limit_ns % 1000000000L};

	if (ppoll(sleeper->fds, sleeper->count, &limit, NULL) > 0 && sleeper->fds[sleeper->count - 1].revents)
		ring_buffer__consume(sleeper->wakes);
}
