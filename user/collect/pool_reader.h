/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of merged bundles that the kernel side fills (bpf/maps.h), mapped as far as it is used:
 * mapped pages count as the daemon's memory. A finished bin's bundles are read out; the kernel side
 * starts a half of the pool again when all its bundles are.
 */
#ifndef VAPRO_POOL_READER_H
#define VAPRO_POOL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <vapro/bpf/abi.h>

struct pool_reader;
struct kernel_side;

/* Returns false for a bundle to offer again, which cannot be emitted yet. */
typedef bool (*merged_bundle)(void *ctx, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle);

/* bpf is loaded and outlives the result; bins before now_ns (UTC) are over. NULL with errno set. */
struct pool_reader *pool_reader__new(struct kernel_side *side, uint64_t now_ns);
void pool_reader__free(struct pool_reader *reader);

/* Hands over the bundles of bins up to last (low half of a number). 0 or -errno. */
int pool_reader__read(struct pool_reader *reader, uint32_t last, merged_bundle emit, void *ctx);

#endif
