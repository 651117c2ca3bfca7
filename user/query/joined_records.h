/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshots, or the reports, of several vaprods of a node as if one had written them: its status record is that of the
 * vaprod that runs the longest. A job that several watch is taken from the one that has most of its processes, else from
 * the one that runs longer.
 */
#ifndef VAPRO_QUERY_JOINED_RECORDS_H
#define VAPRO_QUERY_JOINED_RECORDS_H

#include <stddef.h>

#define JOINED_PARTS 16 /* at most */

/* What one vaprod has responded: NDJSON. */
struct joined_part {
	const char *text; /* NULL: nothing */
	size_t size;
};

/*
 * Joins at most JOINED_PARTS responses; later ones do not count. Returns the records, malloc'ed and NUL-terminated, *size:
 * without the NUL; or NULL when out of memory. Lines that are not records are left out where there are several responses.
 */
char *joined_records__make(const struct joined_part *parts, size_t count, size_t *size);

#endif
