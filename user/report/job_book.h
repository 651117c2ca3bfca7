/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What people call jobs (base/job_names.h), by the identity and user of a job: learnt from the records of processes,
 * written into those of windows. Of more than JOB_BOOK_MOST jobs those that were looked up last stay.
 */
#ifndef VAPRO_REPORT_JOB_BOOK_H
#define VAPRO_REPORT_JOB_BOOK_H

#include <cjson/cJSON.h>

#include "base/archive.h"
#include "base/job_names.h"
#include "records/record_table.h"

#define JOB_BOOK_MOST 256

struct job_book;

/* Returns an empty one, or NULL when out of memory. */
struct job_book *job_book__new(void);
void job_book__free(struct job_book *book);

/* Notes the names of a job. Returns 0, also where there are none, or -ENOMEM. */
int job_book__note(struct job_book *book, const char *job, uint32_t user, const struct job_names *names);

/* Notes those of a `process` record as a line. Returns 0 or -ENOMEM. */
int job_book__note_line(struct job_book *book, const char *line);

/* Returns the names of a job, valid until the next change, or NULL. */
const struct job_names *job_book__find(struct job_book *book, const char *job, uint32_t user);

/* Returns of how many jobs names are known. */
size_t job_book__count(const struct job_book *book);

/* Saves or loads it (docs/checkpoint.md). */
void job_book__archive(struct archive *archive, struct job_book *book);

/* Puts names as an object; NULL, or without a source: nothing. Returns false when out of memory. */
bool job_book__put(cJSON *object, enum record_row key, const struct job_names *names);

/* Reads such an object; NULL: no names. */
void job_book__read(const cJSON *object, struct job_names *names);

#endif
