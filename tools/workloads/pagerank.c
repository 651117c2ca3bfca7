// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Personalised PageRank over a synthetic power-law graph, vertices in two blocks or more over the ranks: a
 * few queries, the same in each round. While few vertices have residual to pass on they push it to their
 * neighbours, through bins by destination; where many have, all vertices pull from theirs. The state of a
 * query's vertices lies in blocks that are opened when they are first reached. Bins and blocks are mapped
 * again each time, as allocators do with large buffers, so that memory touched for the first time shows
 * what instructions may not: how far the work leads. Logs the true work of each computation (path.h).
 *
 *   mpirun -n 2 pagerank --rounds 12 --log DIR
 */
#include <sys/mman.h>

#include "path.h"

#define VERTICES 12288
#define LINKS 6	 /* links of each new vertex, more likely to vertices with many links */
#define STEPS 16 /* most steps of a query */
#define DAMPING 0.85
#define LEAST 4e-5 /* residual per edge that is worth passing on */
#define DENSE 0.05 /* share of all edges from which on vertices pull */
#define BIN 32	   /* vertices that share a bin */
#define BLOCK 4	   /* vertices whose state is opened at once: a page */
#define RANKS_MOST 8
#define PAGE 4096

enum { PUSHED, EDGE, BIN_OPENED, LISTED, RECEIVED, ADDED, BLOCK_OPENED, PREPARED, PULLED, RELISTED };

static const uint32_t queries[] = {3, 700, 9001};

#define QUERIES (int)(sizeof(queries) / sizeof(queries[0]))

struct update {
	uint32_t vertex;
	uint32_t step;
	double value;
};

/* State of a vertex in one query. */
struct state {
	double residual, score;
	uint32_t queued; /* step that put the vertex on the list */
	double history[STEPS];
	char rest[PAGE / BLOCK - 8 * STEPS - 24];
};

static uint32_t *begin, *neighbour; /* each vertex's part of all edges */
static uint32_t mine, mine_end;	    /* own vertices */
static uint32_t *list, listed;	    /* own vertices with enough to pass on */
static bool stale;		    /* the list is not updated while vertices pull */
static double *share, *passed;
static struct update *out, *in;
static size_t bin_at[VERTICES / BIN + 1], bin_count[VERTICES / BIN], bins_size;
static struct state **blocks, *arena;
static size_t arena_used;
static struct path path;
static int ranks;

/* Builds the graph by preferential attachment: ends of earlier edges are drawn, so that hubs get most. */
static void build(void)
{
	size_t count = 0;
	uint32_t *ends = touched(sizeof(*ends) * 2 * VERTICES * LINKS), *filled;
	uint64_t random = 7;

	for (uint32_t v = 1; v < VERTICES; v++)
		for (int i = 0; i < LINKS; i++) {
			uint32_t other;

			random = lcg(random, 1);
			other = count && random >> 62 ? ends[(random >> 33) % count] : (uint32_t)(random >> 33) % v;
			ends[count++] = v;
			ends[count++] = other;
		}
	begin = touched(sizeof(*begin) * (VERTICES + 1));
	filled = touched(sizeof(*filled) * VERTICES);
	neighbour = touched(sizeof(*neighbour) * count);
	for (size_t i = 0; i < count; i++)
		begin[ends[i] + 1]++;
	for (uint32_t v = 0; v < VERTICES; v++)
		begin[v + 1] += begin[v];
	for (size_t i = 0; i < count; i++)
		neighbour[begin[ends[i]] + filled[ends[i]]++] = ends[i ^ 1];
	free(ends);
	free(filled);
	/* room for the largest content of a bin */
	for (int bin = 0; bin < VERTICES / BIN; bin++) {
		bin_at[bin] = bins_size / sizeof(struct update);
		bins_size += (begin[(bin + 1) * BIN] - begin[bin * BIN]) * sizeof(struct update);
		bins_size = (bins_size + PAGE - 1) / PAGE * PAGE;
	}
}

/* Maps untouched memory, in small pages as where memory is scarce. */
static void *fresh(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE)) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

static uint32_t degree(uint32_t v)
{
	return begin[v + 1] - begin[v];
}

static struct state *state_of(uint32_t v)
{
	struct state **block = &blocks[v / BLOCK];

	if (!*block) {
		*block = arena + arena_used;
		arena_used += BLOCK;
		path__ran(&path, BLOCK_OPENED, 1);
	}
	return *block + v % BLOCK;
}

/* Puts the list's residual into bins, and from bins into one update per vertex. counts: updates for each rank. */
static void push(uint32_t step, int *counts)
{
	struct update *bins = fresh(bins_size);
	size_t sent = 0, edges = 0;

	memset(bin_count, 0, sizeof(bin_count));
	for (uint32_t i = 0; i < listed; i++) {
		uint32_t v = list[i];
		struct state *state = state_of(v);
		double value = DAMPING * state->residual / degree(v);

		state->score += (1 - DAMPING) * state->residual;
		state->residual = 0;
		for (uint32_t edge = begin[v]; edge < begin[v + 1]; edge++) {
			uint32_t to = neighbour[edge], bin = to / BIN;

			if (!bin_count[bin])
				path__ran(&path, BIN_OPENED, 1);
			bins[bin_at[bin] + bin_count[bin]++] = (struct update){to, step, value};
		}
		edges += degree(v);
	}
	path__ran(&path, PUSHED, listed);
	path__ran(&path, EDGE, edges);
	memset(counts, 0, sizeof(*counts) * RANKS_MOST);
	for (uint32_t bin = 0; bin < VERTICES / BIN; bin++) {
		const struct update *from = bins + bin_at[bin];
		size_t first = sent;

		if (!bin_count[bin])
			continue;
		for (size_t i = 0; i < bin_count[bin]; i++) {
			if (share[from[i].vertex] == 0) {
				out[sent++] = from[i];
				path__ran(&path, LISTED, 1);
			}
			share[from[i].vertex] += from[i].value;
		}
		for (size_t i = first; i < sent; i++) {
			out[i].value = share[out[i].vertex];
			share[out[i].vertex] = 0;
		}
		counts[bin * BIN / (VERTICES / (uint32_t)ranks)] += (int)(sent - first);
	}
	munmap(bins, bins_size);
}

/* Adds received updates to residuals; vertices with enough form the next list. Returns the list's edges. */
static uint32_t take(uint32_t step, int count)
{
	uint32_t edges = 0;

	listed = 0;
	for (int i = 0; i < count; i++) {
		uint32_t v = in[i].vertex;
		struct state *state = state_of(v);

		state->residual += in[i].value;
		state->history[step] = state->residual;
		if (state->queued == step + 1 || state->residual <= LEAST * degree(v))
			continue;
		state->queued = step + 1;
		list[listed++] = v;
		edges += degree(v);
	}
	path__ran(&path, RECEIVED, (size_t)count);
	path__ran(&path, ADDED, listed);
	return edges;
}

static uint32_t sparse(uint32_t step)
{
	int counts[RANKS_MOST], coming[RANKS_MOST], from[RANKS_MOST] = {0}, to[RANKS_MOST] = {0}, all;

	if (stale) {
		listed = 0;
		for (uint32_t v = mine; v < mine_end; v++)
			if (state_of(v)->residual > LEAST * degree(v))
				list[listed++] = v;
		path__ran(&path, RELISTED, mine_end - mine);
		path__ran(&path, ADDED, listed);
		stale = false;
	}
	push(step, counts);
	for (int i = 0; i < ranks; i++)
		counts[i] *= (int)sizeof(struct update);
	path__call(&path);
	MPI_Alltoall(counts, 1, MPI_INT, coming, 1, MPI_INT, MPI_COMM_WORLD);
	all = coming[0];
	for (int i = 1; i < ranks; i++) {
		from[i] = from[i - 1] + counts[i - 1];
		to[i] = to[i - 1] + coming[i - 1];
		all += coming[i];
	}
	path__call(&path);
	MPI_Alltoallv(out, counts, from, MPI_BYTE, in, coming, to, MPI_BYTE, MPI_COMM_WORLD);
	return take(step, all / (int)sizeof(struct update));
}

static uint32_t dense(uint32_t step)
{
	uint32_t edges = 0, pulled = 0;

	for (uint32_t v = mine; v < mine_end; v++) {
		struct state *state = state_of(v);
		double residual = state->residual, rest = residual > LEAST * degree(v) ? 0 : residual;

		share[v - mine] = DAMPING * (residual - rest) / degree(v);
		state->score += (1 - DAMPING) * (residual - rest);
		state->residual = rest;
	}
	path__ran(&path, PREPARED, mine_end - mine);
	path__call(&path);
	MPI_Allgather(share, VERTICES / ranks, MPI_DOUBLE, passed, VERTICES / ranks, MPI_DOUBLE, MPI_COMM_WORLD);
	memset(share, 0, sizeof(*share) * (mine_end - mine));
	for (uint32_t v = mine; v < mine_end; v++) {
		struct state *state = state_of(v);
		double sum = state->residual;

		for (uint32_t edge = begin[v]; edge < begin[v + 1]; edge++)
			sum += passed[neighbour[edge]];
		state->residual = state->history[step] = sum;
		edges += sum > LEAST * degree(v) ? degree(v) : 0;
		pulled += degree(v);
	}
	path__ran(&path, PULLED, pulled);
	stale = true;
	return edges;
}

static double query(uint32_t from)
{
	bool own = from >= mine && from < mine_end;
	uint32_t edges = own ? degree(from) : 0, all;
	double score = 0;

	arena = fresh(sizeof(*arena) * (mine_end - mine + BLOCK));
	arena_used = 0;
	memset(blocks, 0, sizeof(*blocks) * VERTICES / BLOCK);
	listed = own;
	stale = false;
	list[0] = from;
	if (own)
		state_of(from)->residual = 1;
	for (uint32_t step = 0; step < STEPS; step++) {
		path__call(&path);
		MPI_Allreduce(&edges, &all, 1, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
		if (!all)
			break;
		edges = all > DENSE * begin[VERTICES] ? dense(step) : sparse(step);
	}
	if (own)
		score = state_of(from)->score;
	munmap(arena, sizeof(*arena) * (mine_end - mine + BLOCK));
	return score;
}

int main(int argc, char **argv)
{
	const char *directory;
	int rounds = 12, rank;
	double sum = 0;

	MPI_Init(&argc, &argv);
	path__options(argc, argv, &rounds, &directory);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks > RANKS_MOST || VERTICES / BIN % ranks)
		return 2;
	build();
	mine = (uint32_t)(VERTICES / ranks * rank);
	mine_end = mine + (uint32_t)(VERTICES / ranks);
	list = touched(sizeof(*list) * VERTICES);
	share = touched(sizeof(*share) * VERTICES);
	passed = touched(sizeof(*passed) * VERTICES);
	out = touched(sizeof(*out) * VERTICES);
	in = touched(sizeof(*in) * VERTICES * RANKS_MOST);
	blocks = touched(sizeof(*blocks) * VERTICES / BLOCK);
	path__open(&path, directory);
	path__call(&path);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < QUERIES; i++)
			sum += query(queries[i]);
	path__call(&path);
	MPI_Finalize();
	printf("{\"result\":%g}\n", sum);
	return path__close(&path);
}
