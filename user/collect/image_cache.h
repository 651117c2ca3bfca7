/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images by device and inode, shared by all processes: what is read of them to name call-sites (callsites.h), and which
 * of their call-sites are hopped.
 */
#ifndef VAPRO_IMAGE_CACHE_H
#define VAPRO_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/process.h"

struct image_cache;
struct name_reader;

/* Images by device and inode, shared by all processes. names outlives the cache; NULL: places are not named. */
struct image_cache *image_cache__new(struct name_reader *names);
void image_cache__free(struct image_cache *cache);

/*
 * Reads the images of a process that its attachment needs. transparent: as for callsites__push_transparent(). 0, also
 * where some cannot be read, or where that takes longer confine__is_later() with a sentence: to be called again.
 */
int image_cache__prepare(struct image_cache *cache, const struct process *process, const char *transparent, char *err,
			 size_t err_size);

/* Reports an image that could not be read, each once: its call-sites have no names. false: none. */
bool image_cache__trouble(struct image_cache *cache, char *text, size_t size);

/*
 * Hopping distinguishes calls of a call-site by their callers, for all processes that map its image. site is a text
 * of callsites__resolve(). Returns 0; -EAGAIN while its frame is looked up, which begins with the first request; or
 * -EPERM with a refusal: the end of a sentence whose subject is the call-site; then *top says whether the reason is
 * that nothing of the program calls it. callsites__push_hops() carries hops out for a process.
 */
int image_cache__hop(struct image_cache *cache, const char *site, const char **refusal, bool *top);
void image_cache__unhop(struct image_cache *cache, const char *site);

/*
 * Looks up wanted frames in the background, one image at a time and for at most 1 % of a CPU's time. Returns whether
 * callsites__push_hops() has anything new.
 */
bool image_cache__look_up(struct image_cache *cache, uint64_t now_ns);

/* Reports a runtime with a frame that cannot be hopped, each once. false: none. */
bool image_cache__hop_trouble(struct image_cache *cache, char *text, size_t size);

#endif
