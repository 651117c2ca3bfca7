/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports that jobs leave their owners. vaprod hands the records of each job, as the job's user may see them, to a
 * process of its own, which stores them in a directory of root's (DIR/spool) and, when the job has ended, writes
 * records, page and text into a directory of the user's (DIR/jobs/UID, mode 0700), with the user's rights. vaprod
 * itself never waits for a file: what the process does not accept is held up to a bound, and counted beyond it. Records
 * of jobs that a vaprod left when it was killed are written at the next start, and marked incomplete.
 */
#ifndef VAPRO_REPORTS_REPORTER_H
#define VAPRO_REPORTS_REPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reporter;

struct reporter_options {
	const char *directory;
	double age_s;	/* reports that are older are removed; 0: none is */
	uint64_t bytes; /* beyond, the oldest of the user who has most are removed; 0: no bound */
	const char *version, *host;
};

/*
 * Starts the process: before vaprod has any probe or thread, since it is a copy of vaprod. Returns NULL with a sentence
 * in err. The options' texts stay the caller's.
 */
struct reporter *reporter__start(const struct reporter_options *options, char *err, size_t err_size);

/* A process of a job that runs at present. */
struct reporter_process {
	const char *job;
	uint32_t user; /* as in struct vapro_thread */
	bool ended;
};

/*
 * Hands over a record of a job; a job without a user has no report. begins: a process of the job is watched from now
 * on. Records of a job that has none, or had, are of no report.
 */
void reporter__line(struct reporter *reporter, const char *job, uint32_t user, const char *line, bool begins);

/* Notes which processes run, some once a second: a job without any has ended. now_ns: CLOCK_MONOTONIC. */
void reporter__see(struct reporter *reporter, const struct reporter_process *processes, size_t count, uint64_t now_ns);

/* Notes that the records of all that was before end_ns (CLOCK_MONOTONIC) are there: reports of ended jobs are due. */
void reporter__window_ended(struct reporter *reporter, uint64_t end_ns);

/* Sends what the process accepts, and reads what it says; never waits. */
void reporter__step(struct reporter *reporter, uint64_t now_ns);

/*
 * Gets what went wrong since the last call, as a sentence. Returns whether there is something. To be called until there
 * is nothing.
 */
bool reporter__news(struct reporter *reporter, char *text, size_t size);

/* Returns how many files of old reports were removed since the last call. */
uint64_t reporter__removed(struct reporter *reporter);

/* Has the reports of all jobs written, and waits for the end of the process, patience_ns at most. NULL is fine. */
void reporter__finish(struct reporter *reporter, uint64_t patience_ns);

/* Returns the number of a job. */
uint64_t reporter__key(const char *job, uint32_t user);

#endif
