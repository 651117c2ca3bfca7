/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Complete events of a trace before they are written. Those of one row may only nest; what overlaps otherwise goes to a
 * further lane of the row, which a viewer shows as a row below it.
 */
#ifndef VAPRO_EXPORT_TRACE_SLICES_H
#define VAPRO_EXPORT_TRACE_SLICES_H

#include "page/run_report.h"

#define TRACE_LANES 32 /* most lanes of a row */

enum trace_kind { TRACE_REGION, TRACE_FRAGMENT, TRACE_TASK };

struct trace_slice {
	size_t row; /* number of the row within its job, or of the task */
	uint64_t begin_ns, end_ns;
	enum trace_kind kind;
	const struct run_region *region;
	const cJSON *item; /* fragment: the exemplar; task: the interferer */
	bool whole;	   /* the event that has all that is known of its region */
	unsigned lane;	   /* filled by trace_slices__place(); TRACE_LANES: there was no room */
};

struct trace_slices {
	struct trace_slice *items;
	size_t count, capacity;
};

/* Adds a slice. Returns 0 or -ENOMEM. */
int trace_slices__add(struct trace_slices *slices, const struct trace_slice *slice);

/* Sorts by row and begin, and chooses lanes in which slices nest. */
void trace_slices__place(struct trace_slices *slices);
void trace_slices__free(struct trace_slices *slices);

#endif
