/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/grow.h"
#include "base/printable.h"
#include "base/table.h"
#include "diagnose/factors.h"
#include "diagnose/root_cause.h"

#define SHOWN_UNSEEN_S 0.4 /* two bins: borders are known no better */
#define UNSEEN_MOST_S 1e6
#define NOTHING_S 1e-6 /* a region of less loss and waiting is not shown */

const char *regions__meaning(const struct region *region, const char *name)
{
	int node = factors__find(name);

	/* no slower workload: MPI polls until the others arrive */
	if (region->class && !strcmp(region->class, vapro_class_name[VAPRO_COMMUNICATION]) &&
	    root_cause__polls(VAPRO_COMMUNICATION, name))
		return "busy-waiting inside MPI for another rank";
	return node < FACTOR_NODES ? factor_infos[node].meaning : NULL;
}

uint64_t regions__job_number(const char *job)
{
	char *harmless = printable(strdup(job ? job : ""));
	uint64_t number = 0;

	for (const char *at = harmless; at && *at; at++)
		number = table__hash(number, (unsigned char)*at);
	free(harmless);
	return number;
}

void regions__forget_places(struct regions *regions)
{
	table__free(regions->places);
	regions->places = NULL;
}

int regions__make_places(struct regions *regions)
{
	if (regions->places)
		return 0;
	regions->places = table__new();
	for (size_t i = 0; regions->places && i < regions->count; i++) {
		const struct region *region = &regions->items[i];

		if (table__put(regions->places, region->id, regions__job_number(region->job), (uint32_t)i))
			regions__forget_places(regions);
	}
	return regions->places ? 0 : -ENOMEM;
}

struct region *regions__get(struct regions *regions, const char *job, uint64_t id)
{
	uint64_t number = regions__job_number(job);
	struct region *region;
	uint32_t at;

	if (regions__make_places(regions))
		return NULL;
	if (table__get(regions->places, id, number, &at))
		return &regions->items[at];
	if (grow(&regions->items, &regions->capacity, regions->count + 1, sizeof(*region)))
		return NULL;
	region = &regions->items[regions->count];
	memset(region, 0, sizeof(*region));
	region->id = id;
	if (!regions__set_text(&region->job, job) ||
	    table__put(regions->places, id, number, (uint32_t)regions->count)) {
		free(region->job);
		return NULL;
	}
	regions->count++;
	return region;
}

static void free_hosts(struct region *region)
{
	for (uint32_t i = 0; i < region->host_count; i++)
		free(region->hosts[i]);
	free(region->hosts);
	region->hosts = NULL;
	region->host_count = 0;
}

static void free_parts(struct region *region)
{
	for (uint32_t i = 0; i < region->part_count; i++)
		free(region->parts[i].ranks);
	free(region->parts);
	region->parts = NULL;
	region->part_count = 0;
}

static void free_region(struct region *region)
{
	free_parts(region);
	free(region->job);
	free(region->class);
	free(region->who);
	free(region->site);
	free(region->inside);
	free(region->evidence);
	free(region->advice);
	free(region->verdict);
	free(region->cause);
	free(region->place);
	free(region->ranks);
	free_hosts(region);
}

void regions__free(struct regions *regions)
{
	for (size_t i = 0; i < regions->count; i++)
		free_region(&regions->items[i]);
	free(regions->items);
	regions__forget_places(regions);
	memset(regions, 0, sizeof(*regions));
}

void regions__clip(struct regions *regions, uint64_t begin_ns, uint64_t end_ns)
{
	size_t left = 0;

	for (size_t i = 0; i < regions->count; i++) {
		struct region *region = &regions->items[i];

		if (region->end_ns <= begin_ns || region->begin_ns >= end_ns)
			free_region(region);
		else
			regions->items[left++] = *region;
	}
	regions->count = left;
	regions__forget_places(regions);
}

char *regions__defuse(char *text)
{
	return printable(text);
}

bool regions__set_text(char **text, const char *value)
{
	char *copy = value ? regions__defuse(strdup(value)) : NULL;

	if (value && !copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

bool regions__set_ranks(struct region *region, const int32_t *ranks, uint32_t count)
{
	int32_t *copy = malloc((count + 1) * sizeof(*copy));

	if (!copy)
		return false;
	if (count)
		memcpy(copy, ranks, count * sizeof(*copy));
	free(region->ranks);
	region->ranks = copy;
	region->rank_count = count;
	return true;
}

static bool copy_cause(struct region_part *part, const struct result_cause *cause)
{
	snprintf(part->cause, sizeof(part->cause), "%s", cause->cause);
	regions__defuse(part->cause);
	part->explained = cause->explained;
	if (cause->culprit)
		snprintf(part->culprit, sizeof(part->culprit), "%.*s", (int)sizeof(cause->culprit->comm),
			 cause->culprit->comm);
	regions__defuse(part->culprit);
	part->culprit_seconds = cause->culprit_seconds;
	part->lost_seconds = cause->lost_seconds;
	part->caused_seconds = cause->caused_seconds;
	part->begin_ns = cause->begin_ns;
	part->end_ns = cause->end_ns;
	part->ranks = malloc((cause->rank_count + 1) * sizeof(*part->ranks));
	if (!part->ranks)
		return false;
	if (cause->rank_count)
		memcpy(part->ranks, cause->ranks, cause->rank_count * sizeof(*part->ranks));
	part->rank_count = cause->rank_count;
	return true;
}

bool regions__copy_causes(struct region *region, const struct result_cause *causes, uint32_t count)
{
	free_parts(region);
	region->parts = calloc(count + 1, sizeof(*region->parts));
	if (!region->parts)
		return false;
	while (region->part_count < count) {
		if (!copy_cause(&region->parts[region->part_count], &causes[region->part_count]))
			return false;
		region->part_count++;
	}
	return true;
}

bool regions__set_hosts(struct region *region, const char *const *hosts, uint32_t count)
{
	char **copy = calloc(count + 1, sizeof(*copy));

	if (!copy)
		return false;
	free_hosts(region);
	region->hosts = copy;
	for (; region->host_count < count; region->host_count++) {
		if (!regions__set_text(&copy[region->host_count], hosts[region->host_count]))
			return false;
	}
	return true;
}

const char *regions__unseen(const struct region *region, char *text, size_t size)
{
	double before_s = region->unseen_before_seconds, after_s = region->unseen_after_seconds;
	char before[40], after[40];

	/* records of a file may say anything */
	if (!(before_s >= SHOWN_UNSEEN_S && before_s < UNSEEN_MOST_S))
		before_s = 0;
	if (!(after_s >= SHOWN_UNSEEN_S && after_s < UNSEEN_MOST_S))
		after_s = 0;
	duration__text(before_s, before, sizeof(before));
	duration__text(after_s, after, sizeof(after));
	if (before_s > 0 && after_s > 0)
		snprintf(text, size, "%s before and %s after it: it may have begun earlier and ended later", before,
			 after);
	else if (before_s > 0)
		snprintf(text, size, "%s before it: it may have begun earlier", before);
	else if (after_s > 0)
		snprintf(text, size, "%s after it: it may have ended later", after);
	return before_s > 0 || after_s > 0 ? text : NULL;
}

bool regions__is_waiting(const struct region *region)
{
	return region->cause && (!strcmp(region->cause, CAUSE_LATE_PEER) || !strcmp(region->cause, CAUSE_BARRIER));
}

bool regions__sure(const struct region *region)
{
	return region->confirmed || region->alarm;
}

/* Orders sure regions first, then by cost. */
static int compare(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	if (regions__sure(x) != regions__sure(y))
		return regions__sure(x) ? -1 : 1;
	if (x->confirmed != y->confirmed)
		return x->confirmed ? -1 : 1;
	if (x->lost_seconds != y->lost_seconds)
		return x->lost_seconds > y->lost_seconds ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

void regions__sort(struct regions *regions)
{
	if (regions->count)
		qsort(regions->items, regions->count, sizeof(*regions->items), compare);
	regions__forget_places(regions);
}

bool regions__is_nothing(const struct region *region)
{
	return region->lost_seconds < NOTHING_S && region->caused_seconds < NOTHING_S;
}
