/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading members of records; what is missing or of another type is as if it were not there. */
#ifndef VAPRO_REPORT_RECORD_H
#define VAPRO_REPORT_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "records/record_table.h"

/* Read a key of the table of records. */
const char *record__text(const cJSON *object, enum record_row key); /* NULL without it */
double record__number(const cJSON *object, enum record_row key, double missing);
uint64_t record__uint(const cJSON *object, enum record_row key);
bool record__true(const cJSON *object, enum record_row key);
bool record__time(const cJSON *object, enum record_row key, uint64_t *utc_ns);
const cJSON *record__item(const cJSON *object, enum record_row key);

/* Returns the type of a record; RECORD_OBJECTS for one that this version does not know, or that has none. */
enum record_object record__type(const cJSON *record);

/* The same for members that are no keys of the table: of maps, and of other objects than records. */
const char *member__text(const cJSON *object, const char *name);
double member__number(const cJSON *object, const char *name, double missing); /* finite, else missing */
uint64_t member__uint(const cJSON *object, const char *name);		      /* whole, from 0 on; 0 without it */

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
