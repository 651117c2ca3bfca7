/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of every line of NDJSON (ARCHITECTURE section 9): times, rank ranges, rounded numbers, text that is valid
 * UTF-8 whatever a task calls itself.
 */
#ifndef VAPRO_REPORT_JSON_H
#define VAPRO_REPORT_JSON_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <vapro/analysis.h>

#define JSON_TIME_SIZE 96 /* the compiler cannot know that months are below 13 */

/* Writes RFC 3339, UTC, nanoseconds: "2026-01-31T12:00:00.000000000Z". Returns buf, of JSON_TIME_SIZE bytes. */
char *json__time(uint64_t utc_ns, char *buf);

/* Parses the output of json__time(). */
bool json__parse_time(const char *text, uint64_t *utc_ns);

/* Formats ascending ranks as "0-3,7"; -1 (unknown) is "?". malloc'ed, NULL when out of memory. */
char *json__ranks(const int32_t *ranks, uint32_t count);

/* Add members; NULL text and NAN become null. A failed allocation shows in the return value only. */
bool json__add(cJSON *object, const char *key, cJSON *item); /* takes the item; NULL fails */
bool json__add_text(cJSON *object, const char *key, const char *text);
bool json__add_number(cJSON *object, const char *key, double value, int decimals);
bool json__add_uint(cJSON *object, const char *key, uint64_t value); /* exact beyond 2^53 too */
bool json__add_time(cJSON *object, const char *key, uint64_t utc_ns);
bool json__add_to_list(cJSON *list, cJSON *item); /* takes the item; NULL fails */
cJSON *json__number(double value, int decimals);
cJSON *json__text(const char *text);

/* Prints without blanks and frees the object. malloc'ed, NULL when out of memory or object is NULL. */
char *json__finish(cJSON *object);

/* Writes a line of the object, which was filled where ok, and frees it. Returns 0 or -ENOMEM. */
int json__put_line(cJSON *object, bool ok, FILE *out);

/* Names of severities and confidences in lines. */
extern const char *const json_severity_name[VAPRO_SEVERITIES];
extern const char *const json_confidence_name[VAPRO_CONFIRMED + 1];

#endif
