/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of ranks that take longer than the others in the same computations for as long as the view lasts
 * (ARCHITECTURE section 6 b): the bad node. The ratio of a rank is its time in the view, without attributed time,
 * over the expected time of its workloads: with instructions the reference, else the median of the ranks. Sets are
 * found by place (host, socket) first, since the mean of a place's ranks scatters less than each rank; then by the
 * widest gap between the ranks that are left. Each third of the view must agree; the cells show where within a third
 * the set begins or ends. With instructions a mean must be slow by more than the scatter of its fragments: a few
 * long ones are not the speed of a place.
 *
 * With instructions a set is certain from SET_RATIO on. Without, more work looks the same as less speed, unless a
 * place is slow by ratios that differ between its workloads: then the cause is likely the speed of the place. Such
 * sets are drafts of variances too (sets__apply), also where no cell crosses the threshold.
 */
#ifndef VAPRO_SETS_H
#define VAPRO_SETS_H

#include "detect/region.h"
#include "model/series.h"

#define SET_RATIO 1.04 /* least ratio of a set of slow ranks */

struct rank_set {
	uint32_t *rows; /* in the order of ranks */
	size_t count;
	double ratio;			/* ratio of its time to its expected time */
	double ratio_least, ratio_most; /* ratios of its workloads of weight */
	double ratio_slow;		/* ratio over workloads in which it is slow */
	double lost_ns;			/* loss in the new part */
	double share;			/* share of all ranks' wall time, in the workload of most loss */
	uint32_t fast, slow;		/* series: of a typical rank of the others, and of the slowest of the set */
	double fast_ns, slow_ns;	/* per fragment, in the view */
	unsigned states;		/* workloads in which it is slow */
	bool certain;			/* equal instructions */
	bool place;			/* all ranks of a host or socket, and no others */
	bool variance;			/* it is a variance by itself */
	bool over;			/* ended; stays as long as the map has it */
	uint64_t since, until;		/* bins */
};

struct sets {
	struct rank_set *items;
	size_t count, capacity;
};

struct sets_span {
	uint64_t view, begin, end; /* bins: of the view, of the new part, and the end of both */
	double wall_ns;		   /* wall time of all ranks in the new part */
};

void sets__clear(struct sets *sets);

/* Writes or reads the sets of a job with so many rows, over a book of so many series; sets to be read are empty. */
void sets__archive(struct archive *archive, struct sets *sets, size_t rows, size_t series);

/*
 * Finds the sets of a job again; the former sets show since when a set lasts. The map has the cells of the
 * view. Returns 0 or -ENOMEM.
 */
int sets__find(struct sets *sets, const struct series_book *book, const struct stg *stg, uint32_t job,
	       const struct heatmap *map, const struct sets_span *span);

/*
 * Takes over the begin of each set from the sets of the window before, and ended sets as long as the map has a part
 * of them. Returns 0 or -ENOMEM.
 */
int sets__continue(struct sets *sets, struct sets *before, const struct stg_job *job, const struct heatmap *map);

/*
 * Adds sets that are variances to the drafts: with all their valid cells since they began, less cells of drafts with
 * a cause of their own; drafts that are only the slowest cells of a set merge into it. Returns 0 or -ENOMEM.
 */
int sets__apply(const struct sets *sets, const struct heatmap *map, const struct stg_job *job,
		const struct vapro_config *config, struct region_result *drafts);

#endif
