/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting that is explained: by peers that were late because of work that is known. What a rank waits in a bin beyond
 * the own part of its calls is explained as far as the peers that were out of calls longest in that bin spent that
 * time in certified computation or IO; and by no more than that time.
 * Waiting for work that cannot be judged stays unexplained. Of the new part of a window only. Times ns.
 */
#ifndef VAPRO_LATENESS_H
#define VAPRO_LATENESS_H

#include "detect/waiting.h"

/* What a row did in a bin. */
struct lateness_cell {
	float called; /* time in calls */
	float known;  /* time out of calls that is certified */
	float waited; /* in calls, beyond their own part */
};

/* What the members of a group were late by in a bin, to leave out one of them. */
struct lateness_sum {
	double least, most, second; /* time out of calls: the least, and the two most */
	double known, late;	    /* sums over members of what they were late by: explained, and all */
	double out, out_known;	    /* the same of their time out of calls */
	uint32_t rows;
	bool set;
};

struct lateness_group {
	uint32_t id;
	struct lateness_sum *sums; /* by bin; of STG_PROCESS by bin and leader */
};

#define LATENESS_GROUPS 10

struct lateness {
	uint64_t begin, end; /* bins */
	size_t rows;
	struct lateness_cell *cells; /* by bin and row */
	size_t capacity;
	struct lateness_group groups[LATENESS_GROUPS];
	unsigned group_count;
};

void lateness__clear(struct lateness *lateness);
size_t lateness__bytes(const struct lateness *lateness);

/* Starts the bins [begin, end) of a job of `rows` rows. Returns 0 or -ENOMEM. */
int lateness__begin(struct lateness *lateness, size_t rows, uint64_t begin, uint64_t end);

/* The cell of a row in a bin of [begin, end). */
static inline struct lateness_cell *lateness__cell(const struct lateness *lateness, uint32_t row, uint64_t bin)
{
	return &lateness->cells[(bin - lateness->begin) * lateness->rows + row];
}

/*
 * The share of what a row waited in a bin that is explained, once all cells are complete. *known_share is the share of
 * its peers' work that is known, however long it waited. waiting knows the members of groups; NULL: all rows. Out of
 * memory nothing is explained.
 */
double lateness__explained(struct lateness *lateness, const struct waiting *waiting, const struct stg_job *job,
			   uint32_t group, uint32_t row, uint64_t bin, double *known_share);

#endif
