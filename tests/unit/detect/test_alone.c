// SPDX-License-Identifier: GPL-2.0-or-later
/* Without counts: work that moves between ranks, one rank alone, and the ranks of one place. */
#include "detect/alone.h"
#include "painted.h"

#define LOST 1e9

static struct variance items[4];
static uint32_t rows[4][16];
static struct variance_book book;
static struct evidence_input input;

static void begin(uint32_t ranks, uint32_t hosts)
{
	other_job(ranks, hosts);
	memset(items, 0, sizeof(items));
	book = (struct variance_book){.variances = items};
	input = (struct evidence_input){.config = &config,
					.map = &map,
					.job = job,
					.source = VAPRO_BY_ARGUMENTS,
					.begin = FIRST,
					.end = FIRST + 50};
}

/* Adds an unattributed slowdown of the rows first, first + step, ... */
static struct variance *add(uint64_t begin_bin, uint64_t end_bin, uint32_t first, uint32_t step, size_t count)
{
	uint32_t *own = rows[book.count];
	struct variance *variance = &items[book.count++];

	for (size_t i = 0; i < count; i++)
		own[i] = first + (uint32_t)i * step;
	*variance = (struct variance){.id = (uint32_t)book.count,
				      .begin = FIRST + begin_bin,
				      .end = FIRST + end_bin,
				      .rows = own,
				      .row_count = count,
				      .has = {[VAPRO_COMPUTATION] = true},
				      .matched = true};
	variance->total.lost[VAPRO_COMPUTATION] = LOST;
	return variance;
}

static enum alone alone(void)
{
	struct onset onset = onset__of(&items[0], &input);

	items[0].lone = onset.lone || (!onset.known && items[0].lone);
	return alone__moved(&items[0], &onset, &book, &input);
}

static bool moved(void)
{
	return alone() == ALONE_MOVED;
}

/* Three rows on two hosts that change at once are the program; fewer rows, or one host, are not. */
static void test_at_once(void **state)
{
	static const struct {
		uint32_t rank;
		size_t count;
		uint64_t begin;
		bool moved;
	} diagnoses[] = {
	    /* beside rank 0 of host 0 of four; ranks 1 and 5 are on host 1, 4 and 8 on host 0 */
	    {1, 2, 10, true}, {1, 1, 10, false}, {4, 2, 10, false}, {1, 2, 15, true},
	    {1, 2, 5, true},  {1, 2, 16, false}, {1, 2, 4, false},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin(16, 4);
		add(10, 40, 0, 1, 1);
		add(diagnoses[c].begin, 40, diagnoses[c].rank, 4, diagnoses[c].count);
		if (moved() != diagnoses[c].moved)
			fail_msg("case %d", (int)c);
	}
	/* one variance of three rows on two hosts by itself */
	begin(16, 4);
	add(10, 40, 0, 1, 3);
	assert_true(moved());
	/* any number of rows of a host */
	begin(16, 4);
	add(10, 40, 2, 4, 4);
	assert_false(moved());
}

/* Rows that occur twice count once. */
static void test_same_rows(void **state)
{
	(void)state;
	begin(16, 4);
	add(10, 20, 0, 1, 2);
	add(12, 40, 0, 1, 2);
	add(13, 50, 0, 1, 2);
	assert_false(moved());
}

/* Only silent losses count: waiting, slow paths, and time attributed by kernel or machine did not move work. */
static void test_not_silent(void **state)
{
	(void)state;
	for (int c = 0; c < 6; c++) {
		struct variance *other;

		begin(16, 4);
		add(10, 40, 0, 1, 1);
		other = add(10, 40, 1, 4, 3);
		other->waiting = c == 1;
		other->path = c == 2;
		other->total.cpu[VAPRO_COMPUTATION] = c == 3 ? 0.6 * LOST : 0;
		other->total.frequency = c == 4 ? 0.6 * LOST : 0;
		other->matched = c != 5;
		assert_int_equal(moved(), c == 0);
	}
}

/* A program whose work grows slows all ranks alike: the first one below the threshold is not slow alone. */
static void test_common_slowdown(void **state)
{
	static const struct {
		double others; /* performance */
		uint32_t from; /* first row with this performance: earlier rows are as usual */
		enum alone is;
	} diagnoses[] = {
	    {0.86, 1, ALONE_ALL},	 {0.9, 1, ALONE_ALL},	  {0.92, 1, ALONE_NOT_MOVED},
	    {0.86, 12, ALONE_NOT_MOVED}, {1, 1, ALONE_NOT_MOVED},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin(16, 4);
		add(10, 40, 0, 1, 1);
		for (uint32_t rank = 0; rank < 16; rank++)
			paint(rank, 10, 40, VAPRO_COMPUTATION,
			      !rank			 ? 0.81
			      : rank < diagnoses[c].from ? 1
							 : diagnoses[c].others,
			      false);
		if (alone() != diagnoses[c].is)
			fail_msg("case %d", (int)c);
	}
}

/*
 * All rows compute half of each bin. The first variance's rows take 1.4 times as long from its begin on, and the given
 * rows less or more than usual from bin 10 on.
 */
static void compute(uint32_t first, uint32_t last, double takes)
{
	for (uint32_t rank = 0; rank < 16; rank++) {
		bool own = rank < items[0].row_count;

		for (int bin = 0; bin < 40; bin++) {
			double times = rank < first || rank > last || bin < 10 ? 1 : takes;
			struct bundle_rec rec;

			times = own ? (FIRST + (uint64_t)bin < items[0].begin ? 1 : 1.4) : times;
			rec = fragment(bin, bin + 0.5 * times, 0.5 * BIN, 0);
			assert_int_equal(heatmap__add(&map, &rec, rank, VAPRO_COMPUTATION, 0, UINT64_MAX), 0);
		}
	}
}

/* This row got the work that other rows are spared: at least half of its loss. */
static void test_lighter(void **state)
{
	static const struct {
		uint32_t last;
		double takes; /* share of its usual time */
		bool moved;
	} diagnoses[] = {
	    {1, 0.5, true},
	    {1, 0.99, false},
	    /* little from each of many */
	    {7, 0.9, true},
	    {7, 0.97, false},
	    {2, 0.92, false},
	    /* all others advance more slowly: they wait for the slow row */
	    {15, 0.9, false},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin(16, 4);
		add(10, 40, 0, 1, 1);
		compute(1, diagnoses[c].last, diagnoses[c].takes);
		if (moved() != diagnoses[c].moved)
			fail_msg("case %d", (int)c);
	}
}

/* A quarter of the other rows that get more work at once shows that work was distributed again. */
static void test_heavier(void **state)
{
	static const struct {
		uint32_t first, last;
		double takes;
		bool moved;
	} diagnoses[] = {{1, 4, 1.3, true}, {1, 3, 1.3, false}, {1, 12, 1.05, false}};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		begin(16, 4);
		add(10, 40, 0, 1, 1);
		compute(diagnoses[c].first, diagnoses[c].last, diagnoses[c].takes);
		if (moved() != diagnoses[c].moved)
			fail_msg("case %d", (int)c);
	}
}

/* Moved work is found where the lighter row has a variance of its own: its earlier time is slower than its new time. */
static void test_lighter_in_variance(void **state)
{
	(void)state;
	begin(16, 4);
	add(10, 40, 0, 1, 1);
	add(7, 10, 1, 1, 1);
	compute(1, 1, 0.5);
	assert_true(moved());
	/* work that the variance's own rows are spared did not move to other rows */
	begin(16, 4);
	add(10, 40, 0, 1, 2);
	compute(1, 1, 0.5);
	assert_false(moved());
}

/* Where half of the rows are slow all others wait alike: no work moved. */
static void test_half_is_slow(void **state)
{
	(void)state;
	begin(16, 1);
	add(10, 40, 0, 1, 8);
	compute(8, 15, 0.7);
	assert_false(moved());
}

/* Rows that became lighter long before show nothing; and without earlier time nothing is known. */
static void test_lighter_before(void **state)
{
	(void)state;
	begin(16, 4);
	add(25, 40, 0, 1, 1);
	compute(1, 1, 0.5);
	heatmap__advance(&map, FIRST, FIRST + 15 + HEATMAP_SPAN);
	assert_int_equal(map.begin, FIRST + 15);
	assert_false(moved());
	begin(16, 4);
	add(1, 40, 0, 1, 1);
	compute(1, 1, 0.5);
	assert_false(moved());
}

/* A finding made while the map had the variance's beginning holds as long as the variance goes on. */
static void test_lighter_long_ago(void **state)
{
	(void)state;
	for (int light = 0; light < 2; light++) {
		begin(16, 4);
		add(10, 40, 0, 1, 1);
		compute(1, 1, light ? 0.5 : 1);
		assert_int_equal(moved(), light);
		items[0].end = FIRST + 20 + HEATMAP_SPAN;
		heatmap__advance(&map, FIRST, FIRST + 20 + HEATMAP_SPAN);
		assert_true(map.begin > items[0].begin);
		assert_int_equal(moved(), light);
	}
}

/* Nearly all rows at once are the program or the whole machine. */
static void test_nearly_all(void **state)
{
	(void)state;
	for (size_t count = 13; count <= 16; count++) {
		begin(16, 4);
		add(10, 40, 0, 1, count);
		assert_int_equal(alone(), count < 15 ? ALONE_MOVED : ALONE_ALL);
	}
	/* also as several variances */
	begin(16, 4);
	add(10, 40, 0, 1, 8);
	add(12, 40, 8, 1, 8);
	assert_int_equal(alone(), ALONE_ALL);
	/* one rank alone is never all */
	begin(1, 1);
	add(10, 40, 0, 1, 1);
	assert_int_equal(alone(), ALONE_NOT_MOVED);
}

static bool place(uint32_t first, uint32_t step, size_t count)
{
	book.count = 0;
	return alone__place(add(10, 40, first, step, count), &input);
}

/* A place: most of the ranks of a host or a socket, and no others, of a job with as many elsewhere. */
static void test_place(void **state)
{
	(void)state;
	begin(16, 4);
	assert_true(place(1, 4, 4));
	assert_true(place(1, 4, 3));
	assert_false(place(1, 4, 2));
	/* one rank alone is no place, and neither are ranks of two */
	assert_false(place(1, 4, 1));
	assert_false(place(0, 1, 4));
	assert_false(place(0, 1, 16));
	/* half of the job */
	begin(8, 2);
	assert_true(place(1, 2, 4));
	/* the only host */
	begin(8, 1);
	assert_false(place(0, 1, 8));
	assert_false(place(0, 1, 7));
}

/* Calls of equal bytes are fixed work: a place with slow calls, too, has not just more work. */
static void test_fixed_work(void **state)
{
	static const struct {
		uint64_t begin, end;
		uint32_t first, step;
		size_t count;
		enum vapro_class class;
		bool confirmed, path, waiting, proves;
	} diagnoses[] = {
	    {10, 40, 1, 4, 4, VAPRO_IO, true, false, false, true},
	    {20, 36, 1, 4, 3, VAPRO_IO, true, false, false, true},
	    {10, 40, 1, 4, 4, VAPRO_COMMUNICATION, true, true, false, true},
	    {10, 40, 1, 4, 4, VAPRO_COMMUNICATION, true, false, false, false},
	    {10, 40, 1, 4, 4, VAPRO_IO, true, false, true, false},
	    {10, 40, 1, 4, 4, VAPRO_IO, false, false, false, false},
	    /* one of its ranks, more than its ranks, another place, another time */
	    {10, 40, 1, 4, 1, VAPRO_IO, true, false, false, false},
	    {10, 40, 0, 1, 16, VAPRO_IO, true, false, false, false},
	    {10, 40, 2, 4, 4, VAPRO_IO, true, false, false, false},
	    {30, 60, 1, 4, 4, VAPRO_IO, true, false, false, false},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		struct variance *other;

		begin(16, 4);
		add(10, 40, 1, 4, 4);
		other = add(diagnoses[c].begin, diagnoses[c].end, diagnoses[c].first, diagnoses[c].step,
			    diagnoses[c].count);
		other->class = diagnoses[c].class;
		other->confirmed = diagnoses[c].confirmed;
		other->path = diagnoses[c].path;
		other->waiting = diagnoses[c].waiting;
		if (alone__fixed_work(&items[0], &book, job) != diagnoses[c].proves)
			fail_msg("case %d", (int)c);
	}
}

/* A socket is a place, also where it is half of the job's only host. */
static void test_socket(void **state)
{
	(void)state;
	for (uint32_t hosts = 1; hosts <= 2; hosts++) {
		begin(16, hosts);
		for (uint32_t rank = 0; rank < 16; rank++)
			assert_int_equal(
			    stg__set_place(stg, &(struct vapro_place){.thread = rank, .socket = (int32_t)rank / 8}), 0);
		input.job = job = stg__job(stg, 0);
		assert_true(place(8, hosts, 8 / hosts));
		assert_true(place(0, hosts, 8 / hosts));
		assert_false(place(4, hosts, 8 / hosts));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_at_once),		 TEST(test_same_rows),	  TEST(test_not_silent),
	    TEST(test_common_slowdown),	 TEST(test_lighter),	  TEST(test_heavier),
	    TEST(test_lighter_before),	 TEST(test_nearly_all),	  TEST(test_place),
	    TEST(test_fixed_work),	 TEST(test_socket),	  TEST(test_lighter_in_variance),
	    TEST(test_lighter_long_ago), TEST(test_half_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
