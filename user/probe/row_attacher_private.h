/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What attaching (row_attacher.c), linking (row_links.c) and thinning (row_thinning.c) share and nobody else sees. */
#ifndef VAPRO_ROW_ATTACHER_PRIVATE_H
#define VAPRO_ROW_ATTACHER_PRIVATE_H

#include "probe/governor.h"
#include "probe/row_attacher.h"
#include "probe/row_sites.h"

struct row_link {
	struct kernel_link *open; /* NULL while closed */
	pid_t pid;		  /* 0 = all processes */
};

struct row_unit {
	enum row_group group;
	uint64_t offset; /* ROW_OUTLINED: of the function */
	struct row_sites *sites;
	struct row_link *links;
	size_t link_count, link_room;
	/* thinning */
	struct governor_account account;
	uint64_t closed_until_ns; /* 0 = open */
	uint64_t opened_ns;
	uint64_t calls, calls_at_open;
	double cost_ns, cost_at_open_ns; /* so far */
	unsigned int level;		 /* the next spell is 2^level seconds */
	unsigned int told_level;	 /* spells up to here were told */
};

struct row_image {
	struct attached_image public;
	char *path;
	char build_id[IMAGE_BUILD_ID_MAX];
	int file;
	unsigned int read; /* groups whose rows were looked for, one bit each */
	struct row_unit **units;
	size_t unit_count, unit_room;
	pid_t *mappers;
	size_t mapper_count, mapper_room;
	struct attached_skip *skips;
	size_t skip_room;
};

struct row_attacher {
	struct kernel_side *side;
	const struct costs *costs;
	double budget;
	struct governor random; /* only its seed */
	struct row_image **images;
	size_t count, room;
	bool paused;
	uint32_t cpus;
	struct kernel_function_counters *per_cpu;
	uint64_t looked_ns, looked_hits; /* when all units were measured last, and how many hits there were */
};

/* The public figures of an image, from its units. 0, or -ENOMEM. */
int row_image__describe(struct row_image *image);

/*
 * Links a unit's functions for a process (0: for all), without those that the kernel refuses. 0 with *link the
 * caller's to close, or -errno: -EOPNOTSUPP where nothing of it is left.
 */
int row_unit__link(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit, pid_t pid,
		   struct kernel_link **link);

/* Opens the links of a unit that are closed; closes them. */
int row_attacher__open(struct row_attacher *attacher, struct row_image *image, struct row_unit *unit);
void row_attacher__close(struct row_attacher *attacher, struct row_unit *unit);

/* Begins a unit's account anew. */
void row_attacher__reset(struct row_attacher *attacher, const struct row_image *image, struct row_unit *unit);

#endif
