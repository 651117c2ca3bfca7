// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work that a rank repeats a few times or never, with counts: VAPRO (PPoPP'22) section 3.5 compares a fragment with all
 * of its cluster, whichever rank they are of. EP (one computation a rank), HPL (work that shrinks), and iterations of
 * seconds, as in tables 1 and figure 15 there, made by programs whose ranks meet in a call after each computation.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "near.h"
#include "sim.h"

#define UTC 1800000000000000000ULL /* a bin border */
#define KERNELS 3
#define TRANSFER_NS 2e6

/* A program of one or three kernels in a loop; times in seconds. */
struct program {
	uint32_t ranks, per_socket, per_host;
	int iterations, kernels;
	double longest;	      /* first iteration, all kernels */
	bool shrinks;	      /* as HPL's matrix */
	double jitter;	      /* standard deviation of a computation's time */
	uint32_t first, last; /* slow ranks */
	double ratio;	      /* of these; 1: nothing is wrong */
	int slow_from;	      /* iteration */
};

/* What the analysis found: its computation variance of most loss, as last reported, and sums over the run. */
struct found {
	uint32_t variances, alarms, first_rank, last_rank;
	int waits[64]; /* by id, as last reported: -1 is the effect of another variance, 1 has no cause */
	double lost, ratio, begin, end, first_alarm, small_s;
	double rank_seconds, covered_seconds;
	/* the same of the time for which ranks were there, by class, and of the profiles of ranks */
	double class_seconds[VAPRO_CLASSES], profile_seconds[VAPRO_CLASSES], there_seconds, profiles_there;
	uint32_t profiles;
};

static enum vapro_workload_source source = VAPRO_BY_INSTRUCTIONS;
static struct vapro_bundle *bundles;
static size_t bundle_count;

static void add(uint32_t rank, uint32_t state, double begin, double end, enum vapro_magnitude magnitude, double size)
{
	struct vapro_bundle *bundle;

	if (!(bundle_count & (bundle_count - 1))) /* room for twice as many */
		bundles = realloc(bundles, (bundle_count ? 2 * bundle_count : 1) * sizeof(*bundles));
	bundle = &bundles[bundle_count++];
	*bundle = (struct vapro_bundle){.thread = rank, .state = state, .n = 1};
	bundle->start_ns = UTC + (uint64_t)(begin * 1e9);
	bundle->end_ns = UTC + (uint64_t)(end * 1e9);
	bundle->sum_ns = bundle->min_ns = bundle->max_ns = bundle->end_ns - bundle->start_ns;
	bundle->magnitude_min[magnitude] = bundle->magnitude_max[magnitude] = size;
}

/* Makes the fragments of a program. Returns the seconds that its slow ranks lost; *end: when it ended. */
static double make(const struct program *program, uint64_t seed, double *end)
{
	static const double share[KERNELS] = {.86, .10, .04};
	double now = 0, lost = 0;

	bundle_count = 0;
	for (int k = 0; k < program->iterations; k++) {
		double left = 1 - (double)k / program->iterations;
		double size = program->longest * (program->shrinks ? left * left : 1);

		for (int part = 0; part < program->kernels; part++) {
			double work = size * (program->kernels == 1 ? 1 : share[part]), latest = 0;
			double took[64];

			for (uint32_t r = 0; r < program->ranks; r++) {
				bool slow = r >= program->first && r <= program->last && k >= program->slow_from;

				took[r] = work * (1 + program->jitter * sim_gauss(&seed));
				lost += slow ? took[r] * (program->ratio - 1) : 0;
				took[r] *= slow ? program->ratio : 1;
				latest = fmax(latest, took[r]);
			}
			for (uint32_t r = 0; r < program->ranks; r++) {
				add(r, (uint32_t)part, now, now + took[r], VAPRO_INSTRUCTIONS,
				    work * 3e9 * (1 + 0.001 * sim_random(&seed)));
				add(r, KERNELS + (uint32_t)part, now + took[r], now + latest + TRANSFER_NS / 1e9,
				    VAPRO_BYTES, round(1e6 * left) + 8);
			}
			now += latest + TRANSFER_NS / 1e9;
		}
	}
	*end = now;
	return lost;
}

static int compare_ends(const void *a, const void *b)
{
	const struct vapro_bundle *left = a, *right = b;

	if (left->end_ns != right->end_ns)
		return left->end_ns < right->end_ns ? -1 : 1;
	return (left->thread > right->thread) - (left->thread < right->thread);
}

static struct analysis *new_analysis(const struct program *program, double end)
{
	static const char *kernels[] = {"a@1+1", "a@1+2", "a@1+3"};
	struct analysis *analysis;
	struct vapro_config config;

	sim_config(&config);
	analysis = analysis__new(&config, source);
	for (uint32_t i = 0; i < program->ranks; i++) {
		char host[8];
		struct vapro_thread thread = {
		    .id = i, .rank = (int32_t)i, .pid = i + 1, .tid = i + 1, .job = "j", .world_size = program->ranks};
		struct vapro_place place = {.thread = i, .cpu = (int32_t)i, .socket = -1, .numa = -1};

		snprintf(host, sizeof(host), "n%u", program->per_host ? i / program->per_host : 0);
		thread.host = host;
		if (program->per_socket)
			place.socket = (int32_t)(i / program->per_socket % 2);
		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, UTC, UTC + (uint64_t)(end * 1e9)), 0);
		assert_int_equal(analysis__place(analysis, &place), 0);
	}
	for (uint32_t i = 0; i < 2 * KERNELS; i++) {
		struct vapro_state state = {.id = i, .class = VAPRO_COMPUTATION, .to = kernels[i % KERNELS]};

		state.from = kernels[(i + KERNELS - 1) % KERNELS];
		state.labels = state.common = "";
		if (i >= KERNELS) {
			state.class = VAPRO_COMMUNICATION;
			state.from = NULL;
			state.labels = state.common = "comm=0 function=MPI_Allreduce";
		}
		assert_int_equal(analysis__add_state(analysis, &state), 0);
	}
	return analysis;
}

static void read_variance(struct found *found, const struct result_variance *variance, double window_end)
{
	found->variances++;
	if (variance->class == VAPRO_COMMUNICATION)
		found->waits[variance->id % 64] = variance->effect_of ? -1 : 1;
	if (variance->class != VAPRO_COMPUTATION || variance->lost_seconds < found->lost)
		return;
	found->alarms += variance->alarm;
	if (variance->alarm && !found->first_alarm)
		found->first_alarm = window_end;
	found->lost = variance->lost_seconds;
	found->ratio = variance->ratio_slow;
	found->first_rank = (uint32_t)variance->ranks[0];
	found->last_rank = (uint32_t)variance->ranks[variance->rank_count - 1];
	found->begin = (double)(variance->begin_ns - UTC) / 1e9;
	found->end = (double)(variance->end_ns - UTC) / 1e9;
}

/* Analyses the fragments of a program in windows, as a reader of a file does. */
/* Adds the coverage of a window, and the profiles of the ranks, which come with the last one. */
static void read_coverage(struct found *found, const struct job_result *result, double there, bool last)
{
	found->there_seconds += there;
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		found->class_seconds[class] += there * result->coverage[class];
	found->class_seconds[VAPRO_COMPUTATION] += result->covered_before_s;
	assert_true(last || !result->profile_count);
	for (uint32_t i = 0; i < result->profile_count; i++) {
		const struct result_rank_profile *profile = &result->profiles[i];
		double parts = 0;

		assert_int_equal(profile->rank, (int32_t)i);
		found->profiles++;
		found->profiles_there += profile->seconds;
		for (uint32_t k = 0; k < profile->part_count; k++) {
			const struct result_profile_part *part = &profile->parts[k];

			parts += part->seconds;
			found->profile_seconds[part->class] += part->covered_seconds;
			assert_true(part->covered_seconds <= part->seconds + 1e-9);
			assert_true(part->waiting_seconds <= part->seconds + 1e-9);
			assert_true((part->class == VAPRO_COMPUTATION) == !part->function);
		}
		assert_true(parts <= profile->seconds + 1e-6);
	}
}

/* The profiles of the ranks say of each class what the coverage of all windows says. */
static void check_profiles(const struct found *found, uint32_t ranks)
{
	assert_int_equal(found->profiles, ranks);
	assert_float_equal(found->profiles_there, found->there_seconds, 1e-6 * found->there_seconds);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		assert_float_equal(found->profile_seconds[class], found->class_seconds[class],
				   1e-6 * found->there_seconds);
}

static struct found analyse(const struct program *program, double end)
{
	struct analysis *analysis = new_analysis(program, end);
	uint64_t last_ns = UTC + ((uint64_t)(end * 5) + 1) * VAPRO_BIN_NS, begin_ns = UTC, end_ns = UTC + 15000000000;
	struct found found = {0};
	size_t next = 0;

	qsort(bundles, bundle_count, sizeof(*bundles), compare_ends);
	for (bool last = false; !last; begin_ns = end_ns, end_ns += 10000000000) {
		const struct job_result *results;
		uint32_t count;

		last = end_ns >= last_ns;
		end_ns = last ? last_ns : end_ns;
		for (; next < bundle_count && bundles[next].end_ns < end_ns; next++)
			assert_int_equal(analysis__add_bundle(analysis, &bundles[next]), 0);
		assert_int_equal(analysis__end_window(analysis, begin_ns, end_ns, last, &results, &count), 0);
		for (uint32_t i = 0; i < count; i++) {
			double wall = (double)(end_ns - begin_ns) / 1e9 * program->ranks;

			found.rank_seconds += wall;
			read_coverage(&found, &results[i],
				      (fmin((double)(end_ns - UTC) / 1e9, end) - (double)(begin_ns - UTC) / 1e9) *
					  program->ranks,
				      last);
			found.covered_seconds += wall * results[i].coverage_total + results[i].covered_before_s;
			found.small_s += results[i].small_seconds;
			for (uint32_t v = 0; v < results[i].variance_count; v++)
				read_variance(&found, &results[i].variances[v], (double)(end_ns - UTC) / 1e9);
		}
	}
	check_profiles(&found, program->ranks);
	analysis__free(analysis);
	free(bundles);
	bundles = NULL;
	bundle_count = 0;
	return found;
}

static struct found run(const struct program *program, uint64_t seed, double *lost)
{
	double end;

	*lost = make(program, seed, &end);
	return analyse(program, end);
}

/* One rank of EP is slow in its only computation of a minute, or in each of six pieces: its peers wait. */
static void test_once(void **state)
{
	(void)state;
	for (int pieces = 1; pieces <= 6; pieces += 5) {
		struct program ep = {.ranks = 64,
				     .per_host = 16,
				     .iterations = pieces,
				     .kernels = 1,
				     .longest = 60.0 / pieces,
				     .jitter = 0.004,
				     .first = 3,
				     .last = 3,
				     .ratio = 1.4};
		double lost;
		struct found found = run(&ep, 11, &lost);

		assert_true(found.alarms);
		assert_int_equal(found.first_rank, 3);
		assert_int_equal(found.last_rank, 3);
		assert_near(found.ratio, 1.4, 0.02 * 1.4);
		assert_near(found.lost, lost, 0.05 * lost);
		assert_near(found.begin, 0, 0.4);
		for (int id = 0; id < 64; id++)
			assert_true(found.waits[id] <= 0);
		assert_true(found.covered_seconds >= 0.7 * found.rank_seconds);
	}
}

/* The work of HPL shrinks with each iteration; socket 1 is slow from the start, or from the middle on. */
static void test_shrinking(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		bool many = i == 2;
		struct program hpl = {.ranks = many ? 12 : 36,
				      .per_socket = many ? 6 : 18,
				      .iterations = many ? 1000 : 208,
				      .kernels = KERNELS,
				      .longest = many ? 0.24 : 1.15,
				      .shrinks = true,
				      .jitter = 0.01,
				      .first = many ? 6 : 18,
				      .last = many ? 11 : 35,
				      .ratio = 1.222,
				      .slow_from = i == 1 ? 60 : 0};
		double lost;
		struct found found = run(&hpl, 13, &lost);

		assert_true(found.alarms);
		assert_int_equal(found.first_rank, hpl.first);
		assert_int_equal(found.last_rank, hpl.last);
		assert_near(found.ratio, 1.222, 0.02 * 1.222);
		assert_near(found.lost, lost, 0.1 * lost);
		assert_true(found.first_alarm <= 15 || i == 1);
		assert_true(found.covered_seconds >= 0.7 * found.rank_seconds);
	}
}

/* With nothing wrong, and a jitter of 2 and 6 %, no region of HPL is slow. */
static void test_shrinking_undisturbed(void **state)
{
	static const double jitter[] = {0.02, 0.06};

	(void)state;
	for (size_t i = 0; i < sizeof(jitter) / sizeof(jitter[0]); i++) {
		struct program hpl = {.ranks = 36,
				      .per_socket = 18,
				      .iterations = 208,
				      .kernels = KERNELS,
				      .longest = 1.15,
				      .shrinks = true,
				      .jitter = jitter[i],
				      .ratio = 1};
		double lost;

		assert_int_equal(run(&hpl, 17 + i, &lost).variances, 0);
	}
}

/* Iterations of two seconds: the slow host is an alarm as soon as the first window ends. */
static void test_long_iterations(void **state)
{
	struct program slow = {.ranks = 16,
			       .per_host = 4,
			       .iterations = 24,
			       .kernels = 1,
			       .longest = 2,
			       .jitter = 0.005,
			       .first = 4,
			       .last = 7,
			       .ratio = 1.3};
	double lost;
	struct found found = run(&slow, 19, &lost);

	(void)state;
	assert_true(found.first_alarm > 0 && found.first_alarm <= 20);
	assert_int_equal(found.first_rank, 4);
	assert_int_equal(found.last_rank, 7);
	assert_near(found.ratio, 1.3, 0.02 * 1.3);
	assert_near(found.lost, lost, 0.1 * lost);
	assert_near(found.small_s, 0, 1e-9);
}

/* The waiting of all ranks but one, whose work is not known: it is known who entered last. */
static void assert_entered_last(const struct job_result *result, int32_t rank, double late_s)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < result->variance_count; i++) {
		const struct result_variance *variance = &result->variances[i];

		if (variance->class != VAPRO_COMMUNICATION)
			continue;
		found++;
		assert_int_equal(variance->culprit_count, 0);
		assert_int_equal(variance->entered_last.rank_count, 1);
		assert_int_equal(variance->entered_last.ranks[0], rank);
		assert_int_equal(variance->entered_last.operations, 1);
		assert_int_equal(variance->entered_last.of, 1);
		assert_near(variance->entered_last.late_seconds, late_s, 0.1 * late_s);
		assert_non_null(strstr(variance->diagnosis.verdict, "rank 5 entered last in 1 of 1 operation, "));
	}
	assert_true(found);
}

/* Without counts a computation that each rank has once is a finding, in one record, and no waiting for it is. */
static void test_rare_state(void **state)
{
	struct program once = {.ranks = 8,
			       .iterations = 1,
			       .kernels = 1,
			       .longest = 9,
			       .jitter = 0.01,
			       .first = 5,
			       .last = 5,
			       .ratio = 1.2};
	const struct job_result *results;
	struct analysis *analysis;
	double end;
	uint32_t count;

	(void)state;
	make(&once, 23, &end);
	source = VAPRO_BY_ARGUMENTS;
	analysis = new_analysis(&once, end);
	source = VAPRO_BY_INSTRUCTIONS;
	qsort(bundles, bundle_count, sizeof(*bundles), compare_ends);
	for (size_t i = 0; i < bundle_count; i++)
		assert_int_equal(analysis__add_bundle(analysis, &bundles[i]), 0);
	assert_int_equal(analysis__end_window(analysis, UTC, UTC + 15000000000, true, &results, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(results[0].rare_count, 1);
	assert_int_equal(results[0].rares[0].rank, 5);
	assert_int_equal(results[0].rares[0].rank_count, 8);
	assert_int_equal(results[0].rares[0].ranks[7], 7);
	assert_int_equal(results[0].rares[0].members, 8);
	assert_int_equal(results[0].rares[0].state->class, VAPRO_COMPUTATION);
	assert_entered_last(&results[0], 5, 0.2 * once.longest);
	analysis__free(analysis);
	free(bundles);
	bundles = NULL;
	bundle_count = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_once),
	    cmocka_unit_test(test_shrinking),
	    cmocka_unit_test(test_shrinking_undisturbed),
	    cmocka_unit_test(test_long_iterations),
	    cmocka_unit_test(test_rare_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
