/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a run compares with earlier runs of its program: the same comparison as that of many runs (runs.h), of which one
 * is asked about. It is a finding of its own: earlier runs may have had another input or another build, and are part of
 * no reference.
 */
#ifndef VAPRO_EARLIER_H
#define VAPRO_EARLIER_H

#include "compare/runs.h"

#define EARLIER_THRESHOLD 0.03 /* least deviation that may be outlying: as that of vapro runs */

struct earlier {
	uint32_t runs; /* that the run is compared with */
	char program[RUNS_PROGRAM_SIZE];
	double seconds;		       /* of the run */
	double time_ratio, work_ratio; /* over the median of the earlier runs; NAN: not compared */
	bool time_outlying, work_outlying;
};

/*
 * Compares an ended profile with those of earlier runs. Returns 0, -ENODATA with a sentence in err where there are too
 * few runs that it can be compared with, or -ENOMEM.
 */
int earlier__compare(struct earlier *earlier, const struct profile *run, const struct profile *const *former,
		     uint32_t count, char *err, size_t err_size);

/* Writes the comparison as a sentence. Returns text. */
char *earlier__text(const struct earlier *earlier, char *text, size_t size);

#endif
