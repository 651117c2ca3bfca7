// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that can wait and were measured to wait hardly ever: left out where more time is covered by that, and
 * probed again where it is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "fake_probes.h"

#define SHORT (1U << FAKE_SHORT_UNIT)

static struct fake fake;

/* Begins with one process, under a budget of 1 % and a cap of 2 %. */
static struct fake_process *begin(const struct fake_program *program, uint64_t seed, size_t seconds)
{
	fake__begin(&fake, 1, 2, seed, seconds);
	fake.brief = true;
	return fake__start(&fake, program);
}

static int end(void **state)
{
	(void)state;
	fake__end(&fake);
	return 0;
}

/* Returns the share of a process's time that is covered so far. */
static double covered(const struct fake_process *process)
{
	return process->covered_ns / (double)(fake.looks * FAKE_LOOK);
}

static void check_budget(const struct fake_process *process)
{
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
}

/* One-sided programs flush again and again: what they do between other calls is covered all the same. */
static const struct fake_program flushes = {.calls = {200000, 200}, .octaves = {2, 12}};

static void short_calls_are_left_out(void **state)
{
	const char *text;

	for (int i = 0; i < 4; i++) {
		struct fake_program program = flushes;
		struct fake_process *process;

		program.spares_returns = i & 1;
		program.calls[FAKE_SHORT] *= i & 2 ? 10 : 1; /* most of the time: closed first */
		process = begin(&program, 1, 60);
		fake__run(&fake, 60);
		assert_int_equal(process->orders.set, SHORT);
		assert_int_equal(process->orders.probe_epoch & 1, 0);
		assert_true(covered(process) > 0.95);
		check_budget(process);
		assert_int_equal(fake.changes, 1);
		assert_int_equal(fake__warned(&fake, "coarser"), 1);
		assert_int_equal(fake__warned(&fake, "governed"), 0);
		text = fake.warnings[0].text;
		assert_non_null(strstr(text, "functions of libmpi.so that hardly ever wait (Win_flush)"));
		assert_non_null(strstr(text, "so that 100 % of the time is covered instead of at most "));
		assert_null(strstr(text, "transfer")); /* no requests are unknown */
		end(state);
	}
}

/* The same calls where some of them wait: they cannot be left out, and the probes are closed most of the time. */
static void calls_that_wait_stay(void **state)
{
	struct fake_process *process = begin(&flushes, 1, 60);

	fake.brief = false;
	fake__run(&fake, 60);
	assert_int_equal(process->orders.set, 0);
	assert_true(covered(process) < 0.2);
	check_budget(process);
	end(state);
}

/*
 * In the first moment a thread was preempted in such a call, which looks like a wait, and a small budget has all of
 * them closed: they are looked at again after seconds, not when the room is full, which takes 40 s.
 */
static void what_a_disturbed_moment_showed_is_looked_at_again(void **state)
{
	static const struct fake_program many = {.calls = {40000, 100}, .octaves = {2, 12}};
	struct fake_process *process;

	for (uint64_t seed = 1; seed < 10; seed++) {
		fake__begin(&fake, 0.2, 2, seed, 20);
		process = fake__start(&fake, &many);
		fake.brief = false;
		fake__run(&fake, 1);
		assert_int_equal(fake.closings, 1);
		fake.brief = true;
		fake__run(&fake, 11);
		assert_int_equal(process->orders.set, SHORT);
		assert_int_equal(process->orders.probe_epoch & 1, 0);
		assert_int_equal(fake__warned(&fake, "coarser"), 1);
		assert_true(fake__mean(&fake, process, 0) < 0.002);
		end(state);
	}
}

/* Where returns were suppressed for what a program called before, calls are counted again once its probes had to close.
 */
static void suppressed_calls_are_counted_once_probes_close(void **state)
{
	static const struct fake_program mild = {.calls = {14000, 100}, .octaves = {0, 14}, .spares_returns = true};

	for (uint64_t seed = 1; seed < 5; seed++) {
		struct fake_program program = flushes;
		struct fake_process *process = begin(&mild, seed, 100);

		program.spares_returns = true;
		program.octaves[FAKE_SHORT] = 0;
		fake__run(&fake, 30);
		assert_true(process->orders.thin_ns > 0);
		process->program = &program;
		fake__run(&fake, 30);
		assert_int_equal(process->orders.set, SHORT);
		assert_int_equal(process->orders.thin_ns, 0);
		check_budget(process);
		end(state);
	}
}

/* Links that others share are opened again without the function: calls under way do not return, and a gap is counted.
 */
static void links_are_divided_once(void **state)
{
	struct fake_process *process = begin(&flushes, 1, 60), *second = fake__start(&fake, &flushes);
	struct enforcer_window window;

	fake.detaching = true;
	fake__run(&fake, 2);
	assert_int_equal(fake.changes, 1);
	assert_true(fake.parted && !fake.open[FAKE_LONG]);
	assert_int_equal(fake.openings, 0); /* not before the old links are gone */
	assert_true(enforcer__is_closed(fake.enforcer));
	assert_int_equal(process->orders.drop_open_epoch, 1);
	assert_int_equal(second->orders.drop_open_epoch, 1);
	fake.detaching = false;
	fake__run(&fake, 0.3);
	assert_int_equal(fake.openings, 1);
	assert_true(fake.open[FAKE_LONG] && !enforcer__is_closed(fake.enforcer));
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	window = enforcer__end_window(fake.enforcer, process->governed, fake.now, 1);
	assert_true((double)window.closed_ns > 1.5e9 && (double)window.closed_ns < process->unseen_ns * 1.02);
	end(state);
}

/* Where suppressed returns keep the budget and hide little, the calls themselves are still seen. */
static void what_is_covered_otherwise_stays(void **state)
{
	static const struct fake_program mild = {.calls = {14000, 100}, .octaves = {0, 14}, .spares_returns = true};
	struct fake_process *process = begin(&mild, 1, 60);

	fake__run(&fake, 60);
	assert_int_equal(process->orders.set, 0);
	assert_true(process->orders.thin_ns > 0);
	assert_true(covered(process) > 0.95);
	check_budget(process);
	end(state);
}

/* Another node needs a function left out that shares links here: the image is seen again without it. */
static void requested_functions_part_links_as_well(void **state)
{
	static const struct fake_program calm = {.calls = {600, 10}};
	struct fake_process *process = begin(&calm, 1, 60);

	fake__run(&fake, 1);
	enforcer__follow(process->governed, SHORT, fake.now + 5 * FAKE_SECOND, "node n2 requires that");
	fake__run(&fake, 1);
	assert_int_equal(process->orders.set, SHORT);
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	assert_true(fake.open[FAKE_LONG]);
	assert_non_null(strstr(fake.warnings[0].text, "that hardly ever wait (Win_flush)"));
	end(state);
}

/* A step that lowers the covered time is undone after a minute, and not repeated for a while. */
static void what_covers_less_is_undone(void **state)
{
	static const struct fake_program busy = {.calls = {15000, 100}, .octaves = {1, 7}, .spares_returns = true};
	struct fake_process *process = begin(&busy, 1, 300);
	double before;

	fake.instead = 3; /* the program does something else, more often, as soon as it is not probed there */
	fake__run(&fake, 5);
	assert_int_equal(process->orders.set, SHORT);
	fake__run(&fake, 70);
	assert_int_equal(process->orders.set, 0);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	fake__run(&fake, 15);
	before = process->covered_ns;
	fake__run(&fake, 100);
	assert_int_equal(process->orders.set, 0);
	assert_true((process->covered_ns - before) / 100e9 > 0.2);
	check_budget(process);
	end(state);
}

/* Returns the next number of a generator, 0..1. */
static double one(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 33) / 2147483648.0;
}

/* Runs a program with short calls that may be left out, or not. Returns its covered share of time. */
static double run(const struct fake_program *program, uint64_t seed, bool brief, uint32_t *without)
{
	struct fake_process *process = begin(program, seed, 100);
	double share;

	fake.brief = brief;
	fake__run(&fake, 100);
	check_budget(process);
	share = covered(process);
	*without |= process->orders.set;
	end(NULL);
	return share;
}

static void coverage_never_falls_by_leaving_functions_out(void **state)
{
	uint64_t seed = 53;
	unsigned gained = 0, left_out = 0;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		/* 10^2 .. 10^5.5 calls/s of each function, and spans of any length */
		struct fake_program program = {.spares_returns = one(&seed) < 0.5};
		uint32_t without = 0, none = 0;
		double with, otherwise;

		for (int k = 0; k < FAKE_FUNCTIONS; k++) {
			program.calls[k] = one(&seed) < 0.2 ? 0 : pow(10, 2 + 3.5 * one(&seed));
			program.octaves[k] = (unsigned)(one(&seed) * 15);
		}
		with = run(&program, i + 1, true, &without);
		otherwise = run(&program, i + 1, false, &none);
		assert_false(none & SHORT);
		if (with < otherwise - 0.02)
			fail_msg("%u: covered %.3f, otherwise %.3f: %.0f %.0f %.0f calls/s, octaves %u %u %u", i, with,
				 otherwise, program.calls[0], program.calls[1], program.calls[2], program.octaves[0],
				 program.octaves[1], program.octaves[2]);
		left_out += (without & SHORT) != 0;
		gained += with > otherwise + 0.1;
	}
	print_message("# of 300 mixes %u leave short calls out, %u gain 0.1 or more of their time\n", left_out, gained);
	assert_true(left_out >= 50 && gained >= 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(short_calls_are_left_out),
	    cmocka_unit_test(calls_that_wait_stay),
	    cmocka_unit_test(suppressed_calls_are_counted_once_probes_close),
	    cmocka_unit_test(what_a_disturbed_moment_showed_is_looked_at_again),
	    cmocka_unit_test(links_are_divided_once),
	    cmocka_unit_test(what_is_covered_otherwise_stays),
	    cmocka_unit_test(requested_functions_part_links_as_well),
	    cmocka_unit_test(what_covers_less_is_undone),
	    cmocka_unit_test(coverage_never_falls_by_leaving_functions_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
