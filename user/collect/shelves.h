/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads' shelves, where the kernel side merges what a thread does again and again (struct
 * kernel_shelf): mapped memory, read when a bin has ended.
 */
#ifndef VAPRO_SHELVES_H
#define VAPRO_SHELVES_H

#include <vapro/kernel.h>

#include <stdbool.h>

struct vapro_bpf;
struct shelves;

/* Of a loaded object, which outlives them. NULL with errno set. */
struct shelves *shelves__new(struct vapro_bpf *bpf);
void shelves__free(struct shelves *shelves);

/* Returns false where a bundle is to be told later: it is at the next reading. */
typedef bool (*shelves_bundle)(void *ctx, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle);

/* Tells the bundles of bins that were not read yet, up to last (the low half of its number). 0 or -errno. */
int shelves__read(struct shelves *shelves, uint32_t last, shelves_bundle tell, void *ctx);

#endif
