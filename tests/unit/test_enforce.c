// SPDX-License-Identifier: GPL-2.0-or-later
/* The enforcer on simulated programs: what they cost, what is given up for that, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

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
				assert_true(fake.least_between_openings >= GOVERNOR_OPENING_NS);
				assert_true(process->least_between_steps_ns >= GOVERNOR_STEP_NS);
				assert_true(process->reported > 0);
				end(state);
			}
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

/* Probes that cost three times the budget are open for nearly a third of the time: saved credit is used. */
static void a_duty_cycle_uses_the_budget(void **state)
{
	const struct fake_program program = {.calls = {0.027 / ((FAKE_ENTRY_NS + FAKE_RETURN_NS) * 1e-9)}};
	struct fake_process *process = begin(&program, 7, 300);

	fake__run(&fake, 300);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_true(fake__peak(&fake, process) < 0.02);
	assert_true(fake.open_looks > 0.26 * (double)fake.looks);
	end(state);
}

/* What is expected of a change of links, by check_change(). */
static struct {
	uint32_t epochs[FAKE_PROCESSES];
	unsigned closed, opened, left_out;
} changes;

/* Before links are changed, all processes of the image are in an epoch of their own in which calls may be unseen. */
static void check_change(struct fake *of, const char *what)
{
	for (size_t i = 0; i < of->count; i++) {
		const struct kernel_governed *orders = &of->processes[i].orders;

		assert_int_equal(orders->probe_epoch & 1, 1);
		if (!strcmp(what, "open"))
			continue;
		assert_true(orders->probe_epoch > changes.epochs[i]);
		changes.epochs[i] = orders->probe_epoch;
		if (strcmp(what, "leave out") != 0)
			continue;
		assert_int_equal(orders->known_ns, UINT64_MAX);
		assert_int_equal(orders->set, of->without); /* the set before */
	}
	changes.closed += !strcmp(what, "close");
	changes.opened += !strcmp(what, "open");
	changes.left_out += !strcmp(what, "leave out");
}

static void expect_changes(void)
{
	memset(&changes, 0, sizeof(changes));
	fake.on_change = check_change;
}

static void the_epoch_is_advanced_before_links_are_closed(void **state)
{
	static const struct fake_program hot = {.calls = {300000}}, calm = {.calls = {300}};
	struct fake_process *first = begin(&hot, 1, 60), *second = fake__start(&fake, &calm);

	expect_changes();
	fake__run(&fake, 0.5);
	assert_int_equal(changes.closed, 1);
	assert_true(enforcer__is_closed(fake.enforcer));
	/* links that stay were opened again, once: open calls are void in every process */
	assert_int_equal(first->orders.voids, 1);
	assert_int_equal(second->orders.voids, 1);
	fake__run(&fake, 59);
	assert_true(changes.opened > 2 && changes.closed > 2);
	assert_int_equal(first->orders.voids, 1);
	/* open again, all calls are seen */
	first->program = &calm;
	fake__run(&fake, 0.2);
	while (enforcer__is_closed(fake.enforcer))
		fake__run(&fake, 0.1);
	assert_int_equal(first->orders.probe_epoch & 1, 0);
	assert_int_equal(second->orders.probe_epoch & 1, 0);
	end(state);
}

static void time_with_unseen_calls_is_reported(void **state)
{
	static const struct fake_program hot = {.calls = {300000}, .syscalls = 100}, calm = {.calls = {300}};
	struct fake_process *processes[2] = {begin(&hot, 1, 60), fake__start(&fake, &calm)};
	double reported[2] = {0}, cost = 0;

	for (int window = 0; window < 10; window++) {
		fake__run(&fake, 5.3);
		for (int i = 0; i < 2; i++) {
			struct enforcer_window facts =
			    enforcer__end_window(fake.enforcer, processes[i]->governed, fake.now);

			reported[i] += (double)facts.closed_ns;
			cost += i ? 0 : (double)facts.cost_ns;
			assert_int_equal(facts.thinned, 0);
		}
	}
	assert_true(processes[0]->unseen_ns > 20e9);
	for (int i = 0; i < 2; i++)
		assert_true(fabs(reported[i] / processes[i]->unseen_ns - 1) < 0.02);
	assert_true(fabs(cost / (fake__mean(&fake, processes[0], 0) * (double)(fake.looks * FAKE_LOOK)) - 1) < 0.01);
	end(state);
}

static void a_refused_opening_is_warned_of_once(void **state)
{
	static const struct fake_program hot = {.calls = {300000}};

	begin(&hot, 1, 60);
	fake.refused = -EBUSY;
	fake__run(&fake, 60);
	assert_true(fake.openings > 2);
	assert_int_equal(fake__warned(&fake, "attach_failed"), 1);
	end(state);
}

/* A closed period is reported once, and again only where periods become longer. */
static void duty_cycles_are_reported_once(void **state)
{
	static const struct fake_program hot = {.calls = {60000}};
	struct fake_process *process = begin(&hot, 1, 60);

	fake__run(&fake, 60);
	assert_true(fake.closings > 5);
	assert_in_range(fake__warned(&fake, "governed"), 1, fake.closings / 3);
	assert_int_equal(fake.warnings[0].pid, 1);
	assert_non_null(strstr(fake.warnings[0].text, "process 1 (program): "));
	assert_non_null(
	    strstr(fake.warnings[0].text, "the probes of 1 of 3 functions of libmpi.so (most calls: Send)"));
	assert_true(process->orders.probe_epoch > 10);
	end(state);
}

/* Posts are most of the cost: they are left out, which saves enough, and nothing that waits is closed. */
static void posts_are_left_out_first(void **state)
{
	static const struct fake_program posts = {.calls = {6000, 0, 20000}}, calm = {.calls = {600, 0, 2000}};
	struct fake_process *process = begin(&posts, 1, 200);

	expect_changes();
	fake__run(&fake, 60);
	assert_int_equal(changes.left_out, 1);
	assert_int_equal(fake.closings, 0);
	assert_int_equal(fake.without, 1);
	assert_int_equal(process->orders.set, 1);
	assert_true(process->orders.known_ns < UINT64_MAX);
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	assert_true(fake__mean(&fake, process, 0) < 0.01);
	assert_int_equal(fake__warned(&fake, "coarser"), 1);
	/* a process that comes later begins with the set */
	process = fake__start(&fake, &calm);
	assert_int_equal(process->orders.set, 1);
	/* probed again, after a while, where all processes can afford it */
	fake.processes[0].program = &calm;
	fake__run(&fake, 120);
	assert_int_equal(changes.left_out, 2);
	assert_int_equal(fake.without, 0);
	assert_int_equal(process->orders.set, 0);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	end(state);
}

/* What costs more than half of a process's time is closed at once: links of posts go one after the other. */
static void what_costs_most_of_the_time_is_closed_at_once(void **state)
{
	static const struct fake_program calm = {0}, flat_out = {.calls = {0, 0, 1e7}};
	struct fake_process *process = begin(&calm, 1, 60);

	expect_changes();
	fake__run(&fake, 0.11); /* up to a pass */
	process->program = &flat_out;
	fake__run(&fake, 0.2);
	assert_int_equal(changes.closed, 1);
	assert_int_equal(changes.left_out, 0);
	fake__run(&fake, 20); /* its image is closed: nothing is left out while it is */
	assert_int_equal(fake.without, 0);
	end(state);
}

static void functions_with_exits_of_their_own_go_before_the_image(void **state)
{
	static const struct fake_program hot = {.calls = {60000}};

	begin(&hot, 1, 60);
	fake.rows_close = true;
	fake__run(&fake, 3);
	assert_true(fake.row_closings > 0);
	assert_int_equal(fake.closings, 0);
	fake.rows_close = false;
	fake__run(&fake, 1);
	assert_int_equal(fake.closings, 1);
	end(state);
}

/* System calls are most of the cost: they are suppressed for a while, again and again, and the image stays open. */
static void expensive_system_calls_are_suppressed(void **state)
{
	static const struct fake_program io = {.calls = {1000}, .syscalls = 100000}, calm = {.calls = {1000}};
	struct fake_process *process = begin(&io, 1, 120);
	struct enforcer_window window;

	fake__run(&fake, 60);
	assert_int_equal(fake.closings, 0);
	assert_int_equal(fake__warned(&fake, "governed"), 1);
	assert_true(process->orders.thinned_io > 0 && process->counters.syscalls > 0);
	assert_true(fake__peak(&fake, process) < 0.02);
	window = enforcer__end_window(fake.enforcer, process->governed, fake.now);
	assert_int_equal(window.thinned, 2 * process->orders.thinned_io);
	assert_true(fabs((double)window.closed_ns / process->unseen_ns - 1) < 0.02);
	process->program = &calm;
	fake__run(&fake, 60);
	assert_int_equal(process->orders.no_io, 0);
	assert_int_equal(fake__warned(&fake, "released"), 1);
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

/* The image is forgotten with its last process: the next one begins with all probes, though some were closed. */
static void an_image_is_forgotten_with_its_last_process(void **state)
{
	static const struct fake_program hot = {.calls = {300000}};
	struct fake_process *first = begin(&hot, 1, 60), *second = fake__start(&fake, &hot), *third;

	fake__run(&fake, 0.5);
	assert_int_equal(fake.closings, 1);
	enforcer__leave(fake.enforcer, first->governed, fake.now);
	assert_true(enforcer__is_closed(fake.enforcer));
	third = fake__start(&fake, &hot);
	assert_int_equal(third->orders.probe_epoch & 1, 1); /* the image is closed */
	enforcer__leave(fake.enforcer, second->governed, fake.now);
	enforcer__leave(fake.enforcer, third->governed, fake.now);
	assert_false(enforcer__is_closed(fake.enforcer));
	enforcer__remove(fake.enforcer, second->governed);
	third = fake__start(&fake, &hot);
	assert_int_equal(third->orders.probe_epoch & 1, 0);
	assert_int_equal(fake.openings, 0);
	end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hot_programs_keep_budget_and_cap),
	    cmocka_unit_test(any_look_may_be_the_first),
	    cmocka_unit_test(bursts_are_seen),
	    cmocka_unit_test(short_states_go_first),
	    cmocka_unit_test(steps_are_undone),
	    cmocka_unit_test(windows_end_when_the_rate_falls),
	    cmocka_unit_test(modest_programs_are_left_alone),
	    cmocka_unit_test(no_cap_means_no_bound),
	    cmocka_unit_test(the_cap_alone_holds),
	    cmocka_unit_test(a_duty_cycle_uses_the_budget),
	    cmocka_unit_test(the_epoch_is_advanced_before_links_are_closed),
	    cmocka_unit_test(time_with_unseen_calls_is_reported),
	    cmocka_unit_test(a_refused_opening_is_warned_of_once),
	    cmocka_unit_test(duty_cycles_are_reported_once),
	    cmocka_unit_test(posts_are_left_out_first),
	    cmocka_unit_test(what_costs_most_of_the_time_is_closed_at_once),
	    cmocka_unit_test(functions_with_exits_of_their_own_go_before_the_image),
	    cmocka_unit_test(expensive_system_calls_are_suppressed),
	    cmocka_unit_test(held_time_is_charged_up_to_half),
	    cmocka_unit_test(an_image_is_forgotten_with_its_last_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
