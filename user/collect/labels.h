/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Labels of states as canonical text: `key=value` sorted by key. A vertex has those of its call; an
 * edge has, as assumed workload, those of the calls around it without peer, comm and file: the
 * partner does not change the work between two calls, size and operation do. `other` stands for all values
 * of an argument for which a process has too many states (KERNEL_DETAILED).
 */
#ifndef VAPRO_LABELS_H
#define VAPRO_LABELS_H

#include <stddef.h>
#include <vapro/bundle.h>
#include <vapro/bpf/abi.h>

#include "collect/callsites.h"

#define LABELS_MAX 512
#define LABELS_COMMS 256

/* Communicators of one process, numbered by first sight from 2 on (0 = WORLD, 1 = SELF). */
struct labels_process {
	uint16_t comms[LABELS_COMMS];
	uint16_t comm_count;
};

enum vapro_class labels__class(const struct kernel_vertex_key *key);

/* labels gets all, common those that count across ranks; both have size bytes. */
void labels__vertex(struct labels_process *process, const struct kernel_vertex_key *key, char *labels, char *common,
		    size_t size);
/* polls: polling calls were seen between from and to. */
void labels__edge(const struct kernel_vertex_key *from, const struct kernel_vertex_key *to, bool polls, char *labels,
		  char *common, size_t size);

/* Passes the numbers of a process's predefined handles to the kernel side. */
void labels__push_handles(struct callsites *callsites, int map, pid_t pid, enum process_mpi mpi);

#endif
