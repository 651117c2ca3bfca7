/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the targets that map an image get links of their own: a link for all mappers of an image makes every one of
 * them trap, and kills those that execute its code by translation (ARCHITECTURE section 2.4). They do where others map
 * the image, and where they are few. The check inspects every process of the node, which costs milliseconds: the ranks
 * of a job, which come together, share one verdict. An image that only targets map remains so until another process
 * maps a file of that name, where mappings are reported (target/finder.h).
 */
#ifndef VAPRO_VERDICTS_H
#define VAPRO_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/selection.h"

#define VERDICTS 8 /* images: the oldest is forgotten */

/* What was found of an image. */
struct verdict {
	uint64_t device, inode;
	uint64_t at_ns; /* 0: nothing is known */
	uint64_t name;	/* hash of the file's name */
	size_t targets; /* that map it */
	bool shared;	/* others map it */
};

/* All zeros: nothing is known, and only images that others map have links of their own. */
struct verdicts {
	bool reported; /* every mapping that another process makes is reported by verdicts__mapped() */
	size_t few;    /* so many targets get links of their own in any case */
	struct verdict of[VERDICTS];
	size_t next;
};

/* Returns whether targets that map the image get links of their own. linked: targets that have such links now. */
bool verdicts__is_alone(struct verdicts *verdicts, const struct selection *selection,
			const struct process_mapping *mapping, uint32_t linked, uint64_t now_ns);

/* Returns whether others than targets map the image. */
bool verdicts__is_shared(struct verdicts *verdicts, const struct selection *selection,
			 const struct process_mapping *mapping, uint64_t now_ns);

/* Returns whether the mapping of a file by a process that is no target would change a verdict. */
bool verdicts__concern(const struct verdicts *verdicts, const char *path);

/* Has the next check of an image of this file inspect the processes: one that is no target mapped it. */
void verdicts__mapped(struct verdicts *verdicts, const char *path);

/* The same for all images: mappings were not reported. */
void verdicts__outdated(struct verdicts *verdicts);

#endif
