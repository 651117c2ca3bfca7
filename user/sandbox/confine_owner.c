// SPDX-License-Identifier: GPL-2.0-or-later
#include "sandbox/confine_owner.h"

#define NS_PER_MS 1000000

static struct owner {
	uid_t uid;
	uint64_t used;	     /* number of the last use; 0: a free entry */
	int64_t filled_ms;   /* when the times below were true */
	int64_t read_ns;     /* that its readers may still use */
	int64_t patience_ns; /* that the loop may still wait */
} owners[CONFINE_OWNERS];

static uint64_t uses;

static void fill(int64_t *left_ns, int64_t most_ms, int64_t passed_ms)
{
	*left_ns += passed_ms * most_ms * NS_PER_MS / CONFINE_OWNER_MINUTE_MS;
	if (*left_ns > most_ms * NS_PER_MS)
		*left_ns = most_ms * NS_PER_MS;
}

static struct owner *owner_of(uid_t uid, int64_t now_ms)
{
	struct owner *owner = &owners[0];
	int64_t passed_ms;

	for (int i = 0; i < CONFINE_OWNERS; i++) {
		if (owners[i].used && owners[i].uid == uid) {
			owner = &owners[i];
			break;
		}
		if (owners[i].used < owner->used)
			owner = &owners[i];
	}
	if (!owner->used || owner->uid != uid)
		*owner = (struct owner){.uid = uid,
					.filled_ms = now_ms,
					.read_ns = (int64_t)CONFINE_OWNER_READ_MS * NS_PER_MS,
					.patience_ns = (int64_t)CONFINE_OWNER_WAIT_MS * NS_PER_MS};
	owner->used = ++uses;
	passed_ms = now_ms - owner->filled_ms;
	if (passed_ms > 10 * CONFINE_OWNER_MINUTE_MS)
		passed_ms = 10 * CONFINE_OWNER_MINUTE_MS;
	fill(&owner->read_ns, CONFINE_OWNER_READ_MS, passed_ms);
	fill(&owner->patience_ns, CONFINE_OWNER_WAIT_MS, passed_ms);
	owner->filled_ms = now_ms;
	return owner;
}

bool confine_owner__may_read(uid_t owner, int64_t now_ms)
{
	return owner_of(owner, now_ms)->read_ns > 0;
}

void confine_owner__charge(uid_t owner, uint64_t cpu_ns, int64_t now_ms)
{
	owner_of(owner, now_ms)->read_ns -= (int64_t)cpu_ns;
}

unsigned int confine_owner__patience(uid_t owner, int64_t now_ms)
{
	int64_t left_ms = owner_of(owner, now_ms)->patience_ns / NS_PER_MS;

	if (left_ms > CONFINE_OWNER_WAIT_ONCE_MS)
		left_ms = CONFINE_OWNER_WAIT_ONCE_MS;
	return left_ms > 0 ? (unsigned int)left_ms : 0;
}

void confine_owner__waited(uid_t owner, uint64_t waited_ns, int64_t now_ms)
{
	owner_of(owner, now_ms)->patience_ns -= (int64_t)waited_ns;
}
