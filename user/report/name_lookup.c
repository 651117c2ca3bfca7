// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/name_lookup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vapro/bundle.h>

#include "base/grow.h"
#include "base/intern.h"
#include "target/debuginfod.h"
#include "target/source.h"

struct image {
	char *name; /* `module@build-id` of its call-sites */
	char *path; /* NULL unknown */
};

struct place {
	char *site;
	uint32_t image; /* index */
	uint64_t offset;
};

struct name_lookup {
	struct source_names *names;
	struct intern *sites, *image_names; /* ids from 1 */
	struct place *places;
	size_t count, room;
	struct image *images;
	size_t image_count, image_room;
};

struct name_lookup *name_lookup__new(struct source_names *names)
{
	struct name_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return NULL;
	lookup->names = names;
	lookup->sites = intern__new();
	lookup->image_names = intern__new();
	if (lookup->sites && lookup->image_names)
		return lookup;
	name_lookup__free(lookup);
	return NULL;
}

void name_lookup__free(struct name_lookup *lookup)
{
	if (!lookup)
		return;
	for (size_t i = 0; i < lookup->count; i++)
		free(lookup->places[i].site);
	for (size_t i = 0; i < lookup->image_count; i++) {
		free(lookup->images[i].name);
		free(lookup->images[i].path);
	}
	free(lookup->places);
	free(lookup->images);
	intern__free(lookup->sites);
	intern__free(lookup->image_names);
	free(lookup);
}

/* Finds or adds the image of a place; its path where that is known. Returns its index, or -ENOMEM. */
static int64_t image_of(struct name_lookup *lookup, const char *site, size_t length, const char *path)
{
	char *name = strndup(site, length);
	uint32_t id = name ? intern__id(lookup->image_names, name) : INTERN_NONE;
	struct image *image;

	if (id != INTERN_NONE && id > lookup->image_count) {
		if (grow(&lookup->images, &lookup->image_room, id, sizeof(*lookup->images)))
			id = INTERN_NONE;
		else
			lookup->images[lookup->image_count++].name = strdup(name);
	}
	free(name);
	if (id == INTERN_NONE || !lookup->images[id - 1].name)
		return -ENOMEM;
	image = &lookup->images[id - 1];
	if (!path || image->path)
		return (int64_t)id - 1;
	image->path = strdup(path);
	return image->path ? (int64_t)id - 1 : -ENOMEM;
}

/* Adds one place, `module@build-id+0xOFFSET`; a place in no file has nothing to look up. 0 or -ENOMEM. */
static int add_place(struct name_lookup *lookup, const char *site, size_t length, const char *path)
{
	const char *plus = memrchr(site, '+', length), *at = plus ? memrchr(site, '@', (size_t)(plus - site)) : NULL;
	char *copy, *end;
	uint32_t id;
	const struct source_frame *known;
	int64_t image;
	uint64_t offset;
	size_t count;

	if (!at)
		return 0;
	/* a name without a line may have been all that the daemon could read: it opens no file beside a user's program
	 */
	known = source_names__of(lookup->names, site, length, &count);
	if (known && known->line)
		return 0;
	offset = strtoull(plus + 1, &end, 16);
	if (end == plus + 1)
		return 0;
	length = (size_t)(end - site); /* a hash of callers may follow */
	image = image_of(lookup, site, (size_t)(plus - site), path);
	copy = image >= 0 ? strndup(site, length) : NULL;
	id = copy ? intern__id(lookup->sites, copy) : INTERN_NONE;
	if (id == INTERN_NONE || grow(&lookup->places, &lookup->room, lookup->count + 1, sizeof(*lookup->places))) {
		free(copy);
		return -ENOMEM;
	}
	if (id <= lookup->count) { /* not the first time */
		free(copy);
		return 0;
	}
	lookup->places[lookup->count++] = (struct place){copy, (uint32_t)image, offset};
	return 0;
}

int name_lookup__add(struct name_lookup *lookup, const char *site, const char *path)
{
	int status = 0;

	while (site && !status) {
		const char *next = strstr(site, SITE_CALLED_BY);

		status = add_place(lookup, site, next ? (size_t)(next - site) : strlen(site), path);
		site = next ? next + strlen(SITE_CALLED_BY) : NULL;
		path = NULL; /* a caller may lie in another image, whose path another call-site has */
	}
	return status;
}

static void keep(struct name_lookup *lookup, const struct place *place, const struct source_place *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct source_frame *frame = &found->frames[i];
		const struct stream_name name = {.site = place->site,
						 .depth = (uint32_t)i,
						 .function = frame->function,
						 .offset = frame->offset,
						 .file = frame->file,
						 .line = frame->line};

		source_names__add(lookup->names, &name);
	}
}

/* Looks up places in one file, some at a time. Returns the last response, whose properties are the file's, or NULL. */
static struct source *query_places(struct name_lookup *lookup, uint32_t image, const char *debug, char *err,
				   size_t err_size)
{
	const char *path = lookup->images[image].path, *build_id = strrchr(lookup->images[image].name, '@') + 1;
	uint64_t offsets[SOURCE_PLACES_MAX];
	size_t of[SOURCE_PLACES_MAX];
	const struct source_place *places;
	struct source *source = NULL;

	for (size_t next = 0, count; next < lookup->count;) {
		for (count = 0; next < lookup->count && count < SOURCE_PLACES_MAX; next++) {
			if (lookup->places[next].image != image)
				continue;
			of[count] = next;
			offsets[count++] = lookup->places[next].offset;
		}
		if (!count)
			break;
		source__free(source);
		source = source__query(path, build_id, debug, offsets, count, err, err_size);
		if (!source)
			return NULL;
		places = source__places(source, &count);
		for (size_t i = 0; i < count; i++)
			keep(lookup, &lookup->places[of[i]], &places[i]);
	}
	return source;
}

static void query_image(struct name_lookup *lookup, uint32_t image, const char *program, FILE *complaints)
{
	const char *path = lookup->images[image].path, *name = lookup->images[image].name;
	char err[256] = "", debug[SOURCE_FILE_MAX];
	struct source *source = NULL, *better;

	if (!strcmp(strrchr(name, '@'), "@0"))
		snprintf(err, sizeof(err), "it had no build-id: whether the file is the same is unknown");
	else
		source = query_places(lookup, image, NULL, err, sizeof(err));
	if (source && !source__has_dwarf(source) && debuginfod__find(source__build_id(source), debug, sizeof(debug))) {
		better = query_places(lookup, image, debug, err, sizeof(err));
		if (better) {
			source__free(source);
			source = better;
		}
	}
	if (!source)
		fprintf(complaints, "%s: %s: no lines of source: %s\n", program, path, err);
	else if (!source__has_dwarf(source))
		fprintf(complaints,
			"%s: %s: no lines of source: it has no debug information; compile it with -g, or install "
			"its debug package%s\n",
			program, path,
			source__has_symbols(source) ? "" : ": it is stripped, and its functions are not known either");
	source__free(source);
}

void name_lookup__query(struct name_lookup *lookup, const char *program, FILE *complaints)
{
	bool pathless = false;

	for (uint32_t i = 0; i < lookup->image_count; i++) {
		if (lookup->images[i].path)
			query_image(lookup, i, program, complaints);
		else if (!pathless)
			pathless =
			    fprintf(complaints,
				    "%s: the capture does not say where some images lie: their lines of source are "
				    "not known\n",
				    program) >= 0;
	}
}
