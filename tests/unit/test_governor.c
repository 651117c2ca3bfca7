// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../bpf/logic.h"
#include "overhead/governor.h"

#define SECOND 1000000000ULL
#define LOOK (SECOND / 100)
#define REACTION 4 /* looks until closing takes effect */
#define ENTRY_NS 450.0
#define RETURN_NS 300.0

/*
 * A program, as the daemon sees it every 10 ms: some states of short span, some of long. The tests carry
 * out the governor's decisions as enforce.c does, closing late.
 */
struct program {
	double short_calls, long_calls; /* a second, when nothing is probed */
	unsigned short_octave, long_octave;
	bool spares_returns;
};

struct life {
	struct governor governor;
	struct governor_account account;
	struct governor_steps steps;
	struct governor_duty cycle;
	struct governor_load load;
	uint64_t now, load_since;
	int closing;   /* looks until the probes are gone; -1: not closing */
	double *spent; /* cost in each look */
	size_t looks, steps_up, steps_back, openings;
	uint64_t last_step, last_opening;
	double least_between_openings, open_looks;
	double reported, time; /* time of calls: recorded, and all */
};

static void begin(struct life *life, double budget_pct, double cap_pct, uint64_t seed, size_t seconds)
{
	*life = (struct life){.now = SECOND, .closing = -1, .least_between_openings = 1e18};
	governor__init(&life->governor, budget_pct, cap_pct, seed);
	governor__open_account(&life->governor, &life->account, life->now);
	life->load_since = life->now;
	life->spent = calloc(seconds * SECOND / LOOK, sizeof(*life->spent));
}

static void begin_load(struct life *life)
{
	life->load = (struct governor_load){.thin = life->steps.thin};
	life->load_since = life->now;
}

static void look(struct life *life, const struct program *program)
{
	unsigned before = life->steps.thin;
	struct governor_plan plan;

	life->load.return_ns = program->spares_returns ? RETURN_NS : 0;
	if (!governor__step(&life->governor, &life->steps, &life->load, life->now, &plan))
		return;
	assert_true(!life->last_step || life->now - life->last_step >= GOVERNOR_STEP_NS);
	life->last_step = life->now;
	life->steps_up += life->steps.thin > before;
	life->steps_back += life->steps.thin < before;
}

/* Does one look at a program's activity since the last look. */
static void tick(struct life *life, const struct program *program)
{
	bool closed = life->cycle.closed_until_ns && life->closing < 0, overdrawn;
	double calls[2] = {program->short_calls / 100, program->long_calls / 100};
	unsigned octaves[2] = {program->short_octave, program->long_octave};
	double cost = 0, slow;

	life->now += LOOK;
	for (int i = 0; i < 2; i++) {
		double each = ENTRY_NS + (octaves[i] < life->steps.thin && program->spares_returns ? 0 : RETURN_NS);

		cost += closed ? 0 : calls[i] * each;
	}
	/* probes slow the program down, it calls less */
	slow = 1 + cost / LOOK;
	cost /= slow;
	for (int i = 0; i < 2; i++) {
		life->time += calls[i] * (double)(1U << octaves[i]);
		if (closed)
			continue;
		life->load.calls[octaves[i]] += calls[i] / slow;
		life->load.time_ns[octaves[i]] += calls[i] / slow * 1536 * (double)(1U << octaves[i]);
		life->reported += octaves[i] < life->steps.thin ? 0 : calls[i] / slow * (double)(1U << octaves[i]);
	}
	if (!closed) {
		life->load.open_ns += LOOK;
		life->load.cost_ns += cost;
		life->open_looks++;
	}
	life->spent[life->looks++] = cost;
	overdrawn = governor__charge(&life->governor, &life->account, life->now, cost);
	if (life->closing > 0)
		life->closing--;
	else if (!life->closing)
		life->closing = -1;
	if (life->cycle.closed_until_ns) {
		if (governor__is_due(&life->cycle, life->now)) {
			if (life->openings && life->now - life->last_opening < life->least_between_openings)
				life->least_between_openings = (double)(life->now - life->last_opening);
			life->openings++;
			life->last_opening = life->now;
			governor__adjusted(&life->account);
			begin_load(life);
		}
	} else if (overdrawn) {
		unsigned thin = life->steps.thin;

		look(life, program);
		governor__adjusted(&life->account);
		if (life->steps.thin > thin && governor__plan(&life->governor, &life->load).open >= 1) {
			begin_load(life);
			return;
		}
		governor__close(&life->governor, &life->cycle, life->now, life->account.credit_ns);
		life->closing = REACTION;
	} else if (life->now >= life->load_since + GOVERNOR_STEP_NS) {
		look(life, program);
		begin_load(life);
	}
}

static void run(struct life *life, const struct program *program, unsigned seconds)
{
	for (unsigned i = 0; i < seconds * 100; i++)
		tick(life, program);
}

/* Returns the greatest cost in any 5 s, as a share of time. */
static double peak(const struct life *life)
{
	size_t width = GOVERNOR_PEAK_NS / LOOK;
	double sum = 0, most = 0;

	for (size_t i = 0; i < life->looks; i++) {
		sum += life->spent[i];
		if (i >= width)
			sum -= life->spent[i - width];
		most = fmax(most, sum);
	}
	return most / (double)GOVERNOR_PEAK_NS;
}

static double mean(const struct life *life, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < life->looks; i++)
		sum += life->spent[i];
	return sum / ((double)(life->looks - from) * LOOK);
}

/* Programs at many times the rate of the budget: without a governor they would cost 5 to 50 %. */
static void hot_programs_keep_budget_and_cap(void **state)
{
	static const double natural = 7000; /* calls a second: half a percent */
	static const double times[] = {10, 30, 100};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int spares = 0; spares < 2; spares++)
			for (uint64_t seed = 1; seed < 6; seed++) {
				struct program program = {.short_calls = natural * times[i] * 0.9,
							  .long_calls = natural * times[i] * 0.1,
							  .short_octave = 1,
							  .long_octave = 4,
							  .spares_returns = spares};
				struct life life;

				begin(&life, 1, 2, governor__seed("host", seed), 300);
				run(&life, &program, 300);
				assert_true(peak(&life) < 0.02);
				assert_true(mean(&life, 0) < 0.01);
				assert_true(mean(&life, 0) > 0.001); /* observation is not simply switched off */
				assert_true(life.openings > 5);
				assert_true(life.least_between_openings >= GOVERNOR_OPENING_NS);
				assert_true(life.reported > 0);
				free(life.spent);
			}
}

static void any_look_may_be_the_first(void **state)
{
	struct program idle = {.short_calls = 10}, hot = {.short_calls = 700000, .spares_returns = true};

	(void)state;
	for (unsigned quiet = 0; quiet < 20; quiet += 3) {
		struct life life;

		begin(&life, 1, 2, 77, 100);
		run(&life, &idle, quiet);
		run(&life, &hot, 40);
		run(&life, &idle, 7);
		run(&life, &hot, 20);
		assert_true(peak(&life) < 0.02);
		free(life.spent);
	}
}

/* Bursts that end before the next look, again and again: no look by itself is over. */
static void bursts_are_seen(void **state)
{
	struct program hot = {.short_calls = 700000}, idle = {0};
	struct life life;

	(void)state;
	begin(&life, 1, 2, 5, 120);
	for (unsigned i = 0; i < 3000; i++) {
		tick(&life, &hot);
		for (int rest = 0; rest < 3; rest++)
			tick(&life, &idle);
	}
	assert_true(mean(&life, 0) < 0.01);
	assert_true(peak(&life) < 0.02);
	free(life.spent);
}

/* Many short calls between few long ones: their returns pay for the rest, and nothing is closed. */
static void short_states_go_first(void **state)
{
	struct program program = {
	    .short_calls = 14000, .long_calls = 900, .short_octave = 2, .long_octave = 9, .spares_returns = true};
	struct life life;

	(void)state;
	begin(&life, 1, 2, 3, 120);
	run(&life, &program, 120);
	assert_int_equal(life.steps.thin, 3);
	assert_int_equal(life.cycle.count, 0);
	assert_true(mean(&life, 2000) < 0.01);
	assert_true(life.reported > 0.8 * life.time);
	/* where returns cannot be suppressed the same program is observed in duty cycles */
	free(life.spent);
	program.spares_returns = false;
	begin(&life, 1, 2, 3, 120);
	run(&life, &program, 120);
	assert_int_equal(life.steps.thin, 0);
	assert_true(life.cycle.count > 0);
	assert_true(mean(&life, 0) < 0.01);
	free(life.spent);
}

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
}

static void steps_are_undone(void **state)
{
	struct program hot = {
	    .short_calls = 14000, .long_calls = 900, .short_octave = 2, .long_octave = 9, .spares_returns = true};
	struct program calm = hot, between = hot;
	struct life life;
	size_t up;

	(void)state;
	calm.short_calls = 2000;
	between.short_calls = 10500; /* would meet the budget, but not by enough */
	begin(&life, 1, 2, 3, 400);
	run(&life, &hot, 60);
	assert_true(life.steps.thin > 0);
	up = life.steps_up;
	run(&life, &between, 60);
	assert_int_equal(life.steps_back, 0);
	run(&life, &calm, 60);
	assert_int_equal(life.steps.thin, 0);
	assert_int_equal(life.steps_up, up);
	assert_true(life.steps_back > 0);
	run(&life, &hot, 60);
	assert_true(life.steps.thin > 0);
	free(life.spent);
}

static void windows_end_when_the_rate_falls(void **state)
{
	struct program hot = {.short_calls = 300000}, calm = {.short_calls = 3000};
	struct life life;
	uint32_t count;

	(void)state;
	begin(&life, 1, 2, 8, 200);
	run(&life, &hot, 60);
	assert_true(life.cycle.count > 2);
	run(&life, &calm, 30);
	count = life.cycle.count;
	assert_int_equal(life.cycle.closed_until_ns, 0);
	run(&life, &calm, 60);
	assert_int_equal(life.cycle.count, count);
	free(life.spent);
}

static void modest_programs_are_left_alone(void **state)
{
	struct program program = {.short_calls = 11000, .short_octave = 5, .spares_returns = true};
	struct life life;

	(void)state;
	begin(&life, 1, 2, 1, 120);
	run(&life, &program, 120);
	assert_int_equal(life.cycle.count, 0);
	assert_int_equal(life.steps.thin, 0);
	assert_true(mean(&life, 0) > 0.008);
	free(life.spent);
}

static void no_cap_means_no_bound(void **state)
{
	struct program program = {.short_calls = 1000000, .spares_returns = true};
	struct life life;

	(void)state;
	begin(&life, 1, 0, 1, 20);
	run(&life, &program, 20);
	assert_int_equal(life.cycle.count, 0);
	assert_int_equal(life.steps.thin, 0);
	assert_true(mean(&life, 0) > 0.3);
	free(life.spent);
}

/* Without a budget, or with one above it, the cap is the bound. */
static void the_cap_alone_holds(void **state)
{
	static const double budgets[] = {0, 2, 50};
	struct program program = {.short_calls = 500000, .spares_returns = true};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct life life;

		begin(&life, budgets[i], 2, 4, 120);
		run(&life, &program, 120);
		assert_true(peak(&life) < 0.02);
		assert_true(life.cycle.count > 2);
		free(life.spent);
	}
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
		governor__close(&one, &first, 0, -1e7);
		governor__close(&other, &second, 0, -1e7);
		equal += first.closed_until_ns == second.closed_until_ns;
		assert_true(first.closed_until_ns >= SECOND);
	}
	assert_int_equal(equal, 0);
}

static void spells_double_while_in_vain(void **state)
{
	struct governor governor;
	struct governor_duty duty = {0};
	uint64_t now = 0, before = 0, longest = 0;

	(void)state;
	governor__init(&governor, 50, 100, 9); /* the debt alone would need little */
	for (int i = 0; i < 6; i++) {
		governor__close(&governor, &duty, now, governor.room_ns);
		before = duty.closed_until_ns - now;
		longest = before > longest ? before : longest;
		now = duty.closed_until_ns;
		assert_true(governor__is_due(&duty, now));
		assert_false(governor__is_due(&duty, now));
		now += SECOND / 10;
	}
	assert_true(longest >= 16 * SECOND && longest <= 24 * SECOND);
	assert_int_equal(duty.level, 4);
	now += 30 * SECOND; /* after a long open period, vain closings no longer count */
	governor__close(&governor, &duty, now, governor.room_ns);
	assert_int_equal(duty.level, 0);
	before = duty.closed_until_ns;
	governor__prolong(&governor, &duty, now, governor.room_ns - 100e9);
	assert_true(duty.closed_until_ns > before);
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
	assert_false(governor__leave_out(&governor, &set, (const double[GOVERNOR_UNITS]){[1] = 0.2}, 0.2, SECOND));
	assert_int_equal(set.without, 0);
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

/* Probes that cost three times the budget are open for nearly a third of the time: saved credit is used. */
static void a_duty_cycle_uses_the_budget(void **state)
{
	struct program program = {.short_calls = 1};
	struct life life;

	(void)state;
	program.short_calls = 0.027 / ((ENTRY_NS + RETURN_NS) * 1e-9);
	begin(&life, 1, 2, 7, 300);
	run(&life, &program, 300);
	assert_true(mean(&life, 0) < 0.01);
	assert_true(peak(&life) < 0.02);
	assert_true(life.open_looks > 0.26 * (double)life.looks);
	free(life.spent);
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
	governor__charge(&governor, &account, SECOND, 0.015e9);
	assert_false(governor__is_close(&governor, &account)); /* the rest lasts for seconds */
	account.credit_ns = 1e6;
	assert_true(governor__is_close(&governor, &account));
	account.speed = governor.rate / 2;
	assert_false(governor__is_close(&governor, &account));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hot_programs_keep_budget_and_cap),
	    cmocka_unit_test(any_look_may_be_the_first),
	    cmocka_unit_test(bursts_are_seen),
	    cmocka_unit_test(short_states_go_first),
	    cmocka_unit_test(what_is_lost_counts_as_it_was),
	    cmocka_unit_test(steps_are_undone),
	    cmocka_unit_test(windows_end_when_the_rate_falls),
	    cmocka_unit_test(modest_programs_are_left_alone),
	    cmocka_unit_test(no_cap_means_no_bound),
	    cmocka_unit_test(the_cap_alone_holds),
	    cmocka_unit_test(hosts_do_not_keep_step),
	    cmocka_unit_test(spells_double_while_in_vain),
	    cmocka_unit_test(posts_are_left_out_by_their_cost),
	    cmocka_unit_test(a_set_is_changed_once_more_and_then_stays),
	    cmocka_unit_test(posts_are_probed_again_where_they_can_be_afforded),
	    cmocka_unit_test(a_duty_cycle_uses_the_budget),
	    cmocka_unit_test(the_kernel_side_agrees_on_octaves),
	    cmocka_unit_test(spans_follow_what_is_seen),
	    cmocka_unit_test(a_process_pays_what_its_busiest_thread_pays),
	    cmocka_unit_test(an_account_is_close_when_little_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
