/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checkpoints: IO without a history, whose reference is what other ranks take at the same time. */
#include "learned.h"

#include "model/occurrence.h"

#define MS 1e6
#define RANKS 16

static struct bundle_rec recs[RANKS + 1];
static struct bundle_rec *list[RANKS + 1];

/* Begins an occurrence of one call per rank, of so many ns each. */
static void occur(uint32_t ranks, const double *ns)
{
	begin(ranks, VAPRO_BY_ARGUMENTS, VAPRO_IO, "function=write");
	for (uint32_t i = 0; i < ranks; i++) {
		recs[i] = judged(i, 1000 * SECOND, ns[i]);
		list[i] = &recs[i];
	}
}

static double lost(uint32_t i)
{
	return recs[i].covered ? recs[i].sum_ns - recs[i].reference : NAN;
}

/* The ranks of one host are slow, beyond the scatter of the others; ordinary ones lose nothing. */
static void test_slow_host(void **state)
{
	double ns[RANKS];
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < RANKS; i++)
		ns[i] = 1200 * MS * exp(0.08 * sim_gauss(&seed)) * (i / 4 == 2 ? 3.5 : 1);
	occur(RANKS, ns);
	assert_int_equal(occurrence__judge(&book, list, RANKS), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_true(recs[i].covered && recs[i].occurrence && !recs[i].no_reference);
		assert_near(lost(i) / MS, i / 4 == 2 ? 3000 : 0, i / 4 == 2 ? 900 : 1);
	}
	finish();
}

/* Writes of a shared file system scatter: no rank is slow. */
static void test_scatter(void **state)
{
	unsigned slow = 0;
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 100; round++) {
		double ns[RANKS];

		for (int i = 0; i < RANKS; i++)
			ns[i] = 1200 * MS * exp(0.6 * sim_gauss(&seed));
		occur(RANKS, ns);
		assert_int_equal(occurrence__judge(&book, list, RANKS), 0);
		for (uint32_t i = 0; i < RANKS; i++)
			slow += lost(i) > MS;
		finish();
	}
	assert_true(slow <= 2);
}

/* Two ranks are no reference for each other, three are one, and five are proof. */
static void test_few_ranks(void **state)
{
	static const double ns[] = {1000 * MS, 1020 * MS, 4000 * MS, 1010 * MS, 1030 * MS, 990 * MS};

	(void)state;
	for (uint32_t ranks = 2; ranks <= 6; ranks++) {
		occur(ranks, ns);
		assert_int_equal(occurrence__judge(&book, list, ranks), 0);
		assert_int_equal(recs[0].no_reference, ranks < 3);
		assert_int_equal(recs[0].occurrence, ranks >= 5);
		if (ranks >= 3)
			assert_near(lost(2) / MS, 2985, 20);
		finish();
	}
}

/* What begins when others have ended is another occurrence, as is the next call of a rank; an open call is none yet. */
static void test_apart(void **state)
{
	static const double ns[] = {1000 * MS, 1000 * MS, 1000 * MS, 1000 * MS, 500 * MS};

	(void)state;
	occur(5, ns);
	recs[3].start_ns += (uint64_t)(1100 * MS);
	recs[3].end_ns += (uint64_t)(1100 * MS);
	recs[4].flags = VAPRO_BUNDLE_OPEN;
	assert_int_equal(occurrence__judge(&book, list, 5), 0);
	assert_true(recs[0].covered && !recs[0].no_reference);
	assert_true(recs[3].no_reference);
	assert_false(recs[4].covered);
	finish();
}

/* Only long single calls on files whose state has no history are compared so. */
static void test_fits(void **state)
{
	static const double ns[] = {1000 * MS};
	const char *pipes[] = {"fd_kind=pipe function=read", "fd_kind=pipe"};
	struct bundle_rec merged, shorter;

	(void)state;
	occur(1, ns);
	assert_true(occurrence__fits(&book, &recs[0]));
	merged = shorter = recs[0];
	merged.n = 2;
	assert_false(occurrence__fits(&book, &merged));
	shorter.sum_ns = 10 * MS;
	assert_false(occurrence__fits(&book, &shorter));
	finish();
	begin_kind(1, VAPRO_BY_ARGUMENTS, VAPRO_IO, pipes, "fd_kind=pipe function=read");
	recs[0] = judged(0, 1000 * SECOND, 1000 * MS);
	assert_false(occurrence__fits(&book, &recs[0]));
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_slow_host), cmocka_unit_test(test_scatter), cmocka_unit_test(test_few_ranks),
	    cmocka_unit_test(test_apart),     cmocka_unit_test(test_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
