/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that are not tracked since as many processes of their image have links of their own as may have: to attach
 * to one only to refuse it costs a walk through the kernel side's tables. Each is tried again once there is room. Pure.
 */
#ifndef VAPRO_REFUSALS_H
#define VAPRO_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct refusal {
	pid_t pid;
	uint64_t start_time;	/* clock ticks since boot */
	uint64_t device, inode; /* of the image */
	bool spared;		/* while bystanders were spared */
	bool due;		/* set by refusals__retry() */
};

/* All zeros: none. In the order in which they were added. */
struct refusals {
	struct refusal *of;
	size_t count, room;
};

void refusals__clear(struct refusals *refusals);

/*
 * Adds a refusal, in place of an earlier one of its pid. Where memory runs out, the refusal is left out, and the
 * process is inspected again.
 */
void refusals__add(struct refusals *refusals, const struct refusal *refusal);

/* Returns the refusal of a pid, valid until the next change; NULL: there is none. */
const struct refusal *refusals__of(const struct refusals *refusals, pid_t pid);

/* Removes the refusal of a pid, if there is one: the process has ended, or became another program. */
void refusals__forget(struct refusals *refusals, pid_t pid);

/*
 * Removes the refusals whose processes may be tried again, and passes these to retry(), the oldest first: all that were
 * refused while bystanders were spared, where they are not spared any more (spares: they are), or else as many of an
 * image as room() returns. retry() changes no refusal.
 */
void refusals__retry(struct refusals *refusals, bool spares, uint32_t (*room)(void *ctx, const struct refusal *refusal),
		     void (*retry)(void *ctx, pid_t pid), void *ctx);

#endif
