// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes that were refused are not inspected again until there is room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon/refusals.h"

static struct refusals refusals;
static uint32_t room_of[3];
static pid_t tried[512];
static size_t tries;

static void add(pid_t pid, uint64_t inode, bool spared)
{
	refusals__add(&refusals,
		      &(struct refusal){.pid = pid, .start_time = 7, .device = 1, .inode = inode, .spared = spared});
}

static uint32_t room(void *ctx, const struct refusal *refusal)
{
	(void)ctx;
	return room_of[refusal->inode];
}

static void note(void *ctx, pid_t pid)
{
	(void)ctx;
	tried[tries++] = pid;
}

static size_t retry(bool spares)
{
	tries = 0;
	refusals__retry(&refusals, spares, room, note, NULL);
	return tries;
}

static int begin(void **state)
{
	(void)state;
	refusals__clear(&refusals);
	room_of[0] = room_of[1] = room_of[2] = 0;
	return 0;
}

static void nothing_is_tried_without_room(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= 40; pid++)
		add(pid, 1, true);
	for (int second = 0; second < 100; second++)
		assert_int_equal(retry(true), 0);
	assert_int_equal(refusals.count, 40);
	assert_int_equal(refusals__of(&refusals, 40)->start_time, 7);
	assert_null(refusals__of(&refusals, 41));
}

static void as_many_are_tried_as_there_is_room_for(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= 40; pid++)
		add(pid, pid % 2 ? 1 : 2, true);
	room_of[1] = 3;
	room_of[2] = 1;
	assert_int_equal(retry(true), 4);
	assert_int_equal(tried[0], 1);
	assert_int_equal(tried[1], 2);
	assert_int_equal(tried[2], 3);
	assert_int_equal(tried[3], 5);
	assert_int_equal(refusals.count, 36);
	assert_null(refusals__of(&refusals, 5));
	/* one of them is refused once more: it is the last in the row */
	add(1, 1, true);
	room_of[1] = 1;
	room_of[2] = 0;
	assert_int_equal(retry(true), 1);
	assert_int_equal(tried[0], 7);
	assert_int_equal(refusals__of(&refusals, 1)->inode, 1);
}

static void all_are_tried_once_after_a_translator(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= 40; pid++)
		add(pid, 1, pid > 10);
	assert_int_equal(retry(false), 30);
	assert_int_equal(refusals.count, 10);
	/* what is refused without any translator waits for room alone */
	for (pid_t pid = 11; pid <= 40; pid++)
		add(pid, 1, false);
	assert_int_equal(retry(false), 0);
	room_of[1] = 100;
	assert_int_equal(retry(false), 40);
	assert_int_equal(refusals.count, 0);
}

static void a_process_is_refused_once(void **state)
{
	(void)state;
	add(5, 1, false);
	add(6, 1, false);
	add(5, 2, false);
	assert_int_equal(refusals.count, 2);
	assert_int_equal(refusals__of(&refusals, 5)->inode, 2);
	refusals__forget(&refusals, 5);
	refusals__forget(&refusals, 5);
	assert_null(refusals__of(&refusals, 5));
	assert_int_equal(refusals.count, 1);
	assert_int_equal(refusals.of[0].pid, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(nothing_is_tried_without_room, begin),
	    cmocka_unit_test_setup(as_many_are_tried_as_there_is_room_for, begin),
	    cmocka_unit_test_setup(all_are_tried_once_after_a_translator, begin),
	    cmocka_unit_test_setup(a_process_is_refused_once, begin),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	refusals__clear(&refusals);
	return failed;
}
