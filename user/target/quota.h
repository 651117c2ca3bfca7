/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What limits a process: the quota of CPU time, the memory and the freezer of its cgroup, or of a cgroup around it.
 * Both versions of cgroups are read from files on each call.
 */
#ifndef VAPRO_QUOTA_H
#define VAPRO_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

struct quota {
	char cgroup[512]; /* owner of the quota: path below its hierarchy's root */
	char text[96];	  /* as in the cgroup's files: "cpu.max 50000 100000" */
};

/*
 * Where cgroups are mounted: version 2's hierarchy, and those of version 1 with the controllers of CPUs and of memory,
 * and with the freezer; empty where none is.
 */
struct quota_roots {
	char unified[512], cpu[512], memory[512], freezer[512];
};

/* mounts: "/proc/self/mounts", or a stand-in. */
void quota__read_roots(const char *mounts, struct quota_roots *roots);

/*
 * membership: "/proc/PID/cgroup", or a stand-in. The tightest quota is chosen, one that was ever used up before others.
 * Returns false where no quota exists, or none can be read.
 */
bool quota__find(const struct quota_roots *roots, const char *membership, struct quota *quota);

/*
 * The bytes of memory that all processes of the cgroup may use: the least limit on the way up, of either version
 * (memory.max and memory.high, memory.limit_in_bytes). Returns UINT64_MAX where none is set, or none can be read.
 */
uint64_t quota__memory(const struct quota_roots *roots, const char *membership);

/* Whether a process's cgroup, or one around it, is frozen. */
bool quota__frozen(const struct quota_roots *roots, const char *membership);

#endif
