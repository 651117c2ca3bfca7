// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/stg_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vapro/bundle.h>

#include "base/grow.h"
#include "base/intern.h"
#include "target/source.h"

struct place {
	char *path; /* NULL where unknown */
	char build_id[48];
	uint64_t offset;
	char *line;
	bool looked_up;
};

struct stg_lines {
	struct intern *sites; /* ids from 1 */
	struct place *places;
	size_t count, room;
};

struct stg_lines *stg_lines__new(void)
{
	struct stg_lines *lines = calloc(1, sizeof(*lines));

	if (lines && !(lines->sites = intern__new())) {
		free(lines);
		return NULL;
	}
	return lines;
}

void stg_lines__free(struct stg_lines *lines)
{
	if (!lines)
		return;
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->places[i].path);
		free(lines->places[i].line);
	}
	free(lines->places);
	intern__free(lines->sites);
	free(lines);
}

/* Parses the parts behind the name, which may itself hold '@' and '+'. Returns false for a place in no file. */
static bool parse_one(const char *site, size_t length, struct place *place)
{
	const char *plus = memrchr(site, '+', length), *at = plus;
	char *end;

	while (at && at > site && *at != '@')
		at--;
	if (!at || *at != '@' || (size_t)(plus - at) > sizeof(place->build_id))
		return false;
	snprintf(place->build_id, sizeof(place->build_id), "%.*s", (int)(plus - at - 1), at + 1);
	place->offset = strtoull(plus + 1, &end, 16);
	return end != plus + 1 && end == site + length;
}

/* Parses a call-site, or the last of its callers in the same image. */
static bool parse(const char *site, struct place *place)
{
	const char *next = strstr(site, SITE_CALLED_BY);
	bool known = parse_one(site, next ? (size_t)(next - site) : strlen(site), place);

	while (known && next) {
		const char *caller = next + strlen(SITE_CALLED_BY);
		struct place other = {0};

		next = strstr(caller, SITE_CALLED_BY);
		if (parse_one(caller, next ? (size_t)(next - caller) : strlen(caller), &other) &&
		    !strcmp(other.build_id, place->build_id))
			place->offset = other.offset;
	}
	return known;
}

int stg_lines__add(struct stg_lines *lines, const char *site, const char *path)
{
	uint32_t id = intern__id(lines->sites, site);
	struct place *place;

	if (id == INTERN_NONE)
		return -ENOMEM;
	if (id <= lines->count)
		return 0;
	if (grow(&lines->places, &lines->room, lines->count + 1, sizeof(*lines->places)))
		return -ENOMEM;
	place = &lines->places[lines->count++];
	place->looked_up = !parse(site, place); /* in no file: nothing to look up */
	place->path = path && !place->looked_up ? strdup(path) : NULL;
	return path && !place->looked_up && !place->path ? -ENOMEM : 0;
}

static bool same_image(const struct place *a, const struct place *b)
{
	return a->path && b->path && !strcmp(a->path, b->path) && !strcmp(a->build_id, b->build_id);
}

static char *shown(const struct source_line *line)
{
	const char *slash, *base;
	char *text;

	if (!line->file)
		return NULL;
	slash = strrchr(line->file, '/');
	base = slash ? slash + 1 : line->file;
	return asprintf(&text, "%s:%u", base, line->line) < 0 ? NULL : text;
}

/* Looks up the first place and all others in its image with one request. */
static void query_image(struct stg_lines *lines, size_t first, FILE *complaints)
{
	const struct place *looked_up = &lines->places[first];
	uint64_t *offsets = calloc(lines->count, sizeof(*offsets));
	size_t *of = calloc(lines->count, sizeof(*of)), count = 0;
	struct source *source = NULL;
	char err[256] = "out of memory";

	for (size_t i = first; offsets && of && i < lines->count; i++) {
		if (!same_image(looked_up, &lines->places[i]))
			continue;
		lines->places[i].looked_up = true;
		of[count] = i;
		offsets[count++] = lines->places[i].offset;
	}
	if (count && !strcmp(looked_up->build_id, "0"))
		snprintf(err, sizeof(err), "it had no build-id: whether the file is the same is unknown");
	else if (count)
		source = source__query(looked_up->path, looked_up->build_id, offsets, count, err, sizeof(err));
	if (!source)
		fprintf(complaints, "vapro stg: %s: no lines of source: %s\n", looked_up->path, err);
	else if (!source__has_dwarf(source))
		fprintf(complaints, "vapro stg: %s: no lines of source: neither it nor a debug file has any\n",
			looked_up->path);
	for (size_t i = 0; source && i < count; i++)
		lines->places[of[i]].line = shown(&source__lines(source)[i]);
	lines->places[first].looked_up = true;
	source__free(source);
	free(offsets);
	free(of);
}

void stg_lines__query(struct stg_lines *lines, FILE *complaints)
{
	bool pathless = false;

	for (size_t i = 0; i < lines->count; i++) {
		if (lines->places[i].looked_up)
			continue;
		if (lines->places[i].path)
			query_image(lines, i, complaints);
		else if (!pathless)
			pathless = fputs("vapro stg: the capture does not say where some images lie: their lines of "
					 "source are not known\n",
					 complaints) >= 0;
	}
}

const char *stg_lines__of(struct stg_lines *lines, const char *site)
{
	uint32_t id = intern__id(lines->sites, site);

	return id && id <= lines->count && lines->places[id - 1].line ? lines->places[id - 1].line : "";
}
