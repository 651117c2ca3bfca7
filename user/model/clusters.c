/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/clusters.h"

#include "base/grow.h"

#include <math.h>

struct clusters {
	double tolerance, floor;
	struct cells cells;
	struct cluster *items;
	size_t count, capacity;
	struct cluster_certificate certificate;
	uint32_t last_id;
	bool dirty;
};

struct clusters *clusters__new(const struct vapro_config *config)
{
	struct clusters *clusters = calloc(1, sizeof(*clusters));

	if (!clusters)
		return NULL;
	clusters->tolerance = config->cluster_tolerance;
	clusters->floor = (double)config->cluster_floor;
	clusters->certificate.exact = true;
	if (!cells__init(&clusters->cells, config->cluster_cells))
		return clusters;
	free(clusters);
	return NULL;
}

void clusters__free(struct clusters *clusters)
{
	if (!clusters)
		return;
	cells__clear(&clusters->cells);
	free(clusters->items);
	free(clusters);
}

int clusters__add(struct clusters *clusters, const double *low, const double *high, uint64_t n, uint64_t sum_ns,
		  uint64_t min_ns, uint32_t *handle)
{
	clusters->dirty = true;
	return cells__add(&clusters->cells, low, high, n, sum_ns, min_ns, handle);
}

uint32_t clusters__find(const struct clusters *clusters, const double *vector)
{
	return cells__find(&clusters->cells, vector);
}

static int compare_order(const void *a, const void *b)
{
	const struct workload_cell *x = *(struct workload_cell *const *)a, *y = *(struct workload_cell *const *)b;
	int order = cells__compare_least(x, y);

	/* bundles of several cells may have the same least corner */
	return order ? order : memcmp(x->key, y->key, sizeof(x->key));
}

/* The unit of differences from a seed's component: members differ by at most `reach` units. */
static double unit_of(double tolerance, double floor, double component)
{
	return tolerance > 0 ? fmax(component, floor / tolerance) : 1;
}

static double reach_of(double tolerance, double floor)
{
	return tolerance > 0 ? tolerance : floor;
}

static double in_units(double difference, double unit)
{
	return difference > 0 ? difference / unit : 0;
}

bool clusters__near(const struct vapro_config *config, const double *seed, const double *vector)
{
	double tolerance = config->cluster_tolerance, floor = (double)config->cluster_floor, most = 0;

	for (int i = 0; i < VAPRO_MAGNITUDES; i++)
		most = fmax(most, in_units(fabs(vector[i] - seed[i]), unit_of(tolerance, floor, seed[i])));
	return most <= reach_of(tolerance, floor);
}

/* Least and most distance of a cell's members from a seed, and of its middle. */
struct distance {
	double near, far, middle;
};

static struct distance distance_of(const struct workload_cell *cell, const struct cluster *cluster)
{
	struct distance most = {0};

	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		double below = cluster->seed[i] - cell->low[i], above = cell->high[i] - cluster->seed[i];
		double center = fabs((cell->low[i] + cell->high[i]) / 2 - cluster->seed[i]), unit = cluster->unit[i];

		most.near = fmax(most.near, in_units(fmax(-below, -above), unit));
		most.far = fmax(most.far, in_units(fmax(fabs(below), fabs(above)), unit));
		most.middle = fmax(most.middle, in_units(center, unit));
	}
	return most;
}

static bool joins(struct clusters *clusters, const struct cluster *cluster, const struct workload_cell *cell, bool own)
{
	struct cluster_certificate *certificate = &clusters->certificate;
	struct distance distance = distance_of(cell, cluster);
	bool in = own || distance.middle <= cluster->reach;
	double wrong = in ? distance.far - cluster->reach : cluster->reach - distance.near;
	double border = cluster->length + cluster->reach;

	if (distance.far <= cluster->reach)
		return true;
	if (distance.near > cluster->reach)
		return false;
	certificate->exact = false;
	certificate->straddling++;
	certificate->slack = fmax(certificate->slack, border > 0 ? wrong / border : INFINITY);
	return in;
}

static void take(struct clusters *clusters, struct cluster *cluster, struct workload_cell *cell)
{
	cell->cluster = (uint32_t)clusters->count - 1;
	cluster->members += cell->n;
	/* as in cells: a sum that overflows saturates */
	if (__builtin_add_overflow(cluster->sum_ns, cell->sum_ns, &cluster->sum_ns))
		cluster->sum_ns = UINT64_MAX;
	if (cell->min_ns < cluster->fastest_ns)
		cluster->fastest_ns = cell->min_ns;
	cluster->least_instructions = fmin(cluster->least_instructions, cell->low[VAPRO_INSTRUCTIONS]);
	cluster->most_instructions = fmax(cluster->most_instructions, cell->high[VAPRO_INSTRUCTIONS]);
}

/* Begins a cluster at a cell's least member. Returns the norm beyond which nothing is in reach, despite rounding. */
static double begin(const struct clusters *clusters, struct cluster *cluster, const struct workload_cell *cell)
{
	double farthest[VAPRO_MAGNITUDES];

	*cluster = (struct cluster){
	    .norm = cell->norm,
	    .reach = reach_of(clusters->tolerance, clusters->floor),
	    .fastest_ns = UINT64_MAX,
	    .least_instructions = cell->low[VAPRO_INSTRUCTIONS],
	};
	memcpy(cluster->seed, cell->least, sizeof(cluster->seed));
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		cluster->unit[i] = unit_of(clusters->tolerance, clusters->floor, cluster->seed[i]);
		cluster->length = fmax(cluster->length, in_units(cluster->seed[i], cluster->unit[i]));
		farthest[i] = cluster->seed[i] + cluster->reach * cluster->unit[i];
	}
	return cells__norm(farthest) * (1 + 1e-9);
}

/* Makes the greedy pass over cells in the order of least members. Returns 0 or -ENOMEM. */
static int pass(struct clusters *clusters, struct workload_cell **order)
{
	size_t count = clusters->cells.count;

	for (size_t first = 0; first < count; first++) {
		struct workload_cell *own = order[first];
		struct cluster *cluster;
		double border;

		if (own->cluster != CELLS_NONE)
			continue;
		if (grow(&clusters->items, &clusters->capacity, clusters->count + 1, sizeof(*clusters->items)))
			return -ENOMEM;
		cluster = &clusters->items[clusters->count++];
		border = begin(clusters, cluster, own);
		clusters->certificate.exact &= !own->corner;
		for (size_t i = first; i < count && order[i]->norm <= border; i++) {
			if (order[i]->cluster == CELLS_NONE && joins(clusters, cluster, order[i], i == first))
				take(clusters, cluster, order[i]);
		}
	}
	return 0;
}

/* Members of the former cluster `name` that are in `cluster` now. */
struct claim {
	uint32_t name, cluster;
	uint64_t members;
};

static int compare_same(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->members != y->members)
		return x->members > y->members ? -1 : 1;
	return compare_same(a, b);
}

/* Sums the claims of one name on one cluster; returns how many are left. */
static size_t sum_claims(struct claim *claims, size_t count)
{
	size_t out = 0;

	if (count)
		qsort(claims, count, sizeof(*claims), compare_same);
	for (size_t i = 0; i < count; i++) {
		if (out && !compare_same(&claims[out - 1], &claims[i]))
			claims[out - 1].members += claims[i].members;
		else
			claims[out++] = claims[i];
	}
	if (out)
		qsort(claims, out, sizeof(*claims), compare_claims);
	return out;
}

/* Gives every cluster the name of most of its members, every name to one cluster; the rest get new names. */
static int name_clusters(struct clusters *clusters)
{
	struct claim *claims = calloc(clusters->cells.count + 1, sizeof(*claims));
	struct table *given = table__new();
	size_t count = 0;
	uint32_t unused;
	int error = -ENOMEM;

	if (!claims || !given)
		goto cleanup;
	for (size_t i = 0; i < clusters->cells.count; i++) {
		const struct workload_cell *cell = &clusters->cells.items[i];

		if (cell->name)
			claims[count++] = (struct claim){cell->name, cell->cluster, cell->n};
	}
	count = sum_claims(claims, count);
	for (size_t i = 0; i < count; i++) {
		struct cluster *cluster = &clusters->items[claims[i].cluster];

		if (cluster->id || table__get(given, claims[i].name, 0, &unused))
			continue;
		cluster->id = claims[i].name;
		if (table__put(given, claims[i].name, 0, 0))
			goto cleanup;
	}
	for (size_t i = 0; i < clusters->count; i++) {
		if (!clusters->items[i].id)
			clusters->items[i].id = ++clusters->last_id;
	}
	for (size_t i = 0; i < clusters->cells.count; i++)
		clusters->cells.items[i].name = clusters->items[clusters->cells.items[i].cluster].id;
	error = 0;
cleanup:
	free(claims);
	table__free(given);
	return error;
}

int clusters__form(struct clusters *clusters)
{
	struct workload_cell **order;
	int error;

	if (!clusters->dirty)
		return 0;
	order = calloc(clusters->cells.count + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < clusters->cells.count; i++) {
		order[i] = &clusters->cells.items[i];
		order[i]->cluster = CELLS_NONE;
	}
	qsort(order, clusters->cells.count, sizeof(*order), compare_order);
	clusters->count = 0;
	clusters->certificate = (struct cluster_certificate){.exact = true, .widened = clusters->cells.widened};
	error = pass(clusters, order);
	free(order);
	if (!error)
		error = name_clusters(clusters);
	clusters->dirty = error != 0;
	return error;
}

const struct cluster *clusters__of(const struct clusters *clusters, uint32_t handle)
{
	uint32_t at = handle == CELLS_NONE ? CELLS_NONE : cells__of(&clusters->cells, handle)->cluster;

	return at == CELLS_NONE ? NULL : &clusters->items[at];
}

const struct cluster *clusters__all(const struct clusters *clusters, size_t *count)
{
	*count = clusters->count;
	return clusters->items;
}

const struct cluster_certificate *clusters__certificate(const struct clusters *clusters)
{
	return &clusters->certificate;
}

const struct cells *clusters__cells(const struct clusters *clusters)
{
	return &clusters->cells;
}

size_t clusters__bytes(const struct clusters *clusters)
{
	return sizeof(*clusters) + cells__bytes(&clusters->cells) + clusters->capacity * sizeof(*clusters->items);
}

bool clusters__coarsen(struct clusters *clusters, size_t least)
{
	size_t now = clusters->cells.count;

	if (now <= least)
		return false;
	clusters->dirty = true;
	return !cells__bound(&clusters->cells, now / 2 > least ? now / 2 : least);
}

static const struct archive_column clusters_columns[] = {
    ARCHIVE_ONE(struct clusters, certificate.exact),
    ARCHIVE_ONE(struct clusters, certificate.straddling),
    ARCHIVE_ONE(struct clusters, certificate.widened),
    ARCHIVE_ANY(struct clusters, certificate.slack),
    ARCHIVE_ONE(struct clusters, last_id),
    ARCHIVE_ONE(struct clusters, dirty),
};
static const struct archive_table clusters_table = ARCHIVE_TABLE("clusters", struct clusters, clusters_columns);

static const struct archive_column cluster_columns[] = {
    ARCHIVE_ONE(struct cluster, id),
    ARCHIVE_MANY(struct cluster, seed),
    ARCHIVE_ONE(struct cluster, norm),
    ARCHIVE_MANY(struct cluster, unit),
    ARCHIVE_ONE(struct cluster, length),
    ARCHIVE_ONE(struct cluster, reach),
    ARCHIVE_ONE(struct cluster, members),
    ARCHIVE_ONE(struct cluster, sum_ns),
    ARCHIVE_ONE(struct cluster, fastest_ns),
    ARCHIVE_ONE(struct cluster, least_instructions),
    ARCHIVE_ONE(struct cluster, most_instructions),
};
static const struct archive_table cluster_table = ARCHIVE_TABLE("cluster", struct cluster, cluster_columns);

void clusters__archive(struct archive *archive, struct clusters *clusters)
{
	archive__record(archive, &clusters_table, clusters);
	cells__archive(archive, &clusters->cells);
	archive__rows(archive, &cluster_table, &clusters->items, &clusters->count, &clusters->capacity);
	for (size_t i = 0; archive__reads(archive) && i < clusters->cells.count; i++)
		archive__check(archive,
			       clusters->cells.items[i].cluster == CELLS_NONE ||
				   clusters->cells.items[i].cluster < clusters->count,
			       "a cluster is missing");
}
