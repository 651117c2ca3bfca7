// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <vapro/bpf/abi.h>

#define IDLE_WEIGHT 1.0 /* of a process without records or states: each is looked at */

static struct ledger_owner *owner_of(const struct ledger *ledger, uid_t uid)
{
	struct ledger_owner *owner = ledger->owners;

	while (owner && owner->uid != uid)
		owner = owner->next;
	return owner;
}

int ledger__enter(struct ledger *ledger, struct ledger_entry *entry, uid_t uid, const uint64_t *records,
		  const struct kernel_counters *counters)
{
	struct ledger_owner *owner = owner_of(ledger, uid);

	if (!owner) {
		owner = calloc(1, sizeof(*owner));
		if (!owner)
			return -ENOMEM;
		owner->uid = uid;
		owner->next = ledger->owners;
		ledger->owners = owner;
	}
	owner->processes++;
	*entry = (struct ledger_entry){.owner = owner,
				       .records = records,
				       .counters = counters,
				       .divided = records ? *records : 0,
				       .next = ledger->entries};
	ledger->entries = entry;
	return 0;
}

void ledger__leave(struct ledger *ledger, struct ledger_entry *entry)
{
	struct ledger_owner *owner = entry->owner, **of = &ledger->owners;
	struct ledger_entry **at = &ledger->entries;

	if (!owner)
		return;
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	entry->owner = NULL;
	if (--owner->processes)
		return;
	while (*of != owner)
		of = &(*of)->next;
	*of = owner->next;
	free(owner);
}

static double take_records(struct ledger_entry *entry)
{
	uint64_t records = entry->records ? *entry->records : 0, fresh = records - entry->divided;
	uint64_t states = (uint64_t)entry->counters->vertices + entry->counters->edges;

	entry->divided = records;
	if (states > entry->states)
		entry->states = states;
	return (double)fresh + IDLE_WEIGHT;
}

static double take_states(struct ledger_entry *entry)
{
	double states = (double)entry->states;

	entry->states = (uint64_t)entry->counters->vertices + entry->counters->edges;
	return states + IDLE_WEIGHT;
}

/* Reads vaprod's time since the last call. */
static double advance(struct ledger *ledger, uint64_t cpu_ns)
{
	double ran = cpu_ns > ledger->read_ns ? (double)(cpu_ns - ledger->read_ns) : 0;

	if (ran > 0)
		ledger->read_ns = cpu_ns;
	ledger->ran_ns += ran;
	return ran;
}

static void divide(struct ledger *ledger, uint64_t cpu_ns, double (*take)(struct ledger_entry *entry))
{
	double ran = advance(ledger, cpu_ns), all = 0;

	for (struct ledger_entry *entry = ledger->entries; entry; entry = entry->next)
		all += entry->weight = take(entry);
	for (struct ledger_entry *entry = ledger->entries; entry; entry = entry->next) {
		double part = ran * entry->weight / all;

		entry->worked_ns += part;
		entry->owner->worked_ns += part;
		entry->owner->ran_ns += part;
	}
}

void ledger__by_records(struct ledger *ledger, uint64_t cpu_ns)
{
	divide(ledger, cpu_ns, take_records);
}

void ledger__by_states(struct ledger *ledger, uint64_t cpu_ns)
{
	divide(ledger, cpu_ns, take_states);
}

void ledger__for(struct ledger *ledger, uint64_t cpu_ns, uid_t uid)
{
	struct ledger_owner *owner = owner_of(ledger, uid);
	double ran = advance(ledger, cpu_ns);

	if (owner)
		owner->ran_ns += ran;
}

double ledger__caused(const struct ledger *ledger, uid_t uid)
{
	const struct ledger_owner *owner = owner_of(ledger, uid);

	return owner ? owner->ran_ns : 0;
}

double ledger__ran(const struct ledger *ledger)
{
	return ledger->ran_ns - ledger->before_ns;
}

double ledger__share(const struct ledger *ledger, const struct ledger_owner *owner)
{
	double ran = ledger__ran(ledger);

	/* with one owner, time before its first process counts as that owner's: it was spent on finding that process */
	if (ran <= 0 || (owner == ledger->owners && !owner->next))
		return 1;
	return (owner->ran_ns - owner->before_ns) / ran;
}

void ledger__bill(struct ledger *ledger, const struct ledger_owner *owner, double waited_ns)
{
	double ran = ledger__ran(ledger);

	for (struct ledger_owner *other = ledger->owners; ran > 0 && other; other = other->next)
		if (other != owner)
			other->bill_ns += waited_ns * (other->ran_ns - other->before_ns) / ran;
}

double ledger__due(const struct ledger_entry *entry)
{
	const struct ledger_owner *owner = entry->owner;

	if (owner->worked_ns <= 0)
		return 0;
	return fmin(owner->bill_ns * entry->worked_ns / owner->worked_ns, entry->worked_ns);
}

void ledger__begin(struct ledger *ledger)
{
	ledger->before_ns = ledger->ran_ns;
	for (struct ledger_owner *owner = ledger->owners; owner; owner = owner->next) {
		owner->before_ns = owner->ran_ns;
		owner->worked_ns = owner->bill_ns = 0;
	}
	for (struct ledger_entry *entry = ledger->entries; entry; entry = entry->next)
		entry->worked_ns = 0;
}
