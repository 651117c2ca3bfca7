// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/owners.h"

#include <math.h>

#define LEVEL_MOST 5
#define SMOOTH_NS 6e9 /* time constant of an owner's rate: windows come in bursts */

static struct owner *find(const struct owners *owners, uid_t uid)
{
	for (size_t i = 0; i < KERNEL_SLOTS; i++)
		if (owners->of[i].processes && owners->of[i].uid == uid)
			return (struct owner *)&owners->of[i];
	return NULL;
}

uint32_t owners__join(struct owners *owners, uid_t uid)
{
	struct owner *owner = find(owners, uid);
	uint32_t number = 0;

	if (!owner) {
		while (number < KERNEL_SLOTS - 1 && owners->of[number].processes)
			number++;
		owner = &owners->of[number];
		*owner = (struct owner){.uid = uid};
		owners->active++;
	}
	owner->processes++;
	return (uint32_t)(owner - owners->of);
}

void owners__leave(struct owners *owners, uint32_t number)
{
	struct owner *owner = &owners->of[number];

	owners->active -= --owner->processes == 0;
}

uint32_t owners__guaranteed(const struct owners *owners, uint32_t capacity, bool newcomer)
{
	size_t active = owners->active + newcomer;

	return capacity / (uint32_t)(active > OWNERS_LEAST ? active : OWNERS_LEAST);
}

bool owners__may_claim(const struct owners *owners, uid_t uid, uint32_t capacity, uint32_t *lender)
{
	const struct owner *own = find(owners, uid);
	uint32_t guaranteed = owners__guaranteed(owners, capacity, !own), most = guaranteed;
	bool found = false;

	if (own && own->processes - own->leaving >= guaranteed)
		return false;
	for (uint32_t i = 0; i < KERNEL_SLOTS; i++) {
		const struct owner *owner = &owners->of[i];

		if (owner->processes - owner->leaving <= most)
			continue;
		most = owner->processes - owner->leaving;
		*lender = i;
		found = true;
	}
	return found;
}

uint32_t owners__share(const struct owners *owners, uint32_t number)
{
	uint32_t guaranteed = owners__guaranteed(owners, KERNEL_SHARE_ALL, false);
	uint32_t lent = owners->active ? (KERNEL_SHARE_ALL - guaranteed) / (uint32_t)owners->active : KERNEL_SHARE_ALL;

	return (lent > guaranteed ? lent : guaranteed) >> owners->of[number].level;
}

void owners__note(struct owners *owners, uint32_t number, double ran_ns, double passed_ns)
{
	struct owner *owner = &owners->of[number];

	if (passed_ns <= 0)
		return;
	owner->rate += (1 - exp(-passed_ns / SMOOTH_NS)) * ((ran_ns - owner->ran_ns) / passed_ns - owner->rate);
	owner->ran_ns = ran_ns;
}

uint32_t owners__adjust(struct owners *owners, double part, uint64_t now_ns)
{
	size_t active = owners->active > OWNERS_LEAST ? owners->active : OWNERS_LEAST;
	uint32_t most = KERNEL_SLOTS;
	double sum = 0;
	bool calm;

	for (uint32_t i = 0; i < KERNEL_SLOTS; i++) {
		const struct owner *owner = &owners->of[i];

		if (!owner->processes)
			continue;
		sum += owner->rate;
		if (owner->rate > part / (double)active &&
		    (most == KERNEL_SLOTS || owner->rate > owners->of[most].rate))
			most = i;
	}
	calm = owners->active < 2 || sum < part / 2;
	if (!calm || !owners->calm_ns)
		owners->calm_ns = now_ns;
	if (calm && now_ns >= owners->calm_ns + OWNERS_BACK_NS) {
		for (uint32_t i = 0; i < KERNEL_SLOTS; i++)
			owners->of[i].level -= owners->of[i].level > 0;
		owners->calm_ns = now_ns;
	}
	if (owners->active < 2 || sum <= part || most == KERNEL_SLOTS)
		return KERNEL_SLOTS;
	if (owners->of[most].level == LEVEL_MOST || now_ns < owners->of[most].since_ns + OWNERS_STEP_NS)
		return KERNEL_SLOTS;
	owners->of[most].level++;
	owners->of[most].since_ns = now_ns;
	return most;
}
