/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side has numbered: its tables of vertices, edges and paths are swept for ids that
 * were not seen yet, and kept here by id; what belongs to a process that has ended is purged from all
 * its maps. Caches are direct-mapped; ids wrap around them.
 */
#ifndef VAPRO_NUMBERED_H
#define VAPRO_NUMBERED_H

#include "probe/bpf/bpf_object.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct numbered_vertex {
	uint32_t id;
	struct kernel_vertex_key key;
	int64_t state; /* in the stream; -1 not told yet */
};

struct numbered_edge {
	uint32_t id;
	struct kernel_edge_key key;
	int64_t state;
};

struct numbered;

/* NULL when out of memory. */
struct numbered *numbered__new(struct kernel_side *side);
void numbered__free(struct numbered *numbered);

/*
 * Begins a drain. In each the tables are swept at most once for ids not seen yet; paths again for those
 * that were given since.
 */
void numbered__begin(struct numbered *numbered);

/* NULL with -EAGAIN in *status where it may be younger than this drain's sweep, with -ENOENT where not. */
struct numbered_vertex *numbered__vertex(struct numbered *numbered, uint32_t id, int *status);
struct numbered_edge *numbered__edge(struct numbered *numbered, uint32_t id, int *status);

/* NULL where the kernel side no longer knows it. */
const struct kernel_path_key *numbered__path(struct numbered *numbered, uint32_t id);

/* What is known already, without a sweep; NULL. */
const struct numbered_vertex *numbered__known_vertex(const struct numbered *numbered, uint32_t id);
const struct numbered_edge *numbered__known_edge(const struct numbered *numbered, uint32_t id);

/* Removes from all maps of the kernel side what belongs to a process, which had this slot. */
void numbered__purge(struct numbered *numbered, pid_t pid, uint32_t slot);

#endif
