/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of variability as a table for people. */
#ifndef VAPRO_REPORT_VARIABILITY_TEXT_H
#define VAPRO_REPORT_VARIABILITY_TEXT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>

/* Orders records by job, in a job the most time first; for qsort. */
int variability_text__compare(const void *a, const void *b);

/* Prints records that are in order, each job with its name where there are several; none print nothing. */
void variability_text__print(cJSON *const *records, size_t count, FILE *out, unsigned width);

/*
 * Writes what stands below a workload in the table: its slow ranks, its unknown work, its calls. Returns text, which is
 * empty where there is nothing to say.
 */
#define VARIABILITY_NOTE_SIZE 1024
char *variability_text__note(const cJSON *record, char text[VARIABILITY_NOTE_SIZE]);

#endif
