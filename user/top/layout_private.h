/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of the page, for the files that draw it. */
#ifndef VAPRO_TOP_LAYOUT_PRIVATE_H
#define VAPRO_TOP_LAYOUT_PRIVATE_H

#include "top/layout.h"

/* Draw the title of a list, or one of its items, into a row. */
void top_rows__title(enum top_list list, struct grid *grid, unsigned row);
void top_rows__job(struct grid *grid, unsigned row, const struct top_job *job);
void top_rows__process(struct grid *grid, unsigned row, const struct top_process *process, const char *host);
void top_rows__region(struct grid *grid, unsigned row, const struct region *region);

/* Writes a time of day, UTC, "10:03:21", into clock, of 16 bytes. Returns clock. */
char *top_rows__clock(uint64_t utc_ns, char *clock);

/* What is said of all jobs together, above the lists: what there is and was lost; what it costs, and what is missing.
 */
struct top_head {
	char work[1024], costs[1024];
	bool alarm;
};

/* The model has a snapshot. */
void top_head__say(const struct top_model *model, struct top_head *head);

#endif
