// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/row_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "target/image.h"

#define MEMORY_MAX 8192 /* functions that are remembered; the oldest are forgotten */

static int by_family(const void *a, const void *b)
{
	unsigned int x = (*(const struct row_load *const *)a)->family;
	unsigned int y = (*(const struct row_load *const *)b)->family;

	return x < y ? -1 : x > y;
}

static int by_family_share(const void *a, const void *b)
{
	double x = (*(const struct row_load *const *)a)->family_share;
	double y = (*(const struct row_load *const *)b)->family_share;

	return x < y ? -1 : x > y ? 1 : by_family(a, b);
}

/* The end of the family that begins at a place. */
static size_t family_end(struct row_load *const *sorted, size_t count, size_t begin)
{
	size_t end = begin + 1;

	while (end < count && sorted[begin]->family && sorted[end]->family == sorted[begin]->family)
		end++;
	return end;
}

static struct row_load **sorted_loads(struct row_load *loads, size_t count, int compare(const void *, const void *))
{
	struct row_load **sorted = calloc(count + 1, sizeof(struct row_load *));

	for (size_t i = 0; sorted && i < count; i++)
		sorted[i] = &loads[i];
	if (sorted)
		qsort(sorted, count, sizeof(*sorted), compare);
	return sorted;
}

void row_plan__sum_families(struct row_load *loads, size_t count)
{
	struct row_load **sorted = sorted_loads(loads, count, by_family);

	for (size_t i = 0; i < count; i++)
		loads[i].family_share = 1; /* without memory: none is cheap */
	for (size_t begin = 0, end; sorted && begin < count; begin = end) {
		double most = 0, sum = 0;

		end = family_end(sorted, count, begin);
		for (size_t i = begin; i < end; i++) {
			most = fmax(most, sorted[i]->share);
			sum += sorted[i]->own_share;
		}
		/* one alone may cost more where its share is a guess */
		for (size_t i = begin; i < end; i++)
			sorted[i]->family_share = fmax(most, sum);
	}
	free(sorted);
}

double row_plan__choose(struct row_load *loads, size_t count, double share)
{
	struct row_load **sorted;
	double used = 0;

	row_plan__sum_families(loads, count);
	for (size_t i = 0; i < count; i++)
		loads[i].open = false;
	sorted = sorted_loads(loads, count, by_family_share);
	if (!sorted)
		return 0; /* none is opened: the budget holds */
	for (size_t begin = 0, end; begin < count && used + sorted[begin]->family_share <= share; begin = end) {
		end = family_end(sorted, count, begin);
		used += sorted[begin]->family_share;
		for (size_t i = begin; i < end; i++)
			sorted[i]->open = true;
	}
	free(sorted);
	return used;
}

unsigned int row_plan__class(double calls_per_s)
{
	static const double at_least[ROW_CLASSES - 1] = {10, 100, 1000};
	unsigned int number = 0;

	while (number < ROW_CLASSES - 1 && calls_per_s >= at_least[number])
		number++;
	return number;
}

void row_backoff__refuse(struct row_backoff *backoff, uint64_t now_ns, double random)
{
	double seconds = ROW_BACKOFF_FIRST_S;

	for (unsigned int i = 0; i < backoff->level; i++)
		seconds *= 4;
	backoff->until_ns = now_ns + (uint64_t)(seconds * (1 + 0.25 * random) * 1e9);
	if (backoff->level + 1 < ROW_BACKOFF_LEVELS)
		backoff->level++;
}

bool row_backoff__is_over(const struct row_backoff *backoff, uint64_t now_ns)
{
	return backoff->until_ns && now_ns >= backoff->until_ns;
}

void row_backoff__opened(struct row_backoff *backoff)
{
	backoff->until_ns = 0;
}

struct remembered {
	char build_id[IMAGE_BUILD_ID_MAX];
	uid_t owner;
	uint64_t offset;
	struct row_backoff backoff;
};

struct row_memory {
	struct remembered *functions;
	size_t count, room, oldest;
};

struct row_memory *row_memory__new(void)
{
	return calloc(1, sizeof(struct row_memory));
}

void row_memory__free(struct row_memory *memory)
{
	if (memory)
		free(memory->functions);
	free(memory);
}

static struct remembered *find(const struct row_memory *memory, uid_t owner, const char *build_id, uint64_t offset)
{
	for (size_t i = 0; i < memory->count; i++)
		if (memory->functions[i].owner == owner && memory->functions[i].offset == offset &&
		    !strcmp(memory->functions[i].build_id, build_id))
			return &memory->functions[i];
	return NULL;
}

void row_memory__keep(struct row_memory *memory, uid_t owner, const char *build_id, uint64_t offset,
		      const struct row_backoff *backoff)
{
	struct remembered *function;

	if (!*build_id || strlen(build_id) >= sizeof(function->build_id))
		return;
	function = find(memory, owner, build_id, offset);
	if (!function && memory->count == MEMORY_MAX) {
		function = &memory->functions[memory->oldest];
		memory->oldest = (memory->oldest + 1) % MEMORY_MAX;
	} else if (!function) {
		if (grow(&memory->functions, &memory->room, memory->count + 1, sizeof(*memory->functions)))
			return; /* it is looked at sooner than it need be */
		function = &memory->functions[memory->count++];
	}
	*function = (struct remembered){.owner = owner, .offset = offset, .backoff = *backoff};
	memcpy(function->build_id, build_id, strlen(build_id) + 1);
}

void row_memory__recall(const struct row_memory *memory, uid_t owner, const char *build_id, uint64_t offset,
			struct row_backoff *backoff)
{
	const struct remembered *function = *build_id ? find(memory, owner, build_id, offset) : NULL;

	*backoff = function ? function->backoff : (struct row_backoff){0};
}
