// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A metric of which more is better (VAPRO (PPoPP'22) section 3.4): with its opposite, the best fragment of a
 * workload is the seed of its cluster, and slow fragments are measured by that seed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "config/rules.h"
#include "sim.h"

#define RANKS 4
#define SLOW 1
#define HITS 1e6

static struct vapro_config config;

static struct rules rules;

static void name_events(const char *workload)
{
	static const char *const named[] = {"hits", NULL};
	char err[256];

	sim_config(&config);
	snprintf(config.workload, sizeof(config.workload), "%s", workload);
	assert_int_equal(rules__parse(&rules, workload, "", err, sizeof(err)), 0);
	rules__finalize(&rules, named);
}

struct found {
	double lost, truth, coverage;
	char major[32];
	int32_t rank;
	int variances;
	uint32_t clusters;
};

/*
 * Ranks hit their cache with every other one of 2 000 000 instructions, give or take 0.3 %. From 12 to 18 s rank 1
 * shares its cache with another task: it hits less, by `least` to `most` of that, and waits for memory instead.
 */
static void go(double least, double most, bool merged, struct found *found)
{
	static const struct vapro_state about = {
	    0, VAPRO_COMPUTATION, "a@b+0x1", "a@b+0x2", "after=MPI_Recv before=MPI_Send", NULL, NULL, NULL, NULL, NULL};
	struct analysis *analysis = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	const struct job_result *results;
	uint64_t seed = 3;
	uint32_t count;

	memset(found, 0, sizeof(*found));
	assert_non_null(analysis);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(analysis__add_thread(analysis, &(struct vapro_thread){i, (int32_t)i, 0, RANKS, i + 1,
										       i + 1, "j", "n", 0}),
				 0);
	assert_int_equal(analysis__add_state(analysis, &about), 0);
	for (double begin = 0, end = 15; begin < 30; begin = end, end += 15) {
		for (double t = begin; t < end - 0.05; t += 0.02) {
			for (uint32_t rank = 0; rank < RANKS; rank++) {
				bool slow = rank == SLOW && t >= 12 && t < 18;
				double missed = slow ? least + (most - least) * sim_random(&seed) : 0;
				double hits = HITS * (1 + 0.006 * (sim_random(&seed) - 0.5)) * (1 - missed);
				double spread = merged ? 0.001 : 0;
				uint32_t n = merged ? 2 : 1;
				struct vapro_bundle bundle = {.thread = rank, .n = n};
				double ns = 4e6 + (slow ? 4e6 : 0);

				bundle.start_ns = SIM_BEGIN_NS + (uint64_t)(t * 1e9);
				bundle.min_ns = bundle.max_ns = (uint64_t)ns;
				bundle.sum_ns = n * (uint64_t)ns;
				bundle.end_ns = bundle.start_ns + bundle.sum_ns;
				bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] =
				    2e6;
				bundle.magnitude_min[VAPRO_NAMED] = hits * (1 - spread);
				bundle.magnitude_max[VAPRO_NAMED] = hits * (1 + spread);
				bundle.factor[VAPRO_RETIRING] = n * 2e6;
				bundle.factor[VAPRO_BACKEND] = n * (ns - 2e6);
				found->truth += slow ? n * 4e-3 : 0;
				rules__apply(&rules, &bundle);
				assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
			}
		}
		assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)(begin * 1e9),
						      SIM_BEGIN_NS + (uint64_t)(end * 1e9), end >= 30, &results,
						      &count),
				 0);
		assert_int_equal(count, 1);
		found->clusters = results->clusters.clusters;
		found->coverage = results->coverage[VAPRO_COMPUTATION] * (end - begin) / 15;
		for (uint32_t i = 0; i < results->variance_count; i++) {
			const struct result_variance *variance = &results->variances[i];

			found->variances += variance->state == VAPRO_REGION_CLOSED;
			found->lost = variance->lost_seconds;
			found->rank = variance->rank_count == 1 ? variance->ranks[0] : -1;
			for (uint32_t k = 0; k < variance->diagnosis.factor_count; k++) {
				const struct result_factor *factor = &variance->diagnosis.factors[k];

				if (factor->major)
					snprintf(found->major, sizeof(found->major), "%s", factor->name);
				assert_true(!factor->major || factor->contribution > 0.97);
			}
		}
	}
	analysis__free(analysis);
}

static void test_found(void **state)
{
	struct found found;

	(void)state;
	name_events("instructions,1/hits");
	for (int merged = 0; merged < 2; merged++) {
		go(0.02, 0.04, merged, &found);
		assert_int_equal(found.variances, 1);
		assert_int_equal(found.rank, SLOW);
		assert_string_equal(found.major, "backend");
		print_message("larger is better: lost %.3f s of %.3f s\n", found.lost, found.truth);
		assert_true(fabs(found.lost / found.truth - 1) < 0.03);
		assert_int_equal(found.clusters, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
