/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a run for `vapro diff` and `vapro runs`: captures, profiles, fragments as NDJSON, or the NDJSON output of
 * vaprod. An operand is a file, a directory, all of whose files are hosts of one run, or several files joined by
 * commas.
 */
#ifndef VAPRO_DIFF_RUN_H
#define VAPRO_DIFF_RUN_H

#include <stdbool.h>

#include "capture/stream.h"
#include "compare/profile.h"
#include "report/diff_report.h"

enum diff_input {
	DIFF_CAPTURE,
	DIFF_FRAGMENTS,
	DIFF_RECORDS,
	DIFF_PROFILE, /* of vaprod --profiles */
	DIFF_UNKNOWN, /* as the first file begins */
};

struct diff_run {
	const char *command; /* for messages */
	bool every;	     /* each run of a file is read: it is not said which one this is */
	const char *operand;
	char **files;
	size_t file_count;
	enum diff_input input;
	struct profile *profile;
	struct diff_records records;
	char host[256];
	bool cut; /* a capture was cut short */
	uint64_t bad_lines;
};

/* Lists the files of an operand and finds out what they are. Returns 0, or a negative errno with a sentence in err. */
int diff_run__open(struct diff_run *run, const char *command, const char *operand, enum diff_input input, char *err,
		   size_t err_size);

/* Counts the runs of an operand that is one file; 1 of several files and of fragments. Returns as diff_run__open(). */
int diff_run__count(const struct diff_run *run, size_t *count, char *err, size_t err_size);

/*
 * Reads them; number: as of --run. window_s: of fragments. Notes go to standard error. Returns 0, or a negative errno
 * with a sentence in err.
 */
int diff_run__read(struct diff_run *run, int number, char *err, size_t err_size);
void diff_run__close(struct diff_run *run);

/* A sink that fills a profile, which remains the caller's. */
struct diff_sink {
	struct stream_sink sink;
	struct profile *profile;
	uint64_t refused; /* bundles with ids that are not known */
};

void diff_run__init_sink(struct diff_sink *sink, struct profile *profile);

/* diff_records.c: reads NDJSON output, and counts its runs. */
int diff_run__read_records(struct diff_run *run, int number, char *err, size_t err_size);
int diff_run__count_records(const struct diff_run *run, size_t *count, char *err, size_t err_size);

#endif
