/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines that are retained when put and parsed back, for tests of their writers. */
#ifndef VAPRO_TESTS_PARSED_H
#define VAPRO_TESTS_PARSED_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

#include "records/record_table.h"

static char *lines[64];
static size_t line_count;

/* Adds a line to the file that VAPRO_TEST_LINES names, if set: tests/tools/test_records.py validates it. */
static inline void leave_line(const char *line)
{
	const char *path = getenv("VAPRO_TEST_LINES");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!path)
		return;
	assert_non_null(file);
	assert_true(fprintf(file, "%s\n", line) > 0);
	assert_int_equal(fclose(file), 0);
}

static inline int keep(void *arg, enum record_object type, const char *line)
{
	assert_int_equal(record_table__type_of(line), type);
	assert_true(line_count < 64);
	assert_null(strchr(line, '\n'));
	leave_line(line);
	lines[line_count++] = strdup(line);
	return arg ? *(int *)arg : 0;
}

static inline int clear(void **state)
{
	(void)state;
	while (line_count)
		free(lines[--line_count]);
	return 0;
}

/* Parses a retained line, which must be JSON. */
static inline cJSON *parsed(size_t number)
{
	cJSON *object = cJSON_ParseWithOpts(lines[number], NULL, true);

	assert_non_null(object);
	return object;
}

static inline const cJSON *at(const cJSON *object, const char *path)
{
	char copy[128], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, "/", &rest); key; key = strtok_r(NULL, "/", &rest)) {
		object = *key >= '0' && *key <= '9' ? cJSON_GetArrayItem(object, atoi(key))
						    : cJSON_GetObjectItemCaseSensitive(object, key);
		if (!object)
			fail_msg("%s is missing", path);
	}
	return object;
}

static inline void is_text(const cJSON *object, const char *path, const char *text)
{
	assert_true(cJSON_IsString(at(object, path)));
	assert_string_equal(at(object, path)->valuestring, text);
}

static inline void is_number(const cJSON *object, const char *path, double number)
{
	assert_true(cJSON_IsNumber(at(object, path)));
	assert_true(fabs(at(object, path)->valuedouble - number) < 1e-12);
}

static inline void is_null(const cJSON *object, const char *path)
{
	assert_true(cJSON_IsNull(at(object, path)));
}

#endif
