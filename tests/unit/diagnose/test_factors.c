// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Diagnosis: a job of four ranks whose rank 1 is slow for 6 s for a reason that the test knows, for every
 * factor of every stage, through the whole analysis. The right factors must be major and within 3 points of
 * the truth, and nothing else may be major; mixed noise (VAPRO (PPoPP'22) figure 11) and prices by
 * regression within 5.
 */
#include "slow_rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/breakdown.h"

static void test_each_factor(void **state)
{
	(void)state;
	for (int at = 0; at < 3 * FACTOR_NODES; at++) {
		int node = at / 3;
		struct run run = {.causes = {{node, 0.6, 1}},
				  .groups = ALL_GROUPS,
				  .jitter = slow_rank_jitters[at % 3 > 0],
				  .merged = at % 3 > 1,
				  .seed = (uint64_t)node + 1};
		bool whole = false;
		struct diagnosed diagnosed;

		for (int part = 0; part < FACTOR_NODES; part++)
			whole |= (int)factor_infos[part].parent == node;
		if (whole || factor_infos[node].rest || factors__counted((enum factor_node)node) || node == NODE_ON_CPU)
			continue;
		slow_rank__run(&run, &diagnosed);
		assert_true(diagnosed.reports > 0 && diagnosed.final);
		slow_rank__expect_only(&diagnosed, node, 3);
	}
	slow_rank__report_worst("each factor alone");
}

static bool leaf(int node)
{
	for (int part = 0; part < FACTOR_NODES; part++) {
		/* counts and formulas split the same node */
		if ((int)factor_infos[part].parent == node)
			return false;
	}
	return !factor_infos[node].rest && node != NODE_ON_CPU;
}

static bool below(int node, int whole)
{
	while (node != whole && node != FACTOR_ROOT)
		node = factor_infos[node].parent;
	return node == whole;
}

/* Expects only the causes' factors to be major, up to the root, with shares near the truth. */
static void expect_mix(const struct diagnosed *diagnosed, const struct run *run, double points)
{
	double sum = 0;

	slow_rank__assert_levels(diagnosed);
	for (int node = 0; node < FACTOR_NODES; node++)
		sum += run->put[node];
	for (int node = 0; node < FACTOR_NODES; node++) {
		const struct diagnosed_factor *shown = slow_rank__find(diagnosed, factor_infos[node].name);
		double truth = 0, found = slow_rank__of_all(diagnosed, factor_infos[node].name), level = 0;
		enum factor_node parent = factor_infos[node].parent;

		for (int cause = 0; cause < FACTOR_NODES; cause++) {
			truth += below(cause, node) ? run->put[cause] / sum : 0;
			level += below(cause, parent) ? run->put[cause] / sum : 0;
		}
		if (truth > 0 || found > 0)
			slow_rank__measure(found, truth, factor_infos[node].name);
		if (fabs(found - truth) > points / 100) {
			slow_rank__show(diagnosed);
			fail_msg("%s: %.1f %% instead of %.1f %%", factor_infos[node].name, 100 * found, 100 * truth);
		}
		/* near the border either result is right */
		if (level > 0 && fabs(truth / level - 0.25) < 0.05)
			continue;
		if ((shown && shown->major) != (level > 0 && truth / level > 0.25)) {
			slow_rank__show(diagnosed);
			fail_msg("%s is %smajor", factor_infos[node].name, shown && shown->major ? "" : "not ");
		}
	}
}

/* Each leaf of the tree beside another one: a distant leaf, and its neighbour. */
static void test_pairs(void **state)
{
	(void)state;
	for (int node = 0; node < FACTOR_NODES; node++) {
		bool away = factor_infos[node].parent == NODE_SUSPENSION;
		enum factor_node others[2] = {away ? NODE_DRAM : NODE_PREEMPTED, FACTOR_ROOT};

		if (!leaf(node) || factors__counted((enum factor_node)node))
			continue;
		for (int other = 0; other < FACTOR_NODES; other++) {
			if (other != node && factor_infos[other].parent == factor_infos[node].parent && leaf(other) &&
			    !factors__counted((enum factor_node)other))
				others[1] = (enum factor_node)other;
		}
		for (int i = 0; i < 4; i++) {
			struct run run = {.causes = {{node, 0.5, 1}, {others[i / 2], 0.3, 1}},
					  .groups = ALL_GROUPS,
					  .jitter = slow_rank_jitters[i % 2],
					  .seconds = 20,
					  .seed = (uint64_t)(1000 + 2 * node + i)};
			struct diagnosed diagnosed;

			if (others[i / 2] == FACTOR_ROOT)
				continue;
			slow_rank__run(&run, &diagnosed);
			expect_mix(&diagnosed, &run, 3);
		}
	}
	slow_rank__report_worst("each factor beside another one");
}

/*
 * A rank that is slower from start to end, by less than makes a fragment abnormal: measured by the other ranks'
 * time, from its first diagnosis on.
 */
static void test_always(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		enum factor_node node = i < 2 ? NODE_DRAM : NODE_FRONTEND_LATENCY;
		struct run run = {.causes = {{node, 0.12, 1}},
				  .groups = ALL_GROUPS,
				  .always = true,
				  .jitter = slow_rank_jitters[i % 2],
				  .seconds = i % 2 ? 20 : 50,
				  .seed = (uint64_t)(7 + i)};
		struct diagnosed diagnosed;

		slow_rank__run(&run, &diagnosed);
		slow_rank__expect_only(&diagnosed, node, 5);
	}
}

/* Tests wholes, where only their stage was counted. */
static void test_each_stage(void **state)
{
	static const struct {
		enum factor_node node;
		unsigned groups;
	} diagnoses[] = {
	    {NODE_RETIRING, 1U << COUNTER_TOP},
	    {NODE_FRONTEND, 1U << COUNTER_TOP},
	    {NODE_BAD_SPECULATION, 1U << COUNTER_TOP},
	    {NODE_BACKEND, 1U << COUNTER_TOP},
	    {NODE_MEMORY, 1U << COUNTER_TOP | 1U << COUNTER_BACKEND},
	    {NODE_CORE, 1U << COUNTER_BACKEND},
	    {NODE_DRAM, 1U << COUNTER_MEMORY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		struct run run = {
		    .causes = {{diagnoses[i].node, 0.6, 1}}, .groups = diagnoses[i].groups, .seed = 77 + i};
		struct diagnosed diagnosed;

		slow_rank__run(&run, &diagnosed);
		slow_rank__expect_only(&diagnosed, diagnoses[i].node, 3);
	}
	/* No counters at all: the CPU is one factor. */
	{
		struct run run = {.causes = {{NODE_BACKEND, 0.6, 1}}, .seed = 5};
		struct diagnosed diagnosed;

		slow_rank__run(&run, &diagnosed);
		slow_rank__expect_only(&diagnosed, NODE_ON_CPU, 3);
	}
}

/* Counts cost time that is attributed to the kernel as a whole, or to no factor. */
static void test_each_count(void **state)
{
	(void)state;
	for (int node = NODE_MINOR_FAULTS; node <= NODE_REMOTE_FILLS; node++) {
		for (int counted = 0; counted < 2; counted++) {
			struct run run = {.causes = {{node, 0.6, 1}},
					  .groups = counted ? 1U << COUNTER_TOP | 1U << COUNTER_BACKEND : 0,
					  .kernel_has_none = !counted,
					  .hidden = !counted,
					  .jitter = slow_rank_jitters[node % 2],
					  .seed = (uint64_t)(node + 100 * counted)};
			struct diagnosed diagnosed;
			const struct diagnosed_factor *count;

			if (!factors__counted((enum factor_node)node))
				continue;
			slow_rank__run(&run, &diagnosed);
			slow_rank__expect_only(&diagnosed, node, 5);
			count = slow_rank__find(&diagnosed, factor_infos[node].name);
			assert_true(count->regression && count->p < 0.05);
			assert_string_equal(diagnosed.outcome, "fitted");
			assert_true(diagnosed.rows > 100);
		}
	}
	slow_rank__report_worst("each count alone");
}

/* Two counts that always come together cannot be distinguished, and the diagnosis says so. */
static void test_collinear(void **state)
{
	struct contribution contribution = {0};
	struct breakdown breakdown;
	struct vapro_config config;

	(void)state;
	sim_config(&config);
	regression__begin(&contribution.rows[PRICED_KERNEL], 5);
	for (int i = 0; i < 100; i++) {
		double n = i % 7, x[5] = {n, 0, 2 * n, (i * 37 % 11), 0};

		regression__add(&contribution.rows[PRICED_KERNEL], 500 * n + (i * 13 % 5), x, 1);
	}
	contribution.impact[NODE_ON_CPU] = 60000;
	contribution.impact[NODE_MINOR_FAULTS] = 100;
	contribution.impact[NODE_VOLUNTARY_SWITCHES] = 200;
	breakdown__make(&contribution, &config, &breakdown);
	assert_true(breakdown.node[NODE_KERNEL].major && breakdown.node[NODE_KERNEL].regression);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].major && breakdown.node[NODE_VOLUNTARY_SWITCHES].major);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].implied != breakdown.node[NODE_VOLUNTARY_SWITCHES].implied);
	assert_true(breakdown.node[NODE_MINOR_FAULTS].shared == 1ULL << NODE_VOLUNTARY_SWITCHES);
	assert_true(breakdown.node[NODE_VOLUNTARY_SWITCHES].shared == 1ULL << NODE_MINOR_FAULTS);
	assert_true(fabs(breakdown.node[NODE_KERNEL].impact_ns - 50000) < 500);
	assert_true(fabs(breakdown.node[NODE_MINOR_FAULTS].impact_ns - 50000) < 500);
	assert_true(fabs(breakdown.node[NODE_VOLUNTARY_SWITCHES].impact_ns - 50000) < 500);
	assert_false(breakdown.node[NODE_MAJOR_FAULTS].present); /* constant */
	assert_true(breakdown.node[NODE_INVOLUNTARY_SWITCHES].present);
	assert_false(breakdown.node[NODE_INVOLUNTARY_SWITCHES].major);
}

/* Too few rows, no rows, nothing that varies: stated, and the rest stands. */
static void test_degenerate(void **state)
{
	struct contribution contribution = {.impact = {[NODE_ON_CPU] = 100}, .abnormal = 3};
	struct vapro_config config;
	struct breakdown breakdown;
	double x[5] = {1, 2, 3, 4, 5};

	(void)state;
	sim_config(&config);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_TOO_FEW);
	assert_true(breakdown.node[NODE_ON_CPU].major);
	regression__begin(&contribution.rows[PRICED_KERNEL], 5);
	for (int i = 0; i < 16; i++)
		regression__add(&contribution.rows[PRICED_KERNEL], i, x, 1);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_TOO_FEW);
	regression__add(&contribution.rows[PRICED_KERNEL], 0, x, 1);
	breakdown__make(&contribution, &config, &breakdown);
	assert_int_equal(breakdown.outcome[PRICED_KERNEL], REGRESSION_NO_FACTOR);
	for (int node = 0; node < FACTOR_NODES; node++) {
		assert_true(isfinite(breakdown.node[node].impact_ns) && isfinite(breakdown.node[node].share));
		assert_false(factors__counted((enum factor_node)node) && breakdown.node[node].present);
	}
	assert_true(breakdown.node[NODE_ON_CPU].share == 1);
}

/* Figure 11: computing noise and memory contention at once; and other mixtures, not everywhere at the same time. */
static void test_mixed(void **state)
{
	static const struct cause mixtures[][3] = {
	    {{NODE_PREEMPTED, 0.9, 0.5}, {NODE_DRAM, 0.3, 1}},
	    {{NODE_PREEMPTED, 0.5, 0.5}, {NODE_DRAM, 0.6, 0.6}},
	    {{NODE_WAKEUP_WAIT, 0.8, 0.45}, {NODE_L3, 0.4, 0.8}, {NODE_STORE, 0.4, 0.8}},
	    {{NODE_STEAL, 0.9, 0.4}, {NODE_SOFT_IRQ, 0.4, 1}},
	    {{NODE_THROTTLED, 0.9, 0.5}, {NODE_PAGE_FAULTS, 0.4, 0.9}, {NODE_MISPREDICTS, 0.5, 0.8}},
	    {{NODE_BLOCKED_IO, 2, 0.3}, {NODE_RECLAIM, 0.5, 1}},
	};

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(mixtures) / sizeof(*mixtures); i++) {
		struct run run = {
		    .groups = ALL_GROUPS, .jitter = slow_rank_jitters[i % 3 > 0], .merged = i % 3 > 1, .seed = 11 + i};
		struct diagnosed diagnosed;

		memcpy(run.causes, mixtures[i / 3], sizeof(run.causes));
		slow_rank__run(&run, &diagnosed);
		expect_mix(&diagnosed, &run, 5);
	}
	slow_rank__report_worst("mixtures");
}

/* Section 4.2: results of a regression equal those of formulas, within 5 points. */
static void test_regression_against_formula(void **state)
{
	static const struct {
		enum factor_node formula[2], counts[2];
		double shares[2], every[2];
	} diagnoses[] = {
	    {{NODE_PAGE_FAULTS, NODE_SYSTEM_CALLS}, {NODE_MINOR_FAULTS, NODE_VOLUNTARY_SWITCHES}, {0.5, 0.3}, {1, 0.7}},
	    {{NODE_PAGE_FAULTS, NODE_RECLAIM}, {NODE_MAJOR_FAULTS, NODE_MIGRATIONS}, {0.6, 0.6}, {0.5, 0.5}},
	    {{NODE_SYSTEM_CALLS, NODE_RECLAIM}, {NODE_INVOLUNTARY_SWITCHES, NODE_MINOR_FAULTS}, {0.3, 0.7}, {1, 0.4}},
	    {{NODE_L3, NODE_DRAM}, {NODE_L3_FILLS, NODE_DRAM_FILLS}, {0.5, 0.4}, {0.8, 0.8}},
	    {{NODE_DRAM, NODE_STORE}, {NODE_REMOTE_FILLS, NODE_L2_FILLS}, {0.8, 0.4}, {0.6, 0.6}},
	};

	(void)state;
	for (size_t at = 0; at < 2 * sizeof(diagnoses) / sizeof(*diagnoses); at++) {
		size_t i = at / 2;
		struct run formula = {.groups = ALL_GROUPS, .jitter = slow_rank_jitters[at % 2], .seed = 21 + at};
		struct run counts = {
		    .kernel_has_none = true, .hidden = true, .jitter = slow_rank_jitters[at % 2], .seed = 21 + at};
		struct diagnosed counted, found;

		for (int k = 0; k < 2; k++) {
			formula.causes[k] =
			    (struct cause){diagnoses[i].formula[k], diagnoses[i].shares[k], diagnoses[i].every[k]};
			counts.causes[k] =
			    (struct cause){diagnoses[i].counts[k], diagnoses[i].shares[k], diagnoses[i].every[k]};
		}
		slow_rank__run(&formula, &counted);
		slow_rank__run(&counts, &found);
		for (int k = 0; k < 2; k++) {
			const char *by_formula = factor_infos[diagnoses[i].formula[k]].name,
				   *by_count = factor_infos[diagnoses[i].counts[k]].name;

			slow_rank__measure(slow_rank__of_all(&found, by_count), slow_rank__of_all(&counted, by_formula),
					   by_count);
			if (fabs(slow_rank__of_all(&counted, by_formula) - slow_rank__of_all(&found, by_count)) >
			    0.05) {
				slow_rank__show(&counted);
				slow_rank__show(&found);
				fail_msg("%s is not %s, jitter %g", by_count, by_formula, slow_rank_jitters[at % 2]);
			}
		}
	}
	slow_rank__report_worst("regression against formulas");
}

/* A factor that shrinks while others grow takes nothing from their sum; work of another kind is not looked at. */
static void test_less_is_better_and_rare(void **state)
{
	struct run run = {
	    .causes = {{NODE_CORE, 0.6, 1}}, .groups = ALL_GROUPS, .better = 0.8, .rare = true, .seed = 4};
	struct diagnosed diagnosed, without;

	(void)state;
	slow_rank__run(&run, &diagnosed);
	slow_rank__expect_only(&diagnosed, NODE_CORE, 3);
	assert_true(slow_rank__find(&diagnosed, "frontend")->share == 0);
	/* a rare cluster is reported as such, and is no part of the variance around it */
	assert_int_equal(diagnosed.rares, 1);
	assert_true(diagnosed.rare.rank == SLOW && diagnosed.rare.members == 1 && diagnosed.rare.norm == 5e9);
	assert_true(fabs(diagnosed.rare.seconds - 0.9) < 1e-9);
	run.rare = false;
	run.seed = 4;
	slow_rank__run(&run, &without);
	assert_int_equal(without.rares, 0);
	assert_true(diagnosed.lost == without.lost && diagnosed.reports == without.reports);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_factor),
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_always),
	    cmocka_unit_test(test_each_stage),
	    cmocka_unit_test(test_each_count),
	    cmocka_unit_test(test_collinear),
	    cmocka_unit_test(test_degenerate),
	    cmocka_unit_test(test_mixed),
	    cmocka_unit_test(test_regression_against_formula),
	    cmocka_unit_test(test_less_is_better_and_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
