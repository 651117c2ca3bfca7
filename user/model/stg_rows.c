/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/stg_private.h"

#include <stdlib.h>
#include <string.h>

static int compare_rows(const struct stg_row *a, const struct stg_row *b)
{
	int host;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank < 0) {
		host = strcmp(a->host, b->host);
		if (host)
			return host;
		if (a->pid != b->pid)
			return a->pid < b->pid ? -1 : 1;
	}
	return (a->thread > b->thread) - (a->thread < b->thread);
}

static int compare_places(const void *a, const void *b, void *rows)
{
	return compare_rows((const struct stg_row *)rows + *(const uint32_t *)a,
			    (const struct stg_row *)rows + *(const uint32_t *)b);
}

/* Hosts in the order of their first ranks. */
static int compare_neighbours(const void *a, const void *b, void *ctx)
{
	const struct stg_job *job = ctx;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct stg_row *x = &job->rows[left], *y = &job->rows[right];
	/* Threads stay with their rank. */
	int32_t x_socket = job->rows[x->leader].socket, y_socket = job->rows[y->leader].socket;

	if (x->host_place != y->host_place)
		return x->host_place < y->host_place ? -1 : 1;
	if (x_socket != y_socket)
		return x_socket < y_socket ? -1 : 1;
	return job->place[left] < job->place[right] ? -1 : job->place[left] > job->place[right];
}

void stg__order_rows(struct stg_job *job)
{
	uint32_t *first = job->neighbours; /* by host: there are no more hosts than rows */

	qsort_r(job->order, job->row_count, sizeof(*job->order), compare_places, job->rows);
	for (size_t place = job->row_count; place-- > 0;) {
		job->place[job->order[place]] = (uint32_t)place;
		first[job->rows[job->order[place]].host_number] = (uint32_t)place;
	}
	for (size_t row = 0; row < job->row_count; row++)
		job->rows[row].host_place = first[job->rows[row].host_number];
	memcpy(job->neighbours, job->order, job->row_count * sizeof(*job->neighbours));
	qsort_r(job->neighbours, job->row_count, sizeof(*job->neighbours), compare_neighbours, job);
	job->unordered = false;
}
