// SPDX-License-Identifier: GPL-2.0-or-later
/* Waiting is divided among the losses that made the last ranks late, and never more of it than the others can wait. */
#include "detect/caused.h"
#include "painted.h"

#define RANKS 4
#define PARTS_MOST 8

static struct variance items[3];
static struct variance_book book;
static struct series series[RANKS];
static struct series_book of_rows;
static struct part part_items[PARTS_MOST];
static struct bundle_rec recs[PARTS_MOST];
static struct parts parts;

static int begin(void **state)
{
	int ret = setup(state);

	memset(items, 0, sizeof(items));
	memset(series, 0, sizeof(series));
	book = (struct variance_book){.variances = items};
	for (uint32_t row = 0; row < RANKS; row++) {
		series[row].row = row;
		series[row].class = VAPRO_COMPUTATION;
		((struct stg_row *)job->rows)[row].from_ns = (uint64_t)(FIRST * BIN);
	}
	of_rows = (struct series_book){.series = series, .count = RANKS};
	parts = (struct parts){.items = part_items, .view = FIRST, .retire = FIRST, .end = FIRST + 50};
	return ret;
}

#define CAUSED(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

/* Adds a variance of the bins [from, to), from the map's first one. */
static struct variance *add(uint64_t from, uint64_t to)
{
	struct variance *variance = &items[book.count++];

	*variance = (struct variance){.id = (uint32_t)book.count,
				      .begin = FIRST + from,
				      .end = FIRST + to,
				      .matched = true,
				      .class = VAPRO_COMPUTATION};
	return variance;
}

/* A fragment of a row that fills a bin and belongs to a variance: it lost so much, all to this factor. */
static void lose(const struct variance *variance, uint32_t row, int bin, double ns, enum vapro_factor factor)
{
	struct bundle_rec *rec = &recs[parts.count];

	assert_true(parts.count < PARTS_MOST);
	*rec = fragment(bin, bin + 0.999, 0.999 * BIN - ns, factor == VAPRO_PREEMPTED ? ns : 0);
	((float *)rec->factor)[factor] = (float)ns;
	rec->series = row;
	heatmap__add(&map, rec, row, VAPRO_COMPUTATION, 0, UINT64_MAX);
	part_items[parts.count++] = (struct part){.rec = rec,
						  .variance = variance->id,
						  .share = 1,
						  .begin = FIRST + (uint64_t)bin,
						  .end = FIRST + (uint64_t)bin + 1};
}

static void late(uint32_t row, int bin, double ns)
{
	assert_int_equal(heatmap__add_wait(&map, HEATMAP_LATE, row, FIRST + (uint64_t)bin, (float)ns), 0);
}

static void divide(uint32_t reach)
{
	assert_int_equal(caused__divide(&book, &map, job, &of_rows, &parts, reach), 0);
}

static double caused(const struct variance *variance, enum tally_part part)
{
	return variance->staying.caused[part] + variance->retiring.caused[part];
}

/* Three ranks wait for one: all of it is its cause's, and no more than they can wait. */
static void test_one_cause(void **state)
{
	struct variance *variance = add(10, 11);

	(void)state;
	lose(variance, 0, 10, 40e6, VAPRO_PREEMPTED);
	for (uint32_t row = 1; row < RANKS; row++)
		late(row, 10, 40e6);
	divide(0);
	assert_near(caused(variance, TALLY_PREEMPTED), 120e6, 1e3);
	assert_near(caused(variance, TALLY_STOPPED), 0, 0);
	assert_near(variance->others, 3, 0);
}

/* Threads can wait for a rank where they wait at all. */
static void test_threads(void **state)
{
	struct variance *variance = add(10, 11);

	(void)state;
	job->rows[2].thread = 1;
	job->rows[3].thread = 2;
	lose(variance, 0, 10, 40e6, VAPRO_PREEMPTED);
	late(1, 10, 60e6);
	late(3, 10, 10e6);
	divide(0);
	assert_near(variance->others, 2, 0);
	assert_near(caused(variance, TALLY_PREEMPTED), 70e6, 1e3);
	job->rows[2].thread = job->rows[3].thread = 0;
}

/* What exceeds that stays unexplained. */
static void test_bound(void **state)
{
	struct variance *variance = add(10, 11);

	(void)state;
	lose(variance, 0, 10, 10e6, VAPRO_STOPPED);
	for (uint32_t row = 1; row < RANKS; row++)
		late(row, 10, 50e6);
	divide(0);
	assert_near(caused(variance, TALLY_STOPPED), 30e6, 1e3);
}

/* Two causes share by what their rows lost; the parts of one region as well. */
static void test_two_causes(void **state)
{
	struct variance *first = add(10, 11), *second = add(10, 11);

	(void)state;
	lose(first, 0, 10, 30e6, VAPRO_PREEMPTED);
	lose(second, 1, 10, 60e6, VAPRO_STOPPED);
	late(2, 10, 45e6);
	late(3, 10, 45e6);
	divide(0);
	assert_near(caused(first, TALLY_PREEMPTED), 30e6, 1e3);
	assert_near(caused(second, TALLY_STOPPED), 60e6, 1e3);
}

/* Where one of them has reached its bound, the other one has the rest. */
static void test_rest_of_a_bound(void **state)
{
	struct variance *first = add(10, 11), *second = add(10, 11);

	(void)state;
	lose(first, 0, 10, 5e6, VAPRO_PREEMPTED);
	lose(second, 1, 10, 45e6, VAPRO_THROTTLED);
	for (uint32_t row = 2; row < RANKS; row++)
		late(row, 10, 75e6);
	divide(0);
	assert_near(caused(first, TALLY_PREEMPTED), 15e6, 1e4);
	assert_near(caused(second, TALLY_THROTTLED), 135e6, 1e4);
}

/* A rank that waited itself as long as it lost made no rank late, as long as another one did. */
static void test_a_rank_that_waited(void **state)
{
	struct variance *first = add(10, 11), *second = add(10, 11);

	(void)state;
	lose(first, 0, 10, 30e6, VAPRO_PREEMPTED);
	late(0, 10, 30e6);
	lose(second, 1, 10, 60e6, VAPRO_STOPPED);
	late(2, 10, 40e6);
	late(3, 10, 40e6);
	divide(0);
	assert_near(caused(first, TALLY_PREEMPTED), 0, 1e3);
	assert_near(caused(second, TALLY_STOPPED), 110e6, 1e3);
}

/* Ranks wait for a loss of the bins before, as far as it reaches, and for none after it. */
static void test_reach(void **state)
{
	(void)state;
	for (uint32_t reach = 0; reach < 3; reach++) {
		struct variance *variance;

		teardown(NULL);
		begin(NULL);
		variance = add(10, 11);
		lose(variance, 0, 10, 40e6, VAPRO_STOPPED);
		late(1, 12, 40e6); /* two bins later */
		late(1, 9, 40e6);  /* before it was lost */
		divide(reach);
		assert_near(caused(variance, TALLY_STOPPED), reach == 2 ? 40e6 : 0, 1e3);
	}
}

/* Waiting that nothing explains belongs to nobody, and a region of waiting is no cause. */
static void test_nothing(void **state)
{
	struct variance *waiting = add(10, 11), *elsewhere = add(30, 31);

	(void)state;
	waiting->waiting = true;
	lose(waiting, 0, 10, 40e6, VAPRO_PREEMPTED);
	lose(elsewhere, 0, 30, 40e6, VAPRO_PREEMPTED);
	late(1, 10, 40e6);
	divide(2);
	assert_near(caused(waiting, TALLY_PREEMPTED), 0, 0);
	assert_near(caused(elsewhere, TALLY_PREEMPTED), 0, 0);
}

/* What was divided for good is not divided again in the next window. */
static void test_once(void **state)
{
	struct variance *variance = add(10, 11);

	(void)state;
	parts.retire = FIRST + 20;
	lose(variance, 0, 10, 40e6, VAPRO_STOPPED);
	late(1, 10, 40e6);
	divide(0);
	assert_near(variance->retiring.caused[TALLY_STOPPED], 40e6, 1e3);
	assert_near(variance->staying.caused[TALLY_STOPPED], 0, 0);
	divide(0);
	assert_near(variance->retiring.caused[TALLY_STOPPED], 40e6, 1e3);
}

/*
 * Ranks of uneven work wait for each other all the time: a loss caused what exceeds that, of which there is less while
 * a rank is held up, since less work is done then.
 */
static void test_usual_waiting(void **state)
{
	struct variance *variance = add(10, 11);

	(void)state;
	for (int bin = 0; bin < 50; bin++)
		late(1, bin, 20e6);
	lose(variance, 0, 10, 50e6, VAPRO_STOPPED); /* a quarter of the bin */
	late(2, 10, 45e6);
	divide(0);
	assert_near(caused(variance, TALLY_STOPPED), 65e6 - 0.75 * 20e6, 1e4);
}

/* Where a loss lasts as long as the view, what is usual is not known. */
static void test_unknown_usual_waiting(void **state)
{
	struct variance *variance = add(0, 42);

	(void)state;
	for (int bin = 0; bin < 50; bin++)
		late(1, bin, 20e6);
	lose(variance, 0, 10, 50e6, VAPRO_STOPPED);
	divide(0);
	assert_near(caused(variance, TALLY_STOPPED), 20e6, 1e3);
}

/* In all it is at most what the others can wait for the loss that is left after all revisions. */
static void test_bound_of_the_whole(void **state)
{
	struct variance *variance = add(10, 11);
	struct tally_cause causes[] = {{.part = TALLY_STOPPED, .lost = 10e6}};

	(void)state;
	variance->others = 3;
	variance->total.lost[VAPRO_COMPUTATION] = 10e6;
	variance->total.causes = causes;
	variance->total.cause_count = 1;
	variance->total.caused[TALLY_STOPPED] = 50e6;
	assert_near(caused__by_part(variance, TALLY_STOPPED), 30e6, 1);
	assert_near(caused__by(variance), 30e6, 1);
	variance->total.caused[TALLY_STOPPED] = 20e6;
	assert_near(caused__by(variance), 20e6, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CAUSED(test_one_cause),
	    CAUSED(test_threads),
	    CAUSED(test_bound),
	    CAUSED(test_two_causes),
	    CAUSED(test_rest_of_a_bound),
	    CAUSED(test_a_rank_that_waited),
	    CAUSED(test_reach),
	    CAUSED(test_nothing),
	    CAUSED(test_once),
	    CAUSED(test_bound_of_the_whole),
	    CAUSED(test_usual_waiting),
	    CAUSED(test_unknown_usual_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
