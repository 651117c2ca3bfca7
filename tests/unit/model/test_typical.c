// SPDX-License-Identifier: GPL-2.0-or-later
/* References of computation: the typical duration of equal work, whatever single fragments take. */
#include "learned.h"

static void begin_counted(uint32_t ranks)
{
	begin(ranks, VAPRO_BY_INSTRUCTIONS, VAPRO_COMPUTATION, "x");
}

static void begin_uncounted(uint32_t ranks)
{
	begin(ranks, VAPRO_BY_ARGUMENTS, VAPRO_COMPUTATION, "x");
}

static void all_near(uint32_t ranks, double ns, double tolerance)
{
	refresh();
	for (uint32_t rank = 0; rank < ranks; rank++)
		assert_near(reference(rank) / ns, 1, tolerance);
}

/* The least of the fragments falls with their number; the centre of their batches does not. */
static void test_jitter(void **state)
{
	static const int bins[] = {30, 300, 1500};

	(void)state;
	for (size_t c = 0; c < sizeof(bins) / sizeof(bins[0]); c++) {
		uint64_t seed = 5 + c;

		begin_counted(64);
		warm_up(64, 1e6);
		for (int bin = 0; bin < bins[c]; bin++)
			for (uint32_t rank = 0; rank < 64; rank++)
				learn(rank, (uint64_t)bin, 5, 1e6 * (1 + 0.05 / sqrt(5) * sim_gauss(&seed)), false);
		all_near(64, 1e6, 0.01);
		assert_true(series_of(63)->supported);
		finish();
	}
}

static void test_lucky_fragment(void **state)
{
	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		if (counted)
			begin_counted(8);
		else
			begin_uncounted(8);
		warm_up(8, 1e6);
		learn_all(8, 0, 100, 1e6, UINT32_MAX, 0);
		learn(3, 100, 1, 1e5, false);
		learn(3, 100, 4, 1e6, false);
		learn_all(8, 101, 200, 1e6, UINT32_MAX, 0);
		all_near(8, 1e6, 0.001);
		finish();
	}
}

/* With the rule of VAPRO (PPoPP'22), on request, all fragments are compared with the fastest one. */
static void test_fastest_on_request(void **state)
{
	struct bundle_rec rec;

	(void)state;
	begin_counted(4);
	warm_up(4, 1e6);
	learn_all(4, 0, 100, 1e6, UINT32_MAX, 0);
	learn(3, 100, 1, 0.5e6, false);
	rec = judged(0, 101, 1e6);
	assert_near(rec.reference, 1e6, 1e3);
	config.reference = VAPRO_REFERENCE_FASTEST;
	rec = judged(0, 102, 1e6);
	assert_near(rec.reference, 0.5e6, 1e3);
	finish();
}

/*
 * A fault that lasts 20 times as long as the good time before does not become the reference, with or without an alarm
 * that owns its time, on one rank and on all.
 */
static void test_lasting_fault(void **state)
{
	(void)state;
	for (int c = 0; c < 16; c++) {
		bool counted = c & 1, disturbed = c & 2, all = c & 4;
		double ratio = c & 8 ? 1.18 : 3;
		uint64_t good = 40 * SECOND;

		if (counted)
			begin_counted(6);
		else
			begin_uncounted(6);
		warm_up(6, 1e6);
		learn_all(6, 0, good, 1e6, UINT32_MAX, 0);
		for (uint64_t bin = good; bin < 21 * good; bin++)
			for (uint32_t rank = 0; rank < 6; rank++)
				learn(rank, bin, 5, all || rank == 2 ? ratio * 1e6 : 1e6,
				      disturbed && (all || rank == 2));
		all_near(6, 1e6, 0.01);
		assert_true(series_of(2)->supported);
		finish();
	}
}

/* Nothing is learnt in the time of alarms, unless it is nearly all time: a wrong alarm must not end learning. */
static void test_disturbed_time(void **state)
{
	const struct series *series;
	uint64_t before;

	(void)state;
	begin_counted(2);
	warm_up(2, 1e6);
	learn_all(2, 0, 20, 1e6, UINT32_MAX, 0);
	before = batches__total(&series_of(1)->batches);
	for (uint64_t bin = 20; bin < 20 * 25; bin++)
		series = learn(1, bin, 5, 2e6, true);
	assert_int_equal(batches__total(&series->batches), before);
	for (uint64_t bin = 20 * 25; bin < 20 * 50; bin++)
		series = learn(1, bin, 5, 2e6, true);
	assert_true(batches__total(&series->batches) > before + 10);
	finish();
}

/*
 * Of two ranks with counts, one is slow from its start. While the good time of the other is too short to be certain,
 * the slow one is compared with it, provisionally: its own level is not a reference because the other rank is faster.
 */
static void test_one_of_two_slow_from_start(void **state)
{
	(void)state;
	begin_counted(2);
	warm_up(1, 1e6);
	learn(1, 0, SERIES_WARM_UP, 2e6, false);
	learn_all(2, 0, 26, 1e6, 1, 2e6);
	all_near(2, 1e6, 0.01);
	assert_false(series_of(1)->supported);
	learn_all(2, 26, 50 * SECOND, 1e6, 1, 2e6);
	all_near(2, 1e6, 0.01);
	assert_true(series_of(1)->supported);
	finish();
	/* a short lucky time of one rank does not stay the reference of a level that both have */
	begin_counted(2);
	warm_up(2, 1e6);
	learn_all(2, 0, 26, 1e6, 1, 0.5e6);
	learn_all(2, 26, 100, 1e6, UINT32_MAX, 0);
	all_near(2, 1e6, 0.01);
	assert_true(series_of(1)->supported);
	finish();
}

/* With counts a level of one rank only is no reference of others; a level of two ranks is. */
static void test_turbo(void **state)
{
	(void)state;
	for (uint32_t fast = 1; fast <= 2; fast++) {
		begin_counted(8);
		warm_up(8, 0.8e6);
		for (uint64_t bin = 0; bin < 600; bin++)
			for (uint32_t rank = 0; rank < 8; rank++)
				learn(rank, bin, 5, rank < fast && bin < 50 ? 0.8e6 : 1e6, false);
		all_near(8, fast == 1 ? 1e6 : 0.8e6, 0.01);
		finish();
	}
}

static void set_core(uint32_t rank, const char *model, const char *core)
{
	struct vapro_place place = {.thread = rank, .socket = -1, .core_type = core, .cpu_model = model};

	assert_int_equal(stg__set_place(stg, &place), 0);
}

/* Ranks are compared within their kind of CPU, by model and by core type. */
static void test_processors(void **state)
{
	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		if (counted)
			begin_counted(9);
		else
			begin_uncounted(9);
		for (uint32_t rank = 0; rank < 9; rank++)
			set_core(rank, rank < 6 ? "one" : "two", rank < 3 ? "performance" : "efficiency");
		warm_up(9, 1e6);
		for (uint64_t bin = 0; bin < 300; bin++) {
			for (uint32_t rank = 0; rank < 9; rank++)
				learn(rank, bin, 5, rank < 3 ? 1e6 : rank < 6 ? 1.6e6 : 1.03e6, false);
		}
		refresh();
		for (uint32_t rank = 0; rank < 9; rank++) {
			assert_near(reference(rank), rank < 3 ? 1e6 : rank < 6 ? 1.6e6 : 1.03e6, 1e3);
			assert_true(series_of(rank)->supported);
		}
		finish();
	}
}

/* A slow rank is compared with ranks of its kind of CPU. */
static void test_slow_of_a_kind(void **state)
{
	(void)state;
	begin_counted(8);
	for (uint32_t rank = 0; rank < 8; rank++)
		set_core(rank, "one", rank < 4 ? "performance" : "efficiency");
	warm_up(8, 1e6);
	for (uint64_t bin = 0; bin < 300; bin++) {
		for (uint32_t rank = 0; rank < 8; rank++)
			learn(rank, bin, 5, rank < 4 ? 1e6 : rank == 6 ? 2e6 : 1.6e6, false);
	}
	refresh();
	assert_near(reference(6), 1.6e6, 1e4);
	assert_near(reference(1), 1e6, 1e4);
	finish();
}

/* Until there are enough batches, of two ranks where there are more, losses are provisional. */
static void test_support(void **state)
{
	struct bundle_rec rec;

	(void)state;
	begin_counted(4);
	warm_up(4, 1e6);
	/* the batch of the last bin is still being filled: there are 4 x 6 = 24 batches */
	learn_all(4, 0, 7, 1e6, UINT32_MAX, 0);
	rec = judged(2, 6, 2e6);
	assert_true(rec.covered && rec.provisional);
	assert_near(rec.reference, 1e6, 1e3);
	learn_all(4, 7, 8, 1e6, UINT32_MAX, 0);
	rec = judged(2, 8, 2e6);
	assert_true(rec.covered && !rec.provisional);
	finish();
	/* batches of one of four ranks are never enough */
	begin_counted(4);
	warm_up(4, 1e6);
	for (uint64_t bin = 0; bin < 500; bin++)
		learn(1, bin, 5, 1e6, false);
	rec = judged(2, 500, 2e6);
	assert_true(rec.covered && rec.provisional);
	assert_near(rec.reference, 1e6, 1e3);
	finish();
}

/* The batches of a single rank must span 10 s, and not lie in the first 30 s only. */
static void test_support_of_one(void **state)
{
	static const struct {
		uint64_t from, to; /* bins */
		bool supported;
	} diagnoses[] = {{0, 29 * SECOND, false},
			 {0, 35 * SECOND, true},
			 {40 * SECOND, 50 * SECOND, false},
			 {40 * SECOND, 55 * SECOND, true}};

	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
			if (counted)
				begin_counted(1);
			else
				begin_uncounted(1);
			warm_up(1, 1e6);
			/* the workload begins at 0 in any case, with another level */
			for (uint64_t bin = 0; bin < 2 * SECOND; bin++)
				learn(0, bin, 5, 2e6, false);
			for (uint64_t bin = 2 * SECOND + diagnoses[c].from; bin < diagnoses[c].to; bin++)
				learn(0, bin, 5, 1e6, false);
			refresh();
			assert_int_equal(series_of(0)->supported, diagnoses[c].supported);
			assert_near(reference(0), 1e6, 1e4);
			finish();
		}
	}
}

/* Without counts ranks that agree share a reference; a rank that never agrees has its own: it may have more work. */
static void test_own_work(void **state)
{
	(void)state;
	begin_uncounted(8);
	warm_up(8, 1e6);
	for (uint64_t bin = 0; bin < 300; bin++) {
		for (uint32_t rank = 0; rank < 8; rank++)
			learn(rank, bin, 5, rank == 5 ? 1.4e6 : (1 + 0.004 * rank) * 1e6, false);
	}
	refresh();
	for (uint32_t rank = 0; rank < 8; rank++) {
		assert_near(reference(rank), rank == 5 ? 1.4e6 : 1.0131e6, 1e3);
		assert_true(series_of(rank)->supported);
	}
	finish();
}

/* Time that the kernel attributes is no part of references: a hog from the start does not raise them. */
static void test_attributed_time(void **state)
{
	(void)state;
	begin_counted(4);
	warm_up(4, 1e6);
	for (uint64_t bin = 0; bin < 100; bin++) {
		for (uint32_t rank = 0; rank < 4; rank++) {
			struct vapro_bundle b = made(rank, bin, 5, 2e6);

			b.factor[VAPRO_PREEMPTED] = 5 * 0.7e6;
			b.factor[VAPRO_WAKEUP_WAIT] = 5 * 0.3e6;
			learn_bundle(&b, false);
		}
	}
	all_near(4, 1e6, 0.001);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_jitter),
	    cmocka_unit_test(test_lucky_fragment),
	    cmocka_unit_test(test_fastest_on_request),
	    cmocka_unit_test(test_lasting_fault),
	    cmocka_unit_test(test_disturbed_time),
	    cmocka_unit_test(test_one_of_two_slow_from_start),
	    cmocka_unit_test(test_turbo),
	    cmocka_unit_test(test_processors),
	    cmocka_unit_test(test_slow_of_a_kind),
	    cmocka_unit_test(test_support),
	    cmocka_unit_test(test_support_of_one),
	    cmocka_unit_test(test_own_work),
	    cmocka_unit_test(test_attributed_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
