// SPDX-License-Identifier: GPL-2.0-or-later
/* Excess in calls of a few ranks only, while no rank was late: the third part beside transfer and late peer. */
#include "called.h"

static int setup_eight(void **state)
{
	setup(state);
	other_job(8, 2);
	return 0;
}

#define EIGHT(f) cmocka_unit_test_setup_teardown(f, setup_eight, teardown)

/* One rank of eight loses time in merged and in single calls, while the others do not. */
static void test_one_of_several(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 8; rank++) {
		calls(0, rank, 10, rank == 3 ? 0.3 : 0);
		call(1, rank, 20.1, rank == 3 ? 20.4 : 20.1 + USUAL);
		call(1, rank, 30.5, rank == 3 ? 32.5 : 30.5 + USUAL);
	}
	end_calls();
	assert_parts(3, 10, 0, 0, 0.3);
	assert_parts(3, 20, 0, 0, 0.3 - USUAL);
	assert_parts(3, 31, 0, 0, (2 - USUAL) / 2);
	for (uint32_t rank = 0; rank < 8; rank++) {
		if (rank == 3)
			continue;
		assert_parts(rank, 10, 0, 0, 0);
		assert_parts(rank, 31, 0, 0, 0);
	}
}

/* Many short excesses of a bin count together, however small each is. */
static void test_many_short_ones(void **state)
{
	(void)state;
	begin_calls();
	for (int k = 0; k < 20; k++)
		for (uint32_t rank = 0; rank < 8; rank++)
			call(0, rank, 10.04 + 0.04 * k, 10.04 + 0.04 * k + (rank == 6 ? 1.5 : 1) * USUAL);
	end_calls();
	assert_parts(6, 10, 0, 0, 20 * 0.5 * USUAL);
}

/* The loss of another rank in computation or IO before the call, in bins. */
static const struct {
	uint32_t rank;
	int bin;
	double lost;
	enum vapro_class class;
	double longest; /* computation or IO, which may delay others as long */
	bool path;
} late_cases[] = {
    {5, 20, 0.3, VAPRO_COMPUTATION, 0, false},
    {5, 20, 0.3, VAPRO_IO, 0, false},
    /* less than half of the excess explains no waiting */
    {5, 20, 0.1, VAPRO_COMPUTATION, 0, true},
    /* shortly before: as long as a fragment, and two bins */
    {5, 19, 0.3, VAPRO_COMPUTATION, 0.1, false},
    {5, 18, 0.3, VAPRO_COMPUTATION, 0.1, false},
    {5, 17, 0.3, VAPRO_COMPUTATION, 0.1, true},
    {5, 12, 0.3, VAPRO_COMPUTATION, 8, false},
    {5, 21, 0.3, VAPRO_COMPUTATION, 8, true},
    /* the rank's own loss makes it late in the next call */
    {3, 20, 0.3, VAPRO_COMPUTATION, 0, false},
};

/* While a rank was late the others may have waited for it. */
static void test_late_peers(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(late_cases) / sizeof(late_cases[0]); c++) {
		double late, path;

		other_job(8, 2);
		paint(late_cases[c].rank, late_cases[c].bin, late_cases[c].bin + 1, late_cases[c].class,
		      1 - late_cases[c].lost, false);
		begin_calls();
		if (late_cases[c].longest > 0)
			waiting__reach(waiting, late_cases[c].longest * BIN);
		for (uint32_t rank = 0; rank < 8; rank++)
			calls(0, rank, 20, rank == 3 ? 0.4 : 0);
		end_calls();
		late = waited(HEATMAP_LATE, 3, 20) / BIN;
		path = waited(HEATMAP_PATH, 3, 20) / BIN;
		if (fabs(path - (late_cases[c].path ? 0.4 : 0)) > 1e-4 || fabs(late + path - 0.4) > 1e-4)
			fail_msg("case %d: late %g path %g", (int)c, late, path);
	}
}

/* The losses of several bins before add up, and those of several ranks do not. */
static void test_late_by_little(void **state)
{
	(void)state;
	for (int spread_rows = 0; spread_rows < 2; spread_rows++) {
		other_job(8, 2);
		for (int k = 0; k < 3; k++)
			paint(spread_rows ? (uint32_t)k : 5, 18 + k, 19 + k, VAPRO_COMPUTATION, 0.9, false);
		begin_calls();
		waiting__reach(waiting, 0.1 * BIN);
		for (uint32_t rank = 0; rank < 8; rank++)
			calls(0, rank, 20, rank == 3 ? 0.4 : 0);
		end_calls();
		assert_parts(3, 20, spread_rows ? 0 : 0.4, 0, spread_rows ? 0.4 : 0);
	}
}

#define TRANSFER 0.3 /* of a long call, in bins */

static void long_call(uint32_t rank, double from, double to, bool open)
{
	struct bundle_rec rec = fragment(from, to, TRANSFER * BIN, 0);

	rec.flags |= open ? VAPRO_BUNDLE_OPEN : 0;
	add_call(0, rank, rec, STG_WORLD);
}

/*
 * Long calls: rank 3 arrives late from a slow call and stays long in the next one; its partners wait first for rank 3,
 * then for the transfer. Its own call ends more than a bin later than theirs, or has not ended yet.
 */
static void test_partners(void **state)
{
	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		other_job(8, 2);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++) {
			if (rank == 3)
				long_call(3, 10.5, ended ? 11.9 : 10.75, !ended);
			else
				long_call(rank, 10.2, rank == 2 || rank == 4 ? 10.8 : 10.5, false);
		}
		end_calls();
		assert_parts(2, 10, 0.3, 0, 0);
		assert_parts(4, 10, 0.3, 0, 0);
		assert_parts(3, 11, 0, 0, ended ? (1.4 - TRANSFER) * 0.9 / 1.4 : 0);
	}
}

/* A rank that is later than the slow one by less than half of its excess is not waited for. */
static void test_a_little_later(void **state)
{
	(void)state;
	for (int half = 0; half < 2; half++) {
		other_job(8, 2);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++) {
			double from = rank != 5 ? 10.1 : half ? 10.35 : 10.25;

			long_call(rank, from, rank == 3 ? 10.8 : from + TRANSFER, false);
		}
		end_calls();
		assert_parts(3, 10, half ? 0.4 : 0, 0, half ? 0 : 0.4);
	}
}

/* The partner waits for the slow rank: its excess is smaller, and it is on no slow path. */
static void test_neighbour(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 8; rank++) {
		calls(0, rank, 10, rank == 3 ? 0.5 : rank == 4 ? 0.2 : 0);
		calls(0, rank, 20, rank == 3 ? 0.5 : rank == 4 ? 0.45 : 0);
		calls(0, rank, 30, rank == 3 ? 0.5 : rank == 4 || rank == 5 ? 0.45 : 0);
	}
	end_calls();
	assert_parts(3, 10, 0, 0, 0.5);
	assert_parts(4, 10, 0.2, 0, 0);
	/* two of eight may share a slow path; three are the rule, not the exception */
	assert_parts(3, 20, 0, 0, 0.5);
	assert_parts(4, 20, 0, 0, 0.45);
	for (uint32_t rank = 3; rank < 6; rank++)
		assert_parts(rank, 30, rank == 3 ? 0.5 : 0.45, 0, 0);
}

/* At a call-site of two ranks neither can be called usual. */
static void test_few_members(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 3; ranks++) {
		other_job(ranks, 1);
		begin_calls();
		for (uint32_t rank = 0; rank < ranks; rank++)
			calls(0, rank, 10, rank == 1 ? 0.4 : 0);
		end_calls();
		assert_parts(1, 10, ranks == 2 ? 0.4 : 0, 0, ranks == 2 ? 0 : 0.4);
	}
}

/* Scatter is no slow path: less than a hundredth of the bin, or little compared with the calls' time. */
static void test_too_small(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 8; rank++) {
		calls(0, rank, 10, rank == 3 ? 0.008 : 0);
		/* 60 calls take 0.6 of the bin */
		add_call(0, rank, merged(20, 60, rank == 3 ? 0.08 : 0), STG_WORLD);
		add_call(0, rank, merged(30, 60, rank == 3 ? 0.1 : 0), STG_WORLD);
	}
	end_calls();
	assert_parts(3, 10, 0.008, 0, 0);
	assert_parts(3, 20, 0.08, 0, 0);
	assert_parts(3, 30, 0, 0, 0.1);
}

/* A rank that computes less in the view arrives early and waits for the difference. */
static void test_less_to_compute(void **state)
{
	(void)state;
	for (int c = 0; c < 3; c++) {
		double computing[8], less = c == 0 ? 0 : c == 1 ? 0.3 : 0.1;

		other_job(8, 2);
		for (uint32_t rank = 0; rank < 8; rank++)
			computing[rank] = (rank == 3 ? 10 - less : 10) * BIN;
		assert_int_equal(stg__set_computing(stg, 0, computing, NULL), 0);
		job = stg__job(stg, 0);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++)
			calls(0, rank, 10, rank == 3 ? 0.4 : 0);
		end_calls();
		assert_parts(3, 10, c == 1 ? 0.4 : 0, 0, c == 1 ? 0 : 0.4);
	}
}

/* A rank that makes fewer calls, and computes as much between two, does not wait for others: it goes its own way. */
static void test_fewer_calls(void **state)
{
	(void)state;
	for (int c = 0; c < 2; c++) {
		double computing[8], made[8];

		other_job(8, 2);
		for (uint32_t rank = 0; rank < 8; rank++) {
			computing[rank] = (rank == 3 ? 9.5 : 10) * BIN;
			made[rank] = rank == 3 && c ? 95 : 100;
		}
		assert_int_equal(stg__set_computing(stg, 0, computing, made), 0);
		job = stg__job(stg, 0);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++)
			calls(0, rank, 10, rank == 3 ? 0.4 : 0);
		end_calls();
		assert_parts(3, 10, c ? 0 : 0.4, 0, c ? 0.4 : 0);
	}
}

/*
 * A program of its own on one rank makes half as many calls in all. Where it meets the others in as many calls as they
 * make, it waits for the one that computes more; where it makes fewer of these, too, it goes its own way.
 */
static void test_coupled_programs(void **state)
{
	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		double computing[8], made[8];

		other_job(8, 2);
		for (uint32_t rank = 0; rank < 8; rank++) {
			computing[rank] = (rank == 3 ? 9.5 : 10) * BIN;
			made[rank] = rank == 3 ? 50 : 100;
		}
		assert_int_equal(stg__set_computing(stg, 0, computing, made), 0);
		job = stg__job(stg, 0);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++) {
			callers[rank].view_n = rank == 3 && apart ? 19 : 20;
			calls(0, rank, 10, rank == 3 ? 0.4 : 0);
		}
		end_calls();
		assert_parts(3, 10, apart ? 0 : 0.4, 0, apart ? 0.4 : 0);
	}
}

/*
 * All ranks have long calls in turn. Where the others make further calls meanwhile, ranks do not meet in them, and each
 * excess is the rank's own. Where each waits for the one call of a late rank, it does not.
 */
static void test_uncoupled(void **state)
{
	(void)state;
	for (int met = 0; met < 2; met++) {
		other_job(8, 2);
		begin_calls();
		for (uint32_t slow = 0; slow < 8; slow++) {
			call(0, slow, 10 + slow, 10.9 + slow);
			for (uint32_t rank = 0; rank < 8; rank++) {
				for (int k = 0; rank != slow && k < (met ? 1 : 8); k++) {
					double begin = 10 + slow + (met ? 0.8 : 0.1 * k);

					call(0, rank, begin, begin + USUAL);
				}
			}
		}
		end_calls();
		for (uint32_t slow = 0; slow < 8; slow++)
			assert_parts(slow, 10 + (int)slow, met ? 0.9 - USUAL : 0, 0, met ? 0 : 0.9 - USUAL);
	}
}

/* What the ranks of a job compute at a time, in bins, and whether another rank is in a long call in the middle of each.
 */
static const struct {
	double longest;
	bool beside;
	bool path;
} long_cases[] = {{0.05, false, true}, {0.05, true, false}, {0.2, false, false}, {0, false, false}};

/*
 * All ranks have long calls in turn, beside which the others' are merged, so that none shows a beginning. Where no rank
 * computes as long at a time, and none is in such a call itself, no rank can be late for them.
 */
static void test_no_rank_late(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof(long_cases) / sizeof(long_cases[0]); c++) {
		other_job(8, 2);
		begin_calls();
		if (long_cases[c].longest > 0)
			waiting__reach(waiting, long_cases[c].longest * BIN);
		for (uint32_t rank = 0; rank < 8; rank++) {
			double begin = 10 + 0.12 * rank;

			call(0, rank, begin, begin + 0.1);
			if (long_cases[c].beside)
				call(1, (rank + 1) % 8, begin + 0.01, begin + 0.09);
			calls(0, rank, 10, 0);
		}
		end_calls();
		for (uint32_t rank = 0; rank < 8; rank++) {
			double path = waited(HEATMAP_PATH, rank, 10) / BIN;

			if (fabs(path - (long_cases[c].path ? 0.1 - USUAL : 0)) > 1e-4)
				fail_msg("case %zu, rank %u: path %g", c, rank, path);
		}
	}
}

/* Threads that wait for each other have no network between them. */
static void test_threads(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 8; rank++)
		add_call(0, rank, merged(10, 10, rank == 3 ? 0.4 : 0), STG_PROCESS);
	end_calls();
	assert_near(waited(HEATMAP_PATH, 3, 10), 0, 0);
}

/* Two ranks that reach a call-site from several states are still two: too few to be compared. */
static void test_several_states(void **state)
{
	(void)state;
	other_job(2, 2);
	begin_calls();
	callers[1].next = 2;
	callers[2].workload = callers[3].workload = 0;
	calls(0, 0, 10, 0);
	calls(0, 1, 10, 0.4);
	end_calls();
	assert_parts(1, 10, 0.4, 0, 0);
}

/* All ranks wait in one operation, a transfer of all: only excess beyond it is one rank's slow path. */
static void test_beside_transfer(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 8; rank++)
		calls(0, rank, 10, rank == 3 ? 0.5 : 0.2);
	end_calls();
	assert_parts(3, 10, 0, 0.2, 0.3);
	assert_parts(4, 10, 0, 0.2, 0);
}

/*
 * In the bin in which a path becomes fast again its rank has an excess in the collective as well, the least one: the
 * others waited for what it lost in its own calls, which is no transfer of all.
 */
static void test_path_in_other_calls(void **state)
{
	(void)state;
	for (int path = 0; path < 2; path++) {
		other_job(8, 2);
		begin_calls();
		for (uint32_t rank = 0; rank < 8; rank++) {
			calls(0, rank, 10, rank == 3 && path ? 0.3 : 0);
			calls(1, rank, 10, rank == 3 ? 0.2 : 0.3);
		}
		end_calls();
		assert_parts(3, 10, path ? 0.2 : 0, path ? 0 : 0.2, path ? 0.3 : 0);
		assert_parts(4, 10, path ? 0.3 : 0.1, path ? 0 : 0.2, 0);
	}
}

/*
 * Before the view ranks with unknown calls may have been as slow: one of eight changes nothing, and a rank alone with
 * known calls is on no slow path.
 */
static void test_just_known(void **state)
{
	(void)state;
	begin_calls_after(30);
	for (uint32_t rank = 0; rank < 8; rank++) {
		if (rank != 5)
			call(0, rank, 20.1, rank == 3 ? 20.4 : 20.1 + USUAL);
	}
	call(1, 3, 25.1, 25.4);
	end_calls();
	assert_parts(3, 20, 0, 0, 0.3 - USUAL);
	assert_parts(3, 25, 0.3 - USUAL, 0, 0);
}

/* Slow paths are a separate layer of the map: a variance is marked as one, and is no waiting. */
static void test_draft(void **state)
{
	struct region_result result;

	(void)state;
	paint(3, 10, 20, VAPRO_COMMUNICATION, 0.4, false);
	begin_calls();
	for (int bin = 10; bin < 20; bin++)
		for (uint32_t rank = 0; rank < 8; rank++)
			calls(0, rank, bin, rank == 3 ? 0.6 : 0);
	end_calls();
	assert_int_equal(grown(&result), 1);
	assert_true(result.drafts[0].path && !result.drafts[0].waiting);
	for (size_t i = 0; i < result.drafts[0].cell_count; i++)
		assert_int_equal(result.drafts[0].cells[i].row, 3);
	region__clear(&result);
}

/* Paints a bin in which a rank's calls take `took` of it, nearly all of that on a slow path. */
static void paint_path(int bin, double took)
{
	struct bundle_rec rec = fragment(bin, bin + took, 0.1 * took * BIN, 0);

	assert_int_equal(heatmap__add(&map, &rec, 3, VAPRO_COMMUNICATION, 0, UINT64_MAX), 0);
	assert_int_equal(heatmap__add_wait(&map, HEATMAP_PATH, 3, FIRST + (uint64_t)bin, (float)(0.9 * took * BIN)), 0);
}

/* A path that is hit at random: bins with one hit have too few calls to be judged, and lie between those with several.
 */
static void test_sparse(void **state)
{
	struct region_result result;

	(void)state;
	for (int hits = 0; hits < 2; hits++) {
		other_job(8, 2);
		paint_path(10, 0.5);
		for (int bin = 12; hits && bin < 20; bin += 2)
			paint_path(bin, 0.05);
		paint_path(20, 0.5);
		assert_int_equal(grown(&result), 1);
		assert_int_equal(result.drafts[0].cell_count, hits ? 6 : 2);
		region__clear(&result);
	}
}

/* Whether one draft has cells in both bins. */
static bool are_one(const struct region_result *result, int bin, int other)
{
	for (size_t i = 0; i < result->count; i++) {
		int found = 0;

		for (size_t k = 0; k < result->drafts[i].cell_count; k++) {
			uint64_t at = result->drafts[i].cells[k].bin;

			found += at == FIRST + (uint64_t)bin || at == FIRST + (uint64_t)other;
		}
		if (found == 2)
			return true;
	}
	return false;
}

/*
 * A path that is worth a region goes on over many bins of few calls, where these are slow together: not where the path
 * costs little so far, or the calls between are fast.
 */
static void test_sparse_for_long(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		bool worth = c & 1, slow = c & 2;
		struct region_result result;

		other_job(8, 2);
		paint_path(9, worth ? 0.9 : 0.2);
		paint_path(10, worth ? 0.9 : 0.2);
		for (int bin = 11; bin < 30; bin++) {
			struct bundle_rec rec = fragment(bin, bin + 0.03, 0.03 * BIN, 0);

			assert_int_equal(heatmap__add(&map, &rec, 3, VAPRO_COMMUNICATION, 0, UINT64_MAX), 0);
			if (slow && bin % 2)
				paint_path(bin, 0.03);
		}
		paint_path(30, 0.9);
		paint_path(31, 0.9);
		assert_true(grown(&result) >= 1);
		if (are_one(&result, 10, 30) != (worth && slow))
			fail_msg("worth %d, slow %d: %zu drafts", worth, slow, result.count);
		region__clear(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    EIGHT(test_one_of_several),	 EIGHT(test_many_short_ones),
	    EIGHT(test_late_peers),	 EIGHT(test_late_by_little),
	    EIGHT(test_neighbour),	 EIGHT(test_few_members),
	    EIGHT(test_too_small),	 EIGHT(test_less_to_compute),
	    EIGHT(test_fewer_calls),	 EIGHT(test_coupled_programs),
	    EIGHT(test_uncoupled),	 EIGHT(test_threads),
	    EIGHT(test_beside_transfer), EIGHT(test_path_in_other_calls),
	    EIGHT(test_sparse),		 EIGHT(test_draft),
	    EIGHT(test_several_states),	 EIGHT(test_partners),
	    EIGHT(test_a_little_later),	 EIGHT(test_just_known),
	    EIGHT(test_no_rank_late),	 EIGHT(test_sparse_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
