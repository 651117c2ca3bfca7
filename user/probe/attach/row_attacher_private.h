/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by attaching (row_attacher.c), linking (row_links.c), measuring (row_costs.c) and deciding (row_thinning.c).
 */
#ifndef VAPRO_ROW_ATTACHER_PRIVATE_H
#define VAPRO_ROW_ATTACHER_PRIVATE_H

#include "overhead/governor.h"
#include "probe/attach/attachments.h"
#include "probe/attach/row_attacher.h"

struct row_image;
struct row_memory;
struct row_probe;

struct row_attacher {
	struct attachments base;
	const struct costs *costs;
	double budget;
	struct governor random; /* only its seed */
	struct row_memory *memory;
	uint64_t looked_ns, looked_hits; /* time and hits of the last measurement of all */
};

static inline struct row_image *row_attacher__image(const struct row_attacher *attacher, size_t i)
{
	return (struct row_image *)attacher->base.images[i];
}

/* Updates a function's row on the kernel side, which ignores hits of functions that are not open. */
void row_attacher__describe_row(struct row_attacher *attacher, const struct row_image *image,
				const struct row_probe *probe);

/* Updates the rows of all outlined functions, after functions that hand them to teams were opened or closed. */
void row_attacher__describe_outlined(struct row_attacher *attacher);

/* Whether links are still being closed: new ones at the same sites would be hit twice. */
bool row_attacher__is_closing(struct row_attacher *attacher);

enum row_sites_wanted {
	ROW_SITES,	  /* all, to see calls */
	ROW_LOOK,	  /* all, to count hits */
	ROW_LOOK_ENTRIES, /* entries alone, to count hits */
};

/*
 * Links sites of functions for a process (0: for all). refused: NULL, or one for each function, set where the kernel
 * refuses one of its sites; then nothing is linked.
 */
int row_attacher__link(struct row_attacher *attacher, const struct row_image *image, struct row_probe *const *probes,
		       size_t count, enum row_sites_wanted wanted, pid_t pid, bool *refused, struct kernel_link **link);

/* Updates a function's calls and the cost of its probes. */
void row_attacher__measure(struct row_attacher *attacher, struct row_probe *probe);

/*
 * Measures rates and shares of functions that were linked together, since their marks passed_ns ago, for so many
 * processes. A shared exit has the number of one function and is charged to each: it is hit as long as one is open.
 */
void row_attacher__rate(struct row_attacher *attacher, struct row_probe *const *probes, size_t count, double passed_ns,
			double processes);

#endif
