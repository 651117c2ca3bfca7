/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing records: each function puts one key of the table of records (record_table.h), by which it has its name and
 * the digits of its number. A key that is not in the table does not compile.
 */
#ifndef VAPRO_REPORT_RECORD_WRITE_H
#define VAPRO_REPORT_RECORD_WRITE_H

#include <cjson/cJSON.h>
#include <vapro/analysis.h>

#include "records/record_table.h"

struct source_names;

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
