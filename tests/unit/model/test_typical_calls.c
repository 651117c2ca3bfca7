// SPDX-License-Identifier: GPL-2.0-or-later
/* References of calls and IO, and ranks that are always slower in them than the others. */
#include "learned.h"

#define RANKS 8
#define BINS 300

static void begin_calls(const char *common)
{
	begin(RANKS, VAPRO_BY_ARGUMENTS, VAPRO_COMMUNICATION, common);
}

static void begin_io(uint32_t ranks)
{
	begin(ranks, VAPRO_BY_INSTRUCTIONS, VAPRO_IO, "function=write");
}

/* Adds computation of the view, equal on all ranks but one, and the number of calls. */
static void set_computing(double ns, uint32_t other, double other_ns, double calls)
{
	double computing[RANKS];

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		computing[rank] = rank == other ? other_ns : ns;
		series_of(rank)->view_n = calls;
	}
	assert_int_equal(stg__set_computing(stg, 0, computing, NULL), 0);
}

static void assert_slower(uint32_t slow, double ns, double slow_ns)
{
	refresh();
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		assert_int_equal(series_of(rank)->slower, rank == slow);
		assert_near(reference(rank) / (rank == slow ? slow_ns : ns), 1, 0.02);
	}
}

/* A rank whose IO always takes three times as long is measured against the others, at once and for good. */
static void test_slower_io(void **state)
{
	uint64_t seed = 3;

	(void)state;
	begin_io(RANKS);
	for (uint64_t bin = 0; bin < BINS; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			learn(rank, bin, 5, (rank == 5 ? 3e6 : 1e6) * (1 + 0.03 * sim_gauss(&seed)), false);
	assert_slower(5, 1e6, 1e6);
	assert_true(series_of(5)->supported);
	assert_near(series_of(5)->own_ns, 3e6, 0.1e6);
	finish();
}

/* The verdict stays where an alarm owns most of the rank's time: its fragments are still learnt. */
static void test_slower_stays(void **state)
{
	(void)state;
	begin_io(RANKS);
	learn_all(RANKS, 0, 60, 1e6, 5, 3e6);
	assert_slower(5, 1e6, 1e6);
	for (uint64_t bin = 60; bin < 20 * 60; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			learn(rank, bin, 5, rank == 5 ? 3e6 : 1e6, rank == 5);
	assert_slower(5, 1e6, 1e6);
	/* recovered for longer than it was slow: the others' reference is right in any case */
	for (uint64_t bin = 20 * 60; bin < 60 * 60; bin++)
		for (uint32_t rank = 0; rank < RANKS; rank++)
			learn(rank, bin, 5, 1e6, false);
	refresh();
	assert_false(series_of(5)->slower);
	assert_near(reference(5), 1e6, 1e4);
	finish();
}

/* Few batches of a rank are no reference yet; the batches of the others together are enough. */
static void test_few_batches(void **state)
{
	(void)state;
	begin_io(RANKS);
	learn_all(RANKS, 0, 5, 1e6, 5, 3e6);
	refresh();
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_false(series_of(rank)->slower);
	learn_all(RANKS, 5, 7, 1e6, 5, 3e6);
	assert_slower(5, 1e6, 1e6);
	finish();
}

/* Of two ranks the slower one has the reference of the faster one, once that was seen long enough. */
static void test_io_of_two(void **state)
{
	(void)state;
	begin_io(2);
	learn_all(2, 0, BINS, 1e6, 1, 3e6);
	refresh();
	assert_near(reference(0), 1e6, 1e4);
	assert_near(reference(1), 1e6, 1e4);
	finish();
}

/* One rank's transfers always take longer, while it computes as much as the others. */
static void test_slower_calls(void **state)
{
	(void)state;
	begin_calls("function=MPI_Allreduce");
	learn_all(RANKS, 0, BINS, 1e6, 5, 3e6);
	set_computing(5e9, UINT32_MAX, 0, 1000);
	assert_slower(5, 1e6, 1e6);
	finish();
}

/* The root of a collective waits for all others by design, and its share of the work differs. */
static void test_rooted(void **state)
{
	static const char *const labels[] = {"root=0", "function=MPI_Reduce root=0"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin_calls(labels[i]);
		learn_all(RANKS, 0, BINS, 1e6, 0, 3e6);
		set_computing(5e9, UINT32_MAX, 0, 1000);
		refresh();
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			assert_false(series_of(rank)->slower);
			assert_near(reference(rank), rank ? 1e6 : 3e6, 1e4);
		}
		finish();
	}
}

/* A label that only ends with "root" is no root. */
static void test_not_rooted(void **state)
{
	(void)state;
	begin_calls("function=MPI_Bcast subroot=0");
	learn_all(RANKS, 0, BINS, 1e6, 5, 3e6);
	set_computing(5e9, UINT32_MAX, 0, 1000);
	assert_slower(5, 1e6, 1e6);
	finish();
}

/* A rank that computes less arrives early: only waiting beyond this makes it a slower rank. */
static void test_less_to_compute(void **state)
{
	static const struct {
		double less;
		bool slower;
	} diagnoses[] = {{0, true}, {0.5e9, true}, {1.5e9, false}, {2e9, false}, {-2e9, true}};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin_calls("function=MPI_Allreduce");
		learn_all(RANKS, 0, BINS, 1e6, 5, 3e6);
		/* 1,000 calls that take 2 ms longer: 2 s of excess */
		set_computing(5e9, 5, 5e9 - diagnoses[c].less, 1000);
		refresh();
		assert_int_equal(series_of(5)->slower, diagnoses[c].slower);
		assert_near(reference(5) / (diagnoses[c].slower ? 1e6 : 3e6), 1, 0.01);
		finish();
	}
}

/* Partners of the slow rank are slower by less: their own transfers are not slow. */
static void test_neighbours_of_slower(void **state)
{
	(void)state;
	begin(20, VAPRO_BY_ARGUMENTS, VAPRO_COMMUNICATION, "function=MPI_Sendrecv");
	for (uint64_t bin = 0; bin < BINS; bin++)
		for (uint32_t rank = 0; rank < 20; rank++)
			learn(rank, bin, 5, rank == 9 ? 4e6 : rank == 8 || rank == 10 ? 2.5e6 : 1e6, false);
	refresh();
	for (uint32_t rank = 0; rank < 20; rank++)
		assert_int_equal(series_of(rank)->slower, rank == 9);
	assert_near(reference(9), 1e6, 1e4);
	assert_near(reference(8), 2.5e6, 3e4);
	finish();
}

/* Where ranks do not agree none is a slower rank: each may wait by its place in the program. */
static void test_no_agreement(void **state)
{
	(void)state;
	for (int common = 0; common < 2; common++) {
		begin_calls("function=MPI_Waitall");
		for (uint64_t bin = 0; bin < BINS; bin++)
			for (uint32_t rank = 0; rank < RANKS; rank++)
				learn(rank, bin, 5, rank == 7 ? 4e6 : (common ? 1 + rank % 2 : 1 + 0.3 * rank) * 1e6,
				      false);
		set_computing(5e9, UINT32_MAX, 0, 1000);
		refresh();
		for (uint32_t rank = 0; rank < RANKS; rank++)
			assert_false(series_of(rank)->slower);
		assert_near(reference(7), 4e6, 4e4);
		finish();
	}
}

/* More bytes are other work. */
static void test_other_sizes(void **state)
{
	(void)state;
	begin_io(RANKS);
	for (uint64_t bin = 0; bin < BINS; bin++) {
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			struct vapro_bundle b = made(rank, bin, 5, rank == 5 ? 3e6 : 1e6);

			if (rank == 5)
				b.magnitude_min[VAPRO_BYTES] = b.magnitude_max[VAPRO_BYTES] = 3 * BYTES;
			learn_bundle(&b, false);
		}
	}
	refresh();
	assert_false(series_of(5)->slower);
	assert_near(reference(5), 3e6, 3e4);
	finish();
}

/* A network that is slow for the rest of the run, for one rank or all, does not become the reference. */
static void test_lasting_calls(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		bool all = c & 1, io = c & 2;
		uint64_t good = 40 * SECOND;

		if (io)
			begin_io(RANKS);
		else
			begin_calls("function=MPI_Allreduce");
		learn_all(RANKS, 0, good, 1e6, UINT32_MAX, 0);
		for (uint64_t bin = good; bin < 21 * good; bin++)
			for (uint32_t rank = 0; rank < RANKS; rank++)
				learn(rank, bin, 5, all || rank == 2 ? 3e6 : 1e6, all || rank == 2);
		refresh();
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			assert_near(reference(rank), 1e6, 1e4);
			assert_true(series_of(rank)->supported);
		}
		finish();
	}
}

/* One fast batch, or a first time without waiting, is no reference of calls that usually wait. */
static void test_lucky_calls(void **state)
{
	(void)state;
	begin_calls("function=MPI_Allreduce");
	learn_all(RANKS, 0, 2, 0.1e6, UINT32_MAX, 0);
	learn_all(RANKS, 2, BINS, 1e6, UINT32_MAX, 0);
	learn(3, BINS, 5, 0.1e6, false);
	learn_all(RANKS, BINS + 1, BINS + 3, 1e6, UINT32_MAX, 0);
	refresh();
	for (uint32_t rank = 0; rank < RANKS; rank++)
		assert_near(reference(rank), 1e6, 1e4);
	finish();
}

/*
 * One call of a rank in forty takes 5.7 ms, from the first second on, as in NoiseMiner's NAMD: its batches never show
 * the usual time, its single calls do. The rank is slower than the others for good. Without others the noise is not
 * usual, either.
 */
static void test_chronic(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		begin_calls("");
		for (uint64_t bin = 0; bin < BINS; bin++) {
			for (uint32_t rank = 0; rank < RANKS; rank++) {
				learn(rank, bin, 40, 3e4, false);
				if (all || rank == 2)
					learn(rank, bin, 1, 5.7e6, false);
			}
		}
		set_computing(5e9, UINT32_MAX, 0, 1000);
		if (!all)
			assert_slower(2, 3e4, 3e4);
		refresh();
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			assert_true(series_of(rank)->supported);
			assert_near(reference(rank) / 3e4, 1, 0.101);
		}
		finish();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_slower_io),
	    cmocka_unit_test(test_slower_stays),
	    cmocka_unit_test(test_few_batches),
	    cmocka_unit_test(test_io_of_two),
	    cmocka_unit_test(test_slower_calls),
	    cmocka_unit_test(test_rooted),
	    cmocka_unit_test(test_not_rooted),
	    cmocka_unit_test(test_less_to_compute),
	    cmocka_unit_test(test_neighbours_of_slower),
	    cmocka_unit_test(test_no_agreement),
	    cmocka_unit_test(test_other_sizes),
	    cmocka_unit_test(test_lasting_calls),
	    cmocka_unit_test(test_lucky_calls),
	    cmocka_unit_test(test_chronic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
