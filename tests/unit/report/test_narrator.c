/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sentences about a run while it happens: what each record becomes, once, without a character that harms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "report/narrator.h"

#define HEAD(type)                                                                                                     \
	"{\"schema\":\"vapro/1\",\"type\":\"" type "\",\"time\":\"2027-01-15T08:00:15.000000000Z\",\"host\":\"n1\","

static void narrate(struct narrator *narrator, const char *line)
{
	narrator__record(narrator, record_table__type_of(line), line);
}

static int ends[2];
static struct narrator *narrator;
static char text[8192];

static int setup(void **state)
{
	(void)state;
	assert_int_equal(pipe(ends), 0);
	narrator = narrator__new(ends[1], 200);
	assert_non_null(narrator);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	narrator__free(narrator);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* Gets what was said since the last call. A newline is written behind it, so that reading does not wait. */
static const char *said(void)
{
	ssize_t got;

	assert_int_equal(write(ends[1], "|", 1), 1);
	got = read(ends[0], text, sizeof(text) - 1);
	assert_true(got > 0);
	text[got - 1] = '\0';
	assert_null(strchr(text, '{'));
	assert_null(strchr(text, '\033'));
	return text;
}

static void process(const char *state, unsigned pid)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 HEAD("process") "\"pid\":%u,\"exe\":\"/opt/"
				 "so\\u001blver\",\"job\":{\"identity\":\"slurm:7\",\"uid\":4000123},"
				 "\"state\":\"%s\",\"reason\":\"it is traced\"}",
		 pid, state);
	narrate(narrator, line);
}

static void test_processes(void **state)
{
	(void)state;
	narrate(narrator, HEAD("hello") "\"version\":\"0.1.0\"}");
	assert_string_equal(said(), "08:00:15 watching host n1 (vapro 0.1.0); times are UTC\n");
	for (unsigned pid = 1; pid <= 16; pid++)
		process("attached", pid);
	process("refused", 77);
	assert_string_equal(said(), "");
	narrator__flush(narrator);
	assert_string_equal(said(),
			    "         attached to 16 processes of job slurm:7 (/opt/so?lver, user 4000123)\n"
			    "         process 77 of job slurm:7 (/opt/so?lver, user 4000123) is not watched: it is "
			    "traced\n");
	narrator__flush(narrator);
	assert_string_equal(said(), "");
	process("exited", 3);
	narrator__flush(narrator);
	assert_string_equal(said(), "         ended: 1 process of job slurm:7 (/opt/so?lver, user 4000123)\n");
}

static void variance(unsigned id, const char *state, const char *severity, bool alarm)
{
	char line[1024];

	snprintf(
	    line, sizeof(line),
	    HEAD("variance") "\"id\":%u,\"state\":\"%s\",\"class\":\"computation\",\"begin\":\"2027-01-15T08:00:05."
			     "000000000Z\",\"end\":\"2027-01-15T08:00:09.000000000Z\",\"who\":\"rank 3\","
			     "\"lost_seconds\":1.5,\"severity\":\"%s\",\"evidence\":\"one state only\",\"verdict\":"
			     "\"rank 3 lost 1.5 s: 91 %% off the CPU.\",\"alarm\":%s}",
	    id, state, severity, alarm ? "true" : "false");
	narrate(narrator, line);
	narrator__flush(narrator);
}

static void test_regions(void **state)
{
	(void)state;
	variance(1, "open", "info", false);
	assert_string_equal(said(), "");
	variance(1, "changed", "warning", true);
	assert_string_equal(said(), "08:00:05 slow region 1 (warning) began: rank 3 lost 1.5 s: 91 % off the CPU.\n");
	variance(1, "changed", "warning", true);
	assert_string_equal(said(), "");
	variance(1, "changed", "critical", true);
	assert_string_equal(said(),
			    "08:00:05 slow region 1 (critical) is worse now: rank 3 lost 1.5 s: 91 % off the CPU.\n");
	variance(1, "closed", "critical", true);
	assert_string_equal(said(),
			    "08:00:09 slow region 1 ended after 4.00 s: rank 3 lost 1.5 s: 91 % off the CPU.\n");
	variance(1, "closed", "critical", true);
	assert_string_equal(said(), "");
	variance(2, "closed", "warning", true);
	assert_string_equal(
	    said(),
	    "08:00:09 slow region 2 (warning) began and ended within 4.00 s: rank 3 lost 1.5 s: 91 % off the CPU.\n");
	/* sentences follow each other */
	narrate(narrator, HEAD("variance") "\"id\":4,\"state\":\"open\",\"begin\":\"2027-01-15T08:00:05.000000000Z\","
					   "\"severity\":\"info\",\"verdict\":\"rank 3 lost 1.5 s.\",\"alarm\":true,"
					   "\"inside\":[{\"function\":\"walk\",\"source\":"
					   "\"walk (a.c:3)\",\"samples\":6,\"pct_of_samples\":60}]}");
	assert_string_equal(said(), "");
	narrator__flush(narrator);
	assert_string_equal(said(),
			    "08:00:05 slow region 4 (info) began: rank 3 lost 1.5 s. Inside: 60 % in walk (a.c:3).\n");
	/* what was an alarm and is none is taken back */
	variance(3, "open", "warning", true);
	said();
	variance(3, "closed", "info", false);
	assert_string_equal(said(), "08:00:09 slow region 3 ended after 4.00 s: no alarm any more: one state only\n");
}

static void begins(unsigned id, const char *time)
{
	char line[512];

	snprintf(line, sizeof(line),
		 HEAD("variance") "\"id\":%u,\"state\":\"open\",\"begin\":\"2027-01-15T%sZ\",\"severity\":\"info\","
				  "\"verdict\":\"slow.\",\"alarm\":true}",
		 id, time);
	narrate(narrator, line);
}

/* Regions come in the order of their loss; what is read is in the order of time, and many of them lose none. */
static void test_order(void **state)
{
	const char *all;
	unsigned count = 0;

	(void)state;
	begins(7, "08:00:28.500000000");
	begins(5, "08:00:03.000000000");
	begins(6, "08:00:28.500000000");
	narrator__flush(narrator);
	assert_string_equal(said(), "08:00:03 slow region 5 (info) began: slow.\n"
				    "08:00:28 slow region 6 (info) began: slow.\n"
				    "08:00:28 slow region 7 (info) began: slow.\n");
	/* a pipe holds 64 KiB, these need 54 */
	for (unsigned id = 100; id < 1300; id++)
		begins(id, "08:01:00.000000000");
	narrator__flush(narrator);
	while (count < 1200) {
		all = said();
		for (; *all; all++)
			count += *all == '\n';
	}
	assert_int_equal(count, 1200);
}

/* Other records and lines that are none are silent. */
static void test_others(void **state)
{
	(void)state;
	narrate(narrator, HEAD("heatmap") "\"rows\":[]}");
	narrate(narrator, HEAD("warning") "\"text\":\"x\"}");
	narrate(narrator, HEAD("variance") "broken");
	narrate(narrator, "");
	narrate(narrator, "{\"schema\":\"vapro/1\",\"type\":\"variance\"}");
	narrator__flush(narrator);
	assert_string_equal(said(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
