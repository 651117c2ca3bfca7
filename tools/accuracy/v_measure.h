/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures how well clusters agree with the truth, as VAPRO (PPoPP'22) section 6.3 does: homogeneity,
 * completeness and their harmonic mean, the V-measure (Rosenberg and Hirschberg 2007): h = 1 -
 * H(C|K) / H(C), c = 1 - H(K|C) / H(K), each 1 where its denominator is 0, over true classes C and
 * clusters K, weighted by fragments.
 */
#ifndef VAPRO_V_MEASURE_H
#define VAPRO_V_MEASURE_H

#include <stddef.h>
#include <stdint.h>

/* n fragments of one true class in one cluster; the numbers only need to be equal for equal ones. */
struct v_measure_count {
	uint64_t truth, cluster, n;
};

struct v_measure {
	uint64_t fragments, truths, clusters;
	double homogeneity, completeness, harmonic; /* harmonic: the V-measure */
};

/* Fills all of *measure; sorts counts, where a pair may come more than once. */
void v_measure__of(struct v_measure_count *counts, size_t count, struct v_measure *measure);

#endif
