/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Algorithm 1 of papers/000 section 3.4 over norms of workload vectors, streamed: fragments of one
 * edge or vertex, of all ranks, fall into fine log-linear cells (256 per octave) that keep an exact
 * count, exact least and greatest norm and the fastest duration. A pass over the cells in ascending
 * order gives the clusters: the least unprocessed norm is the seed, everything within the tolerance
 * joins it. Merging before clustering is what makes clusters comparable between processes. A cell
 * that straddles a cluster's border goes by its middle.
 */
#ifndef VAPRO_CLUSTER_H
#define VAPRO_CLUSTER_H

#include <vapro/config.h>

struct cluster {
	double seed, limit; /* norms from seed to limit */
	uint64_t members;
	double sum_ns;
	double fastest_ns; /* least duration of a member */
};

struct clusters;

struct clusters *clusters__new(void);
void clusters__free(struct clusters *clusters);

/* n fragments between two norms. Returns 0 or -ENOMEM. */
int clusters__add(struct clusters *clusters, double norm_min, double norm_max, uint64_t n, double sum_ns,
		  double min_ns);

/* Forms the clusters anew where something was added since. Returns 0 or -ENOMEM. */
int clusters__form(struct clusters *clusters, const struct vapro_config *config);

/* The cluster a norm belongs to, as formed last; NULL where there is none. */
const struct cluster *clusters__find(const struct clusters *clusters, double norm);

const struct cluster *clusters__all(const struct clusters *clusters, size_t *count);

#endif
