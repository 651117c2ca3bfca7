// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/row_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "target/image.h"

#define MEMORY_MAX 8192 /* functions that are remembered; the oldest are forgotten */

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
