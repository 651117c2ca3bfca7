/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/record_table.h"

#include <string.h>

#include <vapro/analysis.h>

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof(*(list))))
#define LIST_OF(...) ((const char *const[]){__VA_ARGS__})

/* The types of records.def, as members of a row. */
#define LIST .list = true,
#define TEXT .value = RECORD_TEXT
#define WORDS(...) .value = RECORD_TEXT, .words = LIST_OF(__VA_ARGS__), .word_count = COUNT_OF(LIST_OF(__VA_ARGS__))
#define WORDS_FROM(table, first)                                                                                       \
	.value = RECORD_TEXT, .words = (table) + (first), .word_count = COUNT_OF(table) - (int)(first)
#define WORDS_OF(table) WORDS_FROM(table, 0)
#define NAME .value = RECORD_NAME
#define TIME .value = RECORD_TIME
#define RANKS .value = RECORD_RANKS
#define BOOLEAN .value = RECORD_BOOLEAN
#define INTEGER .value = RECORD_INTEGER
#define COUNT INTEGER AT_LEAST(0)
#define POSITIVE INTEGER AT_LEAST(1)
#define NUMBER(places) .value = RECORD_NUMBER, .digits = (places)
#define UNROUNDED RECORD_UNROUNDED
#define PERCENT(places, of_what) NUMBER(places), .whole = (of_what)
#define OBJECT(name) .value = RECORD_PART, .part = RECORD_OBJECT_##name
#define NUMBERS(places) .value = RECORD_NUMBERS, .digits = (places)
#define NAMES(...) , .words = LIST_OF(__VA_ARGS__), .word_count = COUNT_OF(LIST_OF(__VA_ARGS__))
#define NAMES_OF(table) , .words = (table), .word_count = COUNT_OF(table)
#define SETTINGS .value = RECORD_SETTINGS
#define AT_LEAST(bound) , .has_least = true, .least = (bound)
#define AT_MOST(bound) , .has_most = true, .most = (bound)
#define NULLABLE , .nullable = true
#define OPTIONAL , .optional = true
#define ONLY(...) , .only = LIST_OF(__VA_ARGS__), .only_count = COUNT_OF(LIST_OF(__VA_ARGS__))
/* the changes of a comparison, and those of them that are ratios */
#define CLASSES "computation", "communication", "io"
/* the conditions of threads, in the order of the writer */
#define ACCOUNT "on_cpu", "preempted", "wakeup_wait", "throttled", "stopped", "steal", "blocked_io", "blocked_other"
#define CHANGES RATIOS, "cause"
#define RATIOS "job", "host", "rank", "state"

#undef KEY
const struct record_key record_keys[RECORD_ROWS] = {
#define RECORD(...)
#define PART(...)
#define KEY(in, key, type, phrase) {.name = #key, .object = RECORD_OBJECT_##in, .text = (phrase), type},
#define INCLUDE(in, included) {.object = RECORD_OBJECT_##in, .value = RECORD_INCLUDE, .part = RECORD_OBJECT_##included},
#include "records/records.def"
};

const struct record_object_info record_objects[RECORD_OBJECTS] = {
#define RECORD(object, sentence) [RECORD_OBJECT_##object] = {.name = #object, .text = (sentence), .is_record = true},
#define PART(object, phrase) [RECORD_OBJECT_##object] = {.name = #object, .text = (phrase)},
#define KEY(...)
#define INCLUDE(...)
#include "records/records.def"
};

enum record_object record_table__type_of(const char *line)
{
	static const char begin[] = "{\"schema\":\"" RECORD_SCHEMA "\",\"type\":\"";
	const char *name = line + sizeof(begin) - 1;

	if (strncmp(line, begin, sizeof(begin) - 1))
		return RECORD_OBJECTS;
	for (int i = 0; i < RECORD_OBJECTS; i++) {
		size_t length = strlen(record_objects[i].name);

		if (record_objects[i].is_record && !strncmp(name, record_objects[i].name, length) &&
		    name[length] == '"')
			return (enum record_object)i;
	}
	return RECORD_OBJECTS;
}
