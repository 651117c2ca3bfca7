/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples where single threads run, by a software clock that runs while the thread does (bpf/inside.h). The clocks are
 * descriptors of this process: its end, however it comes, stops them.
 */
#ifndef VAPRO_SAMPLER_H
#define VAPRO_SAMPLER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/bpf/kernel_side.h"

#define SAMPLER_THREADS 16 /* sampled at once */
#define SAMPLER_HZ 49	   /* no divisor or multiple of the kernel's tick */

struct sampler;

/* side outlives the sampler. NULL when out of memory. */
struct sampler *sampler__new(struct kernel_side *side);
void sampler__free(struct sampler *sampler);

/*
 * Samples these threads, SAMPLER_THREADS of them at most, and no others from now on; a thread that has ended is left
 * out. 0, or -errno where the kernel refuses: then no thread is sampled.
 */
int sampler__select(struct sampler *sampler, const pid_t *tids, size_t count);

/* Returns how many threads are sampled. */
size_t sampler__count(const struct sampler *sampler);

struct sampler_entry {
	struct kernel_inside_key key;
	struct kernel_inside inside;
};

/*
 * Takes all samples from the kernel side. Returns the number of entries, which live until the next call; *lost:
 * samples since the last call that found the table full.
 */
size_t sampler__drain(struct sampler *sampler, struct sampler_entry **entries, uint64_t *lost);

/* Opens a clock of a thread with so many ns between samples, with the program. Returns a descriptor or -errno. */
int sampler__open(const struct kernel_side *side, pid_t tid, uint64_t period_ns);

#endif
