/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What vaprod and the process that writes job reports say to each other over a stream socket (reporter.c and
 * reporter_serve.c), and what writes the files of a report with the rights of the job's user (write.c).
 */
#ifndef VAPRO_REPORTS_REPORTER_PRIVATE_H
#define VAPRO_REPORTS_REPORTER_PRIVATE_H

#include "reports/reporter.h"
#include "reports/spool.h"

enum report_frame_kind {
	REPORT_OPEN,   /* text: the identity of a job, of which lines follow */
	REPORT_LINE,   /* text: a record */
	REPORT_WRITE,  /* the report of a job is written; count: lines of it that were lost on the way */
	REPORT_CLOSE,  /* the same, and no more lines come */
	REPORT_FINISH, /* vaprod ends: the reports of all jobs that are open are written, and marked incomplete */
	/* the other way */
	REPORT_FAILED,	/* a report was not written; count: the errno */
	REPORT_DROPPED, /* lines of a job were not stored; count: how many */
	REPORT_REMOVED, /* old reports were removed; count: how many files */
};

struct report_frame {
	uint32_t kind, bytes; /* bytes of the text that follows */
	uint64_t key;	      /* of the job: reporter__key() */
	uint32_t user;	      /* as in struct vapro_thread */
	uint32_t count;
};

#define REPORT_TEXT_MOST (4U << 20) /* bytes of a frame's text */

/* Serves in the process. Returns an exit status. */
int reporter__serve(int socket, const struct reporter_options *options);

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
int reporter__write_report(const struct write_request *request, struct spool_job *job);

/* Removes old reports of all users. Returns how many files were removed. */
unsigned reporter__remove_old(const struct reporter_options *options, int jobs);

#endif
