/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of states: equal texts share a number, and texts of ended processes are dropped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "collect/state_names.h"

static int64_t use(struct state_names *names, uint32_t process, const char *text, bool expect_fresh)
{
	bool fresh;
	int64_t id = state_names__use(names, process, text, &fresh);

	assert_true(id >= 0);
	assert_int_equal(fresh, expect_fresh);
	return id;
}

static uint32_t gone[4096];
static size_t gone_count;

static void note_gone(void *arg, uint32_t id)
{
	(void)arg;
	gone[gone_count++ % 4096] = id;
}

static void equal_texts_share_a_number(void **state)
{
	struct state_names *names = state_names__new(0);

	(void)state;
	assert_int_equal(use(names, 1, "a", true), 0);
	assert_int_equal(use(names, 1, "b", true), 1);
	assert_int_equal(use(names, 1, "a", false), 0);
	assert_int_equal(use(names, 2, "a", false), 0);
	state_names__release(names, 1, note_gone, NULL);
	assert_int_equal(use(names, 2, "a", false), 0); /* the other process still uses the text */
	assert_int_equal(use(names, 2, "b", true), 2);	/* numbers are not given again */
	state_names__release(names, 2, note_gone, NULL);
	state_names__release(names, 2, note_gone, NULL);
	assert_int_equal(use(names, 3, "a", true), 3);
	state_names__free(names);
}

static void unused_texts_stay_for_a_while(void **state)
{
	struct state_names *names = state_names__new(4); /* two texts of one letter */

	(void)state;
	gone_count = 0;
	assert_int_equal(use(names, 1, "a", true), 0);
	assert_int_equal(use(names, 1, "b", true), 1);
	state_names__release(names, 1, note_gone, NULL);
	assert_int_equal(use(names, 2, "a", false), 0);
	state_names__release(names, 2, note_gone, NULL); /* b has been unused for longer now */
	assert_int_equal(use(names, 3, "c", true), 2);
	assert_int_equal(gone_count, 0);
	state_names__release(names, 3, note_gone, NULL);
	assert_int_equal(gone_count, 1);
	assert_int_equal(gone[0], 1);
	assert_int_equal(use(names, 4, "a", false), 0);
	assert_int_equal(use(names, 4, "c", false), 2);
	assert_int_equal(use(names, 4, "b", true), 3);
	state_names__free(names);
}

/* One process after the other with thousands of states of its own. */
static void processes_that_end_leave_nothing(void **state)
{
	struct state_names *names = state_names__new(1 << 16);
	size_t most = 0;
	char text[64];

	(void)state;
	for (uint32_t process = 0; process < 60; process++) {
		for (int i = 0; i < 3000; i++) {
			snprintf(text, sizeof(text), "function=MPI_Send peer=%09u", process * 10000 + (unsigned)i);
			assert_int_equal(use(names, process, text, true), process * 3000 + (unsigned)i);
		}
		if (process == 5)
			most = state_names__bytes(names);
		assert_true(process < 5 || state_names__bytes(names) <= most + most / 50);
		state_names__release(names, process, note_gone, NULL);
	}
	/* the remaining texts are found again, and others are new: no text has two numbers at once */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) {
			bool fresh;

			snprintf(text, sizeof(text), "function=MPI_Send peer=%09u", 59 * 10000 + (unsigned)i);
			assert_true(state_names__use(names, 7, text, &fresh) >= 0);
			assert_true(!round || !fresh);
		}
	}
	state_names__free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_texts_share_a_number),
	    cmocka_unit_test(unused_texts_stay_for_a_while),
	    cmocka_unit_test(processes_that_end_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
