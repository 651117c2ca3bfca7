/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of running jobs on disk (DIR/spool, root's alone): of each job its records, KEY.ndjson, and whose they
 * are, KEY.job. They outlive vaprod: what is there at a start is of jobs whose report was not written.
 */
#ifndef VAPRO_REPORTS_SPOOL_H
#define VAPRO_REPORTS_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SPOOL_JOB_BYTES (48ULL << 20) /* of a job: beyond, first maps and then other records are dropped */
#define SPOOL_BYTES (2ULL << 30)      /* of all jobs */
#define SPOOL_IDENTITY_SIZE 320

/* A job in the spool. */
struct spool_job {
	uint64_t key, bytes, dropped; /* dropped: lines that were not stored */
	uid_t uid;
	char identity[SPOOL_IDENTITY_SIZE];
	unsigned number; /* of its report among those of one name; 0: not chosen yet */
	bool left;	 /* by an earlier vaprod */
};

/* Stores whose job it is. Returns 0 or -errno. */
int spool__open(int spool, const struct spool_job *job);

/* Adds a record. all: bytes of all jobs. Returns whether it was stored; else job->dropped counts it. */
bool spool__add(int spool, struct spool_job *job, uint64_t *all, const char *line, size_t size);

/* Opens the records of a job for reading. NULL with errno: there are none. */
FILE *spool__read(int spool, const struct spool_job *job);

/* Removes a job. */
void spool__remove(int spool, const struct spool_job *job);

/* Calls found for each job that is there, until it returns false. Others' files are removed. */
void spool__each(int spool, bool (*found)(void *ctx, const struct spool_job *job), void *ctx);

#endif
