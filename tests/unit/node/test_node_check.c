// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks of simulated nodes: what is slow is named, what is not is silent, and what cannot be seen is undecided. */
#include <errno.h>

#include "node/node_runs.h"

#include "node/node_check.h"

#define RUNS 20

static struct node_scenario quiet(uint32_t cpus, uint64_t seed)
{
	return (struct node_scenario){
	    .cpus = cpus, .seed = seed, .seconds = 10, .scatter = 0.03, .slot_scatter = 0.01, .slow = NOBODY};
}

static void judge(const struct node_scenario *scenario, struct node_check *check)
{
	struct node_run *run = replayed(simulate_run(scenario));
	char err[256];

	if (node_check__judge(check, run, err, sizeof(err)))
		fail_msg("%s", err);
	node_run__free(run);
}

static void print(const struct node_check *check)
{
	for (size_t i = 0; i < check->count; i++)
		print_message("%s %s: %s, scatter %.3f, difference %.3f, %zu slow; %s\n",
			      node_kernel_name[check->items[i].kernel], check->items[i].core_type,
			      node_verdict_name[check->items[i].verdict], check->items[i].scatter,
			      check->items[i].difference, check->items[i].count, check->items[i].why);
}

#define expect(check, condition)                                                                                       \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			print(check);                                                                                  \
			fail_msg("%s", #condition);                                                                    \
		}                                                                                                      \
	} while (0)

static void test_quiet(void **state)
{
	static const uint32_t cpus[] = {2, 8, 64};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			struct node_scenario scenario = quiet(cpus[i], seed);
			struct node_check check;

			judge(&scenario, &check);
			expect(&check, check.verdict == NODE_GOOD);
			expect(&check, check.count == NODE_KERNELS);
			for (size_t k = 0; k < check.count; k++)
				expect(&check, check.items[k].scatter > 0 && check.items[k].scatter < 0.1 &&
						   check.items[k].difference < 0.05);
			node_check__clear(&check);
		}
	}
}

/* An instance that moves 1.18 times the data of the others, whatever their number. */
static void test_slow_instance(void **state)
{
	static const uint32_t cpus[] = {2, 8, 64};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			struct node_scenario scenario = quiet(cpus[i], seed);
			struct node_check check;

			scenario.slow = (uint32_t)(seed % cpus[i]);
			scenario.factor = 1.18;
			scenario.kernels = MEMORY_KERNELS;
			judge(&scenario, &check);
			expect(&check, check.verdict == NODE_SLOW);
			for (size_t k = 0; k < check.count; k++) {
				const struct node_finding *finding = &check.items[k];
				bool hit = MEMORY_KERNELS & 1U << finding->kernel;

				expect(&check, finding->verdict == (hit ? NODE_SLOW : NODE_GOOD));
				expect(&check, !hit || (finding->count == 1 && finding->instances[0] == scenario.slow));
				expect(&check, !hit || fabs(finding->difference - 0.18) < 0.04);
			}
			node_check__clear(&check);
		}
	}
}

/* Times that scatter by more than the difference: it is not seen, and that is said. */
static void test_scatter(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		struct node_scenario scenario = quiet(2, seed);
		struct node_check check;

		scenario.slot_scatter = 0.12;
		scenario.slow = 1;
		scenario.factor = 1.18;
		scenario.kernels = MEMORY_KERNELS;
		judge(&scenario, &check);
		expect(&check, check.verdict == NODE_UNDECIDED);
		for (size_t k = 0; k < check.count; k++)
			expect(&check,
			       check.items[k].verdict == NODE_UNDECIDED && strstr(check.items[k].why, "scatter"));
		node_check__clear(&check);
	}
}

static void test_others_had_the_cpu(void **state)
{
	struct node_scenario scenario = quiet(4, 1);
	struct node_check check;

	(void)state;
	scenario.waited = 0.3;
	judge(&scenario, &check);
	expect(&check, check.verdict == NODE_UNDECIDED);
	for (size_t k = 0; k < check.count; k++)
		expect(&check, strstr(check.items[k].why, "CPU 0 for 30 %"));
	node_check__clear(&check);
	/* a little of it changes nothing */
	scenario.waited = 0.01;
	judge(&scenario, &check);
	expect(&check, check.verdict == NODE_GOOD);
	node_check__clear(&check);
}

/* Cores of two types differ by design: each is compared with those of its type. */
static void test_core_types(void **state)
{
	struct node_scenario scenario = quiet(8, 1);
	const struct node_finding *finding;
	struct node_check check;

	(void)state;
	scenario.odd_type = "cpu_atom";
	scenario.odd_factor = 1.7;
	judge(&scenario, &check);
	expect(&check, check.verdict == NODE_GOOD);
	expect(&check, check.count == (size_t)2 * NODE_KERNELS);
	node_check__clear(&check);
	scenario.slow = 5;
	scenario.factor = 1.18;
	scenario.kernels = 1U << NODE_MATRIX_PRODUCT;
	judge(&scenario, &check);
	finding = node_check__find(&check, NODE_MATRIX_PRODUCT, "cpu_atom");
	expect(&check, finding && finding->verdict == NODE_SLOW && finding->count == 1 && finding->instances[0] == 5);
	finding = node_check__find(&check, NODE_MATRIX_PRODUCT, "cpu_core");
	expect(&check, finding && finding->verdict == NODE_GOOD);
	node_check__clear(&check);
}

static void test_one_cpu(void **state)
{
	struct node_scenario scenario = quiet(1, 1);
	struct node_check check;

	(void)state;
	judge(&scenario, &check);
	expect(&check, check.verdict == NODE_UNDECIDED);
	expect(&check, check.count == NODE_KERNELS - 1);
	expect(&check, !node_check__find(&check, NODE_FALSE_SHARING, ""));
	for (size_t k = 0; k < check.count; k++)
		expect(&check, strstr(check.items[k].why, "no other CPU") && check.items[k].scatter > 0);
	node_check__clear(&check);
}

static void test_too_short(void **state)
{
	struct node_scenario scenario = quiet(4, 1);
	struct node_check check;

	(void)state;
	scenario.seconds = 2;
	judge(&scenario, &check);
	expect(&check, check.verdict == NODE_UNDECIDED && check.count == NODE_KERNELS);
	expect(&check, strstr(check.items[0].why, "too few iterations"));
	node_check__clear(&check);
}

/* Others had the CPUs all the time. */
static void test_empty(void **state)
{
	struct node_scenario scenario = quiet(2, 1);
	struct node_run *run;
	struct node_check check;
	char err[256];

	(void)state;
	scenario.seconds = 0;
	run = simulate_run(&scenario);
	assert_int_equal(node_check__judge(&check, run, err, sizeof(err)), 0);
	expect(&check, check.verdict == NODE_UNDECIDED && check.count == NODE_KERNELS);
	assert_int_equal(cJSON_GetArraySize(check.records), 0);
	node_check__clear(&check);
	node_run__free(run);
}

static void test_unpinned_and_wrong(void **state)
{
	struct node_scenario scenario = quiet(4, 1);
	const struct node_finding *finding;
	struct node_run *run;
	struct node_check check;
	char err[256];

	(void)state;
	run = simulate_run(&scenario);
	node_run__unpin(run, 2);
	assert_int_equal(node_check__judge(&check, run, err, sizeof(err)), 0);
	expect(&check, check.verdict == NODE_UNDECIDED && strstr(check.items[0].why, "no CPU is pinned"));
	node_check__clear(&check);
	node_run__note_wrong(run, 3, NODE_TRIAD);
	assert_int_equal(node_check__judge(&check, run, err, sizeof(err)), 0);
	finding = node_check__find(&check, NODE_TRIAD, "");
	expect(&check, check.verdict == NODE_WRONG);
	expect(&check, finding->verdict == NODE_WRONG && finding->count == 1 && finding->instances[0] == 3);
	node_check__clear(&check);
	node_run__free(run);
}

/* Compares the run of a scenario with that of another one. */
static void compare(const struct node_scenario *before, const struct node_scenario *after, struct node_check *check)
{
	struct node_run *runs[2] = {replayed(simulate_run(before)), replayed(simulate_run(after))};
	struct node_check checks[2];
	char err[512];

	for (int i = 0; i < 2; i++)
		assert_int_equal(node_check__judge(&checks[i], runs[i], err, sizeof(err)), 0);
	if (node_check__compare(check, runs[0], &checks[0], runs[1], &checks[1], err, sizeof(err)))
		fail_msg("%s", err);
	for (int i = 0; i < 2; i++) {
		node_check__clear(&checks[i]);
		node_run__free(runs[i]);
	}
}

static void test_profile_quiet(void **state)
{
	static const uint32_t cpus[] = {1, 2, 16};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			struct node_scenario before = quiet(cpus[i], seed), after = quiet(cpus[i], seed + 100);
			struct node_check check;

			compare(&before, &after, &check);
			expect(&check, check.verdict == NODE_GOOD);
			node_check__clear(&check);
		}
	}
}

/* The whole node, or one CPU of it, became slower by 15 %. */
static void test_profile_slower(void **state)
{
	static const uint32_t cpus[] = {1, 2, 16};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		for (uint64_t seed = 1; seed <= RUNS; seed++) {
			struct node_scenario before = quiet(cpus[i], seed), after = quiet(cpus[i], seed + 100);
			bool whole = seed & 1;
			struct node_check check;

			after.kernels = MEMORY_KERNELS;
			after.all = whole ? 1.15 : 1;
			after.slow = whole ? NOBODY : cpus[i] - 1;
			after.factor = 1.15;
			compare(&before, &after, &check);
			expect(&check, check.verdict == NODE_SLOWER);
			for (size_t k = 0; k < check.count; k++) {
				const struct node_finding *finding = &check.items[k];
				bool hit = MEMORY_KERNELS & 1U << finding->kernel;

				expect(&check, finding->verdict == (hit ? NODE_SLOWER : NODE_GOOD));
				expect(&check, !hit || fabs(finding->difference - 0.15) < 0.04);
				expect(&check,
				       !hit || whole || (finding->count == 1 && finding->instances[0] == cpus[i] - 1));
				expect(&check, !hit || !whole || cpus[i] == 1 || !finding->count);
			}
			node_check__clear(&check);
		}
	}
}

/* A scatter of either run that is as large as the difference. */
static void test_profile_scatter(void **state)
{
	(void)state;
	for (int side = 0; side < 2; side++) {
		struct node_scenario scenarios[2] = {quiet(2, 1), quiet(2, 101)};
		struct node_check check;

		scenarios[side].slot_scatter = 0.12;
		scenarios[1].all = 1.15;
		scenarios[1].kernels = MEMORY_KERNELS;
		compare(&scenarios[0], &scenarios[1], &check);
		expect(&check, check.verdict == NODE_UNDECIDED);
		for (size_t k = 0; k < check.count; k++)
			expect(&check, strstr(check.items[k].why, "scatter"));
		node_check__clear(&check);
	}
}

static void test_profile_too_short(void **state)
{
	struct node_scenario before = quiet(2, 1), after = quiet(2, 2);
	struct node_run *runs[2];
	struct node_check checks[2], check;
	char err[512];

	(void)state;
	before.seconds = 3;
	runs[0] = simulate_run(&before);
	runs[1] = simulate_run(&after);
	for (int i = 0; i < 2; i++)
		assert_int_equal(node_check__judge(&checks[i], runs[i], err, sizeof(err)), 0);
	assert_int_equal(node_check__compare(&check, runs[0], &checks[0], runs[1], &checks[1], err, sizeof(err)),
			 -ENODATA);
	assert_non_null(strstr(err, "too short"));
	node_check__clear(&check);
	for (int i = 0; i < 2; i++) {
		node_check__clear(&checks[i]);
		node_run__free(runs[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quiet),
	    cmocka_unit_test(test_slow_instance),
	    cmocka_unit_test(test_scatter),
	    cmocka_unit_test(test_others_had_the_cpu),
	    cmocka_unit_test(test_core_types),
	    cmocka_unit_test(test_one_cpu),
	    cmocka_unit_test(test_too_short),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_unpinned_and_wrong),
	    cmocka_unit_test(test_profile_quiet),
	    cmocka_unit_test(test_profile_slower),
	    cmocka_unit_test(test_profile_scatter),
	    cmocka_unit_test(test_profile_too_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
