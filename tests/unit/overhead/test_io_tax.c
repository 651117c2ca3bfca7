// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "overhead/io_tax.h"

/* Adds equal seconds until tracing stops. Returns how many passed, 0 = tracing goes on. */
static unsigned seconds(struct io_tax *tax, const struct io_second *second, unsigned limit)
{
	for (unsigned i = 1; i <= limit; i++)
		if (io_tax__second(tax, second) == IO_GIVEN_UP)
			return i;
	return 0;
}

static struct io_second second_of(double calls, double learnt_ns)
{
	return (struct io_second){
	    .seconds = 1, .requested = true, .calls = calls, .learnt_ns = learnt_ns, .cpus = 4, .each_ns = 50};
}

static void it_follows_requests(void **state)
{
	struct io_tax tax;
	struct io_second quiet = second_of(1000, 1e6), busy = quiet, inside = quiet;

	(void)state;
	quiet.requested = inside.requested = false;
	inside.inside = true;
	io_tax__init(&tax, 0.01);
	assert_int_equal(seconds(&tax, &quiet, 10), 0);
	assert_true(tax.traced_s == 0);
	assert_int_equal(seconds(&tax, &busy, 1), 0);
	assert_true(tax.traced_s > 0);
	assert_int_equal(seconds(&tax, &inside, 20), 0); /* one call may last long */
	assert_true(tax.traced_s > 0);
	assert_int_equal(seconds(&tax, &quiet, 4), 0);
	assert_true(tax.traced_s > 0);
	assert_int_equal(seconds(&tax, &quiet, 1), 0);
	assert_true(tax.traced_s == 0);
}

static void an_expensive_one_is_given_up_and_tried_again(void **state)
{
	struct io_tax tax;
	struct io_second expensive = second_of(2e6, 3e9); /* 2.5 % of four CPUs */
	double first;
	unsigned i;

	(void)state;
	io_tax__init(&tax, 0.01);
	assert_in_range(seconds(&tax, &expensive, 20), 1, 2); /* tracing has cost much by then */
	assert_true(tax.traced_s == 0);
	assert_true(tax.tax > 0.024 && tax.tax < 0.026);
	assert_true(tax.calls_s > 1.9e6 && tax.calls_s < 2.1e6);
	first = tax.idle_s;
	for (i = 0; !tax.traced_s; i++)
		io_tax__second(&tax, &expensive);
	assert_true(i >= first - 1 && i <= first + 1);
	assert_in_range(seconds(&tax, &expensive, 20), 1, 2);
	assert_true(tax.idle_s > 1.9 * first); /* later and later */
}

static void little_learnt_is_not_worth_much(void **state)
{
	struct io_tax tax;
	struct io_second much = second_of(4e5, 5e8), little = second_of(4e5, 1e6), cheap = second_of(2e4, 1e3);

	(void)state;
	io_tax__init(&tax, 0.01);
	assert_int_equal(seconds(&tax, &much, 100), 0); /* 20 ms of CPU time for half a second of IO */
	io_tax__init(&tax, 0.01);
	assert_in_range(seconds(&tax, &little, 20), 2, 4);
	io_tax__init(&tax, 0.01);
	assert_int_equal(seconds(&tax, &cheap, 100), 0); /* too cheap to matter */
}

static void no_bound_is_none(void **state)
{
	struct io_tax tax;
	struct io_second expensive = second_of(2e7, 0);

	(void)state;
	io_tax__init(&tax, 0);
	assert_int_equal(seconds(&tax, &expensive, 100), 0);
	assert_true(tax.traced_s > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_follows_requests),
	    cmocka_unit_test(an_expensive_one_is_given_up_and_tried_again),
	    cmocka_unit_test(little_learnt_is_not_worth_much),
	    cmocka_unit_test(no_bound_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
