/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An array that grows past the size of huge pages keeps what is used of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/large.h"

static void test_grows(void **state)
{
	static const size_t counts[] = {
	    1,		1000,	       LARGE_PAGE / 8 - 1, LARGE_PAGE / 8, LARGE_PAGE / 8 + 1, 3 * LARGE_PAGE / 8 + 5,
	    LARGE_PAGE, LARGE_PAGE + 1};
	uint64_t *items = NULL;
	size_t used = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t *grown = large__grow(items, used * sizeof(*items), counts[i] * sizeof(*items));

		assert_non_null(grown);
		items = grown;
		assert_true(counts[i] * sizeof(*items) < LARGE_PAGE || (uintptr_t)items % LARGE_PAGE == 0);
		for (size_t at = 0; at < used; at++) {
			if (items[at] != at * 0x9e3779b97f4a7c15u)
				fail_msg("item %zu of %zu is lost at the step to %zu", at, used, counts[i]);
		}
		for (; used < counts[i]; used++)
			items[used] = used * 0x9e3779b97f4a7c15u;
	}
	free(items);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
