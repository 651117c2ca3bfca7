// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers as people write them, and back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/units.h"

struct case_of {
	const char *text;
	double value; /* negative: refused */
};

static void check(int (*read)(const char *text, double *number), const struct case_of *diagnoses, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double number = 0;
		int status = read(diagnoses[i].text, &number);

		if (status != (diagnoses[i].value < 0 ? -EINVAL : 0) || (!status && number != diagnoses[i].value))
			fail_msg("'%s': %d, %.17g", diagnoses[i].text, status, number);
	}
}

#define CHECK(read, ...)                                                                                               \
	check(read, (const struct case_of[]){__VA_ARGS__},                                                             \
	      sizeof((const struct case_of[]){__VA_ARGS__}) / sizeof(struct case_of))

static void times(void **state)
{
	(void)state;
	CHECK(units__seconds, {"30", 30}, {"30s", 30}, {"500ms", 0.5}, {"10ms", 0.01}, {"5m", 300}, {"5 min", 300},
	      {"1.5h", 5400}, {"1d", -1}, {"", -1}, {"s", -1}, {"1e400", -1}, {"0x10", -1}, {"nan", -1}, {"1 s s", -1},
	      {"5M", -1});
}

static void sizes(void **state)
{
	(void)state;
	CHECK(units__bytes, {"4096", 4096}, {"64K", 65536}, {"64k", 65536}, {"1 MiB", 1048576}, {"1MB", 1048576},
	      {"256M", 268435456}, {"1.5G", 1610612736}, {"1T", 1099511627776}, {"0", 0}, {"12 B", 12}, {"1P", -1},
	      {"M", -1}, {"1Mb/s", -1}, {"5%", -1});
}

static void shares(void **state)
{
	(void)state;
	CHECK(units__share, {"0.85", 0.85}, {"85%", 0.85}, {"85 %", 0.85}, {"0.1%", 0.001}, {"%", -1},
	      {"85 percent", -1});
	CHECK(units__percent, {"2", 2}, {"2%", 2}, {"0.5 %", 0.5}, {"2s", -1});
	CHECK(units__number, {"1e3", 1000}, {".5", 0.5}, {"5%", -1}, {"five", -1});
}

static void round_trips(void **state)
{
	static const double seconds[] = {0, 0.01, 0.1, 0.123456, 1, 15, 59.5, 60, 90, 600, 3600, 5400, 86400};
	static const double percents[] = {0, 0.1, 1, 2, 5, 7, 33.3, 85, 100};
	static const unsigned long long bytes[] = {0,	    1,	     1023,	 1024,	       65536,
						   4194304, 4194305, 1073741824, 1099511627776};
	char text[32];
	double again;

	(void)state;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		units__format_seconds(seconds[i], text, sizeof(text));
		assert_int_equal(units__seconds(text, &again), 0);
		assert_true(again == seconds[i]);
	}
	for (size_t i = 0; i < sizeof(percents) / sizeof(*percents); i++) {
		units__format_share(percents[i] / 100, text, sizeof(text));
		assert_int_equal(units__share(text, &again), 0);
		assert_true(again == percents[i] / 100);
		units__format_percent(percents[i], text, sizeof(text));
		assert_int_equal(units__percent(text, &again), 0);
		assert_true(again == percents[i]);
	}
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		units__format_bytes(bytes[i], text, sizeof(text));
		assert_int_equal(units__bytes(text, &again), 0);
		assert_true(again == (double)bytes[i]);
	}
	units__format_bytes(268435456, text, sizeof(text));
	assert_string_equal(text, "256M");
	units__format_seconds(90, text, sizeof(text));
	assert_string_equal(text, "90s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(times), cmocka_unit_test(sizes), cmocka_unit_test(shares),
					   cmocka_unit_test(round_trips)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
