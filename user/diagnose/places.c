// SPDX-License-Identifier: GPL-2.0-or-later
#include "diagnose/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"
#include "model/stg.h"

enum { PLACE_TEXTS = 6 }; /* texts of a place */

static void list_texts(struct vapro_place *place, const char **texts[PLACE_TEXTS])
{
	const char **all[PLACE_TEXTS] = {&place->core_type, &place->cpu_model,	  &place->cgroup,
					 &place->limit,	    &place->limit_cgroup, &place->cpus};

	memcpy(texts, all, sizeof(all));
}

static struct vapro_place unknown(uint32_t thread)
{
	return (struct vapro_place){.thread = thread, .cpu = -1, .socket = -1, .numa = -1};
}

int places__add(struct places *places, const struct vapro_place *place)
{
	struct vapro_place own = *place;
	const char **texts[PLACE_TEXTS];
	size_t before = places->count;

	if (!places->texts)
		places->texts = intern__new();
	if (!places->texts || grow(&places->items, &places->capacity, (size_t)place->thread + 1, sizeof(own)))
		return -ENOMEM;
	for (; before <= place->thread; before++)
		places->items[before] = unknown((uint32_t)before);
	if (places->count < before)
		places->count = before;
	/* A quota that is gone still explains what held the thread back before. */
	if (!own.limit) {
		own.limit = places->items[own.thread].limit;
		own.limit_cgroup = places->items[own.thread].limit_cgroup;
	}
	list_texts(&own, texts);
	for (size_t i = 0; i < PLACE_TEXTS; i++) {
		uint32_t id = intern__id(places->texts, *texts[i]);

		if (id == INTERN_NONE)
			return -ENOMEM;
		*texts[i] = intern__text(places->texts, id);
	}
	places->items[place->thread] = own;
	return 0;
}

int places__release(struct places *places, const struct stg *stg)
{
	unsigned char *used = places->texts ? calloc(intern__count(places->texts), 1) : NULL;
	const char **texts[PLACE_TEXTS];
	int error;

	if (!used)
		return places->texts ? -ENOMEM : 0;
	if (places->count > stg__threads(stg))
		places->count = stg__threads(stg);
	for (uint32_t i = 0; i < places->count; i++) {
		if (stg__thread(stg, i)->job == STG_NONE)
			places->items[i] = unknown(i);
		list_texts(&places->items[i], texts);
		for (size_t k = 0; k < PLACE_TEXTS; k++)
			used[intern__id(places->texts, *texts[k])] = 1;
	}
	grow_less(&places->items, &places->capacity, places->count, sizeof(*places->items));
	error = intern__retain(places->texts, used);
	free(used);
	return error;
}

void places__free(struct places *places)
{
	free(places->items);
	if (places->texts)
		intern__free(places->texts);
	*places = (struct places){0};
}

static const struct archive_column place_columns[] = {
    ARCHIVE_ONE(struct vapro_place, thread),	   ARCHIVE_ONE(struct vapro_place, cpu),
    ARCHIVE_ONE(struct vapro_place, socket),	   ARCHIVE_ONE(struct vapro_place, numa),
    ARCHIVE_ONE(struct vapro_place, core_type),	   ARCHIVE_ONE(struct vapro_place, cpu_model),
    ARCHIVE_ONE(struct vapro_place, cgroup),	   ARCHIVE_ONE(struct vapro_place, limit),
    ARCHIVE_ONE(struct vapro_place, limit_cgroup), ARCHIVE_ONE(struct vapro_place, cpus),
};

static const struct archive_table place_table = ARCHIVE_TABLE("places", struct vapro_place, place_columns);

void places__archive(struct archive *archive, struct places *places)
{
	uint64_t any = places->texts != NULL;

	archive__number(archive, &any);
	if (!any)
		return;
	if (!places->texts)
		places->texts = intern__new();
	if (!places->texts) {
		archive__fail(archive, -ENOMEM, "out of memory");
		return;
	}
	archive__texts(archive, places->texts);
	archive__rows(archive, &place_table, &places->items, &places->count, &places->capacity);
}
