// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/image_cache_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "sandbox/user_file.h"
#include "target/foreign_mount.h"

#define IDLE_IMAGES 16 /* kept without users: jobs run the same programs again */

struct image_cache *image_cache__new(struct name_reader *names)
{
	struct image_cache *cache = calloc(1, sizeof(*cache));

	if (cache)
		cache->names = names;
	return cache;
}

static void cached_free(struct image_cache *cache, struct cached_image *cached)
{
	struct kernel_hop_key key = {.image = cached->number};
	const struct transparent_call *calls;
	size_t count = 0;

	cached_image__give_up(cached);
	calls = cached->number ? survey__calls(cached->survey, &count) : NULL;
	for (size_t i = 0; i < count; i++) {
		key.vaddr = calls[i].vaddr;
		bpf_map_delete_elem(cache->hops, &key);
	}
	if (cached->file >= 0)
		close(cached->file);
	survey__free(cached->survey);
	free(cached->sites);
	free(cached->trouble);
	free(cached->path);
	free(cached);
}

void image_cache__free(struct image_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		cached_free(cache, cache->images[i]);
	for (size_t i = 0; i < cache->hopped_count; i++)
		free(cache->hopped[i]);
	free(cache->hopped);
	free(cache->images);
	free(cache);
}

static void drop(struct image_cache *cache, struct cached_image *cached)
{
	size_t i = 0;

	while (cache->images[i] != cached)
		i++;
	cache->images[i] = cache->images[--cache->count];
	cached_free(cache, cached);
}

/* Opens the file of an image without users again. Returns whether it is the file that was read. */
static bool take_up(struct cached_image *cached, const char *path)
{
	const struct stat *before = &cached->at_end;
	struct stat now;

	if (cached->file < 0)
		cached->file = user_file__refer(path);
	return cached->file >= 0 && !user_file__stat(cached->file, &now) && now.st_dev == before->st_dev &&
	       now.st_ino == before->st_ino && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec &&
	       now.st_ctim.tv_sec == before->st_ctim.tv_sec && now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* What is wrong with an image that is not read at all. */
static char *foreign_trouble(const char *path)
{
	char text[512];

	snprintf(text, sizeof(text), "%.400s: it lies on a file system that a user mounted or serves", path);
	return strdup(text);
}

struct cached_image *image_cache__get(struct image_cache *cache, const struct process *process,
				      const struct process_mapping *mapping)
{
	struct cached_image *cached;
	char path[128];

	process__map_file(process, mapping, path, sizeof(path));
	for (size_t i = 0; i < cache->count; i++) {
		cached = cache->images[i];
		if (cached->device != mapping->device || cached->inode != mapping->inode)
			continue;
		if (cached->users || take_up(cached, path)) {
			if (!cached->tried)
				cached->owner = process->owner;
			return cached;
		}
		drop(cache, cached);
		break;
	}
	cached = calloc(1, sizeof(*cached));
	if (!cached)
		return NULL;
	cached->cache = cache;
	cached->device = mapping->device;
	cached->inode = mapping->inode;
	cached->owner = process->owner;
	cached->path = strdup(mapping->path);
	cached->tried = foreign_mount__has(process, mapping);
	cached->file = cached->tried ? -1 : user_file__refer(path);
	if (cached->tried)
		cached->trouble = foreign_trouble(mapping->path);
	if (!cached->path || grow(&cache->images, &cache->room, cache->count + 1, sizeof(*cache->images))) {
		cached_free(cache, cached);
		return NULL;
	}
	cache->images[cache->count++] = cached;
	return cached;
}

void image_cache__trim(struct image_cache *cache)
{
	struct cached_image *oldest;
	size_t idle;

	do {
		oldest = NULL;
		idle = 0;
		for (size_t i = 0; i < cache->count; i++) {
			struct cached_image *cached = cache->images[i];

			if (cached->users)
				continue;
			idle++;
			if (!oldest || cached->idle_since < oldest->idle_since)
				oldest = cached;
		}
		if (idle > IDLE_IMAGES)
			drop(cache, oldest);
	} while (idle > IDLE_IMAGES);
}

void image_cache__put(struct image_cache *cache, struct cached_image *cached)
{
	if (--cached->users)
		return;
	/* what the kernel side knows of an image is removed with its last user */
	if (!cached->survey || cached->number || cached->site_count || user_file__stat(cached->file, &cached->at_end)) {
		drop(cache, cached);
		return;
	}
	cached_image__give_up(cached);
	close(cached->file);
	cached->file = -1;
	cached->idle_since = ++cache->idle_count;
	image_cache__trim(cache);
}

bool cached_image__is_libc(const struct cached_image *cached)
{
	const char *base = strrchr(cached->path, '/');

	return base && !fnmatch("libc.so.6*", base + 1, 0);
}

int cached_image__read(struct cached_image *cached, char *err, size_t err_size)
{
	unsigned int parts =
	    SURVEY_NAMES | (cached_image__is_libc(cached) ? SURVEY_IO : 0) | (cached->transparent ? SURVEY_CALLS : 0);

	if (cached->tried || cached->file < 0)
		return 0;
	cached->survey = survey__query(cached->file, cached->owner, cached->path, parts, NULL, 0, err, err_size);
	if (!cached->survey && confine__is_later(-errno))
		return -errno;
	cached->tried = true;
	if (cached->survey) {
		cached->transparent |= survey__passes_on(cached->survey);
		cached_image__resume_hops(cached);
	} else {
		cached->trouble = strdup(err);
	}
	return 0;
}

struct image *cached_image__parsed(struct cached_image *cached)
{
	char later[512];

	cached_image__read(cached, later, sizeof(later));
	return cached->survey ? survey__image(cached->survey) : NULL;
}

bool image_cache__trouble(struct image_cache *cache, char *text, size_t size)
{
	for (size_t i = 0; i < cache->count; i++) {
		struct cached_image *cached = cache->images[i];

		if (!cached->trouble)
			continue;
		snprintf(text, size, "%s", cached->trouble);
		free(cached->trouble);
		cached->trouble = NULL;
		return true;
	}
	return false;
}
