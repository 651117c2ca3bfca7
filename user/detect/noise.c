// SPDX-License-Identifier: GPL-2.0-or-later
#include "detect/noise.h"

#include "base/grow.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool noise__is_noise(uint32_t relation)
{
	return relation != VAPRO_OWN_THREAD && relation != VAPRO_SAME_JOB;
}

/* Returns whether "/..." at the end of a kernel thread's name is its number: of a CPU, or of an unbound worker. */
static bool is_number(const char *text)
{
	return isdigit((unsigned char)text[1]) || (text[1] == 'u' && isdigit((unsigned char)text[2]));
}

void noise__name(const char *comm, char name[NOISE_NAME])
{
	const char *slash = strrchr(comm, '/');

	snprintf(name, NOISE_NAME, "%s", comm);
	if (slash && slash > comm && slash - comm < NOISE_NAME && is_number(slash))
		name[slash - comm] = '\0';
}

static bool is(const struct noise_component *component, const char *name, uint32_t relation)
{
	return component->relation == relation && !strcmp(component->name, name);
}

static struct noise_component *find(struct noise *noise, const char *name, uint32_t relation)
{
	if (noise->recent < noise->count && is(&noise->components[noise->recent], name, relation))
		return &noise->components[noise->recent];
	for (size_t i = noise->count; i-- > 0;) {
		if (!is(&noise->components[i], name, relation))
			continue;
		noise->recent = i;
		return &noise->components[i];
	}
	return NULL;
}

static int compare_time(const void *a, const void *b)
{
	const struct noise_component *left = *(const struct noise_component *const *)a;
	const struct noise_component *right = *(const struct noise_component *const *)b;

	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	return strcmp(left->name, right->name);
}

static int index_parts(struct noise *noise)
{
	struct table *index = table__new();
	int error = index ? 0 : -ENOMEM;

	for (size_t i = 0; i < noise->part_count && !error; i++)
		error = table__put(index, noise->parts[i].component, noise->parts[i].thread, (uint32_t)i);
	if (error) {
		table__free(index);
		return error;
	}
	table__free(noise->index);
	noise->index = index;
	return 0;
}

/* Forgets the half of the components with the least time. Returns 0 or -ENOMEM. */
static int forget_half(struct noise *noise)
{
	struct noise_component *order[NOISE_NAMES];
	uint32_t places[NOISE_NAMES];
	bool stays[NOISE_NAMES] = {false};
	size_t left = 0;

	for (size_t i = 0; i < noise->count; i++)
		order[i] = &noise->components[i];
	qsort(order, noise->count, sizeof(*order), compare_time);
	for (size_t i = 0; i < noise->count; i++) {
		if (i < noise->count / 2)
			stays[order[i] - noise->components] = true;
		else
			noise->forgotten_ns += order[i]->ns;
	}
	for (size_t i = 0; i < noise->count; i++) {
		places[i] = (uint32_t)left;
		if (stays[i])
			noise->components[left++] = noise->components[i];
	}
	noise->count = left;
	left = 0;
	for (size_t i = 0; i < noise->part_count; i++) {
		struct noise_part part = noise->parts[i];

		if (!stays[part.component])
			continue;
		part.component = places[part.component];
		noise->parts[left++] = part;
	}
	noise->part_count = left;
	return index_parts(noise);
}

static int new_component(struct noise *noise, const struct noise_slices *slices, const char *name,
			 struct noise_component **component)
{
	int error = noise->count < NOISE_NAMES ? 0 : forget_half(noise);

	if (!error)
		error = grow(&noise->components, &noise->capacity, noise->count + 1, sizeof(*noise->components));
	if (error)
		return error;
	*component = &noise->components[noise->count++];
	**component = (struct noise_component){
	    .relation = slices->relation, .process = slices->process, .begin = slices->bin, .end = slices->bin + 1};
	memcpy((*component)->name, name, NOISE_NAME);
	return 0;
}

static int add_part(struct noise *noise, uint32_t component, const struct noise_slices *slices)
{
	uint32_t at;
	int error;

	if (!noise->index) {
		error = index_parts(noise);
		if (error)
			return error;
	}
	if (!table__get(noise->index, component, slices->thread, &at)) {
		if (noise->part_count == NOISE_PARTS) {
			noise->forgotten_ns += slices->ns;
			return 0;
		}
		error = grow(&noise->parts, &noise->part_capacity, noise->part_count + 1, sizeof(*noise->parts));
		at = (uint32_t)noise->part_count;
		if (!error)
			error = table__put(noise->index, component, slices->thread, at);
		if (error)
			return error;
		noise->parts[noise->part_count++] =
		    (struct noise_part){.component = component, .thread = slices->thread};
	}
	noise->parts[at].slices += slices->slices;
	noise->parts[at].ns += slices->ns;
	return 0;
}

int noise__add(struct noise *noise, const struct noise_slices *slices)
{
	struct noise_component *component;
	char name[NOISE_NAME] = "";
	int error = 0;

	if (!slices->slices || !noise__is_noise(slices->relation))
		return 0;
	noise__name(slices->name, name);
	component = find(noise, name, slices->relation);
	if (!component)
		error = new_component(noise, slices, name, &component);
	if (error)
		return error;
	component->slices += slices->slices;
	component->ns += slices->ns;
	if (component->process != slices->process)
		component->process = 0;
	if (slices->longest_us > component->longest_us)
		component->longest_us = slices->longest_us;
	if (slices->bin < component->begin)
		component->begin = slices->bin;
	if (slices->bin >= component->end)
		component->end = slices->bin + 1;
	component->final = false;
	return add_part(noise, (uint32_t)(component - noise->components), slices);
}

void noise__clear(struct noise *noise)
{
	free(noise->components);
	free(noise->parts);
	table__free(noise->index);
	*noise = (struct noise){0};
}

size_t noise__bytes(const struct noise *noise)
{
	return noise->capacity * sizeof(*noise->components) + noise->part_capacity * sizeof(*noise->parts) +
	       (noise->index ? table__bytes(noise->index) : 0);
}

static const struct archive_column noise_columns[] = {
    ARCHIVE_ONE(struct noise, last_id),
    ARCHIVE_ONE(struct noise, forgotten_ns),
};
static const struct archive_table noise_table = ARCHIVE_TABLE("noise", struct noise, noise_columns);

static const struct archive_column component_columns[] = {
    ARCHIVE_MANY(struct noise_component, name),
    ARCHIVE_ONE(struct noise_component, relation),
    ARCHIVE_ONE(struct noise_component, process),
    ARCHIVE_ONE(struct noise_component, slices),
    ARCHIVE_ONE(struct noise_component, ns),
    ARCHIVE_ONE(struct noise_component, longest_us),
    ARCHIVE_ONE(struct noise_component, begin),
    ARCHIVE_ONE(struct noise_component, end),
    ARCHIVE_ONE(struct noise_component, id),
    ARCHIVE_ONE(struct noise_component, revision),
    ARCHIVE_ONE(struct noise_component, emitted_slices),
    ARCHIVE_ONE(struct noise_component, emitted_ns),
    ARCHIVE_ONE(struct noise_component, final),
};
static const struct archive_table component_table =
    ARCHIVE_TABLE("noise components", struct noise_component, component_columns);

static const struct archive_column part_columns[] = {
    ARCHIVE_ONE(struct noise_part, component),
    ARCHIVE_ONE(struct noise_part, thread),
    ARCHIVE_ONE(struct noise_part, slices),
    ARCHIVE_ONE(struct noise_part, ns),
};
static const struct archive_table part_table = ARCHIVE_TABLE("noise parts", struct noise_part, part_columns);

void noise__archive(struct archive *archive, struct noise *noise, const struct stg *stg, uint32_t job)
{
	archive__record(archive, &noise_table, noise);
	archive__rows(archive, &component_table, &noise->components, &noise->count, &noise->capacity);
	archive__rows(archive, &part_table, &noise->parts, &noise->part_count, &noise->part_capacity);
	if (!archive__reads(archive) || archive__error(archive))
		return;
	archive__check(archive, noise->count <= NOISE_NAMES && noise->part_count <= NOISE_PARTS,
		       "a job has more noise than there may be");
	for (size_t i = 0; i < noise->count && !archive__error(archive); i++) {
		const struct noise_component *at = &noise->components[i];

		archive__check(archive,
			       at->relation < VAPRO_RELATIONS && at->slices && at->begin < at->end &&
				   at->end <= UINT64_MAX / VAPRO_BIN_NS && at->id <= noise->last_id,
			       "a noise component contradicts itself");
	}
	for (size_t i = 0; i < noise->part_count && !archive__error(archive); i++) {
		const struct noise_part *at = &noise->parts[i];

		archive__check(archive,
			       at->component < noise->count && at->slices && at->thread < stg__threads(stg) &&
				   stg__thread(stg, at->thread)->job == job,
			       "a noise component has an unknown thread");
	}
	if (!archive__error(archive) && noise->part_count && index_parts(noise))
		archive__fail(archive, -ENOMEM, "out of memory");
}
