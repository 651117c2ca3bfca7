/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of states: the same for equal texts, others for others, and read back from their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/state_id.h"

static uint64_t id(const char *from, const char *to, const char *labels, const char *common)
{
	const struct vapro_state state = {.from = from, .to = to, .labels = labels, .common = common};

	return state_id__of(&state);
}

static void texts_make_the_number(void **unused)
{
	char copy[] = "a@1+0x1";
	uint64_t one = id("a@1+0x1", "b@1+0x2", "bytes=8 peer=3", "bytes=8");

	(void)unused;
	assert_true(one != 0);
	assert_true(one == id(copy, "b@1+0x2", "bytes=8 peer=5", "bytes=8")); /* a label of one rank does not count */
	assert_true(one == id("a@1+0x1", "b@1+0x2", "bytes=8", NULL));	      /* no others known: all labels count */
	assert_true(one != id("a@1+0x1", "b@1+0x2", "bytes=8", "bytes=16"));
	assert_true(one != id("a@1+0x1b@1+0x2", "", "bytes=8", "bytes=8")); /* where a text ends matters */
	assert_true(one != id(NULL, "b@1+0x2", "bytes=8", "bytes=8"));
	assert_true(one != id("b@1+0x2", "a@1+0x1", "bytes=8", "bytes=8"));
	assert_true(state_id__of(NULL) == 0);
}

/* Other programs may make the number too: FNV-1a of the three texts, each with its NUL. */
static void numbers_stay_the_same(void **unused)
{
	assert_true(id(NULL, "a", "", "") == 0x2f4c9b7efbe63fea);
	(void)unused;
}

static void numbers_are_read_back(void **unused)
{
	const struct vapro_state state = {.to = "b@1+0x2", .labels = "", .common = ""};
	char text[STATE_ID_SIZE];

	(void)unused;
	assert_int_equal(strlen(state_id__text(&state, text)), 16);
	assert_true(state_id__parse(text) == state_id__of(&state));
	assert_null(state_id__text(NULL, text));
	assert_true(state_id__parse(NULL) == 0 && state_id__parse("") == 0 && state_id__parse("12 x") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(texts_make_the_number),
	    cmocka_unit_test(numbers_stay_the_same),
	    cmocka_unit_test(numbers_are_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
