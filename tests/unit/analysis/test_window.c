// SPDX-License-Identifier: GPL-2.0-or-later
/* The computing time of ranks in a view: fragments that cross its borders count with the part within. */
#include "analysis/window.h"
#include "learned.h"

#define VIEW (FIRST + 10)
#define END (FIRST + 20)

static struct bundle_rec entered(uint32_t rank, double from, double to, unsigned flags)
{
	struct vapro_bundle b = made(rank, 0, 1, (to - from) * VAPRO_BIN_NS);
	struct bundle_rec rec;

	b.start_ns = FIRST * VAPRO_BIN_NS + (uint64_t)(from * VAPRO_BIN_NS);
	b.end_ns = b.start_ns + b.sum_ns;
	b.flags = flags;
	assert_int_equal(series__add(&book, (struct series_of){b.thread, b.state}, &b, b.factor, &rec), 0);
	return rec;
}

/*
 * Ranks compute all the time, in fragments of five bins that end at different times, and so compute alike: a fragment
 * across a border of the view gives no rank more time than another.
 */
static void test_computing(void **state)
{
	static const double phases[] = {0, 0.1, 2.5, 4.9};
	struct analysis_job job = {0};
	struct analysis_context context;

	(void)state;
	for (int unfinished = 0; unfinished < 2; unfinished++) {
		struct bundle_rec rec[64], open[4];

		begin(4, VAPRO_BY_ARGUMENTS, VAPRO_COMPUTATION, NULL);
		job = (struct analysis_job){.recs = rec, .open = open};
		for (uint32_t rank = 0; rank < 4; rank++) {
			for (double at = phases[rank]; at < 20; at += 5) {
				bool late = at + 5 > 20 && unfinished;

				if (late)
					open[job.open_count++] = entered(rank, at, 20, VAPRO_BUNDLE_OPEN);
				else
					rec[job.rec_count++] = entered(rank, at, at + 5, 0);
			}
		}
		context = (struct analysis_context){.config = config, .stg = stg, .series = book};
		assert_int_equal(analysis_window__learn(&context, &job, VIEW, END), 0);
		book = context.series;
		for (uint32_t row = 0; row < 4; row++)
			assert_near(stg__job(stg, 0)->rows[row].computing_ns / VAPRO_BIN_NS, 10, 1e-3);
		finish();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_computing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
