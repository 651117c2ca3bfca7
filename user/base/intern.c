/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"

#include "base/grow.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

struct intern {
	char **texts; /* entry 0 is NULL itself */
	size_t count, capacity;
	struct table *ids;
	size_t bytes; /* bytes of all texts */
};

struct intern *intern__new(void)
{
	struct intern *intern = calloc(1, sizeof(*intern));

	if (!intern)
		return NULL;
	intern->ids = table__new();
	if (!intern->ids || grow(&intern->texts, &intern->capacity, 1, sizeof(*intern->texts))) {
		intern__free(intern);
		return NULL;
	}
	intern->count = 1;
	return intern;
}

void intern__free(struct intern *intern)
{
	if (!intern)
		return;
	for (size_t i = 1; i < intern->count; i++)
		free(intern->texts[i]);
	free(intern->texts);
	table__free(intern->ids);
	free(intern);
}

uint32_t intern__id(struct intern *intern, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	uint32_t id;

	if (!text)
		return 0;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3ULL;
	/* Texts whose hashes collide are distinguished by a second key that counts up. */
	for (uint64_t index = 0;; index++) {
		if (!table__get(intern->ids, hash, index, &id)) {
			if (grow(&intern->texts, &intern->capacity, intern->count + 1, sizeof(*intern->texts)))
				return INTERN_NONE;
			intern->texts[intern->count] = strdup(text);
			if (!intern->texts[intern->count])
				return INTERN_NONE;
			if (table__put(intern->ids, hash, index, (uint32_t)intern->count)) {
				free(intern->texts[intern->count]);
				return INTERN_NONE;
			}
			intern->bytes += strlen(text) + 1;
			return (uint32_t)intern->count++;
		}
		if (!strcmp(intern->texts[id], text))
			return id;
	}
}

const char *intern__text(const struct intern *intern, uint32_t id)
{
	return id < intern->count ? intern->texts[id] : NULL;
}

size_t intern__count(const struct intern *intern)
{
	return intern->count;
}

size_t intern__bytes(const struct intern *intern)
{
	return sizeof(*intern) + intern->bytes + intern->capacity * sizeof(*intern->texts) + table__bytes(intern->ids);
}
