/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads what the kernel side recorded of tasks that ran while threads waited for a CPU (struct kernel_interference). */
#ifndef VAPRO_INTERFERENCE_H
#define VAPRO_INTERFERENCE_H

#include "probe/bpf/kernel_side.h"

struct interference;

typedef void (*interference_call)(void *ctx, const struct kernel_interference_key *key,
				  const struct kernel_interference *value);

/* The kernel side outlives it. NULL without memory. */
struct interference *interference__new(struct kernel_side *side);
void interference__free(struct interference *interference);

/*
 * Passes the entries of a map of bins up to `last`, by bin, task and thread, and deletes them: entries of a finished
 * bin are not written any more, so nothing can be lost in between. now_bin: full number of the present bin.
 */
void interference__read(struct interference *interference, enum kernel_map map, uint64_t last, uint64_t now_bin,
			interference_call call, void *ctx);

/* Returns the full number of a bin at `near` or before, from its low half. */
uint64_t interference__bin(uint32_t low, uint64_t near);

#endif
