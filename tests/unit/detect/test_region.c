/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "painted.h"

#include "detect/variance.h"

static void test_region_basic(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 0, 50, VAPRO_COMPUTATION, 0.95, false);
	paint(1, 0, 50, VAPRO_COMPUTATION, 0.95, false);
	assert_int_equal(grown(&result), 0);
	region__clear(&result);
	/* One cell is no region, two are; ranks join. */
	paint(3, 5, 6, VAPRO_COMPUTATION, 0.2, false);
	assert_int_equal(grown(&result), 0);
	region__clear(&result);
	paint(3, 20, 26, VAPRO_COMPUTATION, 0.5, false);
	paint(2, 24, 30, VAPRO_COMPUTATION, 0.5, false);
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 20, 30);
	assert_int_equal(result.drafts[0].cell_count, 12);
	assert_near(result.drafts[0].lost[VAPRO_COMPUTATION], 12 * 0.4995 * BIN, 0.1 * BIN);
	region__clear(&result);
}

static void test_region_needs_loss(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 10; bin < 13; bin++) {
		struct bundle_rec rec = fragment(bin, bin + 0.15, 0.1 * BIN, 0);

		heatmap__add(&map, &rec, 0, VAPRO_COMPUTATION, 0, UINT64_MAX);
	}
	assert_int_equal(grown(&result), 0);
	region__clear(&result);
}

static void test_region_bridges(void **state)
{
	struct region_result result;

	(void)state;
	/* A null of two bins, then a fast bin, are bridged; a gap of three bins is not. */
	paint(0, 5, 8, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 10, 13, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 13, 14, VAPRO_COMPUTATION, 0.9, true);
	paint(0, 14, 16, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 19, 22, VAPRO_COMPUTATION, 0.5, true);
	assert_int_equal(grown(&result), 2);
	assert_bins(&result.drafts[0], 5, 16);
	assert_int_equal(result.drafts[1].begin, FIRST + 19);
	region__clear(&result);
}

/* A loss that varies about the threshold does not end where it crosses the threshold. */
static void test_region_about_the_threshold(void **state)
{
	struct region_result result;

	(void)state;
	/* time that the kernel attributes to others, also before and after cells that are slow enough */
	paint(0, 5, 8, VAPRO_COMPUTATION, 0.95, true);
	paint(0, 8, 10, VAPRO_COMPUTATION, 0.91, true);
	paint(0, 10, 14, VAPRO_COMPUTATION, 0.8, true);
	paint(0, 14, 18, VAPRO_COMPUTATION, 0.91, true);
	paint(0, 18, 20, VAPRO_COMPUTATION, 0.8, true);
	paint(0, 20, 23, VAPRO_COMPUTATION, 0.91, true);
	/* time that is not attributed may be jitter */
	paint(2, 28, 30, VAPRO_COMPUTATION, 0.9, false);
	paint(2, 30, 36, VAPRO_COMPUTATION, 0.75, false);
	paint(2, 36, 38, VAPRO_COMPUTATION, 0.9, false);
	assert_int_equal(grown(&result), 2);
	assert_int_equal(result.drafts[0].begin, FIRST + 8);
	assert_int_equal(result.drafts[0].end, FIRST + 23);
	assert_int_equal(result.drafts[0].cell_count, 15);
	assert_int_equal(result.drafts[1].begin, FIRST + 30);
	assert_int_equal(result.drafts[1].end, FIRST + 36);
	assert_int_equal(result.drafts[1].cell_count, 6);
	region__clear(&result);
}

/* A rank waits for another one between short computations: no cell shows that its hog has gone meanwhile. */
static void test_region_unseen(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 10; bin < 40; bin += 5)
		paint(0, bin, bin + 3, VAPRO_COMPUTATION, 0.79, true);
	/* time that is not attributed may be jitter */
	for (int bin = 10; bin < 40; bin += 5)
		paint(2, bin, bin + 2, VAPRO_COMPUTATION, 0.79, false);
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 10, 38);
	region__clear(&result);
}

/* A light disturbance before and after a hog does not move the hog's begin and end, even if it is attributed. */
static void test_region_light_disturbance(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 2, 20, VAPRO_COMPUTATION, 0.91, true);
	paint(0, 20, 35, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 35, 45, VAPRO_COMPUTATION, 0.91, true);
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 20, 35);
	region__clear(&result);
}

static void test_region_weak_neighbours(void **state)
{
	struct region_result result;

	(void)state;
	/* The neighbour is a little slow for much longer: it must not move begin and end. */
	paint(0, 20, 30, VAPRO_COMPUTATION, 0.3, true);
	for (int bin = 10; bin < 40; bin++) {
		struct bundle_rec rec = fragment(bin, bin + 0.3, 0.25 * BIN, 0);

		heatmap__add(&map, &rec, 1, VAPRO_COMPUTATION, 0, UINT64_MAX);
	}
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 20, 30);
	region__clear(&result);
}

/* One bin with little time stolen by the kernel: a variance if it makes the whole bin slow, only counted if not. */
static void test_region_light_bin(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 20, 21, VAPRO_COMPUTATION, 0.89, true);
	assert_int_equal(grown(&result), 0);
	assert_int_equal(result.small_count, 1);
	region__clear(&result);
	other_job(4, 1);
	paint(0, 20, 21, VAPRO_COMPUTATION, 0.8, true);
	assert_int_equal(grown(&result), 1);
	region__clear(&result);
}

/* Ranks wait again, in a much lower ratio, after a fault in calls: not where calls have not ended yet.
 */
static void test_region_waits_after(void **state)
{
	static const struct {
		double performance;
		bool open;
		int end;
	} diagnoses[] = {{0.7, false, 20}, {0.45, false, 22}, {0.7, true, 22}};
	struct region_result result;

	(void)state;
	for (size_t i = 0; i < sizeof(diagnoses) / sizeof(*diagnoses); i++) {
		other_job(4, 1);
		for (uint32_t row = 0; row < 4; row++) {
			paint(row, 10, 20, VAPRO_COMMUNICATION, 0.3, false);
			for (int bin = 20; bin < 22; bin++) {
				struct bundle_rec rec =
				    fragment(bin, bin + 0.999, 0.999 * diagnoses[i].performance * BIN, 0);

				rec.flags = diagnoses[i].open ? VAPRO_BUNDLE_OPEN : 0;
				heatmap__add(&map, &rec, row, VAPRO_COMMUNICATION, 0, UINT64_MAX);
			}
		}
		/* what is cut off is another one */
		assert_int_equal(grown(&result), diagnoses[i].end == 20 ? 2 : 1);
		assert_bins(&result.drafts[0], 10, diagnoses[i].end);
		if (result.count == 2)
			assert_bins(&result.drafts[1], 20, 22);
		region__clear(&result);
	}
}

static void test_region_classes(void **state)
{
	struct region_result result;

	(void)state;
	/* Suspended in computation, then in calls, on one rank: one; its neighbour waiting: another. */
	paint(0, 10, 14, VAPRO_COMPUTATION, 0.5, true);
	paint(0, 14, 18, VAPRO_COMMUNICATION, 0.5, true);
	paint(0, 18, 22, VAPRO_COMPUTATION, 0.5, true);
	paint(1, 10, 22, VAPRO_COMMUNICATION, 0.1, false);
	assert_int_equal(grown(&result), 2);
	assert_true(result.drafts[0].has[VAPRO_COMPUTATION] && result.drafts[0].has[VAPRO_COMMUNICATION]);
	assert_false(result.drafts[0].waiting);
	assert_bins(&result.drafts[0], 10, 22);
	assert_true(result.drafts[1].waiting);
	region__clear(&result);
}

/* A bad host among eight, cyclic placement: one region, whatever the numbers of its ranks. */
static void test_region_cyclic(void **state)
{
	struct variance_book book = {.last_id = &(uint32_t){0}};
	struct region_result result;

	(void)state;
	other_job(64, 8);
	for (uint32_t rank = 3; rank < 64; rank += 8)
		paint(rank, 10, 30, VAPRO_COMPUTATION, 0.5, true);
	assert_int_equal(grown(&result), 1);
	assert_int_equal(result.drafts[0].cell_count, 8 * 20);
	/* the ranks of a variance still ascend */
	assert_int_equal(variance__match(&book, &map, job, &result, FIRST + 50, false), 0);
	assert_int_equal(book.count, 1);
	assert_int_equal(book.variances[0].row_count, 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(job->rows[book.variances[0].rows[i]].rank, 3 + 8 * i);
	variance__free(&book);
	region__clear(&result);
}

/* One calm rank of a bad host is no border; where half of them are calm each slow one is by itself. */
static void test_region_calm_rows(void **state)
{
	struct region_result result;

	(void)state;
	other_job(64, 8);
	for (uint32_t rank = 3; rank < 64; rank += 8) {
		if (rank != 27)
			paint(rank, 10, 30, VAPRO_COMPUTATION, 0.5, true);
		if (rank % 16 == 3)
			paint(rank, 35, 45, VAPRO_COMPUTATION, 0.5, true);
	}
	assert_int_equal(grown(&result), 1 + 4);
	assert_int_equal(result.drafts[0].cell_count, 7 * 20);
	for (int i = 1; i < 5; i++)
		assert_int_equal(result.drafts[i].cell_count, 10);
	region__clear(&result);
}

/* Another time or another ratio makes another region, also on a host that is bad as a whole. */
static void test_region_disagree(void **state)
{
	struct region_result result;

	(void)state;
	other_job(14, 2);
	for (uint32_t rank = 0; rank < 14; rank += 2) {
		if (rank != 6)
			paint(rank, rank < 6 ? 10 : 22, 40, VAPRO_COMPUTATION, 0.5, true);
		if (rank != 6)
			paint(rank + 1, 10, 40, VAPRO_COMPUTATION, rank < 6 ? 0.4 : 0.7, true);
	}
	assert_int_equal(grown(&result), 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(result.drafts[i].cell_count, i == 1 ? 3 * 18 : 3 * 30);
	region__clear(&result);
}

/* Neighbours of clearly different ratio, or time, are two regions; the kernel attributes nothing of either. */
static void test_region_levels(void **state)
{
	struct region_result result;

	(void)state;
	paint(0, 5, 35, VAPRO_COMPUTATION, 1 / 2.0, false);
	paint(1, 7, 35, VAPRO_COMPUTATION, 1 / 1.4, false);
	paint(2, 24, 48, VAPRO_COMPUTATION, 1 / 1.4, false);
	assert_int_equal(grown(&result), 3);
	assert_near(result.drafts[0].lost[VAPRO_COMPUTATION], 30 * 0.5 * BIN, 0.1 * BIN);
	assert_near(result.drafts[1].lost[VAPRO_COMPUTATION], 28 * 0.286 * BIN, 0.1 * BIN);
	assert_bins(&result.drafts[1], 7, 35);
	assert_bins(&result.drafts[2], 24, 48);
	region__clear(&result);
}

/* A row between rows that agree does not split their region. */
static void test_region_odd_one(void **state)
{
	struct region_result result;

	(void)state;
	other_job(16, 2);
	for (uint32_t rank = 0; rank < 16; rank++)
		paint(rank, 10, 40, VAPRO_COMPUTATION, rank == 6 ? 0.3 : 0.7, false);
	assert_int_equal(grown(&result), 2);
	assert_int_equal(result.drafts[0].cell_count, 15 * 30);
	assert_int_equal(result.drafts[1].cell_count, 30);
	assert_int_equal(result.drafts[1].cells[0].row, 6);
	region__clear(&result);
}

/* A hog's share of a bin varies, and short rows say little: neither makes another region. */
static void test_region_wanders(void **state)
{
	static const double wanders[] = {0.8, 0.3, 0.6, 0.2, 0.7};
	struct region_result result;

	(void)state;
	for (int bin = 10; bin < 20; bin++) {
		paint(0, bin, bin + 1, VAPRO_COMPUTATION, wanders[bin % 5], true);
		paint(1, bin, bin + 1, VAPRO_COMPUTATION, 0.15 + wanders[(bin * 3 + 1) % 5], true);
	}
	paint(2, 30, 34, VAPRO_COMPUTATION, 0.4, true);
	paint(3, 31, 34, VAPRO_COMPUTATION, 0.7, true);
	assert_int_equal(grown(&result), 2);
	region__clear(&result);
}

/* Two ranks are suspended in computation and in calls, by different shares: each is one region of both classes. */
static void test_region_two_hogs(void **state)
{
	struct region_result result;

	(void)state;
	for (int bin = 10; bin < 40; bin += 10) {
		paint(0, bin, bin + 5, VAPRO_COMPUTATION, 0.35, true);
		paint(0, bin + 5, bin + 10, VAPRO_COMMUNICATION, 0.35, true);
		paint(1, bin, bin + 5, VAPRO_COMPUTATION, 0.75, true);
		paint(1, bin + 5, bin + 10, VAPRO_COMMUNICATION, 0.75, true);
	}
	assert_int_equal(grown(&result), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(result.drafts[i].cell_count, 30);
		assert_true(result.drafts[i].has[VAPRO_COMPUTATION] && result.drafts[i].has[VAPRO_COMMUNICATION]);
	}
	region__clear(&result);
}

/* Paints calls that wait and transfer for so much of a bin. */
static void paint_calls(uint32_t row, int from, int to, double late, double transfer)
{
	for (int bin = from; bin < to; bin++) {
		struct bundle_rec rec = fragment(bin, bin + late + transfer + 0.02, 0.02 * BIN, 0);

		heatmap__add(&map, &rec, row, VAPRO_COMMUNICATION, 0, UINT64_MAX);
		heatmap__add_wait(&map, HEATMAP_LATE, row, FIRST + (uint64_t)bin, (float)(late * BIN));
		heatmap__add_wait(&map, HEATMAP_TRANSFER, row, FIRST + (uint64_t)bin, (float)(transfer * BIN));
	}
}

/* A network that is slow for all ranks while they wait for a late one: two drafts, each with its part of the loss. */
static void test_region_transfers_beside_waiting(void **state)
{
	struct region_result result;

	(void)state;
	for (uint32_t row = 0; row < 4; row++) {
		paint_calls(row, 10, 20, row ? 0.5 : 0, 0);
		paint_calls(row, 20, 30, row ? 0.5 : 0, 0.2);
		paint_calls(row, 30, 40, 0, 0.2);
	}
	paint(0, 10, 30, VAPRO_COMPUTATION, 0.5, true);
	assert_int_equal(grown(&result), 3);
	for (int i = 1; i < 3; i++) {
		const struct draft *draft = &result.drafts[i];

		assert_true(draft->waiting);
		assert_bins(draft, draft->transfers ? 20 : 10, draft->transfers ? 40 : 30);
		assert_near(draft->lost[VAPRO_COMMUNICATION] / BIN, draft->transfers ? 4 * 20 * 0.2 : 3 * 20 * 0.5,
			    0.01);
	}
	assert_true(result.drafts[1].transfers != result.drafts[2].transfers);
	region__clear(&result);
}

/* How much of its time a rank loses to slow transfers depends on what it usually waits: beside each other or apart. */
static void test_region_transfers_of_different_shares(void **state)
{
	struct region_result result;

	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		other_job(4, 1);
		for (uint32_t row = 0; row < 4; row++) {
			if (!apart || row % 3 == 0)
				paint_calls(row, 10, 40, 0, !row ? 0.3 : apart ? 0.034 : 0.033);
		}
		assert_int_equal(grown(&result), 1);
		assert_true(result.drafts[0].transfers);
		assert_int_equal(result.drafts[0].cell_count, (apart ? 2 : 4) * 30);
		region__clear(&result);
	}
}

/* When a network becomes slow, not all ranks are in slow calls yet: these belong to it, where no rank was late. */
static void test_region_borders_of_transfers(void **state)
{
	struct region_result result;

	(void)state;
	for (int late = 0; late < 2; late++) {
		other_job(4, 1);
		for (uint32_t row = 0; row < 4; row++) {
			paint_calls(row, 18, 20, row ? 0.3 : 0, 0);
			paint_calls(row, 20, 30, 0, 0.2);
		}
		if (late)
			paint(0, 17, 20, VAPRO_COMPUTATION, 0.5, true);
		assert_int_equal(grown(&result), late ? 3 : 1);
		assert_bins(&result.drafts[result.count - 1], late ? 20 : 18, 30);
		region__clear(&result);
	}
}

/* Writes of two ranks on different hosts that are slow alike, every third bin: one draft, and not many of one bin. */
static void test_region_sparse_io(void **state)
{
	struct region_result result;

	(void)state;
	other_job(8, 4);
	for (int bin = 10; bin < 40; bin += 3) {
		for (uint32_t row = 0; row < 8; row++) {
			double slow = row == 1 || row == 6 ? 0.2 : 0;
			struct bundle_rec rec = fragment(bin, bin + 0.15 + slow, 0.15 * BIN, 0);

			heatmap__add(&map, &rec, row, VAPRO_IO, 0, UINT64_MAX);
		}
	}
	assert_int_equal(grown(&result), 1);
	assert_bins(&result.drafts[0], 10, 38);
	assert_near(result.drafts[0].lost[VAPRO_IO] / BIN, 2 * 10 * 0.2, 0.01);
	assert_int_equal(result.small_count, 0);
	region__clear(&result);
}

/* All that slow cells of calls and IO lost is in drafts, or counted as small. */
static void test_region_loses_nothing(void **state)
{
	uint64_t seed = 9;

	(void)state;
	for (int round = 0; round < 20; round++) {
		double slow = 0, found = 0;
		struct region_result result;

		other_job(8, 2);
		for (uint32_t row = 0; row < 8; row++) {
			for (int bin = 5; bin < 45; bin++) {
				double late = fmax(0, 0.2 * sim_gauss(&seed)), transfer = bin > 20 ? 0.1 : 0;

				paint_calls(row, bin, bin + 1, fmin(late, 0.8), transfer);
				slow += (late > 0.02 ? fmin(late, 0.8) : 0) + transfer;
			}
		}
		grown(&result);
		for (size_t i = 0; i < result.count; i++)
			found += result.drafts[i].lost[VAPRO_COMMUNICATION] / BIN;
		found += result.small_ns / BIN;
		assert_true(found > 0.9 * slow);
		assert_true(found < 1.01 * slow);
		region__clear(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_region_basic),
	    TEST(test_region_needs_loss),
	    TEST(test_region_bridges),
	    TEST(test_region_about_the_threshold),
	    TEST(test_region_light_disturbance),
	    TEST(test_region_unseen),
	    TEST(test_region_weak_neighbours),
	    TEST(test_region_light_bin),
	    TEST(test_region_waits_after),
	    TEST(test_region_classes),
	    TEST(test_region_cyclic),
	    TEST(test_region_calm_rows),
	    TEST(test_region_disagree),
	    TEST(test_region_levels),
	    TEST(test_region_odd_one),
	    TEST(test_region_wanders),
	    TEST(test_region_two_hogs),
	    TEST(test_region_transfers_beside_waiting),
	    TEST(test_region_transfers_of_different_shares),
	    TEST(test_region_borders_of_transfers),
	    TEST(test_region_sparse_io),
	    TEST(test_region_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
