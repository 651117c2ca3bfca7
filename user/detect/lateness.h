/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Explains waiting by peers that were late because of known work. The waiting of a rank in a bin beyond the own part
 * of its calls is explained as far as the peers that were out of calls longest in that bin spent that time in
 * certified computation or IO; and by no more than that time. Waiting for work that cannot be judged stays
 * unexplained. Only the new part of a window is explained. Times are in ns.
 */
#ifndef VAPRO_LATENESS_H
#define VAPRO_LATENESS_H

#include "detect/waiting.h"

/* The times of a row in a bin. */
struct lateness_cell {
	float called; /* time in calls */
	float known;  /* time out of calls that is certified */
	float waited; /* time in calls beyond their own part */
};

/* The lateness of a group's members in a bin, from which one can be left out. */
struct lateness_sum {
	double least, most, second; /* time out of calls: the least, and the two most */
	double known, late;	    /* sums over members: explained lateness, and all lateness */
	double out, out_known;	    /* the same: time out of calls, and its known part */
	uint32_t rows;
	bool set;
};

struct lateness_group {
	uint32_t id;
	struct lateness_sum *sums; /* by bin; for STG_PROCESS by bin and leader */
};

enum { LATENESS_GROUPS = 10 }; /* groups of waiting whose lateness is counted apart */

struct lateness {
	uint64_t begin, end; /* bins */
	size_t rows;
	struct lateness_cell *cells; /* by bin and row */
	size_t capacity;
	struct lateness_group groups[LATENESS_GROUPS];
	unsigned group_count;
};

/* Writes or reads the room for cells, which counts for the memory cap: cells are of one window. */
void lateness__archive(struct archive *archive, struct lateness *lateness);

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
 * The explained share of a row's waiting in a bin, once all cells are complete. *known_share is the known share of the
 * work of the row's peers, however long the row waited. waiting knows the members of groups; NULL: all rows. Out of
 * memory nothing is explained.
 */
double lateness__explained(struct lateness *lateness, const struct waiting *waiting, const struct stg_job *job,
			   uint32_t group, uint32_t row, uint64_t bin, double *known_share);

#endif
