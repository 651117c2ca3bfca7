// SPDX-License-Identifier: GPL-2.0-or-later
/* The functions and lines that are known, by place. */
#include "report/source_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "base/table.h"
#include "base/text.h"

#define TEXT_BYTES_MAX (32U << 20) /* of all texts; places beyond stay without names */
#define FRAMES_MAX 32		   /* of one place */

/* A place and its frames; their texts are interned. */
struct place {
	char *site;
	uint32_t next; /* place + 1 of the same hash; 0 none */
	struct source_frame *frames;
	uint32_t count;
};

struct source_names {
	struct place *places;
	size_t count, room;
	struct table *by_hash; /* hash -> first place */
	struct intern *texts;
	size_t bytes;
};

struct source_names *source_names__new(void)
{
	struct source_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->by_hash = table__new();
	names->texts = intern__new();
	if (names->by_hash && names->texts)
		return names;
	source_names__free(names);
	return NULL;
}

void source_names__free(struct source_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++) {
		free(names->places[i].site);
		free(names->places[i].frames);
	}
	free(names->places);
	table__free(names->by_hash);
	intern__free(names->texts);
	free(names);
}

static uint64_t hash_of(const char *text, size_t length)
{
	return table__hash(text__hash(text, length), 0);
}

static struct place *find(const struct source_names *names, const char *site, size_t length, uint64_t hash)
{
	uint32_t at;

	if (!table__get(names->by_hash, hash, 0, &at))
		return NULL;
	for (;;) {
		struct place *place = &names->places[at];

		if (!strncmp(place->site, site, length) && !place->site[length])
			return place;
		if (!place->next)
			return NULL;
		at = place->next - 1;
	}
}

static struct place *add_place(struct source_names *names, const char *site, uint64_t hash)
{
	struct place *place;
	uint32_t first;
	bool others = table__get(names->by_hash, hash, 0, &first);

	if (grow(&names->places, &names->room, names->count + 1, sizeof(*names->places)))
		return NULL;
	place = &names->places[names->count];
	*place = (struct place){.site = strdup(site), .next = others ? first + 1 : 0};
	if (!place->site || table__put(names->by_hash, hash, 0, (uint32_t)names->count)) {
		free(place->site);
		return NULL;
	}
	names->bytes += strlen(site) + 1;
	names->count++;
	return place;
}

/* Returns a copy that lives as long as names; NULL of NULL and when out of memory. */
static const char *text(struct source_names *names, const char *from)
{
	uint32_t id = from ? intern__id(names->texts, from) : INTERN_NONE;

	return id == INTERN_NONE ? NULL : intern__text(names->texts, id);
}

int source_names__add(struct source_names *names, const struct stream_name *name)
{
	uint64_t hash = hash_of(name->site, strlen(name->site));
	struct place *place = find(names, name->site, strlen(name->site), hash);
	struct source_frame *frames;

	if (name->depth >= FRAMES_MAX || source_names__bytes(names) > TEXT_BYTES_MAX)
		return 0;
	if (!place && !name->depth)
		place = add_place(names, name->site, hash);
	if (!place)
		return name->depth ? 0 : -ENOMEM;
	if (!name->depth)
		place->count = 0;
	if (place->count != name->depth)
		return 0;
	frames = reallocarray(place->frames, place->count + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	place->frames = frames;
	frames[place->count] = (struct source_frame){.function = text(names, name->function),
						     .offset = name->offset,
						     .file = text(names, name->file),
						     .line = name->line};
	if ((name->function && !frames[place->count].function) || (name->file && !frames[place->count].file))
		return -ENOMEM;
	names->bytes += sizeof(*frames);
	place->count++;
	return 0;
}

const struct source_frame *source_names__of(const struct source_names *names, const char *site, size_t length,
					    size_t *count)
{
	const struct place *place = names ? find(names, site, length, hash_of(site, length)) : NULL;

	*count = place ? place->count : 0;
	return *count ? place->frames : NULL;
}

size_t source_names__bytes(const struct source_names *names)
{
	return sizeof(*names) + names->bytes + names->room * sizeof(*names->places) + table__bytes(names->by_hash) +
	       intern__bytes(names->texts);
}

static const struct archive_column place_columns[] = {ARCHIVE_ONE(struct place, site)};
static const struct archive_table place_table = ARCHIVE_TABLE("sites", struct place, place_columns);

static const struct archive_column frame_columns[] = {
    ARCHIVE_ONE(struct source_frame, function),
    ARCHIVE_ONE(struct source_frame, offset),
    ARCHIVE_ONE(struct source_frame, file),
    ARCHIVE_ONE(struct source_frame, line),
};
static const struct archive_table frame_table = ARCHIVE_TABLE("frames", struct source_frame, frame_columns);

static void read_places(struct archive *archive, struct source_names *names, const struct place *places, size_t count)
{
	for (size_t i = 0; i < count && !archive__error(archive); i++) {
		const char *site = places[i].site;

		if (archive__check(archive, site && !find(names, site, strlen(site), hash_of(site, strlen(site))),
				   "a place has no name of its own") &&
		    !add_place(names, site, hash_of(site, strlen(site))))
			archive__fail(archive, -ENOMEM, "out of memory");
	}
}

void source_names__archive(struct archive *archive, struct source_names *names)
{
	size_t count = names->count, room = names->room;
	struct place *places = names->places;
	struct intern *sites = intern__new();
	uint64_t bytes = names->bytes;

	if (!sites) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < names->count; i++)
		intern__id(sites, names->places[i].site);
	archive__texts(archive, sites);
	archive__rows(archive, &place_table, &places, &count, &room);
	if (archive__reads(archive)) {
		read_places(archive, names, places, count);
		free(places);
	}
	archive__texts(archive, names->texts);
	for (size_t i = 0; i < names->count; i++) {
		struct place *place = &names->places[i];
		uint32_t capacity = place->count;

		archive__rows32(archive, &frame_table, &place->frames, &place->count, &capacity);
		archive__check(archive, place->count <= FRAMES_MAX, "a place has too many functions");
	}
	archive__number(archive, &bytes);
	names->bytes = bytes;
	intern__free(sites);
}
