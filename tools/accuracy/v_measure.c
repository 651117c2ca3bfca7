/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "v_measure.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int compare_truths(const void *a, const void *b)
{
	const struct v_measure_count *x = a, *y = b;

	if (x->truth != y->truth)
		return x->truth < y->truth ? -1 : 1;
	return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

static int compare_clusters(const void *a, const void *b)
{
	const struct v_measure_count *x = a, *y = b;

	if (x->cluster != y->cluster)
		return x->cluster < y->cluster ? -1 : 1;
	return (x->truth > y->truth) - (x->truth < y->truth);
}

static uint64_t group_of(const struct v_measure_count *count, bool by_truth)
{
	return by_truth ? count->truth : count->cluster;
}

/* Computes H(group) and H(the other | group) of counts sorted by group. Returns the number of groups. */
static uint64_t entropies(const struct v_measure_count *counts, size_t count, double total, bool by_truth, double *own,
			  double *other)
{
	uint64_t groups = 0;

	*own = *other = 0;
	for (size_t begin = 0, end; begin < count; begin = end) {
		double group = 0;

		for (end = begin; end < count && group_of(&counts[end], by_truth) == group_of(&counts[begin], by_truth);
		     end++)
			group += (double)counts[end].n;
		*own -= group / total * log(group / total);
		for (size_t i = begin, next; i < end; i = next) {
			double both = 0;

			for (next = i; next < end && counts[next].truth == counts[i].truth &&
				       counts[next].cluster == counts[i].cluster;
			     next++)
				both += (double)counts[next].n;
			*other -= both / total * log(both / group);
		}
		groups++;
	}
	return groups;
}

static double share_explained(double conditional, double all)
{
	return all > 0 ? fmin(1, fmax(0, 1 - conditional / all)) : 1;
}

void v_measure__of(struct v_measure_count *counts, size_t count, struct v_measure *measure)
{
	double truth, cluster, truth_in_cluster, cluster_in_truth, sum;

	measure->fragments = 0;
	for (size_t i = 0; i < count; i++)
		measure->fragments += counts[i].n;
	if (count)
		qsort(counts, count, sizeof(*counts), compare_truths);
	measure->truths = entropies(counts, count, (double)measure->fragments, true, &truth, &cluster_in_truth);
	if (count)
		qsort(counts, count, sizeof(*counts), compare_clusters);
	measure->clusters = entropies(counts, count, (double)measure->fragments, false, &cluster, &truth_in_cluster);
	measure->homogeneity = share_explained(truth_in_cluster, truth);
	measure->completeness = share_explained(cluster_in_truth, cluster);
	sum = measure->homogeneity + measure->completeness;
	measure->harmonic = sum > 0 ? 2 * measure->homogeneity * measure->completeness / sum : 0;
}
