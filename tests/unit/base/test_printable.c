/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Terminal control characters are replaced, and ordinary text stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/printable.h"
#include "report/regions.h"

static void becomes(const char *text, const char *wanted)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", text);
	assert_string_equal(printable(copy), wanted);
	snprintf(copy, sizeof(copy), "%s", text);
	assert_string_equal(regions__defuse(copy), wanted);
}

static void test_controls(void **state)
{
	(void)state;
	assert_null(printable(NULL));
	becomes("", "");
	becomes("\x1b[31mred\x7f\n", "?[31mred??");
	becomes("a\x9b"
		"31m",
		"a?31m"); /* CSI as a byte */
	becomes("a\xc2\x9b"
		"31m",
		"a??31m"); /* CSI as UTF-8 */
	becomes("\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0");
	becomes("gr\xc3\xb6\xc3\x9f"
		"e",
		"gr\xc3\xb6\xc3\x9f"
		"e"); /* 0x9f inside a character */
	becomes("\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80");
	/* characters that reorder or break a line; their neighbours and Arabic letters stay */
	becomes("a\xe2\x80\xae"
		"b\xe2\x80\x8f\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9",
		"a???b????????????");
	becomes("\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa6\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\xa7",
		"\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xa6\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xd8\xa7");
	/* no UTF-8: a character that is cut off does not hide the next bytes */
	becomes("\xe2\x1b[m", "\xe2?[m");
	becomes("\xe2\x82\x1b", "\xe2??");
	becomes("\xf0\x9f", "\xf0?");
	becomes("\xc0\x9b", "\xc0?");
	becomes("\xe9t\xe9", "\xe9t\xe9"); /* Latin-1 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_controls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
