/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records that a unit test leaves for tests/run.sh, which searches them for contradictions: files in the directory that
 * VAPRO_UNIT_RECORDS names; without it nothing is written.
 */
#ifndef VAPRO_TESTS_WRITTEN_RECORDS_H
#define VAPRO_TESTS_WRITTEN_RECORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "records/record_table.h"

/* Opens a further file, of one run; NULL where none is wanted. */
static inline FILE *written_records__open(void)
{
	static unsigned count;
	const char *directory = getenv("VAPRO_UNIT_RECORDS");
	char path[4096];

	if (!directory ||
	    snprintf(path, sizeof(path), "%s/%d-%u.ndjson", directory, (int)getpid(), ++count) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "w");
}

/* Puts a line into a file, as record_put. */
static inline int written_records__put(void *file, enum record_object type, const char *line)
{
	(void)type;
	return fprintf(file, "%s\n", line) < 0;
}

/* Leaves the lines of a run. */
static inline void written_records__all(const char *lines)
{
	FILE *file = written_records__open();

	if (!file)
		return;
	fputs(lines, file);
	fclose(file);
}

#endif
