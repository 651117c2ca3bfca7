/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modes of excess: stalls of one length among others. NoiseMiner (papers/001) takes each local maximum of bins of 10 us
 * for a component, so that scatter alone has dozens of them. A mode here is a peak of the density over time itself,
 * since over its logarithm each tail has a peak; both its valleys are below half of it and beyond chance, it holds
 * LEAST_FRAGMENTS stalls, and most of these lie close to its median. Below the excess with which its stalls would have
 * been seen nothing is known: what has no valley above that is a tail, and no mode.
 */
#ifndef VAPRO_DETECT_STALL_MODES_H
#define VAPRO_DETECT_STALL_MODES_H

#include "detect/stalls.h"

/* Finds the modes in buckets, the least excess first. Returns their number, at most STALL_MODES. */
size_t stall_modes__find(const struct stall_bucket *buckets, size_t count, struct stall_mode *modes);

/* Sums the stalls of the buckets [low, high]. */
void stall_modes__count(const struct stall_bucket *buckets, size_t count, uint32_t low, uint32_t high, uint64_t *n,
			uint64_t *ns);

#endif
