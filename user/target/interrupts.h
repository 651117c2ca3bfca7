/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of each CPU's time that interrupts take, as the kernel counts it at its ticks (/proc/stat): coarse, but
 * known at all times.
 */
#ifndef VAPRO_TARGET_INTERRUPTS_H
#define VAPRO_TARGET_INTERRUPTS_H

#include <stdint.h>

struct interrupts;

/* path: "/proc/stat", or a stand-in. Returns NULL without memory; interrupts__free frees it. */
struct interrupts *interrupts__new(const char *path);
void interrupts__free(struct interrupts *interrupts);

/* Reads the times of all CPUs. Returns 0 or -errno. */
int interrupts__read(struct interrupts *interrupts);

/*
 * Returns the share of a CPU's time between the last two times it was read that hard and soft interrupts took, 0..1;
 * 0 where it is not known.
 */
double interrupts__share(const struct interrupts *interrupts, uint32_t cpu);

#endif
