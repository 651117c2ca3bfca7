// SPDX-License-Identifier: GPL-2.0-or-later
/* Which of the records that workers published count. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report/valid_lines.h"

static struct valid_lines *lines;

static int setup(void **state)
{
	(void)state;
	lines = valid_lines__new();
	return lines ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	valid_lines__free(lines);
	return 0;
}

static void add(const char *text)
{
	assert_int_equal(valid_lines__add(lines, text, strlen(text)), 0);
}

/* A record of the second `at` of a minute. */
static void add_record(const char *id, unsigned at, unsigned epoch, unsigned pass)
{
	char text[256];

	snprintf(
	    text, sizeof(text),
	    "{\"schema\":\"vapro/1\",\"type\":\"window\",\"time\":\"2026-11-24T08:00:%02u.000000000Z\",\"id\":\"%s\","
	    "\"epoch\":%u,\"pass\":%u}\n",
	    at, id, epoch, pass);
	add(text);
}

/* A pass begins; from 0: all that came before is replaced. */
static void add_judging(unsigned from, unsigned epoch, unsigned pass)
{
	char text[320], time[64] = "null";

	if (from)
		snprintf(time, sizeof(time), "\"2026-11-24T08:00:%02u.000000000Z\"", from);
	snprintf(text, sizeof(text),
		 "{\"schema\":\"vapro/1\",\"type\":\"judging\",\"time\":\"2026-11-24T09:00:00.000000000Z\",\"from\":%s,"
		 "\"epoch\":%u,\"pass\":%u}\n",
		 time, epoch, pass);
	add(text);
}

/* The ids of the lines that count are these, in this order. */
static void expect(const char *ids)
{
	char text[4096], found[256] = "";
	FILE *file = valid_lines__file(lines);

	assert_non_null(file);
	while (fgets(text, sizeof(text), file)) {
		const char *id = strstr(text, "\"id\":\"");

		assert_non_null(id);
		assert_int_equal(text[strlen(text) - 1], '\n');
		strncat(found, id + 6, 1);
	}
	fclose(file);
	assert_string_equal(found, ids);
}

static void test_take_over(void **state)
{
	(void)state;
	add_judging(0, 1, 0);
	add_record("a", 10, 1, 0);
	add_record("b", 20, 1, 0);
	add_judging(20, 2, 0);
	expect("ab");
	/* a worker that woke up too late */
	add_record("x", 30, 1, 0);
	add_record("c", 30, 2, 0);
	add_judging(0, 1, 1);
	expect("abc");
	assert_int_equal(valid_lines__counts(lines).valid, 3);
	assert_int_equal(valid_lines__counts(lines).replaced, 2);
}

static void test_pass(void **state)
{
	(void)state;
	add_judging(0, 1, 0);
	add_record("a", 10, 1, 0);
	add_record("b", 20, 1, 0);
	add_record("c", 30, 1, 0);
	add_judging(10, 1, 1);
	expect("a");
	add_record("x", 40, 1, 0); /* of the pass before */
	add_record("d", 20, 1, 1);
	add_record("e", 30, 1, 1);
	expect("ade");
	add_judging(0, 3, 0);
	expect("");
	add_record("f", 10, 3, 0);
	expect("f");
	assert_int_equal(valid_lines__counts(lines).replaced, 6);
}

static void test_bad(void **state)
{
	(void)state;
	add("no JSON\n");
	add("{\"type\":\"window\",\"time\":\"2026-11-24T08:00:01.0Z\",\"epoch\":0}\n");
	add("{\"type\":\"window\",\"epoch\":1,\"pass\":0}\n");
	add("{\"type\":\"window\",\"time\":7,\"epoch\":1,\"pass\":0}\n[]\n\n");
	add_record("a", 1, 1, 0);
	add("{\"cut");
	add("");
	expect("a");
	assert_int_equal(valid_lines__counts(lines).bad, 7);
	/* what follows is read as before */
	add_record("b", 2, 1, 0);
	expect("ab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_take_over, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_pass, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
