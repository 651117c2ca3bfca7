// SPDX-License-Identifier: GPL-2.0-or-later
/* Conversion of later stages' counts to time, whichever counters were on, and what the driver gives up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "diagnose/driver.h"
#include "probe/pmu/counters_private.h"

#define NEAR(value, wanted) assert_true(fabs((double)(value) - (wanted)) < 1e-6 * (wanted) + 1e-3)
#define MS 1e6

static const struct event_cpu *cpu_of(const char *name)
{
	for (size_t i = 0; i < event_cpu_count; i++)
		if (!strcmp(event_cpus[i]->name, name))
			return event_cpus[i];
	fail_msg("no table %s", name);
	return NULL;
}

static struct counters *counters_of(const char *name)
{
	struct counters *counters = calloc(1, sizeof(*counters));

	assert_non_null(counters);
	counters->table = cpu_of(name);
	counters->width = counters->table->width;
	counters->usual = counters__new_usual();
	assert_non_null(counters->usual);
	return counters;
}

static void free_counters(struct counters *counters)
{
	free(counters->usual);
	free(counters);
}

/* Switches as counters__switch does, without the kernel and without the events named in `less`. */
static uint8_t switch_to(struct counters *counters, int stage, const char *parent, const char *less)
{
	const struct event_group *group = counters__find(counters, stage, parent);

	assert_non_null(group);
	counters->group = group;
	counters->fixed = counters->count = 1;
	for (size_t i = 0; i < events__group_size(group); i++) {
		if (!strstr(less, group->events[i].name))
			counters->events[counters->count++].row = &group->events[i];
	}
	counters->layout++;
	counters__lay_out(counters, &counters->layouts[counters->layout]);
	return counters->layout;
}

static struct vapro_bundle fill(const struct counters *counters, uint8_t layout, uint32_t n, double on_cpu_ns,
				const uint64_t *counts)
{
	struct kernel_bundle_key key = {.state = 7 | KERNEL_EDGE, .cell = 100, .group = layout};
	struct kernel_bundle counted = {.n = n};
	struct vapro_bundle bundle = {.n = n};

	memcpy(counted.event_sum, counts, sizeof(counted.event_sum));
	counters__fill(counters, &key, &counted, on_cpu_ns, &bundle);
	return bundle;
}

/* Where all time is counted beside the parts, the parts are shares of all time. */
static void parts_of_all_time(void **state)
{
	struct counters *counters = counters_of("SPR");
	uint8_t backend, memory;
	struct vapro_bundle bundle;

	(void)state;
	/* instructions; slots for memory, for the backend, all */
	backend = switch_to(counters, 2, "backend", "CPU_CLK_UNHALTED.REF_TSC");
	bundle = fill(counters, backend, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 300, 400, 800});
	NEAR(bundle.factor[VAPRO_MEMORY], 3.75 * MS);
	NEAR(bundle.factor[VAPRO_CORE], 1.25 * MS);
	NEAR(bundle.factor[VAPRO_BACKEND], 0);
	NEAR(bundle.factor[VAPRO_KERNEL], 0);
	/* zero stalls are reported, too */
	bundle = fill(counters, backend, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 0, 1, 800000});
	assert_true(bundle.factor[VAPRO_CORE] > 0 && bundle.factor[VAPRO_CORE] < 100);
	/* stalls on loads, in the first cache, second, third; on stores; cycles, and those of the time-stamp counter */
	memory = switch_to(counters, 3, "memory", "");
	counters->tsc_hz = 2e9;
	bundle = fill(counters, memory, 2, 10 * MS,
		      (uint64_t[KERNEL_EVENTS]){1000, 1000, 600, 300, 100, 200, 4000, 16000000});
	NEAR(bundle.factor[VAPRO_KERNEL], 2 * MS);
	NEAR(bundle.factor[VAPRO_L1], 0.1 * 8 * MS);
	NEAR(bundle.factor[VAPRO_L2], 0.075 * 8 * MS);
	NEAR(bundle.factor[VAPRO_L3], 0.05 * 8 * MS);
	NEAR(bundle.factor[VAPRO_DRAM], 0.025 * 8 * MS);
	NEAR(bundle.factor[VAPRO_STORE], 0.05 * 8 * MS);
	/* late bundles are read with the groups of their counts */
	bundle = fill(counters, backend, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 300, 400, 800});
	NEAR(bundle.factor[VAPRO_MEMORY], 3.75 * MS);
	NEAR(bundle.factor[VAPRO_L1], 0);
	/* not counted, or without group */
	bundle = fill(counters, 0, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 300, 400, 800});
	for (int i = 0; i < VAPRO_FACTORS; i++)
		NEAR(bundle.factor[i], 0);
	free_counters(counters);
}

/* Any counts give a share or unknown; missing events make it unknown. */
static void any_counts_make_a_share(void **state)
{
	size_t wholes = 0;

	(void)state;
	srand(1);
	for (size_t i = 0; i < event_cpu_count; i++) {
		for (const struct event_group *const *at = event_cpus[i]->groups; *at; at++) {
			struct topdown about = {.width = event_cpus[i]->width};
			double count[EVENTS_IN_GROUP] = {0};
			size_t last = 0;

			if (!(*at)->whole)
				continue;
			wholes++;
			assert_true((*at)->stage > 1);
			for (size_t e = 0; e < events__group_size(*at); e++)
				if ((*at)->events[e].flags & EVENT_BUSY && !((*at)->events[e].flags & EVENT_REFERENCE))
					last = e;
			assert_true(last && (*at)->events[last].flags & EVENT_OPTIONAL);
			for (int round = 0; round < 1000; round++) {
				double whole;

				for (int e = 0; e < EVENTS_IN_GROUP; e++)
					count[e] = 4e6 * rand() / RAND_MAX;
				whole = (*at)->whole(count, &about);
				assert_true(whole >= 0 && whole <= 1);
				count[last] = 0;
				assert_true(isnan((*at)->whole(count, &about)));
			}
		}
	}
	assert_true(wholes > 20);
}

/* Where all time is not counted, the other factors of the same work are assumed to be as at stage 1. */
static void parts_by_what_others_took(void **state)
{
	struct counters *counters = counters_of("amdzen4");
	uint8_t top, backend;
	struct vapro_bundle bundle;

	(void)state;
	/* this work is unknown: no time is made up */
	backend = switch_to(counters, 2, "backend", "");
	bundle = fill(counters, backend, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 3, 4});
	NEAR(bundle.factor[VAPRO_MEMORY] + bundle.factor[VAPRO_CORE], 0);
	/* cycles, slots without ops, stalled, ops retired: 40 % retiring, 20 % frontend, 30 % backend, of 10 ms */
	top = switch_to(counters, 1, NULL, "");
	bundle = fill(counters, top, 4, 40 * MS, (uint64_t[KERNEL_EVENTS]){1000, 100, 120, 180, 240});
	NEAR(bundle.factor[VAPRO_BACKEND], 12 * MS);
	/* as much work, and 20 ms: 13 of them are the backend's */
	bundle = fill(counters, backend, 1, 20 * MS, (uint64_t[KERNEL_EVENTS]){1000, 3, 4});
	NEAR(bundle.factor[VAPRO_MEMORY], 0.75 * 13 * MS);
	NEAR(bundle.factor[VAPRO_CORE], 0.25 * 13 * MS);
	free_counters(counters);
}

/* Fetched cache lines are counts. */
static void fills_are_no_time(void **state)
{
	struct counters *counters = counters_of("amdzen4");
	uint8_t memory = switch_to(counters, 3, "memory", "");
	struct vapro_bundle bundle =
	    fill(counters, memory, 1, 10 * MS, (uint64_t[KERNEL_EVENTS]){1000, 40, 30, 20, 10});

	(void)state;
	NEAR(bundle.factor[VAPRO_L2_FILLS], 40);
	NEAR(bundle.factor[VAPRO_REMOTE_FILLS], 10);
	NEAR(bundle.factor[VAPRO_L2] + bundle.factor[VAPRO_DRAM] + bundle.factor[VAPRO_L3], 0);
	free_counters(counters);
}

static void groups_are_found(void **state)
{
	struct counters *counters = counters_of("SKX");

	(void)state;
	assert_ptr_equal(counters__find(counters, 1, NULL), counters->table->groups[0]);
	counters->smt = true;
	assert_ptr_equal(counters__find(counters, 1, NULL), counters->table->stage1_smt);
	assert_string_equal(counters__find(counters, 2, "bad_speculation")->name, "bad_speculation");
	assert_null(counters__find(counters, 3, "core"));
	free_counters(counters);
	counters = counters_of("neoverse_n1");
	assert_null(counters__find(counters, 2, "backend"));
	free_counters(counters);
}

/* Returns a case whose backend is a major factor, as counted at stage 1. */
static struct diagnosis_of slow_case(uint32_t id)
{
	static struct contribution counted;
	struct diagnosis_of item = {.id = id, .parts = {[CASE_SUM] = &counted}};

	counted.counted[COUNTER_TOP] = 100;
	item.breakdown.node[NODE_BACKEND].present = item.breakdown.node[NODE_BACKEND].major = true;
	item.breakdown.node[NODE_FRONTEND].present = item.breakdown.node[NODE_FRONTEND].major = true;
	return item;
}

static void what_cannot_be_counted_is_given_up(void **state)
{
	struct driver driver = {0};
	struct diagnosis_of one = slow_case(1), two = slow_case(2);
	struct driver_wish vain;
	bool final;

	(void)state;
	assert_int_equal(driver__see(&driver, 0, &one, 1U << COUNTER_TOP, 5), 0);
	assert_int_equal(driver__see(&driver, 0, &two, 1U << COUNTER_TOP, 5), 0);
	assert_false(driver__switch(&driver, &vain));
	assert_int_equal(driver__current(&driver)->group, COUNTER_FRONTEND);
	driver__refuse(&driver, COUNTER_FRONTEND);
	assert_int_equal(driver__current(&driver)->group, COUNTER_BACKEND);
	assert_int_equal(driver.windows, 1);
	driver__refuse(&driver, COUNTER_BACKEND);
	assert_null(driver__current(&driver));
	/* not of this variance, nor of any other */
	assert_int_equal(driver__see(&driver, 0, &two, 1U << COUNTER_TOP, 5), 0);
	assert_false(driver__switch(&driver, &vain));
	assert_null(driver__current(&driver));
	assert_int_equal(driver__stage(&two, &final), 2);
	assert_true(final);
	driver__free(&driver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parts_of_all_time),	 cmocka_unit_test(any_counts_make_a_share),
	    cmocka_unit_test(parts_by_what_others_took), cmocka_unit_test(fills_are_no_time),
	    cmocka_unit_test(groups_are_found),		 cmocka_unit_test(what_cannot_be_counted_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
