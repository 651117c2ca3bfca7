/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where threads run: the node's CPUs as /sys tells them, read once, and for each thread the CPU it ran on
 * last and its cgroup as /proc tells, and the CPU quota that it is under. What is not told is -1 or NULL.
 */
#ifndef VAPRO_PLACE_H
#define VAPRO_PLACE_H

#include <sys/types.h>
#include <vapro/bundle.h>

struct topology;

/*
 * sys: "/sys", cpuinfo: "/proc/cpuinfo", or what stands for them. Returns NULL when out of memory; a node without
 * either has no CPUs, or CPUs of unknown model.
 */
struct topology *topology__new(const char *sys, const char *cpuinfo);
void topology__free(struct topology *topology);

/*
 * Fills all but the thread's number. Texts belong to the topology and live until the next call. cpu
 * stays -1 where the thread may run on several: the last one means nothing then, its socket most often does.
 * Returns false where the thread is gone.
 */
bool topology__place(struct topology *topology, pid_t pid, pid_t tid, struct vapro_place *place);

/* What is known of one CPU; cgroup and limit stay NULL. */
void topology__cpu(const struct topology *topology, int32_t cpu, struct vapro_place *place);

#endif
