/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where threads run: the node's CPUs from /sys, read once, and for each thread the CPU it ran on last and
 * its cgroup from /proc, and the CPU quota that limits the thread. Unknown values are -1 or NULL.
 */
#ifndef VAPRO_PLACE_H
#define VAPRO_PLACE_H

#include <sys/types.h>
#include <vapro/bundle.h>

struct topology;

/*
 * sys: "/sys", cpuinfo: "/proc/cpuinfo", or stand-ins. Returns NULL when out of memory; a node without either has
 * no CPUs, or CPUs of unknown model.
 */
struct topology *topology__new(const char *sys, const char *cpuinfo);
void topology__free(struct topology *topology);

/*
 * Fills all but the thread's number. Texts belong to the topology and live until the next call. cpu
 * stays -1 where the thread may run on several: the last CPU means nothing then, but its socket mostly does.
 * Returns false where the thread is gone.
 */
bool topology__place(struct topology *topology, pid_t pid, pid_t tid, struct vapro_place *place);

/* What stops a process at the moment, by its files; VAPRO_STOPPED_UNKNOWN where it is not stopped. */
enum vapro_stopped_by topology__stopped_by(struct topology *topology, pid_t pid);

/* Fills the facts of one CPU; cgroup and limit stay NULL. */
void topology__cpu(const struct topology *topology, int32_t cpu, struct vapro_place *place);

#endif
