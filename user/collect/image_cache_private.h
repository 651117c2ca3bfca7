/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the cache of images, for its own files and those of call-sites. */
#ifndef VAPRO_IMAGE_CACHE_PRIVATE_H
#define VAPRO_IMAGE_CACHE_PRIVATE_H

#include "collect/cached_image.h"
#include "collect/image_cache.h"

/* The one look-up of frames that is under way. */
struct lookup {
	struct frames_lookup *frames; /* NULL: none is */
	struct cached_image *image;
	uint64_t offsets[FRAMES_MOST];
	size_t count;
	uint64_t rest_ns; /* time from which on the next one may begin */
};

struct image_cache {
	uint64_t idle_count;	   /* images that lost their last user so far */
	struct name_reader *names; /* or NULL */
	struct cached_image **images;
	size_t count, room;
	uint32_t numbers;
	int hops;      /* the kernel side's table */
	char **hopped; /* texts of call-sites, also of images that no process maps at present */
	size_t hopped_count, hopped_room;
	bool wanted;  /* frames are to be looked up */
	bool changed; /* a new image has hopped call-sites */
	struct lookup lookup;
};

/* Finds or adds the image of a mapping; NULL when out of memory. */
struct cached_image *image_cache__get(struct image_cache *cache, const struct process *process,
				      const struct process_mapping *mapping);

/* Drops the images beyond a bound that have been without users for longest. */
void image_cache__trim(struct image_cache *cache);

/* Notes that a process does not use an image any more: it stays for a while where it can be used again. */
void image_cache__put(struct image_cache *cache, struct cached_image *cached);

#endif
