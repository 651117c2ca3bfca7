/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of call-sites, for their own files. */
#ifndef VAPRO_CALLSITES_PRIVATE_H
#define VAPRO_CALLSITES_PRIVATE_H

#include "collect/callsites.h"
#include "collect/image_cache_private.h"

#define CACHED_SITES 1024 /* direct-mapped by address */

struct cached_site {
	uint64_t address;
	struct callsite site;
	bool named, named_urgently; /* whether the name of the call-site was requested */
};

struct callsites {
	struct image_cache *cache;
	struct process *process;
	struct cached_image **held;
	size_t held_count, held_room;
	int transparent; /* the kernel side's table, -1 = none */
	const char *more_transparent;
	uint32_t *updates; /* the kernel side's update counter */
	uint32_t numbered; /* transparent images that were known when the tables were pushed last */
	uint64_t read_ns;  /* CPU time of reading images to name call-sites */
	struct cached_site *cached[CACHED_SITES];
};

/* Holds the image of a mapping for this process; NULL when out of memory. */
struct cached_image *callsites__hold(struct callsites *callsites, const struct process_mapping *mapping);

/* Finds a linked address of an image in the process. 0 or -ENOENT. */
int callsites__loaded_at(const struct callsites *callsites, const struct cached_image *cached, struct image *image,
			 uint64_t vaddr, uint64_t *address);

#endif
