/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the files of a job's report, with the rights of the job's user. */
#ifndef VAPRO_REPORTS_WRITE_H
#define VAPRO_REPORTS_WRITE_H

#include "reports/reporter.h"
#include "reports/spool.h"

#define WRITE_SECONDS 20 /* that a report may take; then its process is ended */

struct write_request {
	const struct reporter_options *options;
	int jobs, spool;	/* directories */
	const char *incomplete; /* why the report is not of the whole job; NULL: it is */
	uint64_t lost;		/* lines that are in no record, beside those that the spool dropped */
};

/*
 * Writes a report in a process of its own, and sets job->number where it was not set. Returns 0 or -errno: of the first
 * file that could not be written, -ETIMEDOUT where it took too long.
 */
int write__report(const struct write_request *request, struct spool_job *job);

/* Removes old reports of all users. Returns how many files were removed. */
unsigned write__retain(const struct reporter_options *options, int jobs);

#endif
