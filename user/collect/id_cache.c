// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/id_cache.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "collect/map_walk.h"
#include "probe/bpf/shared.h"

#define PATHS KERNEL_PATHS
#define CACHE KERNEL_STATES /* direct-mapped by id; a miss sweeps the kernel's map again */
#define SWEEP 512

struct path {
	uint32_t id;
	struct kernel_path_key key;
};

struct numbered {
	struct kernel_side *side;
	struct numbered_vertex *vertices;
	struct numbered_edge *edges;
	struct path *paths;
	struct sweeps {
		uint32_t vertices, edges, paths;
	} swept; /* ids below this were looked for in this drain */
};

struct numbered *numbered__new(struct kernel_side *side)
{
	struct numbered *numbered = calloc(1, sizeof(*numbered));

	if (!numbered)
		return NULL;
	numbered->side = side;
	numbered->vertices = calloc(CACHE, sizeof(*numbered->vertices));
	numbered->edges = calloc(CACHE, sizeof(*numbered->edges));
	numbered->paths = calloc(PATHS, sizeof(*numbered->paths));
	if (numbered->vertices && numbered->edges && numbered->paths)
		return numbered;
	numbered__free(numbered);
	return NULL;
}

void numbered__free(struct numbered *numbered)
{
	if (!numbered)
		return;
	free(numbered->vertices);
	free(numbered->edges);
	free(numbered->paths);
	free(numbered);
}

void numbered__begin(struct numbered *numbered)
{
	numbered->swept = (struct sweeps){0};
}

static void keep_vertex(struct numbered *numbered, const void *key, uint32_t id)
{
	struct numbered_vertex *vertex = &numbered->vertices[id & (CACHE - 1)];

	if (vertex->id == id && vertex->key.tgid)
		return;
	vertex->id = id;
	vertex->key = *(const struct kernel_vertex_key *)key;
	vertex->state = -1;
}

static void keep_edge(struct numbered *numbered, const void *key, uint32_t id)
{
	struct numbered_edge *edge = &numbered->edges[id & (CACHE - 1)];

	if (edge->id == id)
		return;
	edge->id = id;
	edge->key = *(const struct kernel_edge_key *)key;
	edge->state = -1;
}

static void keep_path(struct numbered *numbered, const void *key, uint32_t id)
{
	struct path *path = &numbered->paths[id & (PATHS - 1)];

	path->id = id;
	path->key = *(const struct kernel_path_key *)key;
}

/* Reads a whole kernel table of {key -> id} into the cache. */
static void sweep(struct numbered *numbered, int map, size_t key_size,
		  void (*keep)(struct numbered *numbered, const void *key, uint32_t id))
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
			keep(numbered, keys + i * key_size, ids[i]);
	}
	free(keys);
	free(ids);
}

/* A process, and where keys of a map have its tgid. */
struct owner {
	uint32_t tgid;
	size_t offset;
};

static bool belongs(void *ctx, const void *key, const void *value)
{
	const struct owner *owner = ctx;
	uint32_t tgid;

	(void)value;
	memcpy(&tgid, (const char *)key + owner->offset, sizeof(tgid));
	return tgid == owner->tgid;
}

/* An edge belongs to a purged process where its first vertex does. */
static bool edge_belongs(void *ctx, const void *key, const void *value)
{
	const struct numbered *numbered = ctx;
	const struct kernel_edge_key *edge = key;
	const struct numbered_vertex *vertex = &numbered->vertices[edge->from & (CACHE - 1)];

	(void)value;
	return vertex->id == edge->from && vertex->key.tgid == 0;
}

/* Takes a process's entries off the counts in use. */
static void give_back(struct kernel_side *side, struct kernel_counters *made)
{
	__atomic_fetch_sub(kernel_side__shared(side)->vertices_used, made->vertices, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->edges_used, made->edges, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->handles_used, made->handles, __ATOMIC_RELAXED);
	__atomic_fetch_sub(kernel_side__shared(side)->paths_used, made->paths, __ATOMIC_RELAXED);
	made->vertices = made->edges = made->handles = made->paths = 0;
}

void numbered__purge(struct numbered *numbered, pid_t pid, uint32_t slot)
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
	struct kernel_side *side = numbered->side;
	uint32_t tgid = (uint32_t)pid;

	/* an edge's process is its vertices', so all must be cached */
	sweep(numbered, kernel_side__map(side, KERNEL_MAP_VERTICES), sizeof(struct kernel_vertex_key), keep_vertex);
	for (uint32_t i = 0; i < CACHE; i++)
		if (numbered->vertices[i].key.tgid == tgid)
			numbered->vertices[i].key.tgid = 0;
	map_walk__delete(kernel_side__map(side, KERNEL_MAP_EDGES), edge_belongs, numbered);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		map_walk__delete(kernel_side__map(side, maps[i].map), belongs, &(struct owner){tgid, maps[i].offset});
	bpf_map_delete_elem(kernel_side__map(side, KERNEL_MAP_TRANSPARENT), &tgid);
	give_back(side, &kernel_side__shared(side)->counters[slot & (KERNEL_SLOTS - 1)]);
	(*kernel_side__shared(side)->states_epoch)++;
}

struct numbered_vertex *numbered__vertex(struct numbered *numbered, uint32_t id, int *status)
{
	struct numbered_vertex *vertex = &numbered->vertices[id & (CACHE - 1)];
	uint32_t place = id & (KERNEL_NEW_VERTICES - 1);
	struct kernel_vertex by_id;

	if (vertex->id == id)
		return vertex;
	/* a program may have new states all the time: a walk through the map of all states for each is too expensive */
	if (!bpf_map_lookup_elem(kernel_side__map(numbered->side, KERNEL_MAP_VERTICES_BY_ID), &place, &by_id) &&
	    by_id.id == id) {
		keep_vertex(numbered, &by_id.key, id);
		return vertex;
	}
	*status = numbered->swept.vertices ? -EAGAIN : -ENOENT;
	if (!numbered->swept.vertices) {
		numbered->swept.vertices = *kernel_side__shared(numbered->side)->next_vertex;
		sweep(numbered, kernel_side__map(numbered->side, KERNEL_MAP_VERTICES), sizeof(struct kernel_vertex_key),
		      keep_vertex);
	}
	return vertex->id == id ? vertex : NULL;
}

struct numbered_edge *numbered__edge(struct numbered *numbered, uint32_t id, int *status)
{
	struct numbered_edge *edge = &numbered->edges[id & (CACHE - 1)];
	uint32_t place = id & (KERNEL_STATES - 1);
	struct kernel_edge by_id;

	if (edge->id == id)
		return edge;
	if (!bpf_map_lookup_elem(kernel_side__map(numbered->side, KERNEL_MAP_EDGES_BY_ID), &place, &by_id) &&
	    by_id.id == id) {
		keep_edge(numbered, &by_id.key, id);
		return edge;
	}
	*status = numbered->swept.edges ? -EAGAIN : -ENOENT;
	if (!numbered->swept.edges) {
		numbered->swept.edges = *kernel_side__shared(numbered->side)->next_edge;
		sweep(numbered, kernel_side__map(numbered->side, KERNEL_MAP_EDGES), sizeof(struct kernel_edge_key),
		      keep_edge);
	}
	return edge->id == id ? edge : NULL;
}

const struct kernel_path_key *numbered__path(struct numbered *numbered, uint32_t id)
{
	struct path *path = &numbered->paths[id & (PATHS - 1)];

	if (path->id != id && id >= numbered->swept.paths) {
		numbered->swept.paths = *kernel_side__shared(numbered->side)->next_path;
		sweep(numbered, kernel_side__map(numbered->side, KERNEL_MAP_PATHS), sizeof(struct kernel_path_key),
		      keep_path);
	}
	return path->id == id ? &path->key : NULL;
}

const struct numbered_vertex *numbered__known_vertex(const struct numbered *numbered, uint32_t id)
{
	const struct numbered_vertex *vertex = &numbered->vertices[id & (CACHE - 1)];

	return vertex->id == id ? vertex : NULL;
}

const struct numbered_edge *numbered__known_edge(const struct numbered *numbered, uint32_t id)
{
	const struct numbered_edge *edge = &numbered->edges[id & (CACHE - 1)];

	return edge->id == id ? edge : NULL;
}
