/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys that the kernel side has numbered: its tables of vertices, edges and paths are swept for ids
 * not seen yet, which are cached here by id; entries of a process that has ended are purged from all
 * kernel maps. Ids grow without end: where two that are in use would have one place in a cache, the second has the
 * next.
 */
#ifndef VAPRO_ID_CACHE_H
#define VAPRO_ID_CACHE_H

#include "probe/bpf/kernel_side.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct numbered_vertex {
	uint32_t id;
	bool held; /* by the kernel side, when its table was swept last */
	struct kernel_vertex_key key;
	int64_t state; /* in the stream; -1 not announced yet */
};

struct numbered_edge {
	uint32_t id;
	struct kernel_edge_key key;
	int64_t state;
};

struct id_cache;

/* NULL when out of memory. */
struct id_cache *id_cache__new(struct kernel_side *side);
void id_cache__free(struct id_cache *cache);

/*
 * Begins a drain. A drain sweeps the tables at most once for ids not seen yet; paths again for ids that
 * were given since.
 */
void id_cache__begin(struct id_cache *cache);

/* NULL with -EAGAIN in *status where the id may be younger than this drain's sweep, else with -ENOENT. */
struct numbered_vertex *id_cache__vertex(struct id_cache *cache, uint32_t id, int *status);
struct numbered_edge *id_cache__edge(struct id_cache *cache, uint32_t id, int *status);

/* NULL where the kernel side no longer has the id. */
const struct kernel_path_key *id_cache__path(struct id_cache *cache, uint32_t id);

/* Looks in the cache, without a sweep; NULL. */
const struct numbered_vertex *id_cache__known_vertex(const struct id_cache *cache, uint32_t id);
const struct numbered_edge *id_cache__known_edge(const struct id_cache *cache, uint32_t id);

struct numbered_process {
	pid_t pid;
	uint32_t slot;
};

/* Removes the states of processes that go on: those that are met again get new numbers. */
void id_cache__give_back(struct id_cache *cache, const struct numbered_process *processes, size_t count);

/* Removes the entries of processes that ended from all maps of the kernel side, at most KERNEL_SLOTS. */
void id_cache__purge(struct id_cache *cache, const struct numbered_process *processes, size_t count);

#endif
