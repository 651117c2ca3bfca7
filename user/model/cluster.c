/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/cluster.h"

#include "model/grow.h"

#include <math.h>

#define CELL_BITS 8
/* Beyond this the neighbours of least weight would have to merge; a state so diverse has no fixed workload. */
#define CELLS_MAX 4096

struct cell {
	uint32_t index;
	double min, max, sum_ns, min_ns;
	uint64_t n;
};

struct clusters {
	struct cell *cells; /* ascending */
	size_t cell_count, cell_capacity;
	struct cluster *clusters; /* ascending */
	size_t count, capacity;
	bool dirty;
};

struct clusters *clusters__new(void)
{
	return calloc(1, sizeof(struct clusters));
}

void clusters__free(struct clusters *clusters)
{
	if (!clusters)
		return;
	free(clusters->cells);
	free(clusters->clusters);
	free(clusters);
}

static uint32_t cell_index(double norm)
{
	uint64_t v = norm < 1 ? 0 : (uint64_t)norm;
	uint32_t exponent;

	if (v < 1 << CELL_BITS)
		return (uint32_t)v;
	exponent = 63 - (uint32_t)__builtin_clzll(v);
	return ((exponent - CELL_BITS + 1) << CELL_BITS) +
	       (uint32_t)(v >> (exponent - CELL_BITS) & ((1 << CELL_BITS) - 1));
}

int clusters__add(struct clusters *clusters, double norm_min, double norm_max, uint64_t n, double sum_ns, double min_ns)
{
	uint32_t index = cell_index((norm_min + norm_max) / 2);
	size_t low = 0, high = clusters->cell_count;
	struct cell *cell;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (clusters->cells[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == clusters->cell_count || clusters->cells[low].index != index) {
		if (clusters->cell_count >= CELLS_MAX) {
			if (low == clusters->cell_count)
				low--;
		} else {
			if (grow(&clusters->cells, &clusters->cell_capacity, clusters->cell_count + 1,
				 sizeof(*clusters->cells)))
				return -ENOMEM;
			memmove(&clusters->cells[low + 1], &clusters->cells[low],
				(clusters->cell_count - low) * sizeof(*clusters->cells));
			clusters->cells[low] =
			    (struct cell){.index = index, .min = norm_min, .max = norm_max, .min_ns = min_ns};
			clusters->cell_count++;
		}
	}
	cell = &clusters->cells[low];
	cell->n += n;
	cell->sum_ns += sum_ns;
	cell->min = fmin(cell->min, norm_min);
	cell->max = fmax(cell->max, norm_max);
	cell->min_ns = fmin(cell->min_ns, min_ns);
	clusters->dirty = true;
	return 0;
}

int clusters__form(struct clusters *clusters, const struct vapro_config *config)
{
	struct cluster *open = NULL;

	if (!clusters->dirty)
		return 0;
	clusters->count = 0;
	for (size_t i = 0; i < clusters->cell_count; i++) {
		const struct cell *cell = &clusters->cells[i];

		if (!open || (cell->min + cell->max) / 2 > open->limit) {
			if (grow(&clusters->clusters, &clusters->capacity, clusters->count + 1,
				 sizeof(*clusters->clusters)))
				return -ENOMEM;
			open = &clusters->clusters[clusters->count++];
			*open = (struct cluster){
			    .seed = cell->min,
			    .limit =
				cell->min + fmax(config->cluster_tolerance * cell->min, (double)config->cluster_floor),
			    .fastest_ns = INFINITY,
			};
		}
		open->members += cell->n;
		open->sum_ns += cell->sum_ns;
		open->fastest_ns = fmin(open->fastest_ns, cell->min_ns);
		/* A straddling cell that went to the lower cluster takes its members along when looked up. */
		open->limit = fmax(open->limit, cell->max);
	}
	clusters->dirty = false;
	return 0;
}

const struct cluster *clusters__find(const struct clusters *clusters, double norm)
{
	size_t low = 0, high = clusters->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (clusters->clusters[middle].limit < norm)
			low = middle + 1;
		else
			high = middle;
	}
	return low < clusters->count ? &clusters->clusters[low] : NULL;
}

const struct cluster *clusters__all(const struct clusters *clusters, size_t *count)
{
	*count = clusters->count;
	return clusters->clusters;
}
