/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only callsite.c and callsite_hops.c include this file. */
#ifndef VAPRO_CALLSITE_PRIVATE_H
#define VAPRO_CALLSITE_PRIVATE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "collect/callsite.h"

#include "probe/elf/frames.h"
#include "probe/elf/survey.h"

#define CACHED_SITES 1024 /* direct-mapped by address */

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
	uint32_t number; /* among transparent images; 0 = not known to the kernel side */
	bool transparent;
	struct hopped_site *sites;
	size_t site_count, site_room;
	bool refused; /* a frame of a runtime that cannot be left was reported */
};

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
	uint64_t read_ns;  /* CPU time of reading images to name call-sites */
	struct cached_site *cached[CACHED_SITES];
};

/* The image of a cached file, surveyed at first need, or NULL. */
struct image *cached_image__parsed(struct cached_image *cached);

/* Surveys the image where that was not tried. 0, or where that takes longer confine__is_later() with a sentence. */
int cached_image__read(struct cached_image *cached, char *err, size_t err_size);

bool cached_image__is_libc(const struct cached_image *cached);

/* Finds or adds the image of a mapping; NULL when out of memory. */
struct cached_image *image_cache__get(struct image_cache *cache, const struct process *process,
				      const struct process_mapping *mapping);

/* Drops the images beyond a bound that have been without users for longest. */
void image_cache__trim(struct image_cache *cache);

/* Ends the look-up of frames of an image that is no longer held. */
void cached_image__give_up(struct cached_image *cached);

/* Whether an image is the C library or the runtime of a language. */
bool cached_image__is_runtime(const struct cached_image *cached);

/* Whether an image belongs to an interpreter: it makes the calls of scripts. */
bool cached_image__is_interpreter(const struct cached_image *cached);

/* Hops in a newly surveyed image what is hopped in another copy of the image, or was in an earlier run. */
void cached_image__resume_hops(struct cached_image *cached);

/* Holds the image of a mapping for this process; NULL when out of memory. */
struct cached_image *callsites__hold(struct callsites *callsites, const struct process_mapping *mapping);

/* Finds a linked address of an image in the process. 0 or -ENOENT. */
int callsites__loaded_at(const struct callsites *callsites, const struct cached_image *cached, struct image *image,
			 uint64_t vaddr, uint64_t *address);

#endif
