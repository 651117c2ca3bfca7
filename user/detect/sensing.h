/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How blind the judgement is: for how long no fragment of a rank ended that was judged, in which time no slowdown can
 * show (vSensor (PPoPP'18): duration and interval of sensing). Ends are known to a bin, for that is what a merged
 * bundle has; several ends in one bin count as evenly spread in it.
 */
#ifndef VAPRO_DETECT_SENSING_H
#define VAPRO_DETECT_SENSING_H

#include "model/bundle_rec.h"
#include "model/stg.h"

#include <vapro/analysis.h>

/* A rank, by the row of its first thread. */
struct sensing_row {
	uint64_t last; /* last bin in which a judged fragment of it ended, + 1; 0: none yet */
};

struct sensing {
	struct sensing_row *rows;
	size_t row_count, row_capacity;
	uint64_t begin, end;	   /* bins of the present new part */
	uint32_t *ends;		   /* judged fragments by row and bin; NULL between windows */
	struct result_sensing sum; /* of the last new part */
};

void sensing__clear(struct sensing *sensing);
size_t sensing__bytes(const struct sensing *sensing);

/* Begins the new part [begin, end) of a job with so many rows. Returns 0 or -ENOMEM. */
int sensing__begin(struct sensing *sensing, size_t rows, uint64_t begin, uint64_t end);

/* Notes a new bundle that ended. row: that of the first thread of its rank. */
static inline void sensing__add(struct sensing *sensing, uint32_t row, const struct bundle_rec *rec)
{
	uint64_t bin = bundle_rec__bin(rec);

	if (rec->covered && !rec->attributed_only && bin >= sensing->begin && bin < sensing->end)
		sensing->ends[row * (sensing->end - sensing->begin) + bin - sensing->begin] += rec->n;
}

/* Ends the new part [begin_ns, end_ns) and sums it up. */
void sensing__end(struct sensing *sensing, const struct stg_job *job, uint64_t begin_ns, uint64_t end_ns);

/* Writes or reads what is known of the ranks of a job, at the end of a window; what is to be read is empty. */
void sensing__archive(struct archive *archive, struct sensing *sensing, size_t rows);

#endif
