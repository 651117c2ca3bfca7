/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without instruction counts a slowdown of computation that nothing attributes is speed or work. Work moves: several
 * ranks on several places change at once, or others become lighter by as much. Speed belongs to a place, or to one
 * rank alone.
 */
#ifndef VAPRO_ALONE_H
#define VAPRO_ALONE_H

#include "detect/onset.h"

enum alone {
	ALONE_NOT_MOVED,
	ALONE_MOVED, /* work may have moved between ranks */
	ALONE_ALL,   /* nearly all ranks changed */
};

/*
 * Whether work may have moved to the rows of a variance, by the other variances and the other rows at its onset. The
 * result for other rows stays in `moved`, since the map forgets that time while the variance goes on.
 */
enum alone alone__moved(struct variance *variance, const struct onset *onset, const struct variance_book *book,
			const struct evidence_input *input);

/*
 * The share of the loss of computation in rows on which more than one fragment was slow. A loss within one fragment
 * that nothing attributes is an outlier: any program has some.
 */
double alone__repeated(const struct variance *variance, const struct evidence_input *input);

/* Whether the rows of a variance are most of a host or of a socket, and no others, of a job with other places. */
bool alone__place(const struct variance *variance, const struct evidence_input *input);

/*
 * Whether calls of equal bytes, which are fixed work, are confirmed to be slow on most rows of a place and on no
 * others, for most of the time of its variance: then the place is slow, and has not just more work.
 */
bool alone__fixed_work(const struct variance *variance, const struct variance_book *book, const struct stg_job *job);

#endif
