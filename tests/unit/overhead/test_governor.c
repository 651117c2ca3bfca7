// SPDX-License-Identifier: GPL-2.0-or-later
/* The governor's policy by itself; test_enforce.c runs programs under it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "../bpf/logic.h"
#include "near.h"
#include "overhead/governor.h"

#define SECOND 1000000000ULL
#define RETURN_NS 300.0

/* Rarely, long computations follow short calls: suppressing the calls would lose the computations. */
static void what_is_lost_counts_as_it_was(void **state)
{
	struct governor governor;
	struct governor_load load = {.open_ns = 10e9, .cost_ns = 0.0115 * 10e9, .return_ns = RETURN_NS};

	(void)state;
	governor__init(&governor, 1, 2, 1);
	load.calls[2] = 150000;
	load.calls[9] = 1000;
	load.time_ns[2] = 1e9;
	load.time_ns[9] = 8e9;
	assert_int_equal(governor__plan(&governor, &load).thin, 3);
	load.time_ns[2] = 5e9;
	load.time_ns[9] = 4e9;
	assert_int_equal(governor__plan(&governor, &load).thin, 0);
	assert_true(governor__plan(&governor, &load).open < 1);
	/* a little over the budget: closed for a twentieth of the time is worse than a tenth of it suppressed for good
	 */
	load.cost_ns = 0.0095 * 10e9;
	load.time_ns[2] = 0.9e9;
	load.time_ns[9] = 8.1e9;
	assert_int_equal(governor__plan(&governor, &load).thin, 3);
}

static void hosts_do_not_keep_step(void **state)
{
	uint64_t a = governor__seed("node1", 1000), b = governor__seed("node2", 1000),
		 c = governor__seed("node1", 1001);
	struct governor one, other;
	struct governor_duty first = {0}, second = {0};
	unsigned equal = 0;

	(void)state;
	assert_true(a != b && a != c && b != c);
	governor__init(&one, 1, 2, a);
	governor__init(&other, 1, 2, b);
	for (int i = 0; i < 20; i++) {
		governor__close(&one, &first, 0, 0.05, -1e7);
		governor__close(&other, &second, 0, 0.05, -1e7);
		equal += first.closed_until_ns == second.closed_until_ns;
		assert_true(first.closed_until_ns >= SECOND);
	}
	assert_int_equal(equal, 0);
}

/* However short the open periods are, a closed one ends when the room is full: longer ones would waste the budget. */
static void closed_periods_end_when_the_room_is_full(void **state)
{
	static const double credits[] = {2e7, 0, -1e7, -1.2e7, -6e7};
	struct governor governor;
	struct governor_duty duty = {.count = 10};
	uint64_t now = 0, before = 0;

	(void)state;
	governor__init(&governor, 1, 2, 9);
	for (int i = 0; i < 100; i++) {
		double credit = credits[i % 5], savings;

		governor__close(&governor, &duty, now, 0.05, credit);
		assert_true(duty.closed_until_ns >= now + SECOND);
		savings = credit + governor.rate * (double)(duty.closed_until_ns - now);
		/* an overdraft that uses up the reserve of the cap is not repeated within the time of the cap */
		if (credit < -0.25 * governor.room_ns)
			assert_true(duty.closed_until_ns >= now + GOVERNOR_PEAK_NS &&
				    savings > 0.65 * governor.room_ns);
		else
			assert_true(savings > 0.59 * governor.room_ns && savings < 1.01 * governor.room_ns);
		now = duty.closed_until_ns;
		assert_true(governor__is_due(&duty, now));
		assert_false(governor__is_due(&duty, now));
		now += SECOND / 10;
	}
	governor__close(&governor, &duty, now, 0.05, governor.room_ns);
	before = duty.closed_until_ns;
	assert_true(before >= now + SECOND && before <= now + 5 * SECOND / 4);
}

/* Under a small budget the room takes a minute to fill: what the first moments showed is looked at again before. */
static void the_first_closed_periods_are_short(void **state)
{
	struct governor governor;
	struct governor_duty duty = {0};
	uint64_t now = 0, closed, last = 0;

	(void)state;
	governor__init(&governor, 0.2, 2, 9);
	for (int i = 0; i < 8; i++) {
		governor__close(&governor, &duty, now, 0.03, 0);
		closed = duty.closed_until_ns - now;
		if (!i)
			assert_true(closed < 3 * SECOND);
		else if (i < 4)
			assert_true(closed > last * 3 / 2);
		last = closed;
		now += closed;
	}
	assert_true((double)last > 0.59 * governor.room_ns / governor.rate);
}

/* Functions that never wait are left out, the most expensive first, until the rest meets the budget with a margin. */
static void posts_are_left_out_by_their_cost(void **state)
{
	const double shares[GOVERNOR_UNITS] = {[0] = 0.3, [1] = 0.5, [4] = 0.01};
	struct governor_set set = {0};
	struct governor governor;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	assert_false(governor__leave_out(&governor, &set, shares, 0.0085, SECOND));
	assert_true(governor__leave_out(&governor, &set, shares, 0.0105, SECOND));
	assert_int_equal(set.without, 1 << 1);
	set = (struct governor_set){0};
	assert_true(governor__leave_out(&governor, &set, shares, 0.025, SECOND));
	assert_int_equal(set.without, 3); /* the cheapest functions stay */
	/* where the rest costs too much by itself, leaving out must still be worth it */
	set = (struct governor_set){0};
	assert_true(governor__leave_out(&governor, &set, shares, 0.2, SECOND));
	set = (struct governor_set){0};
	assert_false(governor__leave_out(&governor, &set, (const double[GOVERNOR_UNITS]){[1] = 0.1}, 0.2, SECOND));
	assert_int_equal(set.without, 0);
	assert_true(governor__leave_out(&governor, &set, (const double[GOVERNOR_UNITS]){[1] = 0.2}, 0.2, SECOND));
	/* without a bound no function is left out */
	governor__init(&governor, 1, 0, 1);
	assert_false(governor__leave_out(&governor, &set, shares, 0.2, SECOND));
}

static void a_set_is_changed_once_more_and_then_stays(void **state)
{
	double shares[GOVERNOR_UNITS] = {[0] = 0.5, [1] = 0.2, [2] = 0.1};
	struct governor_set set = {0};
	struct governor governor;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	assert_true(governor__leave_out(&governor, &set, shares, 0.0105, SECOND));
	assert_int_equal(set.without, 1);
	shares[0] = 0;
	assert_true(governor__leave_out(&governor, &set, shares, 0.0105, 6 * SECOND));
	assert_int_equal(set.without, 7); /* all worthwhile functions at once */
	shares[1] = shares[2] = 0;
	assert_false(governor__leave_out(&governor, &set, shares, 0.0105, 7 * SECOND));
}

static void posts_are_probed_again_where_they_can_be_afforded(void **state)
{
	const double shares[GOVERNOR_UNITS] = {[0] = 0.8};
	struct governor_set set = {0};
	struct governor governor;
	uint64_t now = SECOND;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	assert_true(governor__leave_out(&governor, &set, shares, 0.02, now));
	assert_false(governor__restore(&governor, &set, 0.0001, now + GOVERNOR_KEEP_NS - 1)); /* for a minute */
	assert_false(governor__restore(&governor, &set, 0.004, now + 10 * GOVERNOR_KEEP_NS)); /* 0.02 with them */
	assert_int_equal(set.without, 1);
	now += GOVERNOR_KEEP_NS;
	assert_true(governor__restore(&governor, &set, 0.001, now)); /* 0.005 with them */
	assert_int_equal(set.without, 0);
	assert_false(governor__restore(&governor, &set, 0.001, now));
	/* to no avail: the next time the functions stay out for longer */
	assert_true(governor__leave_out(&governor, &set, shares, 0.02, now + SECOND));
	assert_false(governor__restore(&governor, &set, 0.001, now + SECOND + GOVERNOR_KEEP_NS));
	assert_true(governor__restore(&governor, &set, 0.001, now + SECOND + 2 * GOVERNOR_KEEP_NS));
}

static void the_kernel_side_agrees_on_octaves(void **state)
{
	(void)state;
	assert_int_equal(span_octave(0), 0);
	assert_int_equal(span_octave(2047), 0);
	assert_int_equal(span_octave(2048), 1);
	assert_int_equal(span_octave(4095), 1);
	assert_int_equal(span_octave(1ULL << 60), KERNEL_SPANS - 1);
	/* exactly the octaves below are suppressed */
	for (unsigned thin = 1; thin < KERNEL_SPANS; thin++) {
		assert_int_equal(span_octave(governor__thin_ns(thin) - 1), thin - 1);
		assert_int_equal(span_octave(governor__thin_ns(thin)), thin);
	}
	assert_int_equal(governor__thin_ns(0), 0);
}

static void spans_follow_what_is_seen(void **state)
{
	uint32_t mean = 0;

	(void)state;
	mean = span_after(mean, 1000);
	assert_int_equal(mean, 1000);
	for (int i = 0; i < 60; i++)
		mean = span_after(mean, 2000);
	assert_true(mean > 1980 && mean <= 2000);
	/* a long span is seen at once */
	assert_true(span_after(mean, 10 * SECOND) > 500000000U);
	for (int i = 0; i < 60; i++)
		mean = span_after(mean, 0);
	assert_true(mean < 10);
}

static void a_process_pays_what_its_busiest_thread_pays(void **state)
{
	(void)state;
	assert_true(fabs(governor__busiest(250, 1000) - 0.25) < 1e-12);
	assert_true(governor__busiest(1000, 1000) == 1);
	assert_true(governor__busiest(0, 1000) == 1); /* not known */
	assert_true(governor__busiest(1200, 1000) == 1);
	assert_true(governor__busiest(0, 0) == 1);
}

static void an_account_is_close_when_little_is_left(void **state)
{
	struct governor governor;
	struct governor_account account;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	governor__open_account(&governor, &account, 0);
	assert_false(governor__is_close(&governor, &account)); /* no cost yet */
	governor__charge(&governor, &account, SECOND, 0.011e9);
	assert_false(governor__is_close(&governor, &account)); /* the rest lasts for seconds */
	account.credit_ns = 1e6;
	assert_true(governor__is_close(&governor, &account));
	account.speed = governor.rate / 2;
	assert_false(governor__is_close(&governor, &account));
}

/* Waits are paid from savings only, and no more than the room is owed. */
static void waits_are_paid_from_savings(void **state)
{
	struct governor governor;
	struct governor_account account;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	governor__open_account(&governor, &account, 0);
	/* most of the rate is charged at once */
	assert_true(fabs(governor__held(&governor, &account, SECOND / 100, 1e9) - governor.rate * 0.8 * 1e7) < 1);
	assert_true(account.owed_ns == governor.room_ns);
	assert_false(governor__charge(&governor, &account, SECOND / 100, 0.009 * 1e7));
	assert_true(fabs(account.credit_ns - governor.opening_ns) < 1);
	assert_true(fabs(governor__savings(&account) - governor.opening_ns + governor.room_ns) < 1);
	assert_false(governor__charge(&governor, &account, SECOND + SECOND / 100, 0));
	assert_true(fabs(account.credit_ns - governor.opening_ns) < 1);
	assert_true(fabs(account.owed_ns - (governor.room_ns - governor.rate * 1e9)) < 1);
	assert_false(governor__charge(&governor, &account, 60 * SECOND, 0));
	assert_true(account.owed_ns == 0 && account.credit_ns > 2 * governor.opening_ns);
}

/* A burst of waits is charged over the time that follows it, all of it, and leaves the calls some of the rate. */
static void bursts_of_waits_are_spread(void **state)
{
	struct governor_account account;
	struct governor governor;
	double charged = 0, burst = 17e6;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	governor__open_account(&governor, &account, 0);
	for (uint64_t now = SECOND / 10; now <= 4 * SECOND; now += SECOND / 10) {
		double waits = governor__held(&governor, &account, now, now == SECOND ? burst : 0);

		assert_true(waits <= governor.rate * 0.8 * 1e8 + 1);
		/* calls have the rest of the rate, so that nothing is saved up */
		assert_false(governor__charge(&governor, &account, now, governor.rate * 1e8));
		charged += waits;
	}
	assert_true(fabs(charged - burst) < 1 && account.owed_ns < 1);
}

/* Runs a process's first 5 s. Returns what it paid, ns; *closed_ns: when its probes were closed, or 0. */
static double first_seconds(double attachment_ns, double share, uint64_t *closed_ns)
{
	const uint64_t each_ns = SECOND / 100;
	struct governor_account account;
	struct governor governor;
	double paid = attachment_ns;

	governor__init(&governor, 1, 2, 1);
	governor__open_account(&governor, &account, 0);
	governor__begin_first(&account, 0);
	*closed_ns = 0;
	governor__held_first(&account, attachment_ns);
	assert_false(governor__charge(&governor, &account, each_ns, 0));
	for (uint64_t now = 2 * each_ns; now <= GOVERNOR_PEAK_NS; now += each_ns) {
		double spent = *closed_ns ? 0 : share * (double)each_ns;

		paid += spent;
		if (governor__charge(&governor, &account, now, spent) && !*closed_ns)
			*closed_ns = now;
	}
	return paid;
}

/* What a process waited for its attachment closes no probes, unless its calls alone exceed the rate. */
static void an_attachment_is_paid_in_the_first_seconds(void **state)
{
	const double peak = 0.02 * (double)GOVERNOR_PEAK_NS;
	uint64_t closed, sooner;

	(void)state;
	assert_true(first_seconds(45e6, 0.0088, &closed) < peak);
	assert_int_equal(closed, 0);
	assert_true(first_seconds(15e6, 0.015, &closed) < 0.55 * peak);
	assert_true(first_seconds(30e6, 0.015, &sooner) < 0.65 * peak);
	assert_true(sooner > SECOND / 4 && sooner <= closed && closed < 3 * SECOND);
}

/* Functions of thread libraries may spend what the waits of the first seconds leave, spread over the rest of these. */
static void functions_spend_what_an_attachment_leaves(void **state)
{
	struct governor_account account;
	struct governor governor;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	governor__open_account(&governor, &account, 0);
	governor__begin_first(&account, 0);
	assert_true(fabs(governor__rate_left(&governor, &account, 0) - governor.rate) < 1e-9);
	governor__held_first(&account, governor.opening_ns + 12e6);
	assert_true(fabs(governor__rate_left(&governor, &account, SECOND) - governor.rate + 0.003) < 1e-9);
	assert_true(fabs(governor__rate_left(&governor, &account, 3 * SECOND) - governor.rate + 0.006) < 1e-9);
	assert_true(fabs(governor__rate_left(&governor, &account, GOVERNOR_PEAK_NS) - governor.rate) < 1e-9);
}

/* What is left must last until closed probes cost no more. */
static void closing_begins_by_the_time_it_takes(void **state)
{
	struct governor governor;
	struct governor_account account;

	(void)state;
	governor__init(&governor, 1, 2, 1);
	for (int closes = 0; closes < 2; closes++) {
		governor__open_account(&governor, &account, 0);
		/* for 70 ms, or for 40 */
		account.credit_ns = closes ? 5e6 : 8e6;
		account.speed = 0.1;
		assert_int_equal(governor__charge(&governor, &account, SECOND / 100, 0.1 * 1e7), closes);
	}
}

/* A program that polled when it was attached, and calls little now, pays its debt back with its probes open. */
static void a_burst_closes_no_cheap_load(void **state)
{
	struct governor governor;
	struct governor_account account = {.credit_ns = -9e7, .speed = 0.001};
	struct governor_steps steps = {0};
	struct governor_plan plan = {.cost = 0.0012, .covered = 1, .open = 1};

	(void)state;
	governor__init(&governor, 1, 2, 1);
	assert_true(governor__can_wait(&governor, &account, &steps, &plan, 1000000000));
	plan.cost = 0.006; /* what is left of the budget would take long */
	assert_false(governor__can_wait(&governor, &account, &steps, &plan, 1000000000));
	plan.cost = 0.0012;
	account.speed = 0.02; /* the next burst */
	assert_false(governor__can_wait(&governor, &account, &steps, &plan, 1000000000));
}

/* lammps: each of 700 posts follows a pause; without it another call does, and costs as much more. */
static void pauses_are_not_saved_where_another_call_follows_them(void **state)
{
	struct governor_load load = {.cost_ns = 10e6, .pauses_ns = 6e6, .pauses = 700, .entries = 2100};
	double shares[GOVERNOR_UNITS] = {[2] = 1.0 / 3}, few[GOVERNOR_UNITS] = {[2] = 0.6, [3] = 0.3};

	(void)state;
	governor__saved_shares(&load, shares);
	assert_near(shares[2], 0.4 / 3, 1e-9);
	/* a tenth of 2100 calls can follow 210 pauses only: 490 of 700 are saved */
	governor__saved_shares(&load, few);
	assert_near(few[2] + few[3], 0.4 * 0.9 + 0.6 * 0.7, 1e-9);
	assert_near(few[2], 2 * few[3], 1e-9);
	/* nothing follows a pause, or nothing is known of it */
	load.pauses_ns = load.pauses = 0;
	shares[2] = 1.0 / 3;
	governor__saved_shares(&load, shares);
	assert_near(shares[2], 1.0 / 3, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pauses_are_not_saved_where_another_call_follows_them),
	    cmocka_unit_test(a_burst_closes_no_cheap_load),
	    cmocka_unit_test(what_is_lost_counts_as_it_was),
	    cmocka_unit_test(hosts_do_not_keep_step),
	    cmocka_unit_test(closed_periods_end_when_the_room_is_full),
	    cmocka_unit_test(the_first_closed_periods_are_short),
	    cmocka_unit_test(posts_are_left_out_by_their_cost),
	    cmocka_unit_test(a_set_is_changed_once_more_and_then_stays),
	    cmocka_unit_test(posts_are_probed_again_where_they_can_be_afforded),
	    cmocka_unit_test(the_kernel_side_agrees_on_octaves),
	    cmocka_unit_test(spans_follow_what_is_seen),
	    cmocka_unit_test(a_process_pays_what_its_busiest_thread_pays),
	    cmocka_unit_test(an_account_is_close_when_little_is_left),
	    cmocka_unit_test(waits_are_paid_from_savings),
	    cmocka_unit_test(bursts_of_waits_are_spread),
	    cmocka_unit_test(an_attachment_is_paid_in_the_first_seconds),
	    cmocka_unit_test(functions_spend_what_an_attachment_leaves),
	    cmocka_unit_test(closing_begins_by_the_time_it_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
