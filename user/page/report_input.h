/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads what a report is made of: NDJSON output of vaprod; or captures, or fragments as NDJSON, which are replayed in
 * this process into the records that a live run writes, with the tunables of the capture; or what a running vaprod has
 * responded.
 */
#ifndef VAPRO_PAGE_REPORT_INPUT_H
#define VAPRO_PAGE_REPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "capture/file_kind.h"
#include "page/run_report.h"

struct report_input {
	const char *command;	  /* that reads it, for notes; NULL: report */
	const char *const *files; /* "-": standard input */
	size_t count;
	FILE *live;	 /* records of a running vaprod or a broker, which is the only one of files; or NULL */
	int run;	 /* as --run */
	const char *job; /* only this one; NULL: all */
	/* filled: */
	enum file_kind kind;   /* records, captures or fragments */
	size_t run_read, runs; /* the number of the run, from 1, and how many there are */
	uint64_t bad_lines;
	bool cut; /* a capture was cut short */
};

/*
 * Reads all files into a new report and finishes it. Several files of records or captures are hosts of one run.
 * Notes go to standard error. Returns 0, or a negative errno with a sentence in err; the report is to be freed in both
 * cases.
 */
int report_input__read(struct report_input *input, struct run_report *report, char *err, size_t err_size);

#endif
