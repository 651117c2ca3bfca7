/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for a CPU, and what the tasks that run there are charged with, compiled natively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "../../bpf/logic.h"
#include "../../bpf/waiters.h"

static struct waiters table;

static int fresh(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static u32 enter(u32 tid, u64 begin_ns)
{
	return waiters_add(&table, &(struct waiter){.tid = tid, .begin_ns = begin_ns, .slot = tid / 10});
}

/* Two threads wait; the task that runs is charged to both, each for the time since it waits. */
static void several_threads_wait_for_one_cpu(void **state)
{
	u32 first = enter(10, 1000), second = enter(20, 1600);

	(void)state;
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(table.count, 2);
	assert_int_equal(table.at[1].slot, 2);
	assert_int_equal(waiter_slice(&table.at[0], 2000, 0), 1000);
	assert_int_equal(waiter_slice(&table.at[1], 2000, 0), 400);
	assert_int_equal(waiter_slice(&table.at[0], 2500, 0), 500);
	assert_int_equal(waiter_slice(&table.at[1], 2500, 0), 500);

	/* the first one gets the CPU: its place is free, the other one stays */
	assert_true(waiter_is_over(&table.at[0], 10, 2500));
	assert_false(waiter_is_over(&table.at[1], 10, 2500));
	waiters_remove(&table, 0);
	assert_int_equal(table.count, 1);
	assert_int_equal(enter(30, 2600), 1);
	assert_int_equal(waiter_slice(&table.at[0], 2700, 0), 100);
}

/* A thread that goes to another CPU's queue is charged here up to that moment, at this CPU's next switch. */
static void a_thread_that_moves_is_charged_where_it_waited(void **state)
{
	u32 number = enter(10, 1000);

	(void)state;
	waiters_end(&table, number, 11, 1200); /* another thread's */
	assert_false(waiter_is_over(&table.at[0], 99, 1200));
	waiters_end(&table, 0, 10, 1200); /* it has no entry */
	assert_false(waiter_is_over(&table.at[0], 99, 1200));
	waiters_end(&table, number, 10, 1300);
	assert_int_equal(waiter_slice(&table.at[0], 5000, 0), 300);
	assert_true(waiter_is_over(&table.at[0], 99, 5000));

	/* it moved before the slice began: nothing is charged twice */
	number = enter(20, 6000);
	assert_int_equal(waiter_slice(&table.at[number - 1], 6500, 0), 500);
	waiters_end(&table, number, 20, 6400);
	assert_int_equal(waiter_slice(&table.at[number - 1], 7000, 0), 0);

	/* it came after the clock of the present switch was read: nothing is charged for the time before */
	number = enter(30, 8000);
	assert_int_equal(waiter_slice(&table.at[number - 1], 7990, 0), 0);
	assert_int_equal(waiter_slice(&table.at[number - 1], 8100, 0), 100);
}

static void throttled_time_is_not_charged(void **state)
{
	struct waiter *waiter = &table.at[0];

	(void)state;
	waiters_add(&table, &(struct waiter){.tid = 10, .begin_ns = 1000, .queue = 7, .throttled = 400});
	assert_int_equal(waiter_slice(waiter, 2000, 700), 700);
	assert_int_equal(waiter_slice(waiter, 3000, 700), 1000);
	assert_int_equal(waiter_slice(waiter, 3100, 5000), 0); /* never more than the slice */
	assert_int_equal(waiter_slice(waiter, 3200, 10), 100); /* a queue that was freed */
}

static void a_full_table_refuses(void **state)
{
	(void)state;
	for (u32 i = 0; i < WAITERS; i++)
		assert_int_equal(enter(i + 1, 1000), i + 1);
	assert_int_equal(enter(100, 1000), 0);
	assert_int_equal(table.count, WAITERS);
	table.at[3].tid = WAITER_RESERVED; /* another CPU fills it */
	assert_int_equal(enter(100, 1000), 0);
	waiters_remove(&table, 3);
	assert_int_equal(enter(100, 1000), 4);
}

/* A thread that is watched no more while it waits is not charged for good. */
static void a_forgotten_thread_goes(void **state)
{
	(void)state;
	enter(10, 1000);
	assert_false(waiter_is_over(&table.at[0], 20, 1000 + WAITER_LONGEST_NS));
	assert_true(waiter_is_over(&table.at[0], 20, 1001 + WAITER_LONGEST_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(several_threads_wait_for_one_cpu, fresh),
	    cmocka_unit_test_setup(a_thread_that_moves_is_charged_where_it_waited, fresh),
	    cmocka_unit_test_setup(throttled_time_is_not_charged, fresh),
	    cmocka_unit_test_setup(a_full_table_refuses, fresh),
	    cmocka_unit_test_setup(a_forgotten_thread_goes, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
