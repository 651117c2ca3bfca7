// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/row_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "target/image.h"

#define MEMORY_MAX 8192 /* functions that are remembered; the oldest are forgotten */

static int by_share(const void *a, const void *b)
{
	double x = (*(const struct row_load *const *)a)->share;
	double y = (*(const struct row_load *const *)b)->share;

	return x < y ? -1 : x > y;
}

double row_plan__choose(struct row_load *loads, size_t count, double share)
{
	struct row_load **sorted = calloc(count + 1, sizeof(struct row_load *));
	double used = 0;

	for (size_t i = 0; i < count; i++)
		loads[i].open = false;
	if (!sorted)
		return 0; /* none is opened: the budget holds */
	for (size_t i = 0; i < count; i++)
		sorted[i] = &loads[i];
	qsort(sorted, count, sizeof(*sorted), by_share);
	for (size_t i = 0; i < count && used + sorted[i]->share <= share; i++) {
		used += sorted[i]->share;
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

static struct remembered *find(const struct row_memory *memory, const char *build_id, uint64_t offset)
{
	for (size_t i = 0; i < memory->count; i++)
		if (memory->functions[i].offset == offset && !strcmp(memory->functions[i].build_id, build_id))
			return &memory->functions[i];
	return NULL;
}

void row_memory__keep(struct row_memory *memory, const char *build_id, uint64_t offset,
		      const struct row_backoff *backoff)
{
	struct remembered *function;

	if (!*build_id || strlen(build_id) >= sizeof(function->build_id))
		return;
	function = find(memory, build_id, offset);
	if (!function && memory->count == MEMORY_MAX) {
		function = &memory->functions[memory->oldest];
		memory->oldest = (memory->oldest + 1) % MEMORY_MAX;
	} else if (!function) {
		if (grow(&memory->functions, &memory->room, memory->count + 1, sizeof(*memory->functions)))
			return; /* it is looked at sooner than it need be */
		function = &memory->functions[memory->count++];
	}
	*function = (struct remembered){.offset = offset, .backoff = *backoff};
	memcpy(function->build_id, build_id, strlen(build_id) + 1);
}

void row_memory__recall(const struct row_memory *memory, const char *build_id, uint64_t offset,
			struct row_backoff *backoff)
{
	const struct remembered *function = *build_id ? find(memory, build_id, offset) : NULL;

	*backoff = function ? function->backoff : (struct row_backoff){0};
}
