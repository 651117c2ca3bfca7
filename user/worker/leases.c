// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/leases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void leases__clear(struct leases *leases)
{
	for (size_t i = 0; i < leases->count; i++)
		free(leases->items[i]);
	free(leases->items);
	leases->items = NULL;
	leases->count = leases->capacity = 0;
}

struct lease *leases__of(struct leases *leases, const char *job)
{
	struct lease *lease;

	for (size_t i = 0; i < leases->count; i++) {
		if (!strcmp(leases->items[i]->job, job))
			return leases->items[i];
	}
	lease = calloc(1, sizeof(*lease));
	if (!lease || grow(&leases->items, &leases->capacity, leases->count + 1, sizeof(struct lease *))) {
		free(lease);
		return NULL;
	}
	snprintf(lease->job, sizeof(lease->job), "%s", job);
	leases->items[leases->count++] = lease;
	return lease;
}

bool leases__may_take(const struct leases *leases, const struct lease *lease, uint64_t now_ns)
{
	if (lease->ours || lease->giving || !lease->present)
		return false;
	switch (lease->value.state) {
	case LEASE_FREE:
		return true;
	case LEASE_HELD:
		return now_ns - lease->changed_ns >= leases->expire_ns;
	case LEASE_DONE:
		return lease->more;
	}
	return false;
}

/* Counts the leases held, and computes the share of one of `workers` (0: unknown), rounded up. */
static size_t share_of(const struct leases *leases, size_t workers, size_t *held)
{
	size_t active = 0;

	*held = 0;
	for (size_t i = 0; i < leases->count; i++) {
		const struct lease *lease = leases->items[i];

		active += lease->present && (lease->value.state != LEASE_DONE || lease->more);
		*held += lease->ours;
	}
	return workers ? (active + workers - 1) / workers : active;
}

size_t leases__wanted(const struct leases *leases, size_t workers)
{
	size_t held, share = share_of(leases, workers, &held);

	return share > held ? share - held : 0;
}

size_t leases__surplus(const struct leases *leases, size_t workers)
{
	size_t held, share = share_of(leases, workers, &held);

	return held > share ? held - share : 0;
}
