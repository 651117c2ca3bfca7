/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variances that nodes found among their own ranks. An analysis of all ranks of a job names those that each of its
 * variances contains: of the same class, with at least half of their time and half of their ranks inside.
 */
#ifndef VAPRO_REPORT_NODE_VARIANCES_H
#define VAPRO_REPORT_NODE_VARIANCES_H

#include <cjson/cJSON.h>
#include <vapro/analysis.h>
#include "base/archive.h"

/* Zero is empty. */
struct node_variances {
	struct node_variance *items; /* oldest first */
	size_t count, capacity;
	size_t rank_count; /* of all items */
};

/*
 * Notes a record of the type variance and the scope node; a later revision replaces an earlier one. The oldest are
 * dropped beyond a fixed number. Returns 0, -EINVAL for another or a wrong record, or -ENOMEM.
 */
int node_variances__note(struct node_variances *nodes, const cJSON *record);

/* Adds `contains` to the record of a job's variance, where it contains any. Returns false when out of memory. */
bool node_variances__add(const struct node_variances *nodes, cJSON *record, const struct job_result *result,
			 const struct result_variance *variance);

/* Writes or reads all of them; an object to be read is empty. */
void node_variances__archive(struct archive *archive, struct node_variances *nodes);

void node_variances__clear(struct node_variances *nodes);

#endif
