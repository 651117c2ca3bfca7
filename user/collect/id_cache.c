// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/id_cache.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "collect/map_walk.h"
#include "probe/bpf/kernel_side.h"

#define PATHS KERNEL_PATHS
#define CACHE (2 * KERNEL_STATES) /* places by hash of the id; where one is in use, the next */
#define PROBES 64		  /* places that are looked at; where all are in use the first is taken */
#define SWEEP 512

struct path {
	uint32_t id;
	struct kernel_path_key key;
};

struct id_cache {
	struct kernel_side *side;
	struct numbered_vertex *vertices;
	struct numbered_edge *edges;
	struct path *paths;
	struct sweeps {
		uint32_t vertices, edges, paths;
	} swept; /* ids below this were looked for in this drain */
};

struct id_cache *id_cache__new(struct kernel_side *side)
{
	struct id_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->side = side;
	cache->vertices = calloc(CACHE, sizeof(*cache->vertices));
	cache->edges = calloc(CACHE, sizeof(*cache->edges));
	cache->paths = calloc(PATHS, sizeof(*cache->paths));
	if (cache->vertices && cache->edges && cache->paths)
		return cache;
	id_cache__free(cache);
	return NULL;
}

void id_cache__free(struct id_cache *cache)
{
	if (!cache)
		return;
	free(cache->vertices);
	free(cache->edges);
	free(cache->paths);
	free(cache);
}

void id_cache__begin(struct id_cache *cache)
{
	cache->swept = (struct sweeps){0};
}

/* Returns where the search for an id begins: consecutive ids are far apart, so that no long runs are in use. */
static uint32_t first_place(uint32_t id)
{
	_Static_assert(CACHE == 1U << 17, "the hash has so many bits");
	return id * 0x9e3779b1U >> (32 - 17);
}

/* Returns the place of an id, or the one that it may have. */
static struct numbered_vertex *vertex_place(const struct id_cache *cache, uint32_t id)
{
	uint32_t first = first_place(id);

	for (uint32_t i = first; i < first + PROBES; i++) {
		struct numbered_vertex *vertex = &cache->vertices[i & (CACHE - 1)];

		if (vertex->id == id || !vertex->id)
			return vertex;
	}
	return &cache->vertices[first];
}

static struct numbered_edge *edge_place(const struct id_cache *cache, uint32_t id)
{
	uint32_t first = first_place(id);

	for (uint32_t i = first; i < first + PROBES; i++) {
		struct numbered_edge *edge = &cache->edges[i & (CACHE - 1)];

		if (edge->id == id || !edge->id)
			return edge;
	}
	return &cache->edges[first];
}

static void keep_vertex(struct id_cache *cache, const void *key, uint32_t id)
{
	struct numbered_vertex *vertex = vertex_place(cache, id);

	vertex->held = true;
	if (vertex->id == id)
		return;
	vertex->id = id;
	vertex->key = *(const struct kernel_vertex_key *)key;
	vertex->state = -1;
}

static void keep_edge(struct id_cache *cache, const void *key, uint32_t id)
{
	struct numbered_edge *edge = edge_place(cache, id);

	if (edge->id == id)
		return;
	edge->id = id;
	edge->key = *(const struct kernel_edge_key *)key;
	edge->state = -1;
}

static void keep_path(struct id_cache *cache, const void *key, uint32_t id)
{
	struct path *path = &cache->paths[id & (PATHS - 1)];

	path->id = id;
	path->key = *(const struct kernel_path_key *)key;
}

/* Reads a kernel table of {key -> id} into the cache. Returns whether all of it was read. */
static bool sweep(struct id_cache *cache, int map, size_t key_size,
		  void (*keep)(struct id_cache *cache, const void *key, uint32_t id))
{
	char *keys = calloc(SWEEP, key_size);
	uint32_t *ids = calloc(SWEEP, sizeof(*ids)), count, in, out = 0;
	int status = 0;

	for (bool first = true; keys && ids && !status; first = false) {
		count = SWEEP;
		in = out;
		status = bpf_map_lookup_batch(map, first ? NULL : &in, &out, keys, ids, &count, NULL);
		if (status && errno != ENOENT)
			break;
		for (uint32_t i = 0; i < count; i++)
			keep(cache, keys + i * key_size, ids[i]);
	}
	status = keys && ids && status && errno == ENOENT;
	free(keys);
	free(ids);
	return status;
}

static int compare_tgids(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

/* Processes by tgid, ascending, and where keys of a map have it. */
struct purged {
	uint32_t tgids[KERNEL_SLOTS];
	size_t count, offset;
};

static void list_tgids(struct purged *purged, const struct numbered_process *processes, size_t count)
{
	purged->count = count;
	for (size_t i = 0; i < count; i++)
		purged->tgids[i] = (uint32_t)processes[i].pid;
	qsort(purged->tgids, count, sizeof(*purged->tgids), compare_tgids);
}

static bool is_in(const struct purged *purged, uint32_t tgid)
{
	return bsearch(&tgid, purged->tgids, purged->count, sizeof(tgid), compare_tgids);
}

static bool belongs(void *ctx, const void *key, const void *value)
{
	const struct purged *purged = ctx;
	uint32_t tgid;

	(void)value;
	memcpy(&tgid, (const char *)key + purged->offset, sizeof(tgid));
	return is_in(purged, tgid);
}

/* A vertex was purged where its number is known and its process is not. */
static bool is_purged(const struct id_cache *cache, uint32_t id)
{
	const struct numbered_vertex *vertex = vertex_place(cache, id);

	return vertex->id == id && vertex->key.tgid == 0;
}

/* An edge belongs to a purged process where its first vertex does. */
static bool edge_belongs(void *ctx, const void *key, const void *value)
{
	const struct kernel_edge_key *edge = key;

	(void)value;
	return is_purged(ctx, edge->from);
}

static bool vertex_belongs(void *ctx, const void *key, const void *value)
{
	(void)key;
	return is_purged(ctx, *(const uint32_t *)value);
}

/*
 * Marks the vertices of these processes; all that the kernel side has are known then. Others that it no longer has are
 * marked as well: of a process that ended, a fragment may be resolved by number after its states were purged.
 */
static void mark(struct id_cache *cache, const struct purged *purged)
{
	bool all;

	for (uint32_t i = 0; i < CACHE; i++)
		if (cache->vertices[i].id)
			cache->vertices[i].held = false;
	all = sweep(cache, kernel_side__map(cache->side, KERNEL_MAP_VERTICES), sizeof(struct kernel_vertex_key),
		    keep_vertex);
	for (uint32_t i = 0; i < CACHE; i++) {
		struct numbered_vertex *vertex = &cache->vertices[i];

		if (vertex->id && ((all && !vertex->held) || is_in(purged, vertex->key.tgid)))
			vertex->key.tgid = 0;
	}
}

/* Whether an edge's first vertex is known and not marked. */
static bool is_edge_held(const struct id_cache *cache, const struct numbered_edge *edge)
{
	const struct numbered_vertex *from = vertex_place(cache, edge->key.from);

	return from->id == edge->key.from && from->key.tgid;
}

/* Drops what was marked, and the edges between these. Without memory they stay, and their places are in use. */
static void drop_marked(struct id_cache *cache)
{
	struct numbered_vertex *vertices = cache->vertices;
	struct numbered_edge *edges = cache->edges;

	cache->edges = calloc(CACHE, sizeof(*edges));
	if (cache->edges) {
		for (uint32_t i = 0; i < CACHE; i++)
			if (edges[i].id && is_edge_held(cache, &edges[i]))
				*edge_place(cache, edges[i].id) = edges[i];
		free(edges);
	} else {
		cache->edges = edges;
	}
	cache->vertices = calloc(CACHE, sizeof(*vertices));
	if (!cache->vertices) {
		cache->vertices = vertices;
		return;
	}
	for (uint32_t i = 0; i < CACHE; i++)
		if (vertices[i].id && vertices[i].key.tgid)
			*vertex_place(cache, vertices[i].id) = vertices[i];
	free(vertices);
}

/* Subtracts a process's entries from the counts in use. */
static void give_back(struct kernel_side *side, struct kernel_counters *made)
{
	struct kernel_owner *owner = &kernel_side__shared(side)->owners[made->owner & (KERNEL_SLOTS - 1)];

	__atomic_fetch_sub(&owner->vertices, made->vertices, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&owner->edges, made->edges, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&owner->handles, made->handles, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&owner->paths, made->paths, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->vertices_used, made->vertices, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->edges_used, made->edges, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->handles_used, made->handles, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->paths_used, made->paths, __ATOMIC_RELAXED);
	made->vertices = made->edges = made->handles = made->paths = 0;
}

void id_cache__purge(struct id_cache *cache, const struct numbered_process *processes, size_t count)
{
	static const struct {
		enum kernel_map map;
		size_t offset;
	} maps[] = {
	    {KERNEL_MAP_VERTICES, offsetof(struct kernel_vertex_key, tgid)},
	    {KERNEL_MAP_HANDLES, offsetof(struct kernel_handle_key, tgid)},
	    {KERNEL_MAP_IO_SITES, 8}, /* io_site_key in bpf/maps.h: an address, then the tgid */
	    {KERNEL_MAP_OUTLINED, offsetof(struct kernel_outlined_key, tgid)},
	    {KERNEL_MAP_HOPPED, offsetof(struct kernel_hopped_key, tgid)},
	    {KERNEL_MAP_PATHS, offsetof(struct kernel_path_key, tgid)},
	    {KERNEL_MAP_REQUESTS, offsetof(struct kernel_request_key, tgid)},
	    {KERNEL_MAP_REQUEST_SLOTS, offsetof(struct kernel_request_key, tgid)},
	};
	struct kernel_side *side = cache->side;
	struct purged purged;

	if (!count)
		return;
	list_tgids(&purged, processes, count);
	/* an edge's process is its vertices', so all must be cached */
	mark(cache, &purged);
	map_walk__delete(kernel_side__map(side, KERNEL_MAP_EDGES), edge_belongs, cache);
	drop_marked(cache);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		purged.offset = maps[i].offset;
		map_walk__delete(kernel_side__map(side, maps[i].map), belongs, &purged);
	}
	for (size_t i = 0; i < count; i++) {
		bpf_map_delete_elem(kernel_side__map(side, KERNEL_MAP_TRANSPARENT), &purged.tgids[i]);
		give_back(side, &kernel_side__shared(side)->counters[processes[i].slot & (KERNEL_SLOTS - 1)]);
	}
	(*kernel_side__shared(side)->states_epoch)++;
}

void id_cache__give_back(struct id_cache *cache, const struct numbered_process *processes, size_t count)
{
	const struct kernel_shared *shared = kernel_side__shared(cache->side);
	struct kernel_side *side = cache->side;
	struct purged purged;

	list_tgids(&purged, processes, count);
	mark(cache, &purged);
	map_walk__delete(kernel_side__map(side, KERNEL_MAP_EDGES), edge_belongs, cache);
	map_walk__delete(kernel_side__map(side, KERNEL_MAP_VERTICES), vertex_belongs, cache);
	drop_marked(cache);
	for (size_t i = 0; i < count; i++) {
		struct kernel_counters *made = &shared->counters[processes[i].slot & (KERNEL_SLOTS - 1)];
		struct kernel_owner *owner = &shared->owners[made->owner & (KERNEL_SLOTS - 1)];
		uint32_t vertices = made->vertices, edges = made->edges;

		__atomic_fetch_sub(shared->vertices_used, vertices, __ATOMIC_RELAXED);
		__atomic_fetch_sub(shared->edges_used, edges, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&owner->vertices, vertices, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&owner->edges, edges, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&made->vertices, vertices, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&made->edges, edges, __ATOMIC_RELAXED);
	}
	(*shared->states_epoch)++;
}

struct numbered_vertex *id_cache__vertex(struct id_cache *cache, uint32_t id, int *status)
{
	struct numbered_vertex *vertex = vertex_place(cache, id);
	uint32_t place = id & (KERNEL_NEW_VERTICES - 1);
	struct kernel_vertex by_id;

	if (vertex->id == id)
		return vertex;
	/* a program may have new states all the time: a walk through the map of all states for each is too expensive */
	if (!bpf_map_lookup_elem(kernel_side__map(cache->side, KERNEL_MAP_VERTICES_BY_ID), &place, &by_id) &&
	    by_id.id == id) {
		keep_vertex(cache, &by_id.key, id);
		return vertex;
	}
	/* what a sweep has not found below the number that was next then has been removed */
	*status = cache->swept.vertices && id >= cache->swept.vertices ? -EAGAIN : -ENOENT;
	if (!cache->swept.vertices) {
		cache->swept.vertices = *kernel_side__shared(cache->side)->next_vertex;
		sweep(cache, kernel_side__map(cache->side, KERNEL_MAP_VERTICES), sizeof(struct kernel_vertex_key),
		      keep_vertex);
		vertex = vertex_place(cache, id);
	}
	return vertex->id == id ? vertex : NULL;
}

struct numbered_edge *id_cache__edge(struct id_cache *cache, uint32_t id, int *status)
{
	struct numbered_edge *edge = edge_place(cache, id);
	uint32_t place = id & (KERNEL_STATES - 1);
	struct kernel_edge by_id;

	if (edge->id == id)
		return edge;
	if (!bpf_map_lookup_elem(kernel_side__map(cache->side, KERNEL_MAP_EDGES_BY_ID), &place, &by_id) &&
	    by_id.id == id) {
		keep_edge(cache, &by_id.key, id);
		return edge;
	}
	*status = cache->swept.edges && id >= cache->swept.edges ? -EAGAIN : -ENOENT;
	if (!cache->swept.edges) {
		cache->swept.edges = *kernel_side__shared(cache->side)->next_edge;
		sweep(cache, kernel_side__map(cache->side, KERNEL_MAP_EDGES), sizeof(struct kernel_edge_key),
		      keep_edge);
		edge = edge_place(cache, id);
	}
	return edge->id == id ? edge : NULL;
}

const struct kernel_path_key *id_cache__path(struct id_cache *cache, uint32_t id)
{
	struct path *path = &cache->paths[id & (PATHS - 1)];

	if (path->id != id && id >= cache->swept.paths) {
		cache->swept.paths = *kernel_side__shared(cache->side)->next_path;
		sweep(cache, kernel_side__map(cache->side, KERNEL_MAP_PATHS), sizeof(struct kernel_path_key),
		      keep_path);
	}
	return path->id == id ? &path->key : NULL;
}

const struct numbered_vertex *id_cache__known_vertex(const struct id_cache *cache, uint32_t id)
{
	const struct numbered_vertex *vertex = vertex_place(cache, id);

	return vertex->id == id ? vertex : NULL;
}

const struct numbered_edge *id_cache__known_edge(const struct id_cache *cache, uint32_t id)
{
	const struct numbered_edge *edge = edge_place(cache, id);

	return edge->id == id ? edge : NULL;
}
