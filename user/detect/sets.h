/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of ranks that take longer than the others in the same computations for as long as the view lasts
 * (ARCHITECTURE section 6 b): the bad node. Found by the time of each rank in the view, without what the kernel
 * attributes, over what its workloads should have taken: with instructions the reference, else the median of the
 * ranks. First by place (host, socket), since the mean of a place's ranks scatters less than each of them; then by
 * the widest gap between the ranks that are left. Each third of the view must agree; where within it the set begins
 * or ends its cells say. With instructions a mean must be slow by more than the fragments that it is of scatter: a few
 * long ones are no place's speed.
 *
 * With instructions a set is certain from SET_RATIO on. Without, more work looks the same as less speed, unless a
 * place is slow by ratios that differ between its workloads: then it is the speed of that place, likely. Such sets
 * are drafts of variances too (sets__apply), also where no cell crosses the threshold.
 */
#ifndef VAPRO_SETS_H
#define VAPRO_SETS_H

#include "detect/region.h"
#include "model/series.h"

#define SET_RATIO 1.04

struct rank_set {
	uint32_t *rows; /* in the order of ranks */
	size_t count;
	double ratio;			/* of its time to what it should have taken */
	double ratio_least, ratio_most; /* of its workloads of weight */
	double ratio_slow;		/* over those in which it is slow */
	double lost_ns;			/* in the new part */
	double share;			/* of the wall time of all ranks, in the workload where it loses most */
	uint32_t fast, slow;		/* series: of a typical rank of the others, and of the slowest of the set */
	double fast_ns, slow_ns;	/* per fragment, in the view */
	unsigned states;		/* workloads in which it is slow */
	bool certain;			/* equal instructions */
	bool place;			/* all ranks of a host or socket, and no others */
	bool variance;			/* it is a variance by itself */
	bool over;			/* it is no more: kept as long as the map has it */
	uint64_t since, until;		/* bins */
};

struct sets {
	struct rank_set *items;
	size_t count, capacity;
};

struct sets_span {
	uint64_t view, begin, end; /* bins: of the view, of the new part, and the end of both */
	double wall_ns;		   /* of all ranks in the new part */
};

void sets__clear(struct sets *sets);

/*
 * Finds the sets of a job anew; what was found before says since when a set lasts. The map has the cells of the
 * view. Returns 0 or -ENOMEM.
 */
int sets__find(struct sets *sets, const struct series_book *book, const struct stg *stg, uint32_t job,
	       const struct heatmap *map, const struct sets_span *span);

/*
 * Takes over from the sets of the window before since when each of these lasts, and those that are no more as long as
 * the map has a part of them. Returns 0 or -ENOMEM.
 */
int sets__continue(struct sets *sets, struct sets *before, const struct stg_job *job, const struct heatmap *map);

/*
 * Adds sets that are variances to the drafts: with all their valid cells since they last, less those of drafts that
 * have a cause of their own; drafts that are only the slowest cells of a set go up in it. Returns 0 or -ENOMEM.
 */
int sets__apply(const struct sets *sets, const struct heatmap *map, const struct stg_job *job,
		const struct vapro_config *config, struct region_result *drafts);

#endif
