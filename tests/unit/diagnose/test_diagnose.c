/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/advice.h"
#include "diagnose/diagnoses.h"
#include "diagnose/driver.h"
#include "near.h"
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Checks that every level sums to its whole, whatever was attributed. */
static void assert_levels(const double *time, double sum_ns)
{
	double sum[FACTOR_NODES + 1] = {0};
	bool split[FACTOR_NODES + 1] = {false};

	for (int node = 0; node < FACTOR_NODES; node++) {
		sum[factor_infos[node].parent] += time[node];
		split[factor_infos[node].parent] |= time[node] > 0;
	}
	assert_near(sum[FACTOR_ROOT], sum_ns, 1e-6);
	for (int node = 0; node < FACTOR_NODES; node++) {
		if (split[node])
			assert_near(sum[node], time[node], 1e-6);
	}
}

static unsigned part(double sum_ns, const double *counted_factor, double *time)
{
	double factor[VAPRO_FACTORS];
	unsigned counted;

	memcpy(factor, counted_factor, sizeof(factor));
	counted = factors__finalize(sum_ns, factor);
	factors__partition(sum_ns, factor, counted, time);
	assert_levels(time, sum_ns);
	/* Consistent factors are unchanged. */
	assert_int_equal(factors__finalize(sum_ns, factor), counted);
	factors__partition(sum_ns, factor, counted, time);
	assert_levels(time, sum_ns);
	return counted;
}

static void test_tree(void **state)
{
	bool used[VAPRO_FACTORS] = {false};

	(void)state;
	for (int node = 0; node < FACTOR_NODES; node++) {
		const struct factor_info *info = &factor_infos[node];

		assert_non_null(info->name);
		assert_true((int)info->parent < node || info->parent == FACTOR_ROOT);
		assert_int_equal(info->stage, info->parent == FACTOR_ROOT ? 1 : factor_infos[info->parent].stage + 1);
		for (int other = 0; other < node; other++)
			assert_string_not_equal(info->name, factor_infos[other].name);
		if (info->factor < VAPRO_FACTORS) {
			assert_string_equal(info->name, vapro_factor_name[info->factor]);
			used[info->factor] = true;
		}
	}
	for (int i = 0; i < VAPRO_FACTORS; i++)
		assert_true(used[i]);
}

static void test_partition(void **state)
{
	double factor[VAPRO_FACTORS] = {0}, time[FACTOR_NODES];

	(void)state;
	factor[VAPRO_PREEMPTED] = 300;
	factor[VAPRO_WAKEUP_WAIT] = 100;
	factor[VAPRO_IRQ] = 50;
	assert_int_equal(part(1000, factor, time), 0);
	assert_near(time[NODE_SUSPENSION], 400, 0);
	assert_near(time[NODE_ON_CPU], 550, 0);
	/* With counters on_cpu is split; the counters' time is scaled to the rest. */
	factor[VAPRO_RETIRING] = 100;
	factor[VAPRO_BACKEND] = 300;
	assert_int_equal(part(1000, factor, time), 1U << COUNTER_TOP);
	assert_near(time[NODE_ON_CPU], 0, 0);
	assert_near(time[NODE_RETIRING], 137.5, 1e-9);
	assert_near(time[NODE_BACKEND], 412.5, 1e-9);
	/* All stages at once, each scaled to its whole. */
	factor[VAPRO_MEMORY] = 30;
	factor[VAPRO_CORE] = 10;
	factor[VAPRO_DRAM] = 6;
	factor[VAPRO_L1] = 2;
	assert_int_equal(part(1000, factor, time), 1U << COUNTER_TOP | 1U << COUNTER_BACKEND | 1U << COUNTER_MEMORY);
	assert_near(time[NODE_MEMORY], 0.75 * 412.5, 1e-9);
	assert_near(time[NODE_DRAM], 0.75 * 0.75 * 412.5, 1e-9);
	/* A later stage alone: its whole is its sum, the rest is on the CPU. */
	factor[VAPRO_RETIRING] = factor[VAPRO_BACKEND] = 0;
	factor[VAPRO_L1] = factor[VAPRO_DRAM] = 0;
	assert_int_equal(part(1000, factor, time), 1U << COUNTER_BACKEND);
	assert_near(time[NODE_BACKEND], 40, 1e-9);
	assert_near(time[NODE_ON_CPU], 510, 1e-9);
	/* A part is at most the whole. */
	factor[VAPRO_MEMORY] = 3000;
	part(1000, factor, time);
	assert_near(time[NODE_BACKEND], 550, 1e-9);
	/* Parts of the kernel's time need not sum to the whole. */
	factor[VAPRO_MEMORY] = factor[VAPRO_CORE] = 0;
	factor[VAPRO_KERNEL] = 200;
	factor[VAPRO_PAGE_FAULTS] = 150;
	factor[VAPRO_SOFT_IRQ] = 10;
	assert_int_equal(part(1000, factor, time), 0);
	assert_near(time[NODE_KERNEL_OTHER], 50, 1e-9);
	assert_near(time[NODE_SOFT_IRQ], 50, 1e-9);
	assert_near(time[NODE_ON_CPU], 350, 1e-9);
}

/* Time of the operating system: a partition with counters and without. */
static void test_partition_of_the_system(void **state)
{
	double factor[VAPRO_FACTORS] = {0}, time[FACTOR_NODES];

	(void)state;
	factor[VAPRO_PREEMPTED] = 100;
	factor[VAPRO_THROTTLED] = 300;
	factor[VAPRO_STEAL] = 50;
	factor[VAPRO_FREQUENCY] = 120;
	factor[VAPRO_HARD_IRQ] = 10;
	factor[VAPRO_SOFT_IRQ] = 20;
	assert_int_equal(part(1000, factor, time), 0);
	assert_near(time[NODE_SUSPENSION], 450, 1e-9);
	assert_near(time[NODE_THROTTLED], 300, 0);
	assert_near(time[NODE_IRQ], 30, 1e-9); /* sum of the parts, where the whole is unknown */
	assert_near(time[NODE_FREQUENCY], 120, 0);
	assert_near(time[NODE_ON_CPU], 400, 1e-9);
	factor[VAPRO_RETIRING] = 1;
	factor[VAPRO_BACKEND] = 3;
	assert_int_equal(part(1000, factor, time), 1U << COUNTER_TOP);
	assert_near(time[NODE_RETIRING] + time[NODE_BACKEND], 400, 1e-9);
}

static void test_frequency(void **state)
{
	struct series_pile normal = {.n = 10, .sum_ns = 1000};
	struct contribution contribution = {0};
	struct breakdown breakdown;
	struct vapro_config config;
	float factor[BUNDLE_FACTORS] = {[VAPRO_FREQUENCY] = 70};
	struct bundle_rec rec = {
	    .sum_ns = 160, .factor = factor, .n = 1, .ratio = 1, .max_ns = 160, .reference = 100, .covered = 1};
	double sum = 0;

	(void)state;
	sim_config(&config);
	normal.factor[VAPRO_FREQUENCY] = 200; /* a frequency below the highest is usual */
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &normal,
			  &config);
	assert_near(contribution.impact[NODE_FREQUENCY], 50, 1e-4);
	assert_near(contribution.impact[NODE_ON_CPU], 10, 1e-4);
	breakdown__make(&contribution, &config, &breakdown);
	assert_true(breakdown.node[NODE_FREQUENCY].major);
	for (int node = 0; node < FACTOR_NODES; node++)
		sum += factor_infos[node].parent == FACTOR_ROOT ? breakdown.node[node].impact_ns : 0;
	assert_near(sum, 60, 1e-4);
}

/* Interrupts are wanted as long as they may explain some variance, and no longer. */
static void test_interrupts_are_requested(void **state)
{
	struct diagnosis_of on_cpu = {.id = 1}, off_cpu = {.id = 2};
	struct driver driver = {0};
	struct driver_wish vain;

	(void)state;
	on_cpu.breakdown.node[NODE_ON_CPU].major = true;
	off_cpu.breakdown.node[NODE_SUSPENSION].major = true;
	assert_int_equal(driver__see(&driver, 0, &off_cpu, 0, 5), 0);
	driver__switch(&driver, &vain);
	assert_false(driver.interrupts);
	assert_int_equal(driver__see(&driver, 0, &on_cpu, 0, 5), 0);
	assert_int_equal(driver__see(&driver, 0, &off_cpu, 0, 5), 0);
	driver__switch(&driver, &vain);
	assert_true(driver.interrupts);
	driver__switch(&driver, &vain);
	assert_false(driver.interrupts);
	driver__free(&driver);
}

/* Returns a fragment; its factors are valid until the next one. */
static struct bundle_rec fragment(double ns, double preempted, double backend)
{
	static float factor[BUNDLE_FACTORS];
	struct bundle_rec rec = {
	    .ratio = 1, .sum_ns = ns, .factor = factor, .n = 1, .max_ns = (float)ns, .reference = 100, .covered = 1};

	memset(factor, 0, sizeof(factor));
	factor[VAPRO_PREEMPTED] = (float)preempted;
	factor[VAPRO_BACKEND] = (float)backend;
	factor[VAPRO_RETIRING] = (float)(ns - preempted - backend);
	rec.counted = 1U << COUNTER_TOP;
	return rec;
}

static void test_contribution(void **state)
{
	struct series_pile normal = {.n = 10, .sum_ns = 1000, .counted_n = {[COUNTER_TOP] = 10}};
	struct contribution contribution = {0};
	struct vapro_config config;
	double shares[FACTOR_NODES], sums[4] = {0};
	struct bundle_rec rec;

	(void)state;
	sim_config(&config);
	normal.factor[VAPRO_RETIRING] = 600;
	normal.factor[VAPRO_BACKEND] = 400;
	/* 100 ns usual: 60 retiring, 40 backend. One preempted for 60, one with 40 more backend, one normal. */
	rec = fragment(160, 60, 40);
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &normal,
			  &config);
	rec = fragment(140, 0, 80);
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &normal,
			  &config);
	rec = fragment(119, 0, 40);
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &normal,
			  &config);
	assert_near(contribution.impact[NODE_PREEMPTED], 60, 1e-4);
	assert_near(contribution.impact[NODE_SUSPENSION], 60, 1e-4);
	assert_near(contribution.impact[NODE_BACKEND], 40, 1e-4);
	assert_near(contribution.impact[NODE_RETIRING], 0, 1e-4);
	assert_near(contribution.abnormal, 2, 0);
	assert_near(contribution.normal, 1, 0);
	assert_false(contribution.approx);
	assert_near(contribution.duration[NODE_PREEMPTED], 160, 1e-4);
	assert_near(contribution.duration[NODE_BACKEND], 140, 1e-4);
	contribution__shares(contribution.impact, shares);
	for (int node = 0; node < FACTOR_NODES; node++)
		sums[factor_infos[node].stage] += shares[node];
	assert_near(sums[1], 1, 1e-9);
	assert_near(sums[2], 1, 1e-9);
	assert_near(shares[NODE_SUSPENSION], 0.6, 1e-6);
	/* A merged bundle with an abnormal member is judged by its mean, and marked. */
	rec = fragment(1000, 0, 400);
	rec.n = 10;
	rec.max_ns = 300;
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &normal,
			  &config);
	assert_true(contribution.approx);
	assert_near(contribution.normal, 11, 0);
}

/*
 * A call of 100 ns that took 130, 90 of them without a CPU: it would have waited 60 of these anyway, so that 30 were
 * lost to that. What took longer for other reasons, too, is the rest.
 */
static void test_contribution_of_calls(void **state)
{
	struct series_pile normal = {.n = 10, .sum_ns = 1000};
	float factor[BUNDLE_FACTORS] = {[VAPRO_PREEMPTED] = 60, [VAPRO_THROTTLED] = 24, [VAPRO_IRQ] = 6};
	struct contribution call = {0}, work = {0}, team = {0};
	struct vapro_config config;
	struct bundle_rec rec = fragment(130, 0, 0);

	(void)state;
	sim_config(&config);
	rec.factor = factor;
	rec.counted = 0;
	contribution__add(&call, &rec, VAPRO_COMMUNICATION, 1, true, &normal, &config);
	assert_near(call.impact[NODE_PREEMPTED], 20, 1e-4);
	assert_near(call.impact[NODE_THROTTLED], 8, 1e-4);
	assert_near(call.impact[NODE_IRQ], 2, 1e-4);
	assert_near(call.impact[NODE_SUSPENSION], 28, 1e-4);
	assert_near(call.impact[NODE_ON_CPU], 0, 1e-4);
	/* work that was preempted is late, whatever it took otherwise */
	contribution__add(&work, &rec, VAPRO_COMPUTATION, 1, true, &normal, &config);
	assert_near(work.impact[NODE_PREEMPTED], 60, 1e-4);
	assert_near(work.impact[NODE_ON_CPU], -60, 1e-4);
	/* a thread that waits for one of its process is not late for want of a CPU */
	rec.waits = 1;
	contribution__add(&team, &rec, VAPRO_COMMUNICATION, 1, true, &normal, &config);
	assert_near(team.impact[NODE_PREEMPTED], 0, 1e-4);
	assert_near(team.impact[NODE_THROTTLED], 24, 1e-4);
	assert_near(team.impact[NODE_IRQ], 6, 1e-4);
	assert_near(team.impact[NODE_ON_CPU], 0, 1e-4);
}

static void test_contribution_without_normals(void **state)
{
	struct series_pile none = {0};
	struct contribution contribution = {0};
	struct vapro_config config;
	float factor[BUNDLE_FACTORS] = {[VAPRO_PREEMPTED] = 150};
	struct bundle_rec rec = fragment(300, 150, 0);

	(void)state;
	sim_config(&config);
	rec.factor = factor;
	rec.counted = 0;
	contribution__add(&contribution, &rec, VAPRO_COMPUTATION, 1, contribution__abnormal(&rec, &config), &none,
			  &config);
	assert_near(contribution.impact[NODE_PREEMPTED], 150, 1e-4);
	assert_near(contribution.impact[NODE_ON_CPU], 50, 1e-4);
}

static void test_negative_shares(void **state)
{
	double impact[FACTOR_NODES] = {
	    [NODE_ON_CPU] = -50, [NODE_SUSPENSION] = 100, [NODE_PREEMPTED] = 120, [NODE_BLOCKED_IO] = -20};
	double shares[FACTOR_NODES];

	(void)state;
	contribution__shares(impact, shares);
	assert_near(shares[NODE_ON_CPU], 0, 0);
	assert_near(shares[NODE_SUSPENSION], 1, 0);
	assert_near(shares[NODE_PREEMPTED], 1, 0);
}

static int add(struct interferers *interferers, const char *comm, uint32_t pid, double seconds)
{
	struct result_interferer task = {.pid = pid, .seconds = seconds};

	snprintf(task.comm, sizeof(task.comm), "%s", comm);
	return interferers__add(interferers, &task, 0, 1);
}

/* Ranks of which others take the CPU in calls that sleep less than usual: what was taken is a cause all the same. */
static void test_a_part_above_its_whole(void **state)
{
	struct contribution from = {
	    .impact = {[NODE_SUSPENSION] = -20, [NODE_PREEMPTED] = 100, [NODE_BLOCKED_IO] = -120, [NODE_KERNEL] = 25}};
	struct vapro_config config;
	struct breakdown breakdown;

	(void)state;
	sim_config(&config);
	breakdown__make(&from, &config, &breakdown);
	assert_true(breakdown.node[NODE_SUSPENSION].major && breakdown.node[NODE_PREEMPTED].major);
	assert_near(breakdown.node[NODE_SUSPENSION].impact_ns, 100, 0);
	assert_near(breakdown.node[NODE_SUSPENSION].share, 0.8, 1e-9);
	assert_near(breakdown.node[NODE_PREEMPTED].share, 1, 0);
	assert_false(breakdown.node[NODE_BLOCKED_IO].major);
	/* parts that hide each other do not reach beyond the most expensive one */
	from.impact[NODE_SUSPENSION] = 130;
	breakdown__make(&from, &config, &breakdown);
	assert_near(breakdown.node[NODE_SUSPENSION].impact_ns, 130, 0);
}

static void test_interferers(void **state)
{
	struct interferers interferers = {0};

	(void)state;
	assert_int_equal(add(&interferers, "swapper/0", 0, 9), 0);
	assert_int_equal(add(&interferers, "kworker/1:0", 7, 0.1), 0);
	assert_int_equal(add(&interferers, "hog", 8, 1), 0);
	assert_int_equal(add(&interferers, "hog", 8, 1.5), 0);
	assert_int_equal(add(&interferers, "hog", 9, 1), 0);
	interferers__sort(&interferers);
	assert_int_equal(interferers.count, 3);
	assert_string_equal(interferers.items[0].task.comm, "hog");
	assert_int_equal(interferers.items[0].task.pid, 8);
	assert_near(interferers.items[0].task.seconds, 2.5, 1e-9);
	interferers__clear(&interferers);
}

/* Time and rows of a task; a moment of it is not its begin, and more rows than a few are not listed. */
static void test_interferer_place(void **state)
{
	static const struct result_interferer moment = {.comm = "hog", .pid = 8, .seconds = 0.001};
	static const struct result_interferer half = {.comm = "hog", .pid = 8, .seconds = 0.1};
	struct interferers interferers = {0};

	(void)state;
	assert_int_equal(interferers__add(&interferers, &moment, 3, 10), 0);
	assert_int_equal(interferers.items[0].begin, interferers.items[0].end);
	assert_int_equal(interferers__add(&interferers, &half, 4, 22), 0);
	assert_int_equal(interferers__add(&interferers, &half, 4, 20), 0);
	assert_int_equal(interferers.items[0].begin, 20);
	assert_int_equal(interferers.items[0].end, 23);
	assert_int_equal(interferers.items[0].row_count, 2);
	assert_near(interferers.items[0].row_seconds[1], 0.2, 1e-9);
	for (uint32_t row = 10; row < 14; row++)
		assert_int_equal(interferers__add(&interferers, &half, row, 21), 0);
	assert_true(interferers.items[0].row_count > INTERFERER_ROWS);
	assert_near(interferers.items[0].task.seconds, 0.601, 1e-9);
	interferers__clear(&interferers);
}

/* As beside a build: thousands of short tasks, then a lasting one. */
static void test_many_interferers(void **state)
{
	struct interferers interferers = {0};

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		assert_int_equal(add(&interferers, "sh", 1000 + i, 1e-3 + i * 1e-9), 0);
		if (i >= 3000 && i % 10 == 0)
			assert_int_equal(add(&interferers, "hog", 7, 0.05), 0);
	}
	interferers__sort(&interferers);
	assert_true(interferers.count <= 256);
	assert_string_equal(interferers.items[0].task.comm, "hog");
	assert_near(interferers.items[0].task.seconds, 200 * 0.05, 1e-9);
	assert_near(interferers__seconds(&interferers), 200 * 0.05 + 5000 * 1e-3 + 5000 * 4999 / 2 * 1e-9, 1e-6);
	interferers__clear(&interferers);
}

static bool only_two(void *arg, uint32_t id)
{
	(void)arg;
	return id == 2;
}

static bool all(void *arg, uint32_t id)
{
	(void)arg;
	(void)id;
	return true;
}

static void test_cases(void **state)
{
	struct diagnoses diagnoses = {0};

	(void)state;
	diagnoses__part(diagnoses__get(&diagnoses, 2), CASE_STAYING)->impact[NODE_PREEMPTED] = 5;
	diagnoses__part(diagnoses__get(&diagnoses, 1), CASE_PAST)->impact[NODE_PREEMPTED] = 3;
	diagnoses__part(diagnoses__get(&diagnoses, 2), CASE_RETIRING)->impact[NODE_PREEMPTED] = 7;
	diagnoses__interfere(diagnoses__get(&diagnoses, 2), CASE_RETIRING,
			     &(struct result_interferer){.comm = "hog", .pid = 1, .seconds = 1}, 0, 1);
	assert_int_equal(diagnoses__merge(&diagnoses, 1, 2), 0);
	assert_int_equal(diagnoses__sum(&diagnoses), 0);
	assert_near(diagnoses__sum_of(diagnoses__get(&diagnoses, 2))->impact[NODE_PREEMPTED], 15, 0);
	assert_int_equal(diagnoses__retire(&diagnoses, only_two, NULL), 0);
	assert_int_equal(diagnoses.count, 1);
	assert_int_equal(diagnoses__sum(&diagnoses), 0);
	assert_near(diagnoses__sum_of(diagnoses__get(&diagnoses, 2))->impact[NODE_PREEMPTED], 10, 0);
	assert_int_equal(diagnoses__get(&diagnoses, 2)->interferers[CASE_SUM].count, 1);
	diagnoses__free(&diagnoses);
}

/* A noisy job has thousands of cases: they do not move, and cases without new data hold their past alone. */
static void test_many_cases(void **state)
{
	struct diagnoses diagnoses = {0};
	struct diagnosis_of *first = diagnoses__get(&diagnoses, 1);
	size_t busy;

	(void)state;
	diagnoses__part(first, CASE_RETIRING)->impact[NODE_PREEMPTED] = 3;
	for (uint32_t id = 2; id <= 20000; id++)
		assert_non_null(diagnoses__part(diagnoses__get(&diagnoses, id), CASE_STAYING));
	assert_ptr_equal(diagnoses__find(&diagnoses, 1), first);
	assert_int_equal(diagnoses.count, 20000);
	assert_int_equal(diagnoses__sum(&diagnoses), 0);
	busy = diagnoses__bytes(&diagnoses);
	assert_int_equal(diagnoses__retire(&diagnoses, all, NULL), 0);
	assert_false(first->stale);
	assert_true(diagnoses__get(&diagnoses, 2)->stale);
	assert_true(diagnoses__bytes(&diagnoses) < busy / 4);
	assert_int_equal(diagnoses__sum(&diagnoses), 0);
	assert_near(diagnoses__sum_of(first)->impact[NODE_PREEMPTED], 3, 0);
	diagnoses__free(&diagnoses);
}

static void test_advice(void **state)
{
	struct result_factor factors[] = {
	    {.name = "suspension", .stage = 1, .major = true, .impact_seconds = 3},
	    {.name = "preempted", .stage = 2, .major = true, .impact_seconds = 2.9},
	};
	struct result_interferer hog = {.comm = "hog", .pid = 123, .seconds = 2.9};
	int32_t ranks[] = {0, 1, 2, 7};
	struct result_variance variance = {
	    .ranks = ranks,
	    .rank_count = 4,
	    .diagnosis = {.factors = factors, .factor_count = 2, .interferers = &hog, .interferer_count = 1},
	};
	struct result_thread threads[] = {{7, 1, 70, 71}, {7, 2, 70, 72}, {7, 5, 70, 75}};
	char advice[256], who[128];

	(void)state;
	advice__who(&variance, false, who, sizeof(who));
	variance.who = who;
	advice__write(&variance, false, false, advice, sizeof(advice));
	assert_string_equal(advice, "hog (pid 123) ran 2.9 s on the CPU of ranks 0-2,7: move or stop it, or bind ranks "
				    "and daemons apart.");
	hog.seconds = 0.028;
	advice__write(&variance, false, false, advice, sizeof(advice));
	assert_non_null(strstr(advice, "hog (pid 123) ran 28 ms on"));
	variance.effect_of = 4;
	advice__write(&variance, true, false, advice, sizeof(advice));
	assert_non_null(strstr(advice, "variance 4"));
	for (int node = 0; node < FACTOR_NODES; node++) {
		factors[0].name = factor_infos[node].name;
		variance.diagnosis.factor_count = 1;
		advice__write(&variance, false, false, advice, sizeof(advice));
		assert_true(strlen(advice) > 20 && strlen(advice) < sizeof(advice) - 1);
	}
	factors[0].name = "throttled";
	variance.diagnosis.limit = "cpu.max 50000 100000";
	variance.diagnosis.limit_cgroup = "/job";
	advice__write(&variance, false, false, advice, sizeof(advice));
	assert_string_equal(advice,
			    "ranks 0-2,7: cgroup /job used up its CPU quota (cpu.max 50000 100000); raise it or lower "
			    "the number of threads that run under it.");
	variance.ranks = &ranks[3];
	variance.rank_count = 1;
	variance.threads = threads;
	variance.thread_count = 3;
	advice__who(&variance, true, who, sizeof(who));
	assert_string_equal(who, "threads 1-2,5 of rank 7");
	advice__who(&variance, false, who, sizeof(who));
	assert_string_equal(who, "rank 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tree),
	    cmocka_unit_test(test_partition),
	    cmocka_unit_test(test_partition_of_the_system),
	    cmocka_unit_test(test_frequency),
	    cmocka_unit_test(test_interrupts_are_requested),
	    cmocka_unit_test(test_contribution),
	    cmocka_unit_test(test_contribution_of_calls),
	    cmocka_unit_test(test_contribution_without_normals),
	    cmocka_unit_test(test_negative_shares),
	    cmocka_unit_test(test_a_part_above_its_whole),
	    cmocka_unit_test(test_interferers),
	    cmocka_unit_test(test_interferer_place),
	    cmocka_unit_test(test_many_interferers),
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_many_cases),
	    cmocka_unit_test(test_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
