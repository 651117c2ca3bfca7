// SPDX-License-Identifier: GPL-2.0-or-later
/* The enforcer on simulated programs: what gives way to the budget, in which order, and what is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
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
	struct fake_process *first = begin(&hot, 1, 100), *second = fake__start(&fake, &calm);

	expect_changes();
	fake__run(&fake, 0.5);
	assert_int_equal(changes.closed, 1);
	assert_true(enforcer__is_closed(fake.enforcer));
	/* links that stay were opened again, once: open calls are void in every process */
	assert_int_equal(first->orders.drop_open_epoch, 1);
	assert_int_equal(second->orders.drop_open_epoch, 1);
	fake__run(&fake, 59);
	assert_true(changes.opened > 2 && changes.closed > 2);
	assert_int_equal(first->orders.drop_open_epoch, 1);
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
			    enforcer__end_window(fake.enforcer, processes[i]->governed, fake.now, 1);

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
	for (size_t i = 0; i < fake.warning_count; i++) {
		const struct fake_warning *warning = &fake.warnings[i];

		if (strcmp(warning->code, "attach_failed") != 0)
			continue;
		assert_int_equal(warning->pid, 1);
		assert_non_null(strstr(warning->text, "libmpi.so"));
		assert_non_null(strstr(warning->text, strerror(EBUSY)));
	}
	end(state);
}

/* A duty cycle is reported once, at its first closed period. */
static void duty_cycles_are_reported_once(void **state)
{
	static const struct fake_program hot = {.calls = {60000}};
	struct fake_process *process = begin(&hot, 1, 60);

	fake__run(&fake, 60);
	assert_true(fake.closings > 5);
	assert_int_equal(fake__warned(&fake, "governed"), 1);
	assert_int_equal(fake.warnings[0].pid, 1);
	assert_non_null(strstr(fake.warnings[0].text, "process 1 (program): "));
	assert_non_null(
	    strstr(fake.warnings[0].text, "the probes of 1 of 3 functions of libmpi.so (most calls: Send)"));
	assert_true(process->orders.probe_epoch > 10);
	end(state);
}

/* What else is probed is closed with the image until that opens. */
static void all_functions_of_a_process_rest_together(void **state)
{
	static const struct fake_program hot = {.calls = {60000}};

	begin(&hot, 1, 60);
	fake__start(&fake, &hot);
	while (!fake.closings)
		fake__run(&fake, 1);
	assert_int_equal(fake.resting, 2);
	assert_true(fake.rest_until_ns > fake.now);
	assert_non_null(strstr(fake.warnings[0].text, "calls/s cost"));
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

/*
 * What costs more than half of a process's time is closed at once, and left out then: links of posts go one after the
 * other.
 */
static void what_costs_most_of_the_time_is_closed_at_once(void **state)
{
	static const struct fake_program calm = {0}, flat_out = {.calls = {0, 0, 1e7}};
	struct fake_process *process = begin(&calm, 1, 60);

	expect_changes();
	fake__run(&fake, 0.11); /* up to a pass */
	process->program = &flat_out;
	fake__run(&fake, 0.2);
	assert_int_equal(changes.closed, 1);
	assert_int_equal(changes.left_out, 1);
	assert_int_equal(fake.without, 1);
	assert_int_equal(process->orders.set, 1);
	assert_int_equal(fake__warned(&fake, "coarser"), 1);
	fake__run(&fake, 20); /* all other functions are open again, since none of them is called */
	assert_int_equal(changes.closed, 1);
	assert_int_equal(changes.opened, 1);
	assert_false(enforcer__is_closed(fake.enforcer));
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	assert_int_equal(fake__warned(&fake, "governed"), 0);
	end(state);
}

/* Where the other functions are too expensive as well, the posts are not left out while the image is closed. */
static void what_is_closed_for_other_calls_stays_so(void **state)
{
	static const struct fake_program calm = {0}, flat_out = {.calls = {1e6, 0, 1e7}};
	struct fake_process *process = begin(&calm, 1, 60);

	expect_changes();
	fake__run(&fake, 0.11);
	process->program = &flat_out;
	fake__run(&fake, 2);
	assert_int_equal(changes.closed, 1);
	assert_int_equal(changes.opened + changes.left_out, 0);
	assert_int_equal(fake__warned(&fake, "governed"), 1);
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
	window = enforcer__end_window(fake.enforcer, process->governed, fake.now, 1);
	assert_int_equal(window.thinned, 2 * process->orders.thinned_io);
	assert_true(fabs((double)window.closed_ns / process->unseen_ns - 1) < 0.02);
	process->program = &calm;
	fake__run(&fake, 60);
	assert_int_equal(process->orders.no_io, 0);
	assert_int_equal(fake__warned(&fake, "released"), 1);
	end(state);
}

/* A change for one process takes time; that time earns the others of the image nothing. */
static void a_change_of_links_fills_no_account(void **state)
{
	static const struct fake_program waits = {.calls = {30000}}, posts = {.calls = {0, 0, 30000}};
	size_t alone;

	begin(&waits, 1, 20);
	while (!fake.closings)
		fake__run(&fake, 0.01);
	alone = fake.looks;
	end(NULL);
	begin(&waits, 1, 20);
	fake__start(&fake, &posts);
	while (!fake.closings)
		fake__run(&fake, 0.01);
	assert_int_equal(fake.changes, 1);
	assert_true(fake.looks < alone + 20); /* the change took 4 */
	end(state);
}

/* Waits for the attachment to a known image are paid from the budget of the first seconds, not later. */
static void the_first_seconds_pay_for_an_attachment(void **state)
{
	static const struct fake_program waits = {.calls = {20000}, .held = 0.02};
	double paid[2];

	for (int again = 0; again < 2; again++) {
		struct fake_process *process;

		fake__begin(&fake, 1, 2, 1, 20);
		fake.again = again;
		process = fake__start(&fake, &waits);
		fake__run(&fake, 10); /* closed for longer by what they cost */
		assert_true(fake.closings > 0);
		paid[again] = fake__mean(&fake, process, 0);
		end(state);
	}
	assert_true(paid[1] < paid[0]);
}

/* Which calls may stay open was chosen from earlier ones: as soon as those cost too much they are closed, too. */
static void calls_left_open_are_closed_when_they_burst(void **state)
{
	static const struct fake_program first = {.calls = {30000, 10}}, then = {.calls = {10, 30000}};
	struct fake_process *process = begin(&first, 1, 60);
	size_t closed;

	while (!fake.closings)
		fake__run(&fake, 0.01);
	assert_true(fake.open[FAKE_LONG] && !fake.open[FAKE_SHORT]);
	closed = fake.looks;
	process->program = &then;
	/* links that are still being removed may be what costs */
	fake.detaching = fake.still_hit = true;
	fake__run(&fake, 0.3);
	assert_true(fake.open[FAKE_LONG]);
	fake.still_hit = false;
	while (fake.open[FAKE_LONG])
		fake__run(&fake, 0.01);
	assert_true(fake.looks < closed + 50);
	/* while links are being removed none is opened */
	process->program = &(const struct fake_program){.calls = {10, 10}};
	fake__run(&fake, 20);
	assert_int_equal(fake.openings, 0);
	fake.detaching = false;
	fake__run(&fake, 0.1);
	assert_int_equal(fake.openings, 1);
	end(state);
}

/* The image is forgotten with its last process: the next one begins with all probes, though some were closed. */
static void an_image_is_forgotten_with_its_last_process(void **state)
{
	static const struct fake_program hot = {.calls = {300000}}, other = {.exe = "another", .calls = {300000}};
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
	third = fake__start(&fake, &other);
	assert_int_equal(third->orders.probe_epoch & 1, 0);
	assert_int_equal(fake.openings, 0);
	end(state);
}

/* A program that runs again begins with what was left out before: its posts are not found expensive a second time. */
static void a_set_is_remembered_for_the_next_run(void **state)
{
	static const struct fake_program posts = {.calls = {6000, 0, 20000}};
	struct fake_process *first = begin(&posts, 1, 200), *second;

	fake__run(&fake, 5);
	assert_int_equal(fake.without, 1);
	enforcer__leave(fake.enforcer, first->governed, fake.now);
	enforcer__remove(fake.enforcer, first->governed);
	assert_int_equal(enforcer__former(fake.enforcer, 0, "another", "libmpi.so", fake.now).units, 0);
	fake.without = enforcer__former(fake.enforcer, 0, "program", "libmpi.so", fake.now).units;
	assert_int_equal(fake.without, 1);
	second = fake__start(&fake, &posts);
	assert_int_equal(second->orders.set, 1);
	assert_int_equal(fake.changes, 1);
	assert_int_equal(fake__warned(&fake, "coarser"), 2);
	assert_non_null(strstr(fake.warnings[fake.warning_count - 1].text, "when the program ran before"));
	end(state);
}

/* Ends a process. Returns what its program's next run begins without. */
static struct functions_spared stop(struct fake_process *process)
{
	static const struct fake_program ended = {0};

	enforcer__leave(fake.enforcer, process->governed, fake.now);
	enforcer__remove(fake.enforcer, process->governed);
	process->program = &ended;
	return enforcer__former(fake.enforcer, 0, "program", "libmpi.so", fake.now);
}

/* Starts the program's next run, for which links are opened as the attacher does. */
static struct fake_process *start_again(const struct fake_program *program, const struct functions_spared *spared)
{
	for (int i = 0; i < FAKE_FUNCTIONS; i++)
		fake.open[i] = !spared->closed || !functions__is_costly(spared, (uint64_t)i);
	return fake__start(&fake, program);
}

/* What a process cost from a look on, ns. */
static double cost_from(const struct fake_process *process, size_t look)
{
	double sum = 0;

	for (; look < fake.looks; look++)
		sum += process->spent[look];
	return sum;
}

static void short_runs_of_an_expensive_program_keep_the_budget(void **state)
{
	static const struct fake_program hot = {.calls = {200000, 100}, .octaves = {1, 9}};
	struct fake_process *process = begin(&hot, 1, 60);
	struct functions_spared spared;

	fake__run(&fake, 1);
	assert_int_equal(fake.closings, 1);
	for (int run = 0; run < 3; run++) {
		size_t from = fake.looks;
		unsigned openings = fake.openings;

		spared = stop(process);
		assert_true(spared.closed && functions__is_costly(&spared, FAKE_SHORT));
		assert_false(
		    functions__is_costly(&spared, FAKE_LONG)); /* what costs little is seen from the begin on */
		process = start_again(&hot, &spared);
		assert_true(enforcer__is_closed(fake.enforcer));
		assert_int_equal(process->orders.probe_epoch & 1, 1);
		assert_string_equal(fake.warnings[fake.warning_count - 1].code, "governed");
		assert_non_null(strstr(fake.warnings[fake.warning_count - 1].text, "when the program ran before"));
		fake__run(&fake, 4);
		/* a period of it is seen, and paid from what four seconds allow for */
		assert_int_equal(fake.openings, openings + 1);
		assert_true(process->reported > 0);
		assert_true(cost_from(process, from) < 0.01 * 4 * FAKE_SECOND);
	}
	end(state);
}

static void a_program_that_became_cheap_is_seen_again(void **state)
{
	static const struct fake_program hot = {.calls = {200000, 100}}, calm = {.calls = {2000, 100}};
	struct fake_process *process = begin(&hot, 1, 60);
	struct functions_spared spared;

	fake__run(&fake, 1);
	spared = stop(process);
	process = start_again(&calm, &spared);
	fake__run(&fake, 3);
	assert_int_equal(fake.openings, 1);
	assert_false(enforcer__is_closed(fake.enforcer));
	fake__run(&fake, 6);
	assert_int_equal(fake.closings, 1);
	spared = stop(process);
	assert_false(spared.closed || functions__is_costly(&spared, FAKE_SHORT));
	end(state);
}

/* Runs too short for an open period would prove nothing for ever. */
static void a_program_of_very_short_runs_is_tried_again(void **state)
{
	static const struct fake_program hot = {.calls = {200000, 100}}, calm = {.calls = {2000, 100}};
	struct fake_process *process = begin(&hot, 1, 60);
	struct functions_spared spared;
	int closed = 0;

	fake__run(&fake, 2);
	while ((spared = stop(process)).closed) {
		process = start_again(&calm, &spared);
		fake__run(&fake, 0.3);
		assert_true(enforcer__is_closed(fake.enforcer));
		closed++;
	}
	assert_int_equal(closed, 8);
	process = start_again(&hot, &spared);
	assert_false(enforcer__is_closed(fake.enforcer));
	fake__run(&fake, 1);
	assert_true(stop(process).closed); /* it is what it was */
	end(state);
}

/* Calls at three times the budget are seen at once, as long as the first moments' allowance lasts. */
static void what_a_first_period_can_pay_for_begins_open(void **state)
{
	static const struct fake_program busy = {.calls = {30000, 100}};
	struct fake_process *process = begin(&busy, 1, 60);
	struct functions_spared spared;

	fake__run(&fake, 4);
	assert_true(fake.closings > 0);
	spared = stop(process);
	assert_true(functions__is_costly(&spared, FAKE_SHORT));
	assert_false(spared.closed);
	process = start_again(&busy, &spared);
	assert_false(enforcer__is_closed(fake.enforcer));
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	fake__run(&fake, 4);
	assert_true(fake__mean(&fake, process, 4) < 0.01);
	end(state);
}

/* Where the daemon waits for a CPU, what is called meanwhile is charged for that time, too. */
static void a_late_pass_makes_no_rate_higher(void **state)
{
	static const struct fake_program hot = {.calls = {200000}};
	struct fake_process *process = begin(&hot, 1, 60);
	const char *text;
	double rate = 0;

	(void)process;
	while (!fake__warned(&fake, "governed")) {
		uint64_t begun = fake.now;

		fake__look(&fake);
		enforcer__pass(fake.enforcer, begun);
	}
	text = strstr(fake.warnings[0].text, "): ");
	assert_non_null(text);
	assert_int_equal(sscanf(text, "): %lf calls/s", &rate), 1);
	assert_true(rate > 100000 && rate <= 200000);
	end(state);
}

/* Polling calls are probed for a moment only: where they cost most, nothing else is closed for them. */
static void polling_calls_alone_close_nothing(void **state)
{
	static const struct fake_program calm = {.calls = {1000, 100, 3000}};
	struct fake_process *process = begin(&calm, 1, 60);

	fake.polls = true;
	fake__run(&fake, 10);
	assert_false(fake.polls);
	assert_int_equal(fake.closings, 0);
	assert_int_equal(fake.changes, 0);
	assert_false(enforcer__is_closed(fake.enforcer));
	assert_int_equal(process->orders.probe_epoch & 1, 0);
	assert_int_equal(fake__warned(&fake, "governed"), 0);
	assert_false(stop(process).closed);
	end(state);
}

/* What one user's runs of a program cost is no reason to begin another user's without probes. */
static void what_is_remembered_has_an_owner(void **state)
{
	static const struct fake_program hot = {.calls = {200000}}, calm = {.owner = 7, .calls = {300}};
	struct fake_process *process = begin(&hot, 1, 60), *others;

	fake__run(&fake, 2);
	assert_true(stop(process).closed);
	assert_false(enforcer__former(fake.enforcer, 7, "program", "libmpi.so", fake.now).closed);
	others = fake__start(&fake, &calm);
	assert_int_equal(others->orders.probe_epoch & 1, 0);
	assert_true(enforcer__former(fake.enforcer, 0, "program", "libmpi.so", fake.now).closed);
	end(state);
}

static void what_is_remembered_expires(void **state)
{
	static const struct fake_program hot = {.calls = {200000}};
	struct fake_process *process = begin(&hot, 1, 60);

	fake__run(&fake, 2);
	assert_true(stop(process).closed);
	fake.now += 3600 * FAKE_SECOND;
	assert_false(enforcer__former(fake.enforcer, 0, "program", "libmpi.so", fake.now).closed);
	end(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_epoch_is_advanced_before_links_are_closed),
	    cmocka_unit_test(time_with_unseen_calls_is_reported),
	    cmocka_unit_test(a_refused_opening_is_warned_of_once),
	    cmocka_unit_test(duty_cycles_are_reported_once),
	    cmocka_unit_test(all_functions_of_a_process_rest_together),
	    cmocka_unit_test(posts_are_left_out_first),
	    cmocka_unit_test(what_costs_most_of_the_time_is_closed_at_once),
	    cmocka_unit_test(what_is_closed_for_other_calls_stays_so),
	    cmocka_unit_test(functions_with_exits_of_their_own_go_before_the_image),
	    cmocka_unit_test(expensive_system_calls_are_suppressed),
	    cmocka_unit_test(a_change_of_links_fills_no_account),
	    cmocka_unit_test(an_image_is_forgotten_with_its_last_process),
	    cmocka_unit_test(a_set_is_remembered_for_the_next_run),
	    cmocka_unit_test(short_runs_of_an_expensive_program_keep_the_budget),
	    cmocka_unit_test(a_program_that_became_cheap_is_seen_again),
	    cmocka_unit_test(a_program_of_very_short_runs_is_tried_again),
	    cmocka_unit_test(what_a_first_period_can_pay_for_begins_open),
	    cmocka_unit_test(a_late_pass_makes_no_rate_higher),
	    cmocka_unit_test(polling_calls_alone_close_nothing),
	    cmocka_unit_test(calls_left_open_are_closed_when_they_burst),
	    cmocka_unit_test(the_first_seconds_pay_for_an_attachment),
	    cmocka_unit_test(what_is_remembered_has_an_owner),
	    cmocka_unit_test(what_is_remembered_expires),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
