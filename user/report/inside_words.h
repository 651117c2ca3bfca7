/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions in which slow computation ran, for records and for people. */
#ifndef VAPRO_INSIDE_WORDS_H
#define VAPRO_INSIDE_WORDS_H

#include <cjson/cJSON.h>
#include <vapro/analysis.h>

#include "report/source_names.h"

/*
 * Adds `inside`, the functions with most samples first; adds nothing where none was taken. The
 * places of one function, and of what is inlined into it, are one entry with the place that has most samples; places
 * without a known function are one entry for each file. names may be NULL.
 */
bool inside_words__add_json(cJSON *object, const struct result_variance *variance, const struct source_names *names);

/*
 * Returns the functions that have most samples as a phrase, "82 % in dgemm (blas.c:120), 9 % in the kernel": of a
 * record, or of a result. malloc'ed; NULL where none was sampled, and when out of memory.
 */
char *inside_words__of_record(const cJSON *record);
char *inside_words__of(const struct result_variance *variance, const struct source_names *names);

#endif
