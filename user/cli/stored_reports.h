/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports that jobs left, as their owners and root find them. */
#ifndef VAPRO_CLI_STORED_REPORTS_H
#define VAPRO_CLI_STORED_REPORTS_H

#include <stddef.h>
#include <stdio.h>

#include "reports/report_store.h"

/* The reports in DIR of vaprod's --job-reports, the latest first. */
struct stored_reports;

/*
 * Lists one's own reports; root's list has those of all users. Returns them, also where there are none, or NULL with a
 * sentence in err. The directory's text stays the caller's.
 */
struct stored_reports *stored_reports__list(const char *directory, char *err, size_t err_size);
void stored_reports__free(struct stored_reports *reports);

/* Returns them, and their number in *count. */
const struct store_report *stored_reports__items(const struct stored_reports *reports, size_t *count);

/* Writes the path of a file of a report, which has size bytes. */
void stored_reports__path(const struct stored_reports *reports, const struct store_report *report, enum store_file file,
			  char *path, size_t size);

/* Returns the latest report on a job (as job_names__match() has it), or NULL. */
const struct store_report *stored_reports__find(const struct stored_reports *reports, const char *job);

/* Opens a file of a report for reading, which may be another user's: it is a plain file, or NULL with errno. */
FILE *stored_reports__open(const struct stored_reports *reports, const struct store_report *report,
			   enum store_file file);

#endif
