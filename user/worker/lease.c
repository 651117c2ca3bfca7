// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/lease.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"

static const char *const state_names[] = {[LEASE_FREE] = "free", [LEASE_HELD] = "held", [LEASE_DONE] = "done"};
#define STATES (int)(sizeof(state_names) / sizeof(state_names[0]))

int lease_value__format(char *text, size_t size, const struct lease_value *value)
{
	int length = snprintf(
	    text, size,
	    "{\"state\":\"%s\",\"worker\":\"%s\",\"epoch\":%llu,\"through\":%llu,\"blocks\":%llu,\"checkpoint\":%llu}",
	    state_names[value->state], value->worker, (unsigned long long)value->epoch,
	    (unsigned long long)value->through, (unsigned long long)value->blocks,
	    (unsigned long long)value->checkpoint);

	return length >= 0 && (size_t)length < size ? 0 : -ENOSPC;
}

int lease_value__parse(struct lease_value *value, const char *text)
{
	cJSON *object = cJSON_Parse(text);
	const char *worker = record__member_text(object, "worker");
	int state = record__word(record__member_text(object, "state"), state_names, STATES);

	memset(value, 0, sizeof(*value));
	if (worker && state < STATES) {
		value->state = (enum lease_state)state;
		snprintf(value->worker, sizeof(value->worker), "%s", worker);
		value->epoch = record__member_uint(object, "epoch");
		value->through = record__member_uint(object, "through");
		value->blocks = record__member_uint(object, "blocks");
		value->checkpoint = record__member_uint(object, "checkpoint");
	}
	cJSON_Delete(object);
	return worker && state < STATES ? 0 : -EINVAL;
}

void lease__note(struct lease *lease, const char *text, uint64_t revision, uint64_t now_ns)
{
	uint64_t epoch = lease->value.epoch, checkpoint = lease->value.checkpoint;

	if (lease->revision != revision || !lease->changed_ns)
		lease->changed_ns = now_ns;
	lease->revision = revision;
	if (!text || lease_value__parse(&lease->value, text))
		lease->value = (struct lease_value){.epoch = epoch, .checkpoint = checkpoint};
}

void lease_table__clear(struct lease_table *leases)
{
	for (size_t i = 0; i < leases->count; i++)
		free(leases->items[i]);
	free(leases->items);
	leases->items = NULL;
	leases->count = leases->capacity = 0;
}

struct lease *lease_table__of(struct lease_table *leases, const char *job)
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

bool lease_table__may_take(const struct lease_table *leases, const struct lease *lease, uint64_t now_ns)
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
static size_t share_of(const struct lease_table *leases, size_t workers, size_t *held)
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

size_t lease_table__wanted(const struct lease_table *leases, size_t workers)
{
	size_t held, share = share_of(leases, workers, &held);

	return share > held ? share - held : 0;
}

size_t lease_table__surplus(const struct lease_table *leases, size_t workers)
{
	size_t held, share = share_of(leases, workers, &held);

	return held > share ? held - share : 0;
}
