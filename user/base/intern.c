/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/intern.h"

#include "base/grow.h"
#include "base/table.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct intern {
	char **texts; /* entry 0 is NULL itself; further ones that are NULL were dropped */
	size_t count, capacity;
	size_t free; /* no id below it is free, but for 0 */
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
	intern->count = intern->free = 1;
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

/* Adds a text under the lowest free id. */
static uint32_t add(struct intern *intern, const char *text, uint64_t hash, uint64_t index)
{
	size_t id;

	while (intern->free < intern->count && intern->texts[intern->free])
		intern->free++;
	id = intern->free;
	if (grow(&intern->texts, &intern->capacity, id + 1, sizeof(*intern->texts)))
		return INTERN_NONE;
	intern->texts[id] = strdup(text);
	if (!intern->texts[id])
		return INTERN_NONE;
	if (table__put(intern->ids, hash, index, (uint32_t)id)) {
		free(intern->texts[id]);
		intern->texts[id] = NULL;
		return INTERN_NONE;
	}
	intern->bytes += strlen(text) + 1;
	if (id == intern->count)
		intern->count++;
	return (uint32_t)id;
}

uint32_t intern__id(struct intern *intern, const char *text)
{
	uint64_t hash;
	uint32_t id;

	if (!text)
		return 0;
	hash = text__hash(text, strlen(text));
	/* Texts whose hashes collide are distinguished by a second key that counts up. */
	for (uint64_t index = 0;; index++) {
		if (!table__get(intern->ids, hash, index, &id))
			return add(intern, text, hash, index);
		if (!strcmp(intern->texts[id], text))
			return id;
	}
}

int intern__retain(struct intern *intern, const unsigned char *used)
{
	struct table *ids = table__new();

	for (uint32_t id = 1; ids && id < intern->count; id++) {
		uint64_t hash = used[id] ? text__hash(intern->texts[id], strlen(intern->texts[id])) : 0, index = 0;
		uint32_t other;

		if (!used[id])
			continue;
		while (table__get(ids, hash, index, &other))
			index++;
		if (table__put(ids, hash, index, id)) {
			table__free(ids);
			ids = NULL;
		}
	}
	if (!ids)
		return -ENOMEM;
	table__free(intern->ids);
	intern->ids = ids;
	for (size_t id = 1; id < intern->count; id++) {
		if (used[id] || !intern->texts[id])
			continue;
		intern->bytes -= strlen(intern->texts[id]) + 1;
		free(intern->texts[id]);
		intern->texts[id] = NULL;
	}
	while (intern->count > 1 && !intern->texts[intern->count - 1])
		intern->count--;
	intern->free = 1;
	grow_less(&intern->texts, &intern->capacity, intern->count, sizeof(*intern->texts));
	return 0;
}

int intern__skip(struct intern *intern)
{
	if (grow(&intern->texts, &intern->capacity, intern->count + 1, sizeof(*intern->texts)))
		return -ENOMEM;
	intern->texts[intern->count++] = NULL;
	intern->free = intern->count;
	return 0;
}

void intern__skipped(struct intern *intern)
{
	intern->free = 1;
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
