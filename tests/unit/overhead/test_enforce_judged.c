// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that were left out, where the analysis can judge little without them: they are probed again for a while,
 * and what can be judged with and without them decides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "fake_probes.h"

#define WINDOW_S 10

static struct fake fake;

/* Posts that cost twice the budget beside calls that wait, which keep it. */
static const struct fake_program posts = {.calls = {6000, 0, 20000}};

/* Shares of the covered time that the analysis can judge while the posts are left out, and while they are probed. */
struct judged {
	double without, with;
};

/* Runs a program for some windows, each of which is analysed. Returns the share of time that was judged. */
static double run(struct fake_process *process, const struct judged *judged, int windows)
{
	double sum = 0;

	for (int i = 0; i < windows; i++) {
		uint64_t begin = fake.now;
		double before = process->covered_ns, share;

		fake__run(&fake, WINDOW_S);
		share = (process->covered_ns - before) / (double)(fake.now - begin) *
			(process->orders.set ? judged->without : judged->with);
		enforcer__judged(process->governed, begin, fake.now, share);
		sum += share;
	}
	return sum / windows;
}

static struct fake_process *begin(uint64_t seed)
{
	fake__begin(&fake, 1, 2, seed, 1000);
	return fake__start(&fake, &posts);
}

static void end(const struct fake_process *process)
{
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
	fake__end(&fake);
}

/* The time between two calls that wait is one computation, and of one kind: all is well. */
static void what_can_be_judged_stays_left_out(void **state)
{
	static const struct judged judged = {.without = 0.8, .with = 0.9};

	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct fake_process *process = begin(seed);

		run(process, &judged, 50);
		assert_int_equal(process->orders.set, 1);
		assert_int_equal(fake.changes, 1);
		assert_int_equal(fake__warned(&fake, "released"), 0);
		end(process);
	}
}

/* Without the posts the time is of many kinds, as in SNAP: with them, in a duty cycle, more of it can be judged. */
static void what_cannot_be_judged_is_probed_again(void **state)
{
	static const struct judged judged = {.without = 0.1, .with = 0.9};

	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct fake_process *process = begin(seed);

		assert_true(run(process, &judged, 6) < 0.15);
		run(process, &judged, 4);
		assert_int_equal(process->orders.set, 0);
		assert_int_equal(fake__warned(&fake, "released"), 1);
		assert_non_null(strstr(fake.warnings[1].text,
				       "functions of libmpi.so that never wait (Isend) are "
				       "probed again: without them 10 % of the time was covered"));
		assert_true(run(process, &judged, 14) > 0.3);
		assert_int_equal(process->orders.set, 0);
		end(process);
	}
}

/* Where with the posts even less can be judged, they are left out again, once and for good. */
static void what_is_worse_with_all_probes_is_left_out_again(void **state)
{
	static const struct judged judged = {.without = 0.1, .with = 0.1};

	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct fake_process *process = begin(seed);

		run(process, &judged, 24);
		assert_int_equal(process->orders.set, 1);
		assert_int_equal(fake.changes, 3);
		run(process, &judged, 40);
		assert_int_equal(process->orders.set, 1);
		assert_int_equal(fake.changes, 3);
		end(process);
	}
}

static double drawn(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 40) / (double)(1 << 24);
}

/* Returns the share that is judged while posts and other calls are probed for as long as the budget allows. */
static double judged_in_cycles(const struct fake_program *program, double with, uint64_t seed)
{
	struct fake_program same = *program;
	struct fake_process *process;
	double share;

	/* the same calls, none of which can be left out */
	same.calls[FAKE_LONG] += same.calls[FAKE_POST];
	same.calls[FAKE_POST] = 0;
	fake__begin(&fake, 1, 2, seed, 1500);
	process = fake__start(&fake, &same);
	run(process, &(struct judged){with, with}, 30);
	share = run(process, &(struct judged){with, with}, 20);
	fake__end(&fake);
	return share;
}

/*
 * Whatever the posts cost, and whatever can be judged with and without them: in the end no less is judged than in the
 * better of both ways, but for the noise of a minute.
 */
static void leaving_out_never_lowers_what_is_judged(void **state)
{
	uint64_t seed = 55;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct fake_program program = {.calls = {1000 + 4000 * drawn(&seed), 0, 8000 + 60000 * drawn(&seed)}};
		struct judged judged = {.without = drawn(&seed), .with = drawn(&seed)};
		double in_cycles = judged_in_cycles(&program, judged.with, seed), last;
		struct fake_process *process;

		fake__begin(&fake, 1, 2, seed, 1500);
		process = fake__start(&fake, &program);
		run(process, &judged, 40);
		last = run(process, &judged, 20);
		if (last < 0.85 * fmax(in_cycles, fmin(judged.without, 1)))
			fail_msg("%.0f posts: %.3f is judged at last; in a duty cycle %.3f, without posts %.3f",
				 program.calls[FAKE_POST], last, in_cycles, judged.without);
		end(process);
	}
}

/* What is not analysed, or belongs to the first moments of a set, decides nothing. */
static void a_new_set_has_time_to_warm_up(void **state)
{
	struct fake_process *process = begin(1);
	uint64_t start = fake.now;

	(void)state;
	fake__run(&fake, WINDOW_S);
	assert_int_equal(process->orders.set, 1);
	enforcer__judged(process->governed, start, fake.now, 0);
	fake__run(&fake, 200);
	assert_int_equal(process->orders.set, 1);
	assert_int_equal(fake.changes, 1);
	end(process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_can_be_judged_stays_left_out),
	    cmocka_unit_test(what_cannot_be_judged_is_probed_again),
	    cmocka_unit_test(what_is_worse_with_all_probes_is_left_out_again),
	    cmocka_unit_test(leaving_out_never_lowers_what_is_judged),
	    cmocka_unit_test(a_new_set_has_time_to_warm_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
