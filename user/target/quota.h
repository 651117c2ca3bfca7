/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The CPU quota that holds a process back: that of its cgroup, or of one around it. Both versions of
 * cgroups; read from files on each call.
 */
#ifndef VAPRO_QUOTA_H
#define VAPRO_QUOTA_H

#include <stdbool.h>

struct quota {
	char cgroup[512]; /* whose quota it is: path below its hierarchy's root */
	char text[96];	  /* as its files have it: "cpu.max 50000 100000" */
};

/*
 * mounts: "/proc/self/mounts", membership: "/proc/PID/cgroup", or what stands for them. Of several quotas the
 * tightest, and rather one that was ever used up. Returns false where there is none, or none that can be read.
 */
bool quota__find(const char *mounts, const char *membership, struct quota *quota);

#endif
