/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pool of merged bundles that the kernel side fills (bpf/maps.h), mapped as far as it is used: all
 * that is mapped counts as the daemon's memory. A finished bin's bundles are told, and when all of a
 * half's are, the kernel side begins it anew.
 */
#ifndef VAPRO_COLLECT_MERGED_H
#define VAPRO_COLLECT_MERGED_H

#include <stdbool.h>
#include <stdint.h>

#include <vapro/kernel.h>

struct merged;
struct vapro_bpf;

/* Returns false where the bundle cannot be told yet: it is offered again. */
typedef bool (*merged_bundle)(void *ctx, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle);

/* bpf is loaded and outlives it; bins before now (UTC ns) are taken as over. NULL with errno set. */
struct merged *merged__new(struct vapro_bpf *bpf, uint64_t now_ns);
void merged__free(struct merged *merged);

/* Tells every bundle of the bins up to last (low half of its number). 0 or -errno. */
int merged__read(struct merged *merged, uint32_t last, merged_bundle tell, void *ctx);

#endif
