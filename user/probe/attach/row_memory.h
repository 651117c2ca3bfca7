/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that were too expensive, beyond the lives of their processes. */
#ifndef VAPRO_ROW_MEMORY_H
#define VAPRO_ROW_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

#include "probe/attach/row_backoff.h"

/*
 * Functions that were too expensive, remembered beyond their processes' lives: by build-id, which a user can give any
 * file, and file offset, and for the owner (struct process) in whose processes they were.
 */
struct row_memory;

/* NULL when out of memory. */
struct row_memory *row_memory__new(void);
void row_memory__free(struct row_memory *memory);

/* An image's functions without a build-id are not remembered. */
void row_memory__keep(struct row_memory *memory, uid_t owner, const char *build_id, uint64_t offset,
		      const struct row_backoff *backoff);

/* Zeroes *backoff where nothing is remembered. */
void row_memory__recall(const struct row_memory *memory, uid_t owner, const char *build_id, uint64_t offset,
			struct row_backoff *backoff);

#endif
