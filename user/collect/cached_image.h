/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An image of the cache (image_cache.h): its survey, and its call-sites that are hopped. Only for the files of the
 * cache. */
#ifndef VAPRO_CACHED_IMAGE_H
#define VAPRO_CACHED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "probe/elf/frames.h"
#include "probe/elf/survey.h"

struct image_cache;

/* A return address whose callers are (or could not be) distinguished. */
struct hopped_site {
	uint64_t offset; /* file offset */
	struct frame frame;
	bool known;  /* the frame was looked up */
	bool wanted; /* it is hopped as soon as its frame is known */
	bool on;
};

struct cached_image {
	struct image_cache *cache;
	uint64_t device, inode;
	char *path;
	int file;
	uid_t owner; /* of the process that mapped it last while it was not read */
	bool tried;
	struct survey *survey; /* requested at first need; NULL where unavailable */
	char *trouble;	       /* reason, until reported */
	struct stat at_end;    /* its file when the last user ended */
	uint64_t idle_since;   /* order in which images lost their last user */
	uint32_t users;
	uint32_t number;  /* among transparent images; 0 = not known to the kernel side */
	bool transparent; /* by its name or, once it is surveyed, by its symbols */
	struct hopped_site *sites;
	size_t site_count, site_room;
	bool refused; /* a frame of a runtime that cannot be left was reported */
};

/* The image of a cached file, surveyed at first need, or NULL. */
struct image *cached_image__parsed(struct cached_image *cached);

/* Surveys the image where that was not tried. 0, or where that takes longer confine__is_later() with a sentence. */
int cached_image__read(struct cached_image *cached, char *err, size_t err_size);

bool cached_image__is_libc(const struct cached_image *cached);

/* Ends the look-up of frames of an image that is no longer held. */
void cached_image__give_up(struct cached_image *cached);

/* Whether an image is the C library or the runtime of a language. */
bool cached_image__is_runtime(const struct cached_image *cached);

/* Whether an image belongs to an interpreter: it makes the calls of scripts. */
bool cached_image__is_interpreter(const struct cached_image *cached);

/* Hops in a newly surveyed image what is hopped in another copy of the image, or was in an earlier run. */
void cached_image__resume_hops(struct cached_image *cached);

#endif
