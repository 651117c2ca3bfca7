/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directories of job reports: DIR/jobs/UID, one for each user, the user's own and closed to others. Files in it are
 * written with the rights of the user only: whatever a user puts there (links, devices, another file system) concerns
 * that user. DIR and DIR/jobs are root's. A user's directory is made by the user's rights, too: DIR/jobs admits the
 * group of root, which a process that root has handed to the user holds for this one call.
 */
#ifndef VAPRO_REPORTS_REPORT_STORE_H
#define VAPRO_REPORTS_REPORT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define STORE_DIRECTORY "/var/lib/vapro" /* where the shipped unit has it */
#define STORE_NAME_SIZE 200		 /* of a report's name, without the ending of its files */

/* The files of a report, by their endings. */
enum store_file { STORE_RECORDS, STORE_PAGE, STORE_TEXT, STORE_FILES };
extern const char *const store_ending[STORE_FILES];

/* Makes DIR/jobs and DIR/spool and opens them. Returns 0 or -errno. */
int report_store__open(const char *directory, int *jobs, int *spool);

/*
 * Gives up the rights of root for those of a user, for the rest of the process, and opens the user's directory, which
 * is made where it is missing. Returns a descriptor, or -errno: -EXDEV where another file system is mounted there,
 * -EPERM where it is not the user's.
 */
int report_store__enter(int jobs, uid_t uid);

/* Opens a user's directory as it is. Returns a descriptor, or -errno as report_store__enter(). */
int report_store__look(int jobs, uid_t uid);

/* Writes the name of a job's report: its identity, as a file's name; number: 1, or of a later one of the same job. */
void report_store__name(const char *identity, unsigned number, char name[STORE_NAME_SIZE]);

/* Returns the identity that a name stands for, in buf, of STORE_NAME_SIZE bytes. */
char *report_store__identity(const char *name, char *buf);

/* Returns whether a report of that name is there. */
bool report_store__has(int directory, const char *name);

/*
 * Begins to write a file, and ends it: it gets its name when it is whole. Begin returns NULL with errno; end, with what
 * writing returned, 0 or -errno, and the file is removed where there is an error.
 */
FILE *report_store__begin(int directory, const char *name, enum store_file file);
int report_store__end(int directory, const char *name, enum store_file file, FILE *out, int error);

/* A report that is stored. */
struct store_report {
	char name[STORE_NAME_SIZE];
	uid_t uid;	 /* of its directory */
	uint64_t time_s; /* when it was last written, UTC */
	uint64_t bytes;	 /* of its files */
	unsigned files;	 /* bits by enum store_file */
};

#define STORE_REPORTS_MOST 20000 /* of a directory */

/*
 * Lists the reports of a user's directory; other files are passed over. Adds to *reports, which grow() allocates. The
 * descriptor stays open. Returns 0 or -errno.
 */
int report_store__list(int directory, uid_t uid, struct store_report **reports, size_t *count, size_t *capacity);

/* Sorts reports, the latest first. */
void report_store__sort(struct store_report *reports, size_t count);

/*
 * Chooses what is to be removed of sorted reports: those written before old_s, then, while there are more bytes, the
 * oldest of the user who has most. Sets removed, an array of count zeros. bytes 0: no bound. Returns how many.
 */
size_t report_store__choose(const struct store_report *reports, size_t count, uint64_t old_s, uint64_t bytes,
			    bool *removed);

/* Removes the files of a report. Returns how many were removed. */
unsigned report_store__remove(int directory, const char *name);

#endif
