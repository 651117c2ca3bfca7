/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of `vapro diff` for people (as tables) and for programs (as records of type diff). */
#ifndef VAPRO_DIFF_REPORT_H
#define VAPRO_DIFF_REPORT_H

#include <stdio.h>

#include "compare/compare.h"

/* Sums over the NDJSON output of a run; a variance counts with its last state. */
struct diff_cause {
	char name[32];
	double seconds;
};

struct diff_records {
	double coverage, performance; /* means over the windows' time; NAN: none */
	double window_s;
	double lost_s[VAPRO_CLASSES];
	uint32_t variances, alarms;
	struct diff_cause *causes;
	size_t cause_count, cause_capacity;
};

struct diff_report {
	const struct comparison *found;
	const char *name[2]; /* A, B, as the user wrote them */
	const char *host[2];
	const struct diff_records *records[2]; /* NULL: from captures or fragments */
	double threshold;
	int32_t rank; /* only rows of this rank; COMPARE_ALL: all */
	bool all;     /* also what did not change */
	unsigned width;
};

/* How many rows are named as slower, and as faster. */
unsigned diff_report__slower(const struct diff_report *report);
unsigned diff_report__faster(const struct diff_report *report);

/* The result as a sentence or two. */
void diff_report__verdict(const struct diff_report *report, char *text, size_t size);

/* What the comparison lacks, number i from 0. Returns false after the last one. */
bool diff_report__note(const struct diff_report *report, unsigned i, char *text, size_t size);

void diff_report__text(const struct diff_report *report, FILE *out);

/* One record a line. Returns 0 or -ENOMEM. */
int diff_report__json(const struct diff_report *report, FILE *out);

/* "rank 3", "thread 3", "process 3". */
const char *diff_report__unit_word(const struct comparison *found);

/* Writes how the state of a row is called: its call-sites as functions where they are known. */
void diff_report__state(const struct comparison *found, const struct compare_row *row, char *text, size_t size);

/* Whether a row is shown. */
bool diff_report__shows(const struct diff_report *report, const struct compare_row *row);

/* The ranks of named rows of a kind of comparison in one direction as "0-3,7"; malloc'ed, NULL when out of memory. */
char *diff_report__ranks(const struct diff_report *report, enum compare_what what, bool slower, uint32_t *count);

#endif
