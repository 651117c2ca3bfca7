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
#include "report/sink.h"

static char *lines[64];
static size_t line_count;

static inline int keep(void *arg, enum record_object type, const char *line)
{
	assert_int_equal(record_table__type_of(line), type);
	assert_true(line_count < 64);
	assert_null(strchr(line, '\n'));
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

/* Writes the retained lines for schema_check.py to the file that VAPRO_TEST_LINES names, if set. */
static inline void leave_lines(void)
{
	const char *path = getenv("VAPRO_TEST_LINES");
	struct line_sink *sink;

	if (!path)
		skip();
	sink = line_sink__open(path, false);
	for (size_t i = 0; i < line_count; i++)
		line_sink__put(sink, lines[i]);
	assert_int_equal(line_sink__close(sink), 0);
}

#endif
