/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of records: names that are used once, words that agree with the tables of names, wholes of percentages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <vapro/analysis.h>

#include "records/record_table.h"

#define KEYS_MOST 100

/* Adds the names of the keys of an object, with those that it includes, and fails where one is there already. */
static int list_keys(enum record_object object, const char **names, int count)
{
	for (int i = 0; i < RECORD_ROWS; i++) {
		const struct record_key *key = &record_keys[i];

		if (key->object != object)
			continue;
		if (key->value == RECORD_INCLUDE) {
			count = list_keys(key->part, names, count);
			continue;
		}
		for (int other = 0; other < count; other++)
			assert_string_not_equal(names[other], key->name);
		assert_true(count < KEYS_MOST);
		names[count++] = key->name;
	}
	return count;
}

static void keys_are_used_once(void **state)
{
	const char *names[KEYS_MOST];

	(void)state;
	for (int i = 0; i < RECORD_OBJECTS; i++)
		assert_true(list_keys((enum record_object)i, names, 0) > 0);
	assert_true(list_keys(RECORD_OBJECT_variance, names, 0) > 30);
}

static void parts_are_used(void **state)
{
	bool used[RECORD_OBJECTS] = {[RECORD_OBJECT_head] = true};

	(void)state;
	for (int i = 0; i < RECORD_ROWS; i++) {
		const struct record_key *key = &record_keys[i];

		if (key->value != RECORD_PART && key->value != RECORD_INCLUDE)
			continue;
		assert_false(record_objects[key->part].is_record);
		used[key->part] = true;
	}
	for (int i = 0; i < RECORD_OBJECTS; i++)
		assert_true(used[i] != record_objects[i].is_record);
}

static void rows_are_in_their_object(void **state)
{
	(void)state;
	assert_string_equal(record_keys[KEY(window, coverage)].name, "coverage");
	assert_int_equal(record_keys[KEY(window, coverage)].object, RECORD_OBJECT_window);
	for (int i = 1; i < RECORD_ROWS; i++)
		assert_true(record_keys[i].object >= record_keys[i - 1].object);
}

static void names_agree_with_their_tables(void **state)
{
	const struct record_key *coverage = &record_keys[KEY(window, coverage)];

	(void)state;
	assert_int_equal(record_keys[KEY(window, lost)].word_count, VAPRO_LOSSES);
	for (int i = 0; i < VAPRO_CLASSES; i++)
		assert_string_equal(coverage->words[i], vapro_class_name[i]);
	assert_int_equal(record_keys[KEY(heatmap, class)].word_count, VAPRO_CLASSES);
	assert_int_equal(record_keys[KEY(uncovered, reason)].word_count, VAPRO_UNCOVERED_REASONS - VAPRO_FEW_FRAGMENTS);
	assert_string_equal(record_keys[KEY(uncovered, reason)].words[0], vapro_uncovered_name[VAPRO_FEW_FRAGMENTS]);
}

static void percentages_name_their_whole(void **state)
{
	(void)state;
	for (int i = 0; i < RECORD_ROWS; i++) {
		const struct record_key *key = &record_keys[i];
		bool percentage = key->value == RECORD_NUMBER &&
				  (strstr(key->name, "pct_") || strstr(key->name, "_pct") ||
				   (key->object == RECORD_OBJECT_overhead && strcmp(key->name, "max_pid")));

		assert_int_equal(percentage, key->whole != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_are_used_once),	    cmocka_unit_test(parts_are_used),
	    cmocka_unit_test(rows_are_in_their_object),	    cmocka_unit_test(names_agree_with_their_tables),
	    cmocka_unit_test(percentages_name_their_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
