// SPDX-License-Identifier: GPL-2.0-or-later
/* The share of interrupts in the time of CPUs, from files like /proc/stat. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "target/interrupts.h"

static char path[64];
static struct interrupts *interrupts;

static int setup(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/vapro-test-stat-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || close(fd))
		return -1;
	interrupts = interrupts__new(path);
	return !interrupts;
}

static int teardown(void **state)
{
	(void)state;
	interrupts__free(interrupts);
	return unlink(path);
}

static void read_text(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(interrupts__read(interrupts), 0);
}

static void assert_share(uint32_t cpu, double share)
{
	assert_true(fabs(interrupts__share(interrupts, cpu) - share) < 1e-9);
}

/* Hard and soft ones count, guests' time is part of users' time, and nothing is known after the first read. */
static void test_shares(void **state)
{
	(void)state;
	read_text("cpu  0 0 0 0 0 0 0 0 0 0\n"
		  "cpu0 100 0 50 800 0 10 40 0 5 0\n"
		  "cpu1 900 0 50 50 0 0 0 0 0 0\n"
		  "intr 12345 6 7\n");
	assert_share(0, 0);
	assert_share(1, 0);
	read_text("cpu  0 0 0 0 0 0 0 0 0 0\n"
		  "cpu0 160 0 60 808 0 12 58 2 7 0\n"
		  "cpu1 1000 0 50 50 0 0 0 0 0 0\n"
		  "intr 22345 6 7\n");
	assert_share(0, 0.2);
	assert_share(1, 0);
	assert_share(2, 0);
	assert_share(UINT32_MAX, 0);
}

/* A CPU that was switched off begins its counts again, and one that is away has nothing. */
static void test_a_cpu_that_was_away(void **state)
{
	(void)state;
	read_text("cpu0 100 0 0 0 0 0 0 0\ncpu7 1000 0 0 0 0 0 1000 0\n");
	read_text("cpu0 200 0 0 0 0 0 0 0\ncpu7 10 0 0 0 0 0 10 0\n");
	assert_share(7, 0);
	read_text("cpu0 300 0 0 0 0 0 0 0\ncpu7 85 0 0 0 0 0 35 0\n");
	assert_share(7, 0.25);
	read_text("cpu0 300 0 0 0 0 0 0 0\n");
	assert_share(0, 0);
	assert_share(7, 0);
}

/* What is no line of a CPU is left out, and a file that is not there is an error. */
static void test_other_files(void **state)
{
	struct interrupts *none = interrupts__new("/tmp/vapro-test-no-such-file");

	(void)state;
	read_text("cpu0 1 2 3\ncpu4000000000 1 1 1 1 1 1 1 1\ncpufreq 5\n");
	assert_share(0, 0);
	assert_non_null(none);
	assert_int_equal(interrupts__read(none), -ENOENT);
	assert_share(0, 0);
	interrupts__free(none);
	interrupts__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_cpu_that_was_away, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_other_files, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
