/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPU quota that limits a process: that of its cgroup, or of a cgroup around it. Both versions of
 * cgroups are read from files on each call.
 */
#ifndef VAPRO_QUOTA_H
#define VAPRO_QUOTA_H

#include <stdbool.h>

struct quota {
	char cgroup[512]; /* owner of the quota: path below its hierarchy's root */
	char text[96];	  /* as in the cgroup's files: "cpu.max 50000 100000" */
};

/* Where cgroups are mounted: version 2's hierarchy, and version 1's with the CPU controller; empty where none is. */
struct quota_roots {
	char unified[512], cpu[512];
};

/* mounts: "/proc/self/mounts", or a stand-in. */
void quota__read_roots(const char *mounts, struct quota_roots *roots);

/*
 * membership: "/proc/PID/cgroup", or a stand-in. The tightest quota is chosen, one that was ever used up before others.
 * Returns false where no quota exists, or none can be read.
 */
bool quota__find(const struct quota_roots *roots, const char *membership, struct quota *quota);

#endif
