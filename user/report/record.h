/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading members of records; what is missing or of another type is as if it were not there. */
#ifndef VAPRO_REPORT_RECORD_H
#define VAPRO_REPORT_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns a text of the record, or NULL. */
const char *record__text(const cJSON *object, const char *key);

/* Returns a finite number, or `missing`. */
double record__number(const cJSON *object, const char *key, double missing);

/* Returns a whole number from 0 on; 0 where there is none. */
uint64_t record__uint(const cJSON *object, const char *key);
bool record__true(const cJSON *object, const char *key);
bool record__time(const cJSON *object, const char *key, uint64_t *utc_ns);
const cJSON *record__item(const cJSON *object, const char *key);

/*
 * Returns the call-site of a variance whose state an exemplar names by its `state_id`; NULL where it lists none of
 * them.
 */
const cJSON *record__site_of(const cJSON *variance, const cJSON *exemplar);

/* Returns the position of a word in a list of names; count where it is in none or NULL. */
int record__word(const char *word, const char *const *names, int count);

/*
 * Parses ranks as in "?,0-3,7" into a new list, in which ? is -1; none for NULL or a wrong text. Returns 0 or -ENOMEM.
 */
int record__ranks(const char *text, int32_t **ranks, uint32_t *count);

#endif
