// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void refusals__clear(struct refusals *refusals)
{
	free(refusals->of);
	*refusals = (struct refusals){0};
}

void refusals__add(struct refusals *refusals, const struct refusal *refusal)
{
	refusals__forget(refusals, refusal->pid);
	if (!grow(&refusals->of, &refusals->room, refusals->count + 1, sizeof(*refusals->of)))
		refusals->of[refusals->count++] = *refusal;
}

const struct refusal *refusals__of(const struct refusals *refusals, pid_t pid)
{
	for (size_t i = 0; i < refusals->count; i++)
		if (refusals->of[i].pid == pid)
			return &refusals->of[i];
	return NULL;
}

void refusals__forget(struct refusals *refusals, pid_t pid)
{
	const struct refusal *refusal = refusals__of(refusals, pid);
	size_t at = refusal ? (size_t)(refusal - refusals->of) : refusals->count;

	if (at == refusals->count)
		return;
	refusals->count--;
	memmove(&refusals->of[at], &refusals->of[at + 1], (refusals->count - at) * sizeof(*refusals->of));
}

/* Counts the older ones of an image that are due. */
static uint32_t due_before(const struct refusals *refusals, size_t at)
{
	const struct refusal *of = refusals->of;
	uint32_t count = 0;

	for (size_t i = 0; i < at; i++)
		count += of[i].due && of[i].device == of[at].device && of[i].inode == of[at].inode;
	return count;
}

void refusals__retry(struct refusals *refusals, bool spares, uint32_t (*room)(void *ctx, const struct refusal *refusal),
		     void (*retry)(void *ctx, pid_t pid), void *ctx)
{
	size_t left = 0;

	for (size_t i = 0; i < refusals->count; i++) {
		struct refusal *refusal = &refusals->of[i];
		uint32_t more = room(ctx, refusal);

		refusal->due = (refusal->spared && !spares) || (more && due_before(refusals, i) < more);
	}
	for (size_t i = 0; i < refusals->count; i++)
		if (refusals->of[i].due)
			retry(ctx, refusals->of[i].pid);
		else
			refusals->of[left++] = refusals->of[i];
	refusals->count = left;
}
