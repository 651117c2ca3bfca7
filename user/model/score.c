/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/score.h"

#include <math.h>
#include <stdlib.h>

static int compare_truths(const void *a, const void *b)
{
	const struct score_count *x = a, *y = b;

	if (x->truth != y->truth)
		return x->truth < y->truth ? -1 : 1;
	return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

static int compare_clusters(const void *a, const void *b)
{
	const struct score_count *x = a, *y = b;

	if (x->cluster != y->cluster)
		return x->cluster < y->cluster ? -1 : 1;
	return (x->truth > y->truth) - (x->truth < y->truth);
}

static uint64_t group_of(const struct score_count *count, bool by_truth)
{
	return by_truth ? count->truth : count->cluster;
}

/* Computes H(group) and H(the other | group) of counts sorted by group. Returns the number of groups. */
static uint64_t entropies(const struct score_count *counts, size_t count, double total, bool by_truth, double *own,
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

void score__of(struct score_count *counts, size_t count, struct vapro_score *score)
{
	double truth, cluster, truth_in_cluster, cluster_in_truth, sum;

	score->fragments = 0;
	for (size_t i = 0; i < count; i++)
		score->fragments += counts[i].n;
	if (count)
		qsort(counts, count, sizeof(*counts), compare_truths);
	score->truths = entropies(counts, count, (double)score->fragments, true, &truth, &cluster_in_truth);
	if (count)
		qsort(counts, count, sizeof(*counts), compare_clusters);
	score->clusters = entropies(counts, count, (double)score->fragments, false, &cluster, &truth_in_cluster);
	score->homogeneity = share_explained(truth_in_cluster, truth);
	score->completeness = share_explained(cluster_in_truth, cluster);
	sum = score->homogeneity + score->completeness;
	score->v_measure = sum > 0 ? 2 * score->homogeneity * score->completeness / sum : 0;
}
