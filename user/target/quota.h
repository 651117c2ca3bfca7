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

/*
 * mounts: "/proc/self/mounts", membership: "/proc/PID/cgroup", or stand-ins. The tightest quota is chosen, one that
 * was ever used up before others. Returns false where no quota exists, or none can be read.
 */
bool quota__find(const char *mounts, const char *membership, struct quota *quota);

#endif
