// SPDX-License-Identifier: GPL-2.0-or-later
/* Slowdowns that are within the scatter of the work. */
#include "detect/chance.h"
#include "painted.h"

#define USUAL_NS 1e6
#define RANKS 4
#define POINTS 3000
#define OTHERS_N 3000.0 /* fragments of each other rank */

static uint32_t rows[RANKS];
static struct variance variance;
static struct evidence_input input;

static void begin(uint64_t begin_bin, uint64_t end_bin)
{
	other_job(RANKS, 2);
	variance = (struct variance){
	    .begin = FIRST + begin_bin, .end = FIRST + end_bin, .rows = rows, .row_count = 1, .matched = true};
	input = (struct evidence_input){
	    .config = &config, .map = &map, .job = job, .source = VAPRO_BY_INSTRUCTIONS, .end = FIRST + 50};
}

/* What a state's fragments take, over its reference, as a function of the share of fragments that take less. */
typedef double (*scatter)(double below);

static double tight(double below)
{
	return 0.98 + 0.04 * below;
}

/* One fragment in fifty has a tail of Pareto's, of exponent 1.6. */
static double pareto(double below)
{
	return below < 0.98 ? tight(below) : pow(50 * (1 - below), -1 / 1.6);
}

/* One fragment in a thousand is a stall of 45 times its duration. */
static double stalls(double below)
{
	return below < 0.999 ? tight(below) : 45;
}

/* Log-normal, of sigma .35. */
static double heavy(double below)
{
	return exp(0.35 * (log(below / (1 - below)) / 1.702));
}

/* Whether `slow` of n fragments of so many rows, `times` as long as their reference, beside usual ones, are chance. */
static bool explained(scatter scatter, double others_n, double n, double slow, double times, int slow_rows)
{
	struct series series[RANKS];
	struct workload workload = {.series = 0, .next = SERIES_NONE, .class = VAPRO_COMPUTATION};
	struct series_book book = {.series = series, .count = RANKS, .workloads = &workload, .workload_count = 1};
	struct tally_series entries[RANKS];
	bool is;

	for (uint32_t i = 0; i < RANKS; i++) {
		series[i] = (struct series){.row = i,
					    .next = i + 1 < RANKS ? i + 1 : SERIES_NONE,
					    .class = VAPRO_COMPUTATION,
					    .reference_ns = USUAL_NS};
		/* no two of all ranks' fragments take as long */
		for (int k = 0; i && k < POINTS; k++)
			assert_int_equal(histogram__add(&series[i].cpu,
							scatter((k + (i - 0.5) / (RANKS - 1)) / POINTS) * USUAL_NS,
							others_n / POINTS),
					 0);
		rows[i] = i;
		entries[i] = (struct tally_series){
		    .series = i,
		    .n = n,
		    .dur = (n - slow + slow * times) * USUAL_NS,
		    .lost = slow * (times - 1) * USUAL_NS,
		    .longest = times * USUAL_NS,
		};
	}
	/* what the slow row itself takes does not count */
	assert_int_equal(histogram__add(&series[0].cpu, 100 * USUAL_NS, 1000), 0);
	variance.row_count = (size_t)slow_rows;
	variance.total.series = entries;
	variance.total.series_count = (size_t)slow_rows;
	input.series = &book;
	is = chance__explains(&variance, &input, VAPRO_COMPUTATION);
	assert_false(chance__explains(&variance, &input, VAPRO_IO));
	variance.total = (struct tally){0};
	for (int i = 0; i < RANKS; i++)
		histogram__clear(&series[i].cpu);
	return is;
}

static void test_one_long(void **state)
{
	(void)state;
	begin(10, 40);
	/* three ranks of 3,000 fragments have some 5 of 12 times their reference: one or two together are chance */
	assert_true(explained(pareto, OTHERS_N, 9, 1, 12, 1));
	assert_true(explained(pareto, OTHERS_N, 9, 1, 40, 1));
	assert_true(explained(pareto, OTHERS_N, 9, 2, 12, 1));
	assert_false(explained(pareto, OTHERS_N, 9, 7, 12, 1));
	/* where no fragment takes long, one is no chance */
	assert_false(explained(tight, OTHERS_N, 9, 1, 12, 1));
	assert_false(explained(tight, OTHERS_N, 9, 1, 1.4, 1));
	/* others have stalls, too, but nothing in between */
	assert_false(explained(stalls, OTHERS_N, 9, 1, 45, 1));
}

static void test_scatter(void **state)
{
	(void)state;
	begin(10, 40);
	assert_true(explained(tight, OTHERS_N, 9, 9, 1.002, 1));
	assert_false(explained(tight, OTHERS_N, 9, 9, 1.05, 1));
	/* the mean of 16 scatters by .1 around 1.06, upwards by more */
	assert_true(explained(heavy, OTHERS_N, 16, 16, 1.4, 1));
	assert_false(explained(heavy, OTHERS_N, 16, 16, 2.2, 1));
	/* where hardly any are of other ranks, those of the slow rank count, too */
	assert_true(explained(tight, 5, 9, 9, 1.4, 1));
}

/* Ranks that are slow together may have one reason: three are one witness. */
static void test_one_witness(void **state)
{
	(void)state;
	begin(10, 40);
	assert_true(explained(heavy, OTHERS_N, 16, 16, 1.5, 1));
	assert_true(explained(heavy, OTHERS_N, 16, 16, 1.5, 3));
	assert_false(explained(heavy, OTHERS_N, 100, 100, 1.5, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_one_long),
	    TEST(test_scatter),
	    TEST(test_one_witness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
