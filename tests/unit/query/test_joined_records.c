// SPDX-License-Identifier: GPL-2.0-or-later
/* What several vaprods respond, joined: each job once, the records of one run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "query/joined_records.h"

#define HEAD(type) "{\"schema\":\"vapro/1\",\"type\":\"" type "\",\"host\":\"n1\""
#define STATUS(begin, pid) HEAD("status") ",\"pid\":" pid ",\"begin\":\"2027-01-15T08:00:" begin ".000000000Z\"}\n"
#define JOB(job, uid, processes) HEAD("job_status") ",\"job\":\"" job "\",\"uid\":" uid ",\"processes\":[" processes "]}\n"
#define WINDOW(job, uid, value) HEAD("window") ",\"job\":\"" job "\",\"uid\":" uid ",\"bundles\":" value "}\n"

static char *joined;

static int teardown(void **state)
{
	(void)state;
	free(joined);
	joined = NULL;
	return 0;
}

static void check(const char *const *texts, size_t count, const char *expected)
{
	struct joined_part parts[JOINED_PARTS + 2];
	size_t size;

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct joined_part){texts[i], texts[i] ? strlen(texts[i]) : 0};
	teardown(NULL);
	joined = joined_records__make(parts, count, &size);
	assert_non_null(joined);
	assert_string_equal(joined, expected);
	assert_int_equal(size, strlen(expected));
}

/* Nothing, and one response, which stays as it is. */
static void test_one(void **state)
{
	const char *texts[] = {NULL, "no record\n" STATUS("01", "1")};

	(void)state;
	check(texts, 0, "");
	check(texts, 1, "");
	check(texts, 2, "no record\n" STATUS("01", "1"));
}

static void test_two(void **state)
{
	/* the second runs longer */
	const char *texts[] = {STATUS("09", "1") JOB("a", "7", "{}") WINDOW("a", "7", "1") HEAD("warning") "}\nno record\n",
			       STATUS("01", "2") HEAD("hello") "}\n" JOB("b", "7", "{}") WINDOW("b", "7", "2")};

	(void)state;
	check(texts, 2,
	      STATUS("01", "2") HEAD("hello") "}\n" JOB("b", "7", "{}") WINDOW("b", "7", "2") JOB("a", "7", "{}")
		  WINDOW("a", "7", "1") HEAD("warning") "}\n");
}

/* A job of both is that of the one with more of its processes, else of the one that runs longer. */
static void test_same_job(void **state)
{
	const char *texts[] = {STATUS("01", "1") JOB("a", "7", "{},{}") JOB("b", "7", "{}") WINDOW("a", "7", "1")
				   WINDOW("b", "7", "1"),
			       STATUS("02", "2") JOB("a", "7", "{},{}") JOB("b", "7", "{},{}") WINDOW("a", "7", "2")
				   WINDOW("b", "7", "2")};

	(void)state;
	check(texts, 2,
	      STATUS("01", "1") JOB("a", "7", "{},{}") WINDOW("a", "7", "1") JOB("b", "7", "{},{}") WINDOW("b", "7", "2"));
}

/* Jobs of one name that are those of two users are two. */
static void test_users(void **state)
{
	const char *texts[] = {STATUS("01", "1") JOB("a", "7", "{}") WINDOW("a", "7", "1"),
			       STATUS("02", "2") JOB("a", "8", "{},{}") WINDOW("a", "8", "2")};

	(void)state;
	check(texts, 2,
	      STATUS("01", "1") JOB("a", "7", "{}") WINDOW("a", "7", "1") JOB("a", "8", "{},{}") WINDOW("a", "8", "2"));
}

/* More than can be joined: the first ones. */
static void test_many(void **state)
{
	const char *texts[JOINED_PARTS + 2];

	(void)state;
	for (size_t i = 0; i < JOINED_PARTS + 2; i++)
		texts[i] = i < JOINED_PARTS ? STATUS("05", "1") : STATUS("01", "2");
	check(texts, JOINED_PARTS + 2, STATUS("05", "1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_one, teardown),	cmocka_unit_test_teardown(test_two, teardown),
	    cmocka_unit_test_teardown(test_same_job, teardown), cmocka_unit_test_teardown(test_users, teardown),
	    cmocka_unit_test_teardown(test_many, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
