/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of records, read and written by the keys of the table of records (record_table.h): a key that is not in it
 * does not compile. When read, what is missing or of another type is as if it were not there; when written, a key has
 * its name and the digits of its number from the table.
 */
#ifndef VAPRO_REPORT_RECORD_H
#define VAPRO_REPORT_RECORD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <vapro/analysis.h>

#include "records/record_table.h"

struct source_names;

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
const char *record__member_text(const cJSON *object, const char *name);
double record__member_number(const cJSON *object, const char *name, double missing); /* finite, else missing */
uint64_t record__member_uint(const cJSON *object, const char *name); /* whole, from 0 on; 0 without it */

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

/*
 * A line is shorter than this, with its newline: shippers of logs drop or cut longer ones by default. Rows of heat maps
 * are divided among lines; lists of other records lose their last items, which `omitted` counts.
 */
#define RECORD_LINE_MOST 65536

/* Receives one record as a line without its newline. A negative return ends the writing and is passed on. */
typedef int (*record_put)(void *arg, enum record_object type, const char *line);

/* Makes a record with schema, type, time and host, or returns NULL. */
cJSON *record__begin(enum record_object type, uint64_t utc_ns, const char *host);

/* Finishes and puts a record; ok is false where a part of it could not be built. Returns -ENOMEM or the value of put.
 */
int record__emit(enum record_object type, cJSON *object, bool ok, record_put put, void *arg);

/* Put a key; NULL text and NAN become null. A failed allocation shows in the return value only. */
bool record__put(cJSON *object, enum record_row key, cJSON *item); /* takes the item; NULL fails */
bool record__put_text(cJSON *object, enum record_row key, const char *text);
bool record__put_number(cJSON *object, enum record_row key, double value);
bool record__put_uint(cJSON *object, enum record_row key, uint64_t value); /* exact beyond 2^53 too */
bool record__put_bool(cJSON *object, enum record_row key, bool value);
bool record__put_null(cJSON *object, enum record_row key);
bool record__put_time(cJSON *object, enum record_row key, uint64_t utc_ns);
bool record__put_ranks(cJSON *object, enum record_row key, const int32_t *ranks, uint32_t count);
bool record__put_shared(cJSON *object, enum record_row key, const struct result_shared *shared, uint32_t count);
bool record__put_factors(cJSON *object, enum record_row key, const double *factor); /* positive factors only */

/* Puts the keys of a state; null for time that belongs to no state. names may be NULL. */
bool record__put_state(cJSON *object, const struct vapro_state *state, const struct source_names *names);

/* Puts the job of a record, and its user where known. */
bool record__put_job(cJSON *object, const char *job, uint32_t user);

/* Puts a number under a name into an object whose keys are names of a fixed set; the row of the object has the digits.
 */
bool record__put_named(cJSON *map, enum record_row key, const char *name, double value);

/* Put an empty object or list, or append an empty object to a list; return it, or NULL. */
cJSON *record__put_object(cJSON *object, enum record_row key);
cJSON *record__put_list(cJSON *object, enum record_row key);
cJSON *record__append(cJSON *list);

#endif
