/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Algorithm 1 of VAPRO (PPoPP'22) section 3.4 over cells of workload vectors (model/cells.h): one greedy
 * pass per clusters__form. The unprocessed vector of least Euclidean norm is the seed; a vector joins
 * the seed where each component is within max(tolerance * the seed's, floor) of the seed's, border
 * included. Vectors of equal norm come in the order of their components, which the paper leaves open.
 *
 * So metrics are normalised, as the paper has them: a count of cache misses weighs as much as one of
 * instructions, 1000 to 1050 instructions with 200 to 210 loads are one cluster, and one more metric
 * never makes clusters coarser. With one metric the distance is the plain difference.
 *
 * Certificate: where every cell lies wholly inside or wholly outside the reach of every seed that
 * meets it, the clusters are those of Algorithm 1 on the single vectors, as sets (`exact`).
 * A cell that straddles goes by the middle of its box; `slack` then says how far from the reach of
 * its seed a vector was misplaced at most, relative to the seed's length + reach in its own units:
 * the clusters are those of Algorithm 1 with thresholds that are off by `slack`. Cells of single
 * fragments give a slack of at most half their width, 1/512, and twice that for each of the first
 * eight widenings (cells.h); twice again where cells are wider than the reach, since a seed includes
 * its own cell. Beyond eight, cells are wider than an octave, and only slack itself decides. A bundle
 * that varies in several components has no known least member: such a seed is not exact either.
 *
 * Identity: a cluster keeps its id as long as its set lives. When a smaller seed appears later and
 * shifts the borders, the id stays with the cluster that holds most of the former members.
 */
#ifndef VAPRO_CLUSTERS_H
#define VAPRO_CLUSTERS_H

#include "model/cells.h"

#include <vapro/config.h>

struct cluster {
	uint32_t id; /* from 1; unique in its set */
	double seed[VAPRO_MAGNITUDES];
	double norm;		       /* norm of the seed, in no unit */
	double unit[VAPRO_MAGNITUDES]; /* unit of distances from the seed */
	double length;		       /* largest component of the seed, in units */
	double reach;		       /* most distance of members, in units */
	uint64_t members, sum_ns;
	uint64_t fastest_ns;			      /* least duration of a member */
	double least_instructions, most_instructions; /* of any member */
};

struct cluster_certificate {
	bool exact;
	uint32_t straddling; /* cells placed by their middle */
	uint32_t widened;    /* times that the bound made all cells twice as wide */
	double slack;	     /* 0 where nothing straddles */
};

struct clusters;

/* Copies tolerance, floor and the bound on cells from the config. */
struct clusters *clusters__new(const struct vapro_config *config);
void clusters__free(struct clusters *clusters);

/* Writes or reads a set; one to be read is new. */
void clusters__archive(struct archive *archive, struct clusters *clusters);

/* Same as the functions cells__*. */
int clusters__add(struct clusters *clusters, const double *low, const double *high, uint64_t n, uint64_t sum_ns,
		  uint64_t min_ns, uint32_t *handle);
uint32_t clusters__find(const struct clusters *clusters, const double *vector);

/* Forms the clusters again after any addition. Returns 0 or -ENOMEM. */
int clusters__form(struct clusters *clusters);

/* Whether a vector is within reach of a seed. */
bool clusters__near(const struct vapro_config *config, const double *seed, const double *vector);

/* The cluster of a handle as formed last; NULL where it was added since, and for CELLS_NONE. */
const struct cluster *clusters__of(const struct clusters *clusters, uint32_t handle);

size_t clusters__bytes(const struct clusters *clusters);

/*
 * Halves the bound on cells, and widens cells to fit. Returns false where the bound is at `least` already, or
 * when out of memory.
 */
bool clusters__coarsen(struct clusters *clusters, size_t least);

/* All clusters by ascending seed, until clusters__form. */
const struct cluster *clusters__all(const struct clusters *clusters, size_t *count);
const struct cluster_certificate *clusters__certificate(const struct clusters *clusters);
const struct cells *clusters__cells(const struct clusters *clusters);

#endif
