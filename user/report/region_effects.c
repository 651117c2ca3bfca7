/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/region_effects.h"

#include "base/table.h"
#include "report/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

void region_effects__free(struct region_effects *effects)
{
	free(effects->first);
	free(effects->next);
	free(effects->is_effect);
}

int region_effects__find(struct region_effects *effects, const struct regions *regions)
{
	effects->first = malloc((regions->count + 1) * sizeof(*effects->first));
	effects->next = malloc((regions->count + 1) * sizeof(*effects->next));
	effects->is_effect = calloc(regions->count + 1, sizeof(*effects->is_effect));
	if (!effects->first || !effects->next || !effects->is_effect)
		return -ENOMEM;
	for (size_t i = 0; i < regions->count; i++)
		effects->first[i] = NONE;
	for (uint32_t i = (uint32_t)regions->count; i-- > 0;) {
		const struct region *region = &regions->items[i];
		uint32_t cause;

		if (!region->effect_of ||
		    !table__get(regions->places, region->effect_of, regions__job_number(region->job), &cause))
			continue;
		effects->is_effect[i] = true;
		effects->next[i] = effects->first[cause];
		effects->first[cause] = i;
	}
	return 0;
}

static bool has_rank(const struct region *region, int32_t rank)
{
	for (uint32_t i = 0; i < region->rank_count; i++)
		if (region->ranks[i] == rank)
			return true;
	return false;
}

/* Returns "rank 1", "ranks 0-2" of ascending ranks, malloc'ed; NULL when out of memory. */
static char *name_ranks(const int32_t *ranks, uint32_t count)
{
	char *list = json__ranks(ranks, count), *text = NULL;

	if (list && asprintf(&text, "rank%s %s", count > 1 ? "s" : "", list) < 0)
		text = NULL;
	free(list);
	return text;
}

/* Lists the ranks of an effect that are not of its cause, behind others. Returns how many there are with those. */
static uint32_t add_others(const struct region *cause, const struct region *effect, int32_t *ranks, uint32_t count)
{
	for (uint32_t i = 0; i < effect->rank_count; i++)
		if (!has_rank(cause, effect->ranks[i]))
			ranks[count++] = effect->ranks[i];
	return count;
}

const char *region_effects__waiters(const struct region *cause, const struct region *effect, char *text, size_t size)
{
	int32_t *ranks = calloc(effect->rank_count + 1, sizeof(*ranks));
	const char *who = effect->who ? effect->who : "?";
	uint32_t count = ranks ? add_others(cause, effect, ranks, 0) : 0;
	char *named;

	if (!count && cause->rank_count == 1 && effect->rank_count == 1 && cause->ranks[0] >= 0) {
		/* threads of one rank wait for each other, a rank does not wait for itself */
		who = effect->class && !strncmp(who, "thread", 6) ? who : NULL;
	} else if (!count && effect->rank_count && cause->ranks[0] >= 0) {
		snprintf(text, size, "%s, for %s,", who, effect->rank_count > 1 ? "each other" : "other ranks");
		who = text;
	} else if (count && count < effect->rank_count) {
		named = name_ranks(ranks, count);
		snprintf(text, size, "%s", named ? named : "ranks ?");
		free(named);
		who = text;
	}
	free(ranks);
	return who;
}

#define EACH_OTHER ", for each other," /* ranks of a region that waited for others of it */

/* A sum of waiting before its ranks are named. */
struct sum {
	char who[256]; /* "" and EACH_OTHER: the ranks say it */
	int32_t *ranks;
	uint32_t rank_count;
};

/* Returns the sum to which an effect is added: of all ranks by number together, so that none is named twice. */
static uint32_t sum_of(struct sum *sums, struct region_impact *impacts, uint32_t *count, const char *class,
		       const char *who)
{
	for (uint32_t i = 0; i < *count; i++) {
		if (!strcmp(impacts[i].class, class) && !strcmp(sums[i].who, who))
			return i;
	}
	if (*count == IMPACTS_MOST)
		return *count - 1;
	impacts[*count] = (struct region_impact){.class = class};
	sums[*count] = (struct sum){.ranks = NULL};
	snprintf(sums[*count].who, sizeof(sums[*count].who), "%s", who);
	return (*count)++;
}

/* Adds the ranks of an effect: those that are not of its cause or, where the cause is NULL, all. */
static void add_ranks(struct sum *sum, const struct region *cause, const struct region *effect)
{
	int32_t *ranks = realloc(sum->ranks, (sum->rank_count + effect->rank_count + 1) * sizeof(*ranks));

	if (!ranks)
		return;
	sum->ranks = ranks;
	if (cause) {
		sum->rank_count = add_others(cause, effect, ranks, sum->rank_count);
		return;
	}
	for (uint32_t i = 0; i < effect->rank_count; i++)
		ranks[sum->rank_count++] = effect->ranks[i];
}

static int compare_ranks(const void *a, const void *b)
{
	int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

	return (left > right) - (left < right);
}

/* Returns who a sum is about, malloc'ed; NULL when out of memory. */
static char *name_sum(struct sum *sum)
{
	char *ranks, *who = NULL;
	uint32_t unique = 0;

	if (!sum->rank_count)
		return strdup(*sum->who ? sum->who : "?");
	qsort(sum->ranks, sum->rank_count, sizeof(*sum->ranks), compare_ranks);
	for (uint32_t i = 0; i < sum->rank_count; i++) {
		if (!unique || sum->ranks[unique - 1] != sum->ranks[i])
			sum->ranks[unique++] = sum->ranks[i];
	}
	ranks = name_ranks(sum->ranks, unique);
	if (!*sum->who || !ranks)
		return ranks;
	if (asprintf(&who, "%s%s", ranks, unique > 1 ? sum->who : ", for other ranks,") < 0)
		who = NULL;
	free(ranks);
	return who;
}

/* Returns whether the ranks of an effect are known, and some of them are none of its cause. */
static bool is_numbered(const struct region *cause, const struct region *effect)
{
	for (uint32_t i = 0; i < effect->rank_count; i++) {
		if (effect->ranks[0] >= 0 && !has_rank(cause, effect->ranks[i]))
			return true;
	}
	return false;
}

/* Returns whether ranks of a region of several waited for others of it. */
static bool is_own(const struct region *cause, const struct region *effect)
{
	return cause->rank_count > 1 && effect->rank_count && effect->ranks[0] >= 0;
}

uint32_t region_effects__sum(const struct region_effects *effects, const struct regions *regions, size_t at,
			     struct region_impact *impacts)
{
	const struct region *cause = &regions->items[at];
	struct sum sums[IMPACTS_MOST];
	double seconds = 0, part;
	uint32_t count = 0;

	for (uint32_t i = effects->first[at]; i != NONE; i = effects->next[i]) {
		const struct region *effect = &regions->items[i];
		bool numbered = is_numbered(cause, effect), own = !numbered && is_own(cause, effect);
		char text[256];
		const char *who = region_effects__waiters(cause, effect, text, sizeof(text));
		uint32_t sum;

		if (!who || regions__is_nothing(effect))
			continue;
		sum = sum_of(sums, impacts, &count, effect->class ? effect->class : "?",
			     numbered ? ""
			     : own    ? EACH_OTHER
				      : who);
		if (numbered || own)
			add_ranks(&sums[sum], own ? NULL : cause, effect);
		impacts[sum].seconds += effect->lost_seconds;
		seconds += effect->lost_seconds;
	}
	part = seconds > 0 ? fmin(1, cause->caused_seconds / seconds) : 0;
	for (uint32_t i = 0; i < count; i++) {
		impacts[i].who = name_sum(&sums[i]);
		impacts[i].seconds *= part;
		free(sums[i].ranks);
	}
	return count;
}
