/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What vaprod and the process that writes job reports say to each other, over a stream socket. Private to both sides.
 */
#ifndef VAPRO_REPORTS_FRAME_H
#define VAPRO_REPORTS_FRAME_H

#include <stdint.h>

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

#endif
