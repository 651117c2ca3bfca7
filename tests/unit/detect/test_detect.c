/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/effect.h"
#include "detect/evidence.h"
#include "detect/bundle_shares.h"
#include "detect/waiting.h"
#include "painted.h"

static void test_map_spreads(void **state)
{
	struct bundle_rec rec = fragment(2.5, 5.5, 0.6 * BIN, 0);

	(void)state;
	heatmap__add(&map, &rec, 1, VAPRO_COMPUTATION, 0, UINT64_MAX);
	assert_true(isnan(performance(1, 1, VAPRO_COMPUTATION)));
	for (int bin = 2; bin <= 5; bin++)
		assert_near(performance(1, bin, VAPRO_COMPUTATION), 0.2, 1e-4);
	assert_near(lost(1, 3, VAPRO_COMPUTATION), 0.8 * BIN, 1000);
	assert_near(lost(1, 2, VAPRO_COMPUTATION), 0.4 * BIN, 1000);
	/* Less than a tenth of the bin is not valid. */
	rec = fragment(10, 10.05, 0.05 * BIN, 0);
	heatmap__add(&map, &rec, 1, VAPRO_COMPUTATION, 0, UINT64_MAX);
	assert_true(isnan(performance(1, 10, VAPRO_COMPUTATION)));
	/* A merged bundle belongs to the bin of its end; being fast offsets within a bin only. */
	rec = fragment(20, 21, 0, 0);
	rec.n = 100;
	rec.reference = (float)(BIN / 100 * 1.5);
	heatmap__add(&map, &rec, 2, VAPRO_COMPUTATION, 0, UINT64_MAX);
	assert_near(performance(2, 20, VAPRO_COMPUTATION), 1, 0);
	assert_true(lost(2, 20, VAPRO_COMPUTATION) < 0);
}

static void test_map_open_is_replaced(void **state)
{
	struct bundle_rec rec = fragment(10, 30, 0.1 * BIN, 0);

	(void)state;
	rec.flags = VAPRO_BUNDLE_OPEN;
	heatmap__add(&map, &rec, 0, VAPRO_IO, 0, UINT64_MAX);
	assert_near(performance(0, 15, VAPRO_IO), 0.005, 1e-3);
	heatmap__clear(&map, FIRST + 40);
	assert_true(isnan(performance(0, 15, VAPRO_IO)));
	rec.flags = 0;
	heatmap__add(&map, &rec, 0, VAPRO_IO, 0, UINT64_MAX);
	/* Bundles that ended before the view are frozen. */
	heatmap__clear(&map, FIRST + 20);
	assert_near(lost(0, 15, VAPRO_IO), 0.995 * BIN, 2e5);
	assert_true(isnan(performance(0, 25, VAPRO_IO)));
}

static void test_map_ring(void **state)
{
	(void)state;
	paint(0, 5, 10, VAPRO_COMPUTATION, 0.5, false);
	heatmap__advance(&map, FIRST, FIRST + HEATMAP_SPAN + 7);
	assert_int_equal(map.begin, FIRST + 7);
	assert_near(performance(0, 8, VAPRO_COMPUTATION), 0.5, 0.01);
	assert_true(isnan(performance(0, 49 + 10, VAPRO_COMPUTATION)));
	assert_true(isnan(performance(0, HEATMAP_SPAN + 5, VAPRO_COMPUTATION)));
	/* A longer view lengthens the ring and retains its content. */
	assert_int_equal(heatmap__rows(&map, 5, 1000), 0);
	assert_int_equal(map.span, 1300);
	assert_near(performance(0, 8, VAPRO_COMPUTATION), 0.5, 0.01);
	assert_true(isnan(performance(4, 8, VAPRO_COMPUTATION)));
	/* A gap longer than the ring starts it over. */
	heatmap__advance(&map, FIRST + 5000, FIRST + 5050);
	assert_int_equal(map.begin, FIRST + 5000);
	assert_true(isnan(performance(0, 5008, VAPRO_COMPUTATION)));
}

/* Owners outlive a rebuilt map, and later rows have no owner. */
static void test_map_owners(void **state)
{
	(void)state;
	paint(2, 10, 12, VAPRO_COMPUTATION, 0.5, false);
	assert_int_equal(heatmap__own(&map, 2, FIRST + 10, VAPRO_COMPUTATION, 7), 0);
	assert_int_equal(heatmap__add_wait(&map, HEATMAP_OPEN_LATE, 1, FIRST + 10, 5), 0);
	assert_int_equal(heatmap__rows(&map, 40, 100), 0);
	heatmap__clear(&map, FIRST);
	assert_true(isnan(performance(2, 10, VAPRO_COMPUTATION)));
	assert_near(heatmap__late(&map, 1, FIRST + 10), 0, 0);
	assert_int_equal(heatmap__owner(&map, 2, FIRST + 10, VAPRO_COMPUTATION), 7);
	assert_int_equal(heatmap__owner(&map, 2, FIRST + 10, VAPRO_IO), 0);
	for (uint32_t row = 3; row < 40; row++)
		assert_int_equal(heatmap__owner(&map, row, FIRST + 10, VAPRO_COMPUTATION), 0);
	heatmap__disown(&map);
	assert_int_equal(heatmap__owner(&map, 2, FIRST + 10, VAPRO_COMPUTATION), 0);
}

/* Adds a call to the map as well, as a window does. */
static void add_call(struct waiting *waiting, const struct series *series, const struct bundle_rec *rec, uint32_t group)
{
	assert_int_equal(heatmap__add(&map, rec, series->row, VAPRO_COMMUNICATION, 0, UINT64_MAX), 0);
	assert_int_equal(waiting__add(waiting, rec, 0, series, &(struct stg_state){.group = group}, 0), 0);
}

static void test_waiting(void **state)
{
	struct waiting *waiting = waiting__new();
	struct series series[4] = {{.row = 0, .next = 1}, {.row = 1, .next = 2}, {.row = 2, .next = 3}};
	struct workload workload = {.series = 0};
	struct series_book book = {.config = &config, .series = series, .workloads = &workload};
	struct bundle_rec rec;

	(void)state;
	series[3] = (struct series){.row = 3, .next = SERIES_NONE};
	assert_int_equal(waiting__begin(waiting, &map, 4, FIRST, FIRST, FIRST + 50), 0);
	/* In bin 10 ranks 1 to 3 wait half a bin for rank 0; in bin 20 all four do for a tenth at least. */
	for (uint32_t row = 1; row < 4; row++) {
		rec = fragment(10, 10.5, 0, 0);
		add_call(waiting, &series[row], &rec, STG_WORLD);
	}
	for (uint32_t row = 0; row < 4; row++) {
		rec = fragment(20, 20.1 + 0.1 * row, 0, 0);
		add_call(waiting, &series[row], &rec, STG_WORLD);
	}
	/* Preempted time in a call is no waiting. */
	rec = fragment(30, 30.5, 0, 0.5 * BIN);
	add_call(waiting, &series[2], &rec, STG_WORLD);
	/* A group of two: the others do not take part. */
	for (uint32_t row = 2; row < 4; row++) {
		rec = fragment(40, 40.5, 0, 0);
		add_call(waiting, &series[row], &rec, 7);
	}
	assert_int_equal(waiting__end(waiting, job, &book), 0);
	assert_near(waited(HEATMAP_LATE, 1, 10), 0.5 * BIN, 100);
	assert_near(waited(HEATMAP_TRANSFER, 1, 10), 0, 0);
	assert_near(waited(HEATMAP_TRANSFER, 3, 20), 0.1 * BIN, 100);
	assert_near(waited(HEATMAP_LATE, 3, 20), 0.3 * BIN, 100);
	assert_near(waited(HEATMAP_LATE, 2, 30), 0, 100);
	assert_near(waited(HEATMAP_TRANSFER, 2, 40), 0.5 * BIN, 100);
	waiting__free(waiting);
}

static void match(struct variance_book *book, uint64_t end, bool last)
{
	struct region_result result;

	grown(&result);
	assert_int_equal(variance__match(book, &map, job, &result, end, last), 0);
	region__clear(&result);
}

static void test_identity(void **state)
{
	uint32_t ids = 0;
	struct variance_book book = {.last_id = &ids};

	(void)state;
	paint(0, 40, 50, VAPRO_COMPUTATION, 0.5, true);
	match(&book, FIRST + 50, false);
	assert_int_equal(book.count, 1);
	assert_int_equal(book.variances[0].state, VAPRO_REGION_OPEN);
	assert_true(variance__emit(&book.variances[0], 0));
	assert_int_equal(variance__retire(&book, &map), 0);
	heatmap__advance(&map, FIRST, FIRST + 100);
	paint(0, 50, 60, VAPRO_COMPUTATION, 0.5, true);
	paint(3, 70, 80, VAPRO_COMPUTATION, 0.5, true);
	match(&book, FIRST + 100, false);
	assert_int_equal(book.count, 2);
	assert_int_equal(book.variances[0].id, 1);
	assert_int_equal(book.variances[0].begin, FIRST + 40);
	assert_int_equal(book.variances[0].end, FIRST + 60);
	assert_int_equal(book.variances[0].state, VAPRO_REGION_CLOSED);
	/* better references have withdrawn it: it lost nothing, and not less */
	book.variances[0].total.lost[VAPRO_COMPUTATION] = -5e6;
	assert_true(variance__emit(&book.variances[0], 0));
	assert_true(book.variances[0].emitted.lost_seconds == 0);
	assert_int_equal(book.variances[0].revision, 1);
	assert_true(variance__emit(&book.variances[1], 0));
	assert_int_equal(variance__retire(&book, &map), 0);
	/* A closed variance is emitted once. */
	heatmap__advance(&map, FIRST, FIRST + 150);
	match(&book, FIRST + 150, true);
	assert_int_equal(book.count, 2);
	assert_false(variance__emit(&book.variances[0], 0));
	assert_false(variance__emit(&book.variances[1], 0));
	/* Variances outside the map are dropped. */
	heatmap__advance(&map, FIRST, FIRST + 1000);
	match(&book, FIRST + 1000, true);
	assert_int_equal(variance__retire(&book, &map), 0);
	assert_int_equal(book.count, 0);
	variance__free(&book);
}

/* Two variances of one row with a gap between them. */
static void match_two(struct variance_book *book)
{
	paint(0, 10, 15, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 20, 30, VAPRO_COMPUTATION, 0.5, true);
	match(book, FIRST + 30, false);
}

static void test_merging_variances(void **state)
{
	uint32_t ids = 0;
	struct variance_book book = {.last_id = &ids};

	(void)state;
	match_two(&book);
	assert_int_equal(book.count, 2);
	assert_true(variance__emit(&book.variances[0], 0));
	assert_true(variance__emit(&book.variances[1], 0));
	assert_int_equal(variance__retire(&book, &map), 0);
	/* A late fragment fills the gap: the greater variance goes on. The other was reported as closed: it keeps its
	 * loss. */
	book.variances[0].proven = true;
	paint(0, 15, 20, VAPRO_COMPUTATION, 0.5, true);
	match(&book, FIRST + 30, false);
	assert_int_equal(book.variances[0].merged_into, 0);
	assert_false(book.variances[1].proven);
	assert_int_equal(book.variances[0].end, FIRST + 15);
	assert_int_equal(heatmap__owner(&map, 0, FIRST + 14, VAPRO_COMPUTATION), 1);
	assert_int_equal(book.variances[0].state, VAPRO_REGION_CLOSED);
	assert_int_equal(book.variances[1].begin, FIRST + 15);
	variance__free(&book);
}

/* A proven loss stays proven after its variance is merged into another. */
static void test_merging_proven(void **state)
{
	uint32_t ids = 0;
	struct variance_book book = {.last_id = &ids};

	(void)state;
	match_two(&book);
	book.variances[0].proven = true;
	paint(0, 15, 20, VAPRO_COMPUTATION, 0.5, true);
	match(&book, FIRST + 30, false);
	assert_int_equal(book.variances[0].merged_into, 2);
	assert_true(book.variances[1].proven);
	variance__free(&book);
}

static void test_effect(void **state)
{
	uint32_t ids = 0;
	struct variance_book book = {.last_id = &ids};

	(void)state;
	paint(0, 10, 20, VAPRO_COMPUTATION, 0.5, true);
	paint(1, 10, 21, VAPRO_COMMUNICATION, 0.1, false);
	paint(2, 30, 40, VAPRO_COMMUNICATION, 0.1, false);
	for (int bin = 10; bin < 40; bin++)
		heatmap__add_wait(&map, HEATMAP_LATE, bin < 21 ? 1 : 2, FIRST + (uint64_t)bin, (float)(0.9 * BIN));
	match(&book, FIRST + 50, false);
	assert_int_equal(book.count, 3);
	for (size_t i = 0; i < book.count; i++) {
		struct variance *variance = &book.variances[i];

		if (!variance->waiting)
			continue;
		effect__waits(variance, &map);
		assert_true(variance->late > 0);
		assert_int_equal(effect__cause(variance, &map, job, &book), variance->rows[0] == 1 ? 1 : 0);
	}
	variance__free(&book);
}

/* A sharp loss within a long weak one that costs more in all: the waiting beside it is its effect. */
static void test_effect_of_the_sharp_one(void **state)
{
	uint32_t ids = 0;
	struct variance_book book = {.last_id = &ids};
	uint64_t sharp = 0;

	(void)state;
	paint(0, 30, 40, VAPRO_COMPUTATION, 0.3, true);
	paint(2, 10, 70, VAPRO_COMPUTATION, 0.8, false);
	paint(1, 30, 40, VAPRO_COMMUNICATION, 0.1, false);
	for (int bin = 30; bin < 40; bin++)
		heatmap__add_wait(&map, HEATMAP_LATE, 1, FIRST + (uint64_t)bin, (float)(0.7 * BIN));
	match(&book, FIRST + 80, false);
	for (size_t i = 0; i < book.count; i++)
		if (!book.variances[i].waiting && book.variances[i].rows[0] == 0)
			sharp = book.variances[i].id;
	assert_true(sharp);
	for (size_t i = 0; i < book.count; i++) {
		struct variance *variance = &book.variances[i];

		if (!variance->waiting)
			continue;
		effect__waits(variance, &map);
		assert_int_equal(effect__cause(variance, &map, job, &book), sharp);
	}
	variance__free(&book);
}

static void test_tally(void **state)
{
	struct tally tally = {0}, copy = {0};

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct bundle_rec rec = fragment(10, 11, 0.5 * BIN, 0.25 * BIN);

		rec.series = (uint32_t)i % 40;
		assert_int_equal(tally__add(&tally, &rec, VAPRO_COMPUTATION, 0.5, false, 0, 1), 0);
		assert_int_equal(tally__add(&tally, &rec, VAPRO_COMMUNICATION, 1, true, 0, 1), 0);
	}
	assert_int_equal(tally.series_count, 40);
	assert_near(tally.lost[VAPRO_COMPUTATION], 25 * BIN, 1000);
	assert_near(tally.cpu[VAPRO_COMPUTATION], 12.5 * BIN, 1000);
	/* A guest adds only time that the kernel attributes. */
	assert_near(tally.lost[VAPRO_COMMUNICATION], 25 * BIN, 1000);
	assert_int_equal(tally__merge(&copy, &tally), 0);
	assert_int_equal(tally__merge(&copy, &tally), 0);
	assert_near(copy.lost[VAPRO_COMPUTATION], 50 * BIN, 1000);
	assert_int_equal(copy.series_count, 40);
	assert_int_equal(copy.worst_count, TALLY_WORST);
	tally__clear(&tally);
	tally__clear(&copy);
}

/* A call in which the thread lost the CPU is an alarm or not, by the time that the kernel attributes. */
static void test_suspended_calls(void **state)
{
	static const struct {
		double lost_ns, attributed_ns, own_ns;
		bool alarm;
		const char *says;
	} diagnoses[] = {
	    {2e9, 1.5e9, 0, true, "attributes 75 % of the loss inside calls"},
	    {2e9, 0.2e9, 0, false, "only 10 %"},
	    {80e6, 72e6, 0, false, "90 % of the loss inside calls (off the CPU), less than 0.1 s"},
	    {2e9, 1.5e9, 1.4e9, false, "its own threads"},
	    {0, 0, 0, false, "no loss"},
	};
	const struct vapro_config config = {.evidence_share = 0.5, .min_lost_s = 0.1};
	const struct evidence_input input = {.config = &config};

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(diagnoses[0]); i++) {
		struct variance variance = {.id = 1, .matched = true, .has = {[VAPRO_COMMUNICATION] = true}};
		struct variance_book book = {.variances = &variance, .count = 1};

		variance.total.lost[VAPRO_COMMUNICATION] = diagnoses[i].lost_ns;
		variance.total.cpu[VAPRO_COMMUNICATION] = variance.total.cpu_waits = diagnoses[i].attributed_ns;
		variance.total.own_waits = diagnoses[i].own_ns;
		evidence__judge(&book, &input);
		assert_int_equal(variance.alarm, diagnoses[i].alarm);
		assert_non_null(strstr(variance.evidence, diagnoses[i].says));
	}
}

/* A value is emitted again where it differs by more than a hundredth. */
static void test_hundredths(void **state)
{
	(void)state;
	assert_int_equal(heatmap__hundredths(NAN), 0); /* as a value that was never emitted */
	assert_false(heatmap__differs(heatmap__hundredths(NAN), heatmap__hundredths(NAN)));
	assert_true(heatmap__differs(heatmap__hundredths(NAN), heatmap__hundredths(0)));
	assert_true(heatmap__differs(heatmap__hundredths(0.5), heatmap__hundredths(NAN)));
	assert_false(heatmap__differs(heatmap__hundredths(0.5), heatmap__hundredths(0.51)));
	assert_false(heatmap__differs(heatmap__hundredths(1), heatmap__hundredths(0.99)));
	assert_true(heatmap__differs(heatmap__hundredths(0.5), heatmap__hundredths(0.52)));
	assert_true(heatmap__differs(heatmap__hundredths(1), heatmap__hundredths(0)));
}

/* A lasting variance is emitted again once it lost half as much more; one that may be stuck each time; and the end. */
static void test_emit_seldom(void **state)
{
	struct variance variance = {.id = 1,
				    .state = VAPRO_REGION_OPEN,
				    .class = VAPRO_COMPUTATION,
				    .begin = FIRST,
				    .end = FIRST + 10,
				    .matched = true,
				    .confirmed = true};

	(void)state;
	variance.total.lost[VAPRO_COMPUTATION] = 2e9;
	assert_true(variance__emit(&variance, 0.1));
	variance.state = VAPRO_REGION_CHANGED;
	variance.end = FIRST + 60;
	variance.total.lost[VAPRO_COMPUTATION] = 2.9e9;
	assert_false(variance__emit(&variance, 0.1));
	assert_int_equal(variance.revision, 0);
	variance.total.lost[VAPRO_COMPUTATION] = 3.1e9;
	assert_true(variance__emit(&variance, 0.1));
	assert_int_equal(variance.revision, 1);
	variance.alarm = true;
	assert_true(variance__emit(&variance, 0.1));
	variance.total.open = true;
	assert_true(variance__emit(&variance, 0.1));
	variance.end = FIRST + 110;
	assert_true(variance__emit(&variance, 0.1));
	assert_false(variance__emit(&variance, 0.1));
	variance.state = VAPRO_REGION_CLOSED;
	assert_true(variance__emit(&variance, 0.1));
	assert_int_equal(variance.revision, 5);
	assert_false(variance__emit(&variance, 0.1));
}

/* Probes were closed before a slow stretch and after it: it may be longer, unless the kernel's account knows. */
static void test_unseen(void **state)
{
	uint32_t row = 0, rows[] = {0, 2};
	struct variance variance = {
	    .rows = &row, .row_count = 1, .class = VAPRO_COMPUTATION, .begin = FIRST + 18, .end = FIRST + 30};

	(void)state;
	paint(0, 0, 10, VAPRO_COMPUTATION, 1, false);
	paint(0, 18, 30, VAPRO_COMPUTATION, 0.5, false);
	paint(0, 37, 40, VAPRO_COMPUTATION, 1, false);
	variance.total.lost[VAPRO_COMPUTATION] = 1.2e9;
	assert_int_equal(variance__unseen_before(&variance, &map, 0), 8);
	assert_int_equal(variance__unseen_after(&variance, &map, UINT64_MAX), 7);
	/* the rank began and ended in between; neither is there anything beyond the map */
	assert_int_equal(variance__unseen_before(&variance, &map, FIRST + 15), 3);
	assert_int_equal(variance__unseen_after(&variance, &map, FIRST + 31), 1);
	variance.end = FIRST + 40;
	assert_int_equal(variance__unseen_after(&variance, &map, UINT64_MAX), 10);
	variance.begin = FIRST - 100;
	assert_int_equal(variance__unseen_before(&variance, &map, 0), 0);
	variance.begin = FIRST + 18;
	variance.end = FIRST + 30;
	/* another rank of it was seen until right before */
	paint(2, 0, 17, VAPRO_COMMUNICATION, 1, false);
	variance.rows = rows;
	variance.row_count = 2;
	assert_int_equal(variance__unseen_before(&variance, &map, 0), 1);
	variance.rows = &row;
	variance.row_count = 1;
	variance.total.cpu[VAPRO_COMPUTATION] = 0.7e9;
	assert_int_equal(variance__unseen_before(&variance, &map, 0), 0);
	assert_int_equal(variance__unseen_after(&variance, &map, UINT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_map_spreads),
	    TEST(test_map_open_is_replaced),
	    TEST(test_map_ring),
	    TEST(test_map_owners),
	    TEST(test_waiting),
	    TEST(test_identity),
	    TEST(test_merging_variances),
	    TEST(test_merging_proven),
	    TEST(test_effect),
	    TEST(test_effect_of_the_sharp_one),
	    TEST(test_tally),
	    TEST(test_suspended_calls),
	    TEST(test_hundredths),
	    TEST(test_emit_seldom),
	    TEST(test_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
