/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/cells.h"

#include "base/grow.h"

#include <math.h>

/* The bits of a double sort as the numbers do: the upper bits are exponent and sub-bucket. */
enum { KEY_SHIFT = 44 };
enum { KEY_BITS = 19 };

_Static_assert(VAPRO_MAGNITUDES *KEY_BITS <= 128, "the keys of a cell must fit into a pair of 64 bits");

int cells__init(struct cells *cells, size_t max)
{
	*cells = (struct cells){.max = max ? max : 1, .by_key = table__new()};
	return cells->by_key ? 0 : -ENOMEM;
}

void cells__clear(struct cells *cells)
{
	free(cells->items);
	free(cells->where);
	table__free(cells->by_key);
	*cells = (struct cells){0};
}

double cells__norm(const double *vector)
{
	double sum = 0;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		sum += vector[i] * vector[i];
	return sqrt(sum);
}

static int compare_vectors(const double *a, const double *b)
{
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

int cells__compare_least(const struct workload_cell *a, const struct workload_cell *b)
{
	if (a->norm != b->norm)
		return a->norm < b->norm ? -1 : 1;
	return compare_vectors(a->least, b->least);
}

/* Clears a magnitude whose square vanishes; -0 is 0. */
static double usable(double magnitude)
{
	return magnitude < 1 / CELLS_MAGNITUDE_MAX ? 0 : magnitude;
}

static void set_key(uint32_t *key, const double *low, const double *high, unsigned widened)
{
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		double middle = usable((low[i] + high[i]) / 2);
		uint64_t bits;

		memcpy(&bits, &middle, sizeof(bits));
		key[i] = (uint32_t)(bits >> KEY_SHIFT) >> widened;
	}
}

static void pack(const uint32_t *key, uint64_t *a, uint64_t *b)
{
	unsigned __int128 all = 0;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		all = all << KEY_BITS | key[i];
	*a = (uint64_t)(all >> 64);
	*b = (uint64_t)all;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Merges in a cell of the same key. The merge is commutative and associative, but for names. */
static void absorb(struct workload_cell *into, const struct workload_cell *from)
{
	int order = cells__compare_least(from, into);

	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		into->low[i] = fmin(into->low[i], from->low[i]);
		into->high[i] = fmax(into->high[i], from->high[i]);
	}
	if (order < 0) {
		memcpy(into->least, from->least, sizeof(into->least));
		into->norm = from->norm;
		into->corner = from->corner;
	} else if (!order) {
		into->corner &= from->corner; /* one exact member is enough */
	}
	if (from->name && (!into->name || from->n > into->n || (from->n == into->n && from->name < into->name))) {
		into->name = from->name;
		into->cluster = from->cluster;
	}
	into->n = add_up(into->n, from->n);
	into->sum_ns = add_up(into->sum_ns, from->sum_ns);
	into->min_ns = from->min_ns < into->min_ns ? from->min_ns : into->min_ns;
}

/* Makes all cells twice as wide. Returns 0, or -ENOMEM without any change. */
static int widen(struct cells *cells)
{
	uint32_t *moved = calloc(cells->count + 1, sizeof(*moved));
	struct table *by_key = table__new();
	size_t count = 0;
	uint64_t a, b;

	/* Finds each cell's target before any cell moves. */
	for (size_t i = 0; moved && by_key && i < cells->count; i++) {
		uint32_t key[VAPRO_MAGNITUDES];

		for (int k = 0; k < VAPRO_MAGNITUDES; k++)
			key[k] = cells->items[i].key[k] >> 1;
		pack(key, &a, &b);
		if (table__get(by_key, a, b, &moved[i]))
			continue;
		moved[i] = (uint32_t)count++;
		if (table__put(by_key, a, b, moved[i])) {
			table__free(by_key);
			by_key = NULL;
		}
	}
	if (!moved || !by_key) {
		free(moved);
		table__free(by_key);
		return -ENOMEM;
	}
	count = 0;
	for (size_t i = 0; i < cells->count; i++) {
		struct workload_cell cell = cells->items[i];

		for (int k = 0; k < VAPRO_MAGNITUDES; k++)
			cell.key[k] >>= 1;
		if (moved[i] < count)
			absorb(&cells->items[moved[i]], &cell);
		else
			cells->items[count++] = cell;
	}
	for (size_t i = 0; i < cells->handle_count; i++)
		cells->where[i] = moved[cells->where[i]];
	table__free(cells->by_key);
	cells->by_key = by_key;
	cells->count = count;
	cells->widened++;
	free(moved);
	return 0;
}

/* Adds a cell whose key has the set's width, then widens to fit. */
static int put(struct cells *cells, const struct workload_cell *cell, uint32_t *handle)
{
	uint32_t at;
	uint64_t a, b;

	pack(cell->key, &a, &b);
	if (table__get(cells->by_key, a, b, &at)) {
		absorb(&cells->items[at], cell);
		*handle = cells->items[at].handle;
		return 0;
	}
	at = (uint32_t)cells->count;
	*handle = (uint32_t)cells->handle_count;
	if (grow(&cells->items, &cells->capacity, cells->count + 1, sizeof(*cells->items)) ||
	    grow(&cells->where, &cells->handle_capacity, cells->handle_count + 1, sizeof(*cells->where)) ||
	    table__put(cells->by_key, a, b, at))
		return -ENOMEM;
	cells->where[cells->handle_count++] = at;
	cells->items[cells->count] = *cell;
	cells->items[cells->count++].handle = *handle;
	while (cells->count > cells->max) {
		if (widen(cells))
			return -ENOMEM;
	}
	return 0;
}

int cells__add(struct cells *cells, const double *low, const double *high, uint64_t n, uint64_t sum_ns, uint64_t min_ns,
	       uint32_t *handle)
{
	struct workload_cell cell = {.n = n, .sum_ns = sum_ns, .min_ns = min_ns, .cluster = CELLS_NONE};
	uint32_t unused;
	int varies = 0;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (!(low[i] >= 0) || !(low[i] <= high[i]) || !(high[i] <= CELLS_MAGNITUDE_MAX))
			return -EINVAL;
		cell.low[i] = cell.least[i] = usable(low[i]);
		cell.high[i] = usable(high[i]);
		varies += cell.low[i] < cell.high[i];
	}
	cell.norm = cells__norm(cell.least);
	cell.corner = varies > 1;
	set_key(cell.key, cell.low, cell.high, cells->widened);
	return put(cells, &cell, handle ? handle : &unused);
}

uint32_t cells__find(const struct cells *cells, const double *vector)
{
	uint32_t key[VAPRO_MAGNITUDES], at;
	uint64_t a, b;

	set_key(key, vector, vector, cells->widened);
	pack(key, &a, &b);
	return table__get(cells->by_key, a, b, &at) ? cells->items[at].handle : CELLS_NONE;
}

int cells__bound(struct cells *cells, size_t max)
{
	struct workload_cell *fewer;
	size_t capacity = 8;

	cells->max = max ? max : 1;
	while (cells->count > cells->max) {
		if (widen(cells))
			return -ENOMEM;
	}
	while (capacity < cells->count)
		capacity *= 2;
	if (capacity >= cells->capacity)
		return 0;
	fewer = realloc(cells->items, capacity * sizeof(*cells->items));
	if (fewer) {
		cells->items = fewer;
		cells->capacity = capacity;
	}
	return 0;
}

size_t cells__bytes(const struct cells *cells)
{
	return cells->capacity * sizeof(*cells->items) + cells->handle_capacity * sizeof(*cells->where) +
	       table__bytes(cells->by_key);
}

static const struct archive_column cells_columns[] = {
    ARCHIVE_ONE(struct cells, max),
    ARCHIVE_ONE(struct cells, widened),
};
static const struct archive_table cells_table = ARCHIVE_TABLE("cells", struct cells, cells_columns);

static const struct archive_column cell_columns[] = {
    ARCHIVE_MANY(struct workload_cell, key),   ARCHIVE_MANY(struct workload_cell, low),
    ARCHIVE_MANY(struct workload_cell, high),  ARCHIVE_MANY(struct workload_cell, least),
    ARCHIVE_ONE(struct workload_cell, norm),   ARCHIVE_ONE(struct workload_cell, n),
    ARCHIVE_ONE(struct workload_cell, sum_ns), ARCHIVE_ONE(struct workload_cell, min_ns),
    ARCHIVE_ONE(struct workload_cell, handle), ARCHIVE_ONE(struct workload_cell, cluster),
    ARCHIVE_ONE(struct workload_cell, name),   ARCHIVE_ONE(struct workload_cell, corner),
};
static const struct archive_table cell_table = ARCHIVE_TABLE("cell", struct workload_cell, cell_columns);

static const struct archive_column handle_columns[] = {{"cell", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table handle_table = {"handles", handle_columns, 1, sizeof(uint32_t)};

/* What holds of each cell: its least member is in its box, and its norm is that of this member, but for rounding. */
static bool possible_cell(const struct workload_cell *cell)
{
	double norm = cells__norm(cell->least);

	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (cell->low[i] < 0 || cell->least[i] < cell->low[i] || cell->high[i] < cell->least[i] ||
		    cell->high[i] > CELLS_MAGNITUDE_MAX)
			return false;
	}
	return fabs(cell->norm - norm) <= 1e-12 * norm;
}

void cells__archive(struct archive *archive, struct cells *cells)
{
	archive__record(archive, &cells_table, cells);
	archive__rows(archive, &cell_table, &cells->items, &cells->count, &cells->capacity);
	archive__rows(archive, &handle_table, &cells->where, &cells->handle_count, &cells->handle_capacity);
	if (!archive__reads(archive))
		return;
	archive__check(archive, cells->max && cells->widened <= KEY_BITS, "cells are wider than possible");
	for (size_t i = 0; i < cells->handle_count; i++)
		archive__check(archive, cells->where[i] < cells->count, "a cell is missing");
	for (size_t i = 0; i < cells->count && !archive__error(archive); i++) {
		uint32_t other;
		uint64_t a, b;

		pack(cells->items[i].key, &a, &b);
		if (!archive__check(archive,
				    possible_cell(&cells->items[i]) && cells->items[i].handle < cells->handle_count &&
					!table__get(cells->by_key, a, b, &other),
				    "a cell contradicts others"))
			break;
		if (table__put(cells->by_key, a, b, (uint32_t)i))
			archive__fail(archive, -ENOMEM, "out of memory");
	}
}
