/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of a series' scatter that is between successive computations. */
#include "model/successive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t chance = 1;

/* Returns ns with a scatter of 1 %. */
static double near(double ns)
{
	chance = chance * 1664525u + 1013904223u;
	return ns * (1 + 0.01 * ((chance >> 8) / 16777216.0));
}

static struct successive successive;
static struct histogram all;

static int setup(void **state)
{
	(void)state;
	successive = (struct successive){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	histogram__clear(&all);
	return 0;
}

static void add(uint64_t bin, double ns, double n)
{
	assert_int_equal(histogram__add(&all, ns, n), 0);
	successive__add(&successive, bin, ns, n);
}

static double share(void)
{
	return successive__share(&successive, &all);
}

static void test_nothing_scatters(void **state)
{
	(void)state;
	assert_true(share() == 1);
	for (uint64_t bin = 1; bin < 20; bin++)
		add(bin, 5e6, 10);
	assert_true(share() == 1);
}

static void test_workloads_that_alternate(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		add(1 + i / 10, near(i % 2 ? 5e6 : 8e6), 1);
	assert_true(share() > 0.95);
}

/* Long computations: a moment reaches over several bins. */
static void test_long_computations(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		add(1 + 3 * i, near(i % 3 ? 5e8 : 8e8), 1);
	assert_true(share() > 0.9);
}

static void test_slow_seconds(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		add(1 + i / 10, near(i / 100 % 2 ? 5e6 : 8e6), 1);
	assert_true(share() < 0.1);
}

/* Computations of a bin come merged by their durations. */
static void test_merged(void **state)
{
	(void)state;
	for (uint64_t bin = 1; bin < 100; bin++) {
		add(bin, near(5e6), 15);
		add(bin, near(8e6), 15);
	}
	assert_true(share() > 0.95);
}

static void test_merged_slow_seconds(void **state)
{
	(void)state;
	for (uint64_t bin = 1; bin < 100; bin++)
		add(bin, near(bin / 10 % 2 ? 5e6 : 8e6), 30);
	assert_true(share() < 0.1);
}

/* A task in bursts makes each second computation slower, and these are not entered: that is no other workload. */
static void test_disturbed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		if (i % 2)
			add(1 + i / 10, near(5e6), 1);
		else
			assert_int_equal(histogram__add(&all, near(8e6), 1), 0);
	}
	assert_true(share() < 0.1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_nothing_scatters),
	    TEST(test_workloads_that_alternate),
	    TEST(test_long_computations),
	    TEST(test_slow_seconds),
	    TEST(test_merged),
	    TEST(test_merged_slow_seconds),
	    TEST(test_disturbed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
