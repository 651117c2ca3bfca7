// SPDX-License-Identifier: GPL-2.0-or-later
/* The heat maps that an analysis retains are what its windows have emitted, revisions included. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "detect/heatmap.h"
#include "sim.h"

#define RANKS 3
#define SECONDS 150 /* more than what is retained */
#define BINS_PER_S 5
#define BINS (SECONDS * BINS_PER_S)

static double emitted[RANKS][BINS]; /* the latest of each cell */

static void add(struct analysis *analysis, uint32_t rank, double t, double seconds)
{
	struct vapro_bundle bundle = {.thread = rank, .n = 1, .start_ns = SIM_BEGIN_NS + (uint64_t)(t * 1e9)};

	bundle.sum_ns = bundle.min_ns = bundle.max_ns = (uint64_t)(seconds * 1e9);
	bundle.end_ns = bundle.start_ns + bundle.sum_ns;
	bundle.magnitude_min[VAPRO_INSTRUCTIONS] = bundle.magnitude_max[VAPRO_INSTRUCTIONS] = 1e6;
	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

/* Notes the cells of a map, or compares them with those that were noted. Returns how many have a value. */
static unsigned cells_of(const struct result_heatmap *map, bool compare)
{
	uint64_t first = (map->begin_ns - SIM_BEGIN_NS) / VAPRO_BIN_NS;
	unsigned valid = 0;

	assert_int_equal(map->class, VAPRO_COMPUTATION);
	for (uint32_t row = 0; row < map->row_count; row++) {
		const struct result_row *line = &map->rows[row];

		for (uint32_t bin = 0; bin < map->bins; bin++) {
			double *cell = &emitted[line->rank][first + bin];

			assert_in_range(line->rank, 0, RANKS - 1);
			assert_in_range(first + bin, 0, BINS - 1);
			valid += !isnan(line->values[bin]);
			if (!compare)
				*cell = line->values[bin];
			else if (isnan(*cell) || isnan(line->values[bin]))
				assert_true(isnan(*cell) && isnan(line->values[bin]));
			else
				assert_true(fabs(*cell - line->values[bin]) < 0.0051);
		}
	}
	return valid;
}

/* Rank 1 is slow for a while; rank 2 comes later. A first window cannot know yet what is slow. */
static void test_maps(void **state)
{
	static const struct vapro_state about = {
	    0, VAPRO_COMPUTATION, "a@b+0x1", "a@b+0x2", "after=MPI_Recv before=MPI_Send", NULL, NULL, NULL, NULL, NULL};
	const struct job_result *results;
	struct vapro_config config;
	struct analysis *analysis;
	unsigned valid = 0;
	uint32_t count;

	(void)state;
	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_INSTRUCTIONS);
	assert_non_null(analysis);
	assert_int_equal(analysis__emitted(analysis, &results, &count), 0);
	assert_int_equal(count, 0);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(analysis__add_thread(analysis, &(struct vapro_thread){i, (int32_t)i, 0, RANKS, i + 1,
										       i + 1, "j", "n", 7}),
				 0);
	assert_int_equal(analysis__add_state(analysis, &about), 0);
	for (int rank = 0; rank < RANKS; rank++) {
		for (int bin = 0; bin < BINS; bin++)
			emitted[rank][bin] = NAN;
	}
	for (int begin = 0; begin < SECONDS; begin += 15) {
		for (double t = begin; t < begin + 15; t += 0.02) {
			for (uint32_t rank = 0; rank < RANKS; rank++) {
				if (rank < 2 || t > 70)
					add(analysis, rank, t, rank == 1 && t > 60 && t < 68 ? 0.019 : 0.01);
			}
		}
		assert_int_equal(analysis__end_window(analysis, SIM_BEGIN_NS + (uint64_t)begin * 1000000000,
						      SIM_BEGIN_NS + (uint64_t)(begin + 15) * 1000000000, false,
						      &results, &count),
				 0);
		assert_int_equal(count, 1);
		for (uint32_t i = 0; i < results->heatmap_count; i++)
			cells_of(&results->heatmaps[i], false);
	}
	assert_int_equal(analysis__emitted(analysis, &results, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(results->job, "j");
	assert_int_equal(results->user, 7);
	assert_int_equal(results->heatmap_count, 1);
	assert_in_range(results->heatmaps->bins, 300, HEATMAP_SPAN);
	assert_int_equal(results->heatmaps->row_count, RANKS);
	valid = cells_of(results->heatmaps, true);
	assert_in_range(valid, 2 * 300, RANKS * HEATMAP_SPAN);
	/* what is compared has a slow part */
	assert_true(emitted[1][62 * BINS_PER_S] < 0.7);
	assert_true(emitted[0][62 * BINS_PER_S] > 0.9);
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_maps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
