/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernels on which something vapro does is known to go wrong, as data: vaprod enforces it,
 * `vapro check` reports it. Distributions patch, so a range is a warning sign and not proof.
 */
#ifndef VAPRO_KERNEL_RANGE_H
#define VAPRO_KERNEL_RANGE_H

#include <stdbool.h>
#include <stddef.h>

enum kernel_trouble {
	KERNEL_SECCOMP_KILLS, /* a return probe is a system call that seccomp filters */
	KERNEL_NOP5_RED_ZONE, /* a probe on a nop5 inside a function writes over the red zone */
	KERNEL_THREAD_FILTER, /* uprobe_multi links for one process see one thread */
};

struct kernel_range {
	enum kernel_trouble trouble;
	int first_major, first_minor, last_major, last_minor;
	const char *what, *consequence;
};

extern const struct kernel_range kernel_ranges[];
extern const size_t kernel_range_count;

/* Whether a range holds a release such as "6.12.3-amd64"; NULL: of the running kernel. */
bool kernel_range__holds(const struct kernel_range *range, const char *release);

/* Says whether the running kernel has a known trouble. */
bool kernel_range__troubled(enum kernel_trouble trouble);

/* Returns whether a kernel, NULL for the running one, is older than a version; of unknown releases: false. */
bool kernel_range__before(const char *release, int major, int minor);

#endif
