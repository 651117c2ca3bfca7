// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/shortened.h"

static void assert_shortened(const char *text, size_t size, const char *expected)
{
	char buf[64];

	memset(buf, 'x', sizeof(buf));
	assert_ptr_equal(shortened(text, buf, size), buf);
	assert_string_equal(buf, expected);
	assert_true(strlen(buf) < size);
}

static void test_ends_stay(void **state)
{
	(void)state;
	assert_shortened("", 16, "");
	assert_shortened("/usr/bin/cat", 16, "/usr/bin/cat");
	assert_shortened("123456789012345", 16, "123456789012345");
	assert_shortened("1234567890123456", 16, "123456...123456");
	assert_shortened("/a/very/long/padded/path/to/bin/app", 21, "/a/very/...o/bin/app");
}

static void test_characters_stay_whole(void **state)
{
	(void)state;
	/* the sixth byte on both sides is the middle of a character */
	assert_shortened("12345\xc3\xa9-------\xc3\xa9"
			 "12345",
			 16, "12345...12345");
	assert_shortened("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 16, "...");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ends_stay),
	    cmocka_unit_test(test_characters_stay_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
