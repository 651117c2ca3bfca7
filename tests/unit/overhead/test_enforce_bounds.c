// SPDX-License-Identifier: GPL-2.0-or-later
/* The enforcer on simulated programs: what they cost in all, in any 5 s, and what is still seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_probes.h"

static struct fake fake;

/* Begins with one process, under a budget of 1 % and a cap of 2 %. */
static struct fake_process *begin(const struct fake_program *program, uint64_t seed, size_t seconds)
{
	fake__begin(&fake, 1, 2, seed, seconds);
	return fake__start(&fake, program);
}

static int end(void **state)
{
	(void)state;
	fake__end(&fake);
	return 0;
}

/* Programs at many times the rate of the budget: without a governor they would cost 5 to 50 %. */
static void hot_programs_keep_budget_and_cap(void **state)
{
	static const double natural = 7000; /* calls a second: half a percent */
	static const double times[] = {10, 30, 100};

	for (size_t i = 0; i < 3; i++)
		for (int spares = 0; spares < 2; spares++)
			for (uint64_t seed = 1; seed < 6; seed++) {
				struct fake_program program = {
				    .calls = {natural * times[i] * 0.9, natural * times[i] * 0.1},
				    .octaves = {1, 4},
				    .spares_returns = spares};
				struct fake_process *process = begin(&program, governor__seed("host", seed), 300);

				fake__run(&fake, 300);
				assert_true(fake__peak(&fake, process) < 0.02);
				assert_true(fake__mean(&fake, process, 0) < 0.01);
				/* observation is not simply switched off */
				assert_true(fake__mean(&fake, process, 0) > 0.001);
				assert_true(fake.openings > 5);
				assert_true(fake.least_between_openings >= FAKE_SECOND);
				assert_true(process->least_between_steps_ns >= GOVERNOR_STEP_NS);
				assert_true(process->reported > 0);
				end(state);
			}
}

/* Links of other processes are part of the cost; where they are much of it and no process is harmed one replaces them.
 */
static void links_of_others_are_charged_and_give_way(void **state)
{
	static const struct fake_program warm = {.calls = {5000}}, calm = {.calls = {500}};
	struct fake_process *process = begin(&warm, 1, 120);

	fake.others = 63;
	fake.strangers = true;
	fake__run(&fake, 60);
	assert_true(fake.openings > 0);
	assert_true(fake__peak(&fake, process) < 0.02 && fake__mean(&fake, process, 0) < 0.01);
	end(state);
	process = begin(&warm, 1, 120);
	fake.others = 63;
	fake__run(&fake, 60);
	assert_int_equal(fake.others, 0);
	assert_int_equal(fake.closings, 0);
	end(state);
	process = begin(&calm, 1, 120);
	fake.others = 63;
	fake__run(&fake, 60);
	assert_int_equal(fake.others, 63);
	assert_int_equal(fake.closings, 0);
	end(state);
}

/* Where others hijack each return, its suppression saves nothing and is not tried. */
static void returns_beside_others_are_not_suppressed(void **state)
{
	static const struct fake_program hot = {.calls = {20000}, .octaves = {1}, .spares_returns = true};
	struct fake_process *process = begin(&hot, 1, 120);

	fake.others = 1;
	fake.strangers = true;
	fake__run(&fake, 60);
	assert_int_equal(process->orders.thin_ns, 0);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	end(state);
	process = begin(&hot, 1, 120);
	fake.others = 1;
	fake__run(&fake, 60);
	assert_int_equal(fake.others, 0);
	end(state);
}

static void any_look_may_be_the_first(void **state)
{
	static const struct fake_program idle = {.calls = {10}}, hot = {.calls = {700000}, .spares_returns = true};

	for (unsigned quiet = 0; quiet < 20; quiet += 3) {
		struct fake_process *process = begin(&hot, 77, 100);

		process->program = &idle;
		fake__run(&fake, quiet);
		process->program = &hot;
		fake__run(&fake, 40);
		process->program = &idle;
		fake__run(&fake, 7);
		process->program = &hot;
		fake__run(&fake, 20);
		assert_true(fake__peak(&fake, process) < 0.02);
		end(state);
	}
}

/* Bursts that end before the next look, again and again: no look by itself is over. */
static void bursts_are_seen(void **state)
{
	static const struct fake_program hot = {.calls = {700000}}, idle = {0};
	struct fake_process *process = begin(&hot, 5, 120);

	for (unsigned i = 0; i < 3000; i++) {
		process->program = &hot;
		fake__run(&fake, 0.01);
		process->program = &idle;
		fake__run(&fake, 0.03);
	}
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
	end(state);
}

/* Many short calls between few long ones: their returns pay for the rest, and nothing is closed. */
static void short_states_go_first(void **state)
{
	struct fake_program program = {.calls = {14000, 900}, .octaves = {2, 9}, .spares_returns = true};
	struct fake_process *process = begin(&program, 3, 120);

	fake__run(&fake, 120);
	assert_int_equal(process->thin, 3);
	assert_int_equal(fake.closings, 0);
	assert_true(fake__mean(&fake, process, 20) < 0.01);
	assert_true(process->reported > 0.8 * process->time);
	end(state);
	/* where returns cannot be suppressed the same program is observed in duty cycles */
	program.spares_returns = false;
	process = begin(&program, 3, 120);
	fake__run(&fake, 120);
	assert_int_equal(process->thin, 0);
	assert_true(fake.closings > 0);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	end(state);
}

/* Where a step saved too little for what the program calls next, another follows at once, and nothing is closed. */
static void a_step_too_small_is_followed_by_another(void **state)
{
	static const struct fake_program first = {.calls = {3000, 9500, 100},
						  .octaves = {2, 3, 12},
						  .spares_returns = true},
					 second = {.calls = {3000, 12500, 100},
						   .octaves = {2, 3, 12},
						   .spares_returns = true};
	struct fake_process *process = begin(&first, 3, 120);

	while (!process->thin)
		fake__run(&fake, 0.1);
	assert_int_equal(process->thin, 3);
	process->program = &second;
	fake__run(&fake, 5);
	assert_int_equal(process->thin, 4);
	assert_int_equal(fake.closings, 0);
	fake__run(&fake, 60);
	assert_int_equal(fake.closings, 0);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
	end(state);
}

/* A short burst of a program that keeps the budget is paid back with its probes open. */
static void a_burst_of_a_modest_program_closes_nothing(void **state)
{
	static const struct fake_program modest = {.calls = {0, 6900}, .octaves = {2, 9}},
					 burst = {.calls = {0, 44000}, .octaves = {2, 9}};
	struct fake_process *process = begin(&modest, 3, 60);

	for (int i = 0; i < 15; i++) {
		fake__run(&fake, 3.1);
		process->program = &burst;
		fake__run(&fake, 0.5);
		process->program = &modest;
	}
	assert_int_equal(fake.closings, 0);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
	end(state);
}

static void steps_are_undone(void **state)
{
	static const struct fake_program hot = {.calls = {14000, 900}, .octaves = {2, 9}, .spares_returns = true},
					 calm = {.calls = {2000, 900}, .octaves = {2, 9}, .spares_returns = true},
					 /* would meet the budget, but not by enough */
	    between = {.calls = {10500, 900}, .octaves = {2, 9}, .spares_returns = true};
	struct fake_process *process = begin(&hot, 3, 400);
	unsigned up;

	fake__run(&fake, 60);
	assert_true(process->thin > 0);
	up = process->steps_up;
	process->program = &between;
	fake__run(&fake, 60);
	assert_int_equal(process->steps_back, 0);
	process->program = &calm;
	fake__run(&fake, 60);
	assert_int_equal(process->thin, 0);
	assert_int_equal(process->steps_up, up);
	assert_true(process->steps_back > 0);
	process->program = &hot;
	fake__run(&fake, 60);
	assert_true(process->thin > 0);
	end(state);
}

static void windows_end_when_the_rate_falls(void **state)
{
	static const struct fake_program hot = {.calls = {300000}}, calm = {.calls = {3000}};
	struct fake_process *process = begin(&hot, 8, 200);
	unsigned count;

	fake__run(&fake, 60);
	assert_true(fake.closings > 2);
	process->program = &calm;
	fake__run(&fake, 30);
	count = fake.closings;
	assert_false(enforcer__is_closed(fake.enforcer));
	fake__run(&fake, 60);
	assert_int_equal(fake.closings, count);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	end(state);
}

static void modest_programs_are_left_alone(void **state)
{
	static const struct fake_program program = {.calls = {11000}, .octaves = {5}, .spares_returns = true};
	struct fake_process *process = begin(&program, 1, 120);

	fake__run(&fake, 120);
	assert_int_equal(fake.closings, 0);
	assert_int_equal(process->thin, 0);
	assert_true(fake__mean(&fake, process, 0) > 0.008);
	assert_int_equal(fake.warning_count, 0);
	end(state);
}

static void no_cap_means_no_bound(void **state)
{
	static const struct fake_program program = {.calls = {1000000}, .spares_returns = true};
	struct fake_process *process;

	fake__begin(&fake, 1, 0, 1, 20);
	process = fake__start(&fake, &program);
	fake__run(&fake, 20);
	assert_int_equal(fake.closings, 0);
	assert_int_equal(process->thin, 0);
	assert_true(fake__mean(&fake, process, 0) > 0.3);
	end(state);
}

/* Without a budget, or with one above it, the cap is the bound. */
static void the_cap_alone_holds(void **state)
{
	static const double budgets[] = {0, 2, 50};
	static const struct fake_program program = {.calls = {500000}, .spares_returns = true};

	for (size_t i = 0; i < 3; i++) {
		struct fake_process *process;

		fake__begin(&fake, budgets[i], 2, 4, 120);
		process = fake__start(&fake, &program);
		fake__run(&fake, 120);
		assert_true(fake__peak(&fake, process) < 0.02);
		assert_true(fake.closings > 2);
		end(state);
	}
}

/*
 * Probes that cost k times the rate are open for nearly 1/k of the time, however short the open periods are: saved
 * credit is used. The rest is what closing costs: links take a while to go.
 */
static void a_duty_cycle_uses_the_budget(void **state)
{
	static const double costs[] = {0.015, 0.027, 0.05, 0.08, 0.15, 0.3, 0.6};

	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
		for (uint64_t seed = 1; seed < 6; seed++) {
			const struct fake_program program = {
			    .calls = {costs[i] / ((FAKE_ENTRY_NS + FAKE_RETURN_NS) * 1e-9)}};
			struct fake_process *process = begin(&program, governor__seed("host", seed), 300);

			fake__run(&fake, 300);
			assert_true(fake__mean(&fake, process, 0) < 0.01);
			assert_true(fake__peak(&fake, process) < 0.02);
			/* the calls of a process that is slowed down cost less of its time */
			assert_true(fake__mean(&fake, process, 0) > 0.75 * fake.governor.rate);
			assert_true(process->covered_ns >
				    0.75 * fake.governor.rate / costs[i] * (double)(fake.looks * FAKE_LOOK));
			end(state);
		}
}

/* Bursts of short calls, a little over the budget: their returns are suppressed, and no burst closes the probes. */
static void bursts_of_short_calls_close_nothing(void **state)
{
	static const struct fake_program burst = {.calls = {100000}, .octaves = {1, 9}, .spares_returns = true},
					 rest = {.calls = {0, 1200}, .octaves = {1, 9}, .spares_returns = true};

	for (int looks = 1; looks <= 3; looks++)
		for (unsigned offset = 0; offset < 5; offset++) {
			struct fake_process *process;

			fake__begin(&fake, 2, 8, 1, 31);
			process = fake__start(&fake, &rest);
			fake__run(&fake, offset * 0.01);
			for (int i = 0; i < 30 * 100 / (3 * looks); i++) {
				process->program = &burst;
				fake__run(&fake, looks * 0.01);
				process->program = &rest;
				fake__run(&fake, looks * 0.02);
			}
			assert_true(process->thin > 0);
			assert_int_equal(fake.closings, 0);
			end(state);
		}
}

/*
 * After a quiet minute a phase makes far more calls than can be afforded, as RandomAccess of HPCC does: what was saved
 * is not spent beyond the cap before the probes are gone, also where links take 100 ms to close.
 */
static void a_new_phase_keeps_the_cap(void **state)
{
	static const double rates[] = {10000, 60000, 260000, 700000, 1500000};

	for (size_t i = 0; i < 5; i++)
		for (unsigned change = 4; change <= 10; change += 6)
			for (unsigned offset = 0; offset < 5; offset++) { /* of the begin to the loop's passes */
				const struct fake_program quiet = {.calls = {10}}, hot = {.calls = {rates[i]}};
				struct fake_process *process = begin(&quiet, 7 + offset, 121);

				fake.change = change;
				fake__run(&fake, 60 + offset * 0.01);
				process->program = &hot;
				fake__run(&fake, 60);
				assert_true(fake__peak(&fake, process) < 0.02);
				assert_true(fake__mean(&fake, process, 60) < 0.01);
				end(state);
			}
}

/*
 * A burst of posts, at the start as in HPCC or after a quiet minute, has the posts left out from then on, and all other
 * functions are probed again as soon as the bounds allow.
 */
static void a_burst_of_posts_hides_the_rest_briefly(void **state)
{
	static const struct fake_program quiet = {.calls = {300}}, burst = {.calls = {300, 0, 1e7}};

	for (int seconds = 0; seconds <= 60; seconds += 60) {
		struct fake_process *process = begin(&quiet, 7, 121);

		fake__run(&fake, seconds);
		for (int i = 0; i < 20; i++) {
			process->program = &burst;
			fake__run(&fake, 0.2);
			process->program = &quiet;
			fake__run(&fake, 2.8);
		}
		assert_int_equal(fake.closings, 1);
		assert_int_equal(fake.without, 1);
		assert_true(process->unseen_ns < 0.3e9);
		assert_true(fake__peak(&fake, process) < 0.02);
		assert_true(fake__greatest_mean(&fake, process, 5) < 0.01);
		end(state);
	}
}

/* A run of any length keeps the mean, from its first seconds on: on this machine a call costs 1 to 8 times as much. */
static void the_bounds_hold_from_the_start(void **state)
{
	static const double rates[] = {10000, 20000, 40000, 80000, 260000, 700000, 1500000};

	for (size_t i = 0; i < 7; i++)
		for (double expensive = 1; expensive <= 8 && rates[i] * expensive <= 1.5e6; expensive *= 2) {
			const struct fake_program program = {.calls = {rates[i], rates[i] / 100}, .octaves = {2, 9}};
			struct fake_process *process = begin(&program, 3, 60);

			fake.costs.entry_ns *= expensive;
			fake.costs.call_ns *= expensive;
			fake__run(&fake, 60);
			assert_true(fake__peak(&fake, process) < 0.02);
			assert_true(fake__greatest_mean(&fake, process, 5) < 0.01);
			assert_true(process->reported > 0);
			end(state);
		}
}

/* Phases that the budget allows for are seen as a whole: up to 5 s of 1.5 % are paid from what was saved before. */
static void saved_credit_pays_for_a_phase(void **state)
{
	static const struct fake_program quiet = {.calls = {2000}}, busy = {.calls = {20000}};
	struct fake_process *process = begin(&quiet, 7, 121);

	for (int i = 0; i < 12; i++) {
		process->program = &quiet;
		fake__run(&fake, 5);
		process->program = &busy;
		fake__run(&fake, 5);
	}
	assert_int_equal(fake.closings, 0);
	assert_true(fake__peak(&fake, process) < 0.02);
	end(state);
}

/* Waits for vaprod cost half of the budget at most: they alone close nothing, but leave less for probes. */
static void held_time_is_charged_up_to_half(void **state)
{
	static const double calls = 0.007 / ((FAKE_ENTRY_NS + FAKE_RETURN_NS) * 1e-9);
	const struct fake_program held = {.held = 1, .calls = {calls / 4}}, both = {.held = 1, .calls = {calls}},
				  probes = {.calls = {calls}};

	begin(&held, 1, 120);
	fake__run(&fake, 120);
	assert_int_equal(fake.closings, 0);
	end(state);
	begin(&probes, 1, 120);
	fake__run(&fake, 120);
	assert_int_equal(fake.closings, 0);
	end(state);
	begin(&both, 1, 120);
	fake__run(&fake, 120);
	assert_true(fake.closings > 0);
	end(state);
}

/* Many threads that wait for one CPU that vaprod has cost their process what vaprod ran, once. */
static void a_crew_that_waits_is_charged_once(void **state)
{
	static const double calls = 0.005 / ((FAKE_ENTRY_NS + FAKE_RETURN_NS) * 1e-9);
	static const unsigned waiting[] = {1, 8, 64};

	for (size_t i = 0; i < 3; i++) {
		const struct fake_program crew = {.held = 0.004, .waiting = waiting[i], .calls = {calls}};
		struct fake_process *process = begin(&crew, 1, 60);
		double cost;

		fake__run(&fake, 60);
		assert_int_equal(fake.closings, 0);
		cost = (double)enforcer__spent(process->governed) / (60.0 * FAKE_SECOND);
		assert_true(fabs(cost - 0.009) < 0.0005);
		end(state);
	}
}

/*
 * A process of few calls whose CPU vaprod has for another owner's records pays nothing for that: its waits cost the
 * processes whose records these are, and close theirs where these have spent their budget on calls.
 */
static void waits_are_charged_to_who_caused_them(void **state)
{
	static const double calls = 0.007 / ((FAKE_ENTRY_NS + FAKE_RETURN_NS) * 1e-9);
	static const struct fake_program bystander = {.held = 0.05, .calls = {200}, .owner = 2, .records = 200};
	const struct fake_program cause = {.calls = {calls}, .owner = 1, .records = 20000};
	struct fake_process *waits = begin(&bystander, 1, 60), *causes = fake__start(&fake, &cause);

	fake__run(&fake, 60);
	assert_true((double)enforcer__spent(waits->governed) < 0.003 * 60 * FAKE_SECOND);
	assert_true((double)enforcer__spent(causes->governed) > 0.01 * 60 * FAKE_SECOND);
	assert_true(fake.closings > 0);
	for (size_t i = 0; i < fake.warning_count && i < FAKE_WARNINGS; i++)
		assert_int_not_equal(fake.warnings[i].pid, 1);
	end(state);
}

/* Bursts of waits for vaprod, such as that of a window's analysis, are paid from what was saved. */
static void bursts_of_waits_are_a_part_of_the_cost(void **state)
{
	static const double rates[] = {20000, 60000, 260000};

	for (size_t i = 0; i < 3; i++) {
		const struct fake_program hot = {.calls = {rates[i]}}, held = {.calls = {rates[i]}, .held = 0.3};
		struct fake_process *process = begin(&hot, 7, 201);

		for (int window = 0; window < 20; window++) {
			process->program = &hot;
			fake__run(&fake, 9.9);
			process->program = &held;
			fake__run(&fake, 0.1); /* 30 ms */
		}
		assert_true(fake__mean(&fake, process, 0) < 0.01);
		/* a burst at the end of 5 s in which all was spent comes on top of them */
		assert_true(fake__peak(&fake, process) < 0.02 + 0.03 / 5);
		assert_true(fake.openings > 5 && process->reported > 0);
		end(state);
	}
}

/* Functions with exits of their own have what calls and waits leave of nine tenths of the budget, whatever they cost.
 */
static void calls_limit_other_functions(void **state)
{
	static const struct {
		struct fake_program program;
		double left;
	} cases[] = {
	    {{.calls = {7000}}, 0.009 - 0.00525},
	    {{.calls = {7000}, .rows = 3000}, 0.009 - 0.00525},
	    {{.calls = {11000}}, 0.009 - 0.00825},
	    {{.rows = 3000}, 0.009},
	    {{.calls = {7000}, .rows = 1000, .held = 0.002}, 0.009 - 0.00525 - 0.002},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fake_process *process = begin(&cases[i].program, 1, 30);

		fake__run(&fake, 30);
		assert_true(fabs(process->left_for_rows - cases[i].left) < 0.0003);
		end(state);
	}
}

/* What a process waits for its attachment is no running cost that leaves less to other functions. */
static void an_attachment_limits_nothing(void **state)
{
	static const struct fake_program rows = {.rows = 3000}, attaching = {.rows = 3000, .held = 0.03};
	struct fake_process *process = begin(&attaching, 1, 30);

	fake__run(&fake, 1);
	process->program = &rows;
	fake__run(&fake, 3);
	assert_true(fabs(process->left_for_rows - 0.009) < 0.0003);
	end(state);
}

/* Waits that go on after an attachment leave less to functions with exits of their own, from the first seconds on. */
static void early_waits_limit_other_functions(void **state)
{
	static const struct fake_program waits = {.rows = 3000, .held = 0.004};
	struct fake_process *process;

	fake__begin(&fake, 1, 2, 1, 30);
	fake.again = true; /* the waits for an image's first attachment are not charged */
	process = fake__start(&fake, &waits);
	fake__run(&fake, 3);
	assert_true(fabs(process->left_for_rows - (0.009 - 0.004)) < 0.0003);
	end(state);
}

/* What calls cost in the open periods of a duty cycle counts, not what they cost on average. */
static void a_duty_cycle_leaves_nothing(void **state)
{
	static const struct fake_program hot = {.calls = {60000}};
	struct fake_process *process = begin(&hot, 1, 60);

	fake__run(&fake, 60);
	assert_true(fake.closings > 0);
	assert_true(process->left_for_rows < -0.01);
	end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hot_programs_keep_budget_and_cap),
	    cmocka_unit_test(links_of_others_are_charged_and_give_way),
	    cmocka_unit_test(returns_beside_others_are_not_suppressed),
	    cmocka_unit_test(any_look_may_be_the_first),
	    cmocka_unit_test(bursts_are_seen),
	    cmocka_unit_test(short_states_go_first),
	    cmocka_unit_test(a_step_too_small_is_followed_by_another),
	    cmocka_unit_test(a_burst_of_a_modest_program_closes_nothing),
	    cmocka_unit_test(steps_are_undone),
	    cmocka_unit_test(windows_end_when_the_rate_falls),
	    cmocka_unit_test(modest_programs_are_left_alone),
	    cmocka_unit_test(no_cap_means_no_bound),
	    cmocka_unit_test(the_cap_alone_holds),
	    cmocka_unit_test(a_duty_cycle_uses_the_budget),
	    cmocka_unit_test(bursts_of_short_calls_close_nothing),
	    cmocka_unit_test(a_new_phase_keeps_the_cap),
	    cmocka_unit_test(a_burst_of_posts_hides_the_rest_briefly),
	    cmocka_unit_test(the_bounds_hold_from_the_start),
	    cmocka_unit_test(saved_credit_pays_for_a_phase),
	    cmocka_unit_test(held_time_is_charged_up_to_half),
	    cmocka_unit_test(waits_are_charged_to_who_caused_them),
	    cmocka_unit_test(a_crew_that_waits_is_charged_once),
	    cmocka_unit_test(bursts_of_waits_are_a_part_of_the_cost),
	    cmocka_unit_test(calls_limit_other_functions),
	    cmocka_unit_test(an_attachment_limits_nothing),
	    cmocka_unit_test(early_waits_limit_other_functions),
	    cmocka_unit_test(a_duty_cycle_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
