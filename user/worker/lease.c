// SPDX-License-Identifier: GPL-2.0-or-later
#include "worker/lease.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
