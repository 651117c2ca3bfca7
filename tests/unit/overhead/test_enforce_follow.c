// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions that are left out for all nodes of a job: what a worker requests beside what the node itself needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fake_probes.h"

#define POST 1U	   /* unit of FAKE_POST */
#define NOTHING 2U /* unit of a function that no program calls */
#define HOLD (60 * FAKE_SECOND)

static struct fake fake;
static unsigned changed;

static const struct fake_program calm = {.calls = {600, 0, 2000}}, posts = {.calls = {6000, 0, 20000}};

/* All processes of the image are in an epoch of their own, and pending requests may be unknown. */
static void check_change(struct fake *of, const char *what)
{
	assert_string_equal(what, "leave out");
	for (size_t i = 0; i < of->count; i++) {
		assert_int_equal(of->processes[i].orders.probe_epoch & 1, 1);
		assert_int_equal(of->processes[i].orders.known_ns, UINT64_MAX);
		assert_int_equal(of->processes[i].orders.set, of->without);
	}
	changed++;
}

static struct fake_process *begin(const struct fake_program *program)
{
	fake__begin(&fake, 1, 2, 1, 600);
	changed = 0;
	fake.on_change = check_change;
	return fake__start(&fake, program);
}

static int end(void **state)
{
	(void)state;
	fake__end(&fake);
	return 0;
}

static void follow(struct fake_process *process, uint32_t units)
{
	enforcer__follow(process->governed, units, fake.now + HOLD, "node n2 requires that");
}

/* The facts of a process, as they are published. */
static void check_set(struct fake_process *process, uint32_t without, uint32_t own)
{
	struct enforcer_window window = enforcer__end_window(fake.enforcer, process->governed, fake.now, 1);

	assert_string_equal(window.image, "libmpi.so");
	assert_int_equal(window.without, without);
	assert_int_equal(window.own, own);
	assert_int_equal(process->orders.set, without);
	assert_int_equal(fake.without, without);
}

/* What is requested is left out at once, in all processes, and is probed again when no request came for a while. */
static void requested_units_are_left_out_for_a_while(void **state)
{
	struct fake_process *first = begin(&calm), *second = fake__start(&fake, &calm);

	fake__run(&fake, 5);
	check_set(first, 0, 0);
	follow(first, POST);
	fake__run(&fake, 0.2);
	check_set(first, POST, 0);
	check_set(second, POST, 0);
	assert_int_equal(first->orders.probe_epoch & 1, 0);
	assert_int_equal(fake__warned(&fake, "coarser"), 1);
	assert_non_null(strstr(fake.warnings[0].text, "at least 60 s: node n2 requires that"));
	/* one that comes later begins with it */
	assert_int_equal(fake__start(&fake, &calm)->orders.set, POST);
	fake__run(&fake, 50);
	follow(second, POST); /* renewed */
	fake__run(&fake, 59.5);
	check_set(first, POST, 0);
	assert_int_equal(changed, 1);
	fake__run(&fake, 1);
	check_set(first, 0, 0);
	check_set(second, 0, 0);
	assert_int_equal(changed, 2);
	assert_int_equal(fake__warned(&fake, "coarser"), 1);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	end(state);
}

/* A hostile worker changes a set at most once in 10 s, and what it requested ends by itself. */
static void changes_are_bounded(void **state)
{
	struct fake_process *process = begin(&calm);

	for (int i = 0; i < 600; i++) {
		follow(process, 1U << i % 5);
		if (i % 3)
			enforcer__follow(process->governed, 1U << i % 16, fake.now + FAKE_SECOND / 10, "flicker");
		fake__run(&fake, 0.1);
	}
	assert_in_range(changed, 1, 7);
	fake__run(&fake, 80);
	check_set(process, 0, 0);
	end(state);
}

/* The own set is decided as if nothing was requested: it stays while the node needs it, and is not held by others. */
static void the_own_set_is_apart(void **state)
{
	struct fake_process *process = begin(&posts);

	fake__run(&fake, 5);
	check_set(process, POST, POST);
	assert_int_equal(changed, 1);
	/* two nodes that need the same request it of each other */
	for (int i = 0; i < 10; i++) {
		follow(process, POST);
		fake__run(&fake, 15);
		check_set(process, POST, POST);
	}
	process->program = &calm;
	for (int i = 0; i < 6; i++) {
		follow(process, POST);
		fake__run(&fake, 15);
	}
	/* the node does not need it any more, but others do */
	check_set(process, POST, 0);
	assert_int_equal(changed, 1);
	assert_int_equal(fake__warned(&fake, "released"), 0);
	fake__run(&fake, 61);
	check_set(process, 0, 0);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	end(state);
}

/* A set that one node needs is not given up because others have the rest left out. */
static void what_others_need_does_not_make_a_set_needless(void **state)
{
	struct fake_process *process = begin(&posts);

	fake__run(&fake, 5);
	follow(process, NOTHING);
	fake__run(&fake, 1);
	check_set(process, POST | NOTHING, POST);
	fake__run(&fake, 200);
	check_set(process, POST, POST);
	end(state);
}

/* While probes are closed a request waits; a process without an image has nothing to leave out. */
static void closed_probes_stay_closed(void **state)
{
	static const struct fake_program hot = {.calls = {300000}};
	struct fake_process *process;

	fake__begin(&fake, 1, 2, 1, 600);
	process = fake__start(&fake, &hot);
	fake__run(&fake, 0.5);
	assert_true(enforcer__is_closed(fake.enforcer));
	follow(process, POST);
	fake__run(&fake, 0.1);
	assert_true(enforcer__is_closed(fake.enforcer));
	assert_int_equal(fake.changes, 0);
	fake__run(&fake, 30);
	assert_int_equal(fake.changes, 1);
	assert_int_equal(fake.without, POST);
	enforcer__leave(fake.enforcer, process->governed, fake.now);
	follow(process, NOTHING);
	assert_null(enforcer__end_window(fake.enforcer, process->governed, fake.now, 1).image);
	fake__run(&fake, 20);
	assert_int_equal(fake.changes, 1);
	end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requested_units_are_left_out_for_a_while),
	    cmocka_unit_test(changes_are_bounded),
	    cmocka_unit_test(the_own_set_is_apart),
	    cmocka_unit_test(what_others_need_does_not_make_a_set_needless),
	    cmocka_unit_test(closed_probes_stay_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
