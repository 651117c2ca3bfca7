/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of the profiles of ranks as a table for people. */
#ifndef VAPRO_REPORT_PROFILE_TEXT_H
#define VAPRO_REPORT_PROFILE_TEXT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include <vapro/bundle.h>

/* The time of a rank by class, seconds. */
struct profile_sums {
	double all, class[VAPRO_CLASSES], waiting, not_seen;
};

/* Orders records by job and rank; for qsort. */
int profile_text__compare(const void *a, const void *b);

/* Sums up a record. */
struct profile_sums profile_text__sums(const cJSON *record);

/* Prints records that are in order, each job with its name where there are several; none print nothing. */
void profile_text__print(cJSON *const *records, size_t count, FILE *out);

#endif
