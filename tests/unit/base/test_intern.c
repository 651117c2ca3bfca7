/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of texts that are dropped, and own numbers of numbers that only go up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/intern.h"
#include "base/numbers.h"

static void dropped_numbers_are_given_again(void **state)
{
	struct intern *texts = intern__new();
	unsigned char used[101] = {0};
	const char *stays;
	size_t most;
	char text[16];

	(void)state;
	for (unsigned i = 1; i <= 100; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		assert_int_equal(intern__id(texts, text), i);
	}
	stays = intern__text(texts, 50);
	most = intern__bytes(texts);
	used[50] = 1;
	assert_int_equal(intern__retain(texts, used), 0);
	assert_int_equal(intern__count(texts), 51);
	assert_true(intern__bytes(texts) < most);
	assert_ptr_equal(intern__text(texts, 50), stays);
	assert_null(intern__text(texts, 49));
	assert_int_equal(intern__id(texts, "text 50"), 50);
	/* the lowest first, then further ones */
	for (unsigned i = 1; i <= 60; i++) {
		snprintf(text, sizeof(text), "new %u", i);
		assert_int_equal(intern__id(texts, text), i < 50 ? i : i + 1);
	}
	assert_string_equal(intern__text(texts, 49), "new 49");
	intern__free(texts);
}

static void skipped_numbers_are_given_later(void **state)
{
	struct intern *texts = intern__new();

	(void)state;
	assert_int_equal(intern__id(texts, "a"), 1);
	assert_int_equal(intern__skip(texts), 0);
	assert_int_equal(intern__id(texts, "b"), 3);
	intern__skipped(texts);
	assert_int_equal(intern__id(texts, "c"), 2);
	assert_int_equal(intern__id(texts, "d"), 4);
	intern__free(texts);
}

static void numbers_have_pages_where_they_are(void **state)
{
	struct numbers numbers = {0};
	size_t bytes;

	(void)state;
	assert_int_equal(numbers__get(&numbers, 0), NUMBERS_NONE);
	assert_int_equal(numbers__set(&numbers, 3, 0), 0);
	bytes = numbers__bytes(&numbers);
	assert_int_equal(numbers__set(&numbers, 5 * NUMBERS_PAGE + 1, 7), 0);
	assert_true(numbers__bytes(&numbers) <= bytes + NUMBERS_PAGE * sizeof(uint32_t));
	assert_int_equal(numbers__get(&numbers, 3), 0);
	assert_int_equal(numbers__get(&numbers, 2), NUMBERS_NONE);
	assert_int_equal(numbers__get(&numbers, 5 * NUMBERS_PAGE + 1), 7);
	assert_int_equal(numbers__get(&numbers, 2 * NUMBERS_PAGE), NUMBERS_NONE);
	assert_int_equal(numbers__get(&numbers, UINT32_MAX), NUMBERS_NONE);
	numbers__clear(&numbers);
	assert_int_equal(numbers__get(&numbers, 3), NUMBERS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(dropped_numbers_are_given_again),
	    cmocka_unit_test(skipped_numbers_are_given_later),
	    cmocka_unit_test(numbers_have_pages_where_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
