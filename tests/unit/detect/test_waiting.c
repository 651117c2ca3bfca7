// SPDX-License-Identifier: GPL-2.0-or-later
/* Transfer and late peer: by operation where calls are single fragments, by bin where they were merged. */
#include "called.h"

/* Adds an operation at `at` that lasts a tenth: the last rank arrives when the others have waited enough. */
static void operation(double at, uint32_t last, double of_last)
{
	for (uint32_t rank = 0; rank < 4; rank++)
		call(0, rank, rank == last ? at + 0.1 - USUAL - of_last : at, at + 0.1);
}

/*
 * Each operation has another last arriver. By bin every rank has waited for nine tenths of three operations, and the
 * least of that is no transfer: no operation was slow.
 */
static void test_other_arrivers(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		operation(10.05 + 0.2 * rank, rank, 0);
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		assert_parts(rank, 10, 3 * (0.1 - USUAL), 0, 0);
}

static void test_all_are_slow(void **state)
{
	(void)state;
	begin_calls();
	/* no rank is late; then the last rank's call is slow by half of the others' wait */
	for (uint32_t rank = 0; rank < 4; rank++) {
		call(0, rank, 10.1, 10.2);
		call(0, rank, 10.3, 10.4);
	}
	operation(20, 2, 0.04);
	/* ends that lie a little apart are one operation, the next one of each rank another */
	for (uint32_t rank = 0; rank < 4; rank++) {
		call(0, rank, 30 + 0.02 * rank, 30.2 + 0.02 * rank);
		call(0, rank, 30.2 + 0.02 * rank, 30.5 + 0.01 * rank);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 10, 0, 2 * (0.1 - USUAL), 0);
		assert_parts(rank, 20, rank == 2 ? 0 : 0.1 - USUAL - 0.04, 0.04, 0);
		assert_parts(rank, 30, 0.01 * (3 - rank), 0.2 - USUAL + 0.27 - USUAL, 0);
	}
}

/* Where the bytes of calls are unknown none of their excess is called transfer. */
static void test_unknown_bytes(void **state)
{
	const struct stg_state completion = {.no_bytes = true};

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		add_call_of(0, rank, fragment(10.1, 10.2, USUAL * BIN, 0), &completion);
		add_call_of(0, rank, merged(20, 10, 0.3), &completion);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 10, 0.1 - USUAL, 0, 0);
		assert_near(waited(HEATMAP_TRANSFER, rank, 20), 0, 1);
		assert_near(heatmap__late(&map, rank, FIRST + 20) / BIN, 0.3, 0.002);
	}
}

/* Operations that make no cell slow are not inspected: their excess counts as a late peer's. */
static void test_calm(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		/* 1.2 times as long as usual where most calls of the bin are as usual */
		call(0, rank, 10.1, 10.1 + 1.2 * USUAL);
		for (int i = 0; i < 10; i++)
			call(1, rank, 10.2 + 0.03 * i, 10.2 + 0.03 * i + USUAL);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		assert_parts(rank, 10, 0.2 * USUAL, 0, 0);
}

/* Where a rank was not in the operation, or too shortly to be a fragment by itself, nothing is transfer. */
static void test_missing_member(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 1; rank < 4; rank++) {
		call(0, rank, 10.1, 10.4);
		call(0, rank, 20.1, 20.4);
		/* not before the others have left */
		call(0, rank, 30.1, 30.4);
	}
	calls(0, 0, 20, 0.3);
	call(0, 0, 30.4, 30.7);
	end_calls();
	for (uint32_t rank = 1; rank < 4; rank++) {
		assert_parts(rank, 10, 0.3 - USUAL, 0, 0);
		assert_parts(rank, 20, 0.3 - USUAL, 0, 0);
		assert_parts(rank, 30, 0.3 - USUAL, 0, 0);
	}
	assert_int_equal(waited(HEATMAP_TRANSFER, 0, 30), 0);
}

/* Calls of different call-sites are different operations, also at the same time. */
static void test_other_call_sites(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		call(rank / 2, rank, 10.1, 10.4);
	for (uint32_t rank = 0; rank < 4; rank++) {
		call(0, rank, 20.1, 20.4);
		call(1, rank, 20.4, 20.9);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 10, 0.3 - USUAL, 0, 0);
		assert_parts(rank, 20, 0, 0.8 - 2 * USUAL, 0);
	}
}

/* A rank that has ended is no member any more. */
static void test_ended_member(void **state)
{
	(void)state;
	assert_int_equal(stg__thread_seen(stg, 0, 1, (uint64_t)((FIRST + 15) * BIN)), 0);
	job = stg__job(stg, 0);
	begin_calls();
	for (uint32_t rank = 1; rank < 4; rank++) {
		call(0, rank, 10.1, 10.4);
		call(0, rank, 20.1, 20.4);
	}
	end_calls();
	assert_parts(2, 10, 0.3 - USUAL, 0, 0);
	assert_parts(2, 20, 0, 0.3 - USUAL, 0);
}

static void assert_arrivals(int bin, uint32_t operations, uint32_t last, uint32_t row, double late_bins)
{
	const struct heatmap_arrivals *arrivals = &heatmap__bin(&map, FIRST + (uint64_t)bin)->arrivals;

	assert_int_equal(arrivals->operations, operations);
	assert_int_equal(arrivals->last, last);
	assert_int_equal(arrivals->row, row);
	assert_near((double)arrivals->late_ns / BIN, late_bins, 1e-4);
}

/* Of the operations of a bin the rank that was late by most is known, also where its own call was too short. */
static void test_last_arrivals(void **state)
{
	(void)state;
	begin_calls_after(5);
	operation(1, 1, 0);
	operation(10, 1, 0);
	operation(10.2, 2, 0);
	operation(10.4, 1, 0);
	for (uint32_t rank = 1; rank < 4; rank++) {
		call(0, rank, 20.1, 20.4);
		/* two members are not known */
		if (rank > 1)
			call(0, rank, 30.1, 30.4);
	}
	/* all come at once, and their transfers are slow */
	for (uint32_t rank = 0; rank < 4; rank++)
		call(0, rank, 40.1, 40.5);
	end_calls();
	assert_arrivals(10, 3, 2, 1, 2 * (0.1 - USUAL));
	assert_arrivals(20, 1, 1, 0, 0.3);
	assert_arrivals(30, 0, 0, 0, 0);
	assert_arrivals(40, 1, 0, 0, 0);
	/* before the view only what became known now is at hand */
	assert_arrivals(1, 0, 0, 0, 0);
}

/* An operation over several bins has its parts in each of them. */
static void test_long_operation(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		call(0, rank, rank == 3 ? 11.5 : 10.5, 13.5);
	end_calls();
	for (int bin = 10; bin < 14; bin++) {
		double share = bin == 10 || bin == 13 ? 0.5 / 3 : 1.0 / 3;

		assert_parts(0, bin, share, share * (2 - USUAL), 0);
	}
	assert_parts(3, 10, 0, 0, 0);
	assert_parts(3, 11, 0, 0.25 * (2 - USUAL), 0);
}

/* Calls that have not ended are waiting so far, never transfer. */
static void test_open_calls(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		struct bundle_rec rec = fragment(10.5, 12.5, USUAL * BIN, 0);

		rec.flags = VAPRO_BUNDLE_OPEN;
		add_call(0, rank, rec, STG_WORLD);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 11, 0, 0, 0);
		assert_near(waited(HEATMAP_OPEN_LATE, rank, 11) / BIN, (2 - USUAL) / 2, 1e-4);
	}
}

/* Time that the kernel took from a rank inside a call is no waiting. */
static void test_off_the_cpu(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		add_call(0, rank, fragment(10.1, 10.4, USUAL * BIN, rank == 1 ? 0.2 * BIN : 0), STG_WORLD);
	end_calls();
	assert_parts(1, 10, 0, 0.1 - USUAL, 0);
	assert_parts(0, 10, 0.2, 0.1 - USUAL, 0);
}

/* Adds a rank's loss in computation, in bins, which the kernel attributes or not. */
static void lose(uint32_t rank, int bin, double lost_bins, bool attributed)
{
	paint(rank, bin, bin + 1, VAPRO_COMPUTATION, 1 - lost_bins, attributed);
}

/* Merged calls: the least of a bin is transfer, less what the kernel attributes of other members' computation. */
static void test_merged(void **state)
{
	static const struct {
		double lost[4];
		bool attributed;
		double transfer;
	} diagnoses[] = {
	    {{0}, false, 0.3},
	    {{0.2}, true, 0.3},
	    {{0.2}, false, 0.3},
	    {{0, 0.2}, true, 0},
	    {{0.1, 0, 0, 0.1}, true, 0.2},
	    {{0.2, 0.2, 0, 0}, true, 0.1},
	    {{0, 0.2, 0, 0.2}, true, 0},
	};

	(void)state;
	for (size_t c = 0; c < sizeof(diagnoses) / sizeof(diagnoses[0]); c++) {
		other_job(4, 1);
		begin_calls();
		for (uint32_t rank = 0; rank < 4; rank++) {
			if (diagnoses[c].lost[rank] > 0)
				lose(rank, 10, diagnoses[c].lost[rank] / 0.999, diagnoses[c].attributed);
			calls(0, rank, 10, 0.3 + 0.1 * rank);
		}
		end_calls();
		for (uint32_t rank = 0; rank < 4; rank++) {
			assert_near(waited(HEATMAP_TRANSFER, rank, 10) / BIN, diagnoses[c].transfer, 0.002);
			assert_near(heatmap__late(&map, rank, FIRST + 10) / BIN,
				    0.3 + 0.1 * rank - diagnoses[c].transfer, 0.002);
		}
	}
}

/* Single calls beside merged ones, whose operation is not found, are no evidence of a transfer. */
static void test_single_beside_merged(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		calls(0, rank, 10, 0.2 + 0.1 * rank);
	call(0, 1, 10.1, 10.2);
	end_calls();
	assert_parts(1, 10, 0.1 + 0.1 - USUAL, 0.2, 0);
	assert_parts(2, 10, 0.2, 0.2, 0);
}

/* Only the members' loss is subtracted, and only in that bin. */
static void test_merged_in_groups(void **state)
{
	(void)state;
	begin_calls();
	lose(0, 10, 0.3, true);
	lose(2, 19, 0.3, true);
	for (uint32_t rank = 2; rank < 4; rank++) {
		add_call(0, rank, merged(10, 10, 0.4), 7);
		add_call(0, rank, merged(20, 10, 0.4), 7);
	}
	add_call(1, 0, merged(10, 10, 0.5), 9);
	add_call(1, 1, merged(10, 10, 0.4), 9);
	end_calls();
	assert_parts(2, 10, 0, 0.4, 0);
	assert_parts(3, 20, 0, 0.4, 0);
	assert_near(waited(HEATMAP_TRANSFER, 0, 10) / BIN, 0.1, 0.002);
	assert_near(waited(HEATMAP_TRANSFER, 1, 10) / BIN, 0.1, 0.002);
}

/* Threads of a process that wait for each other: two processes are two groups. */
static void test_processes(void **state)
{
	(void)state;
	begin_calls();
	/* rows of different ranks have different leaders: each is alone, and waits for no other */
	for (uint32_t rank = 0; rank < 2; rank++)
		add_call(0, rank, merged(10, 10, 0.2 + 0.1 * rank), STG_PROCESS);
	end_calls();
	assert_near(waited(HEATMAP_TRANSFER, 0, 10) / BIN, 0.2, 1e-3);
	assert_near(waited(HEATMAP_TRANSFER, 1, 10) / BIN, 0.3, 1e-3);
}

/* Single calls of two processes that overlap: the threads of each wait for one of their own. */
static void test_operations_of_processes(void **state)
{
	static const double begins[] = {10.1, 10.2, 10.15, 10.4};
	const struct stg_job *about = stg__job(stg, 0);

	(void)state;
	about->rows[2].leader = 0;
	about->rows[3].leader = 1;
	begin_calls();
	for (uint32_t row = 0; row < 4; row++)
		add_call(0, row, fragment(begins[row], 10.5 + 0.01 * row, USUAL * BIN, 0), STG_PROCESS);
	end_calls();
	for (uint32_t row = 0; row < 4; row++) {
		double own = 0.5 + 0.01 * row - (begins[row] - 10) - USUAL;
		double last = row % 2 ? 0.53 - 0.4 - USUAL : 0.52 - 0.15 - USUAL;

		assert_parts(row, 10, own - last, last, 0);
	}
}

/*
 * The reference of a call contains the usual wait: where it is known what a call takes without, the whole of what the
 * last rank's call takes longer is transfer, and not only what is beyond its reference.
 */
static void test_own_part(void **state)
{
	(void)state;
	begin_calls();
	/* a quarter of the calls is of the last rank */
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL / 2 * BIN, 25), 0);
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL * BIN, 75), 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++)
		call(0, rank, 10.1 + (rank == 3 ? 0.004 : 0), 10.2);
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++)
		assert_parts(rank, 10, 0, rank == 3 ? 0.096 - USUAL : 0.1 - USUAL, 0);
	for (uint32_t rank = 0; rank < 4; rank++)
		histogram__clear(&callers[rank].cpu);
}

/*
 * A rank that comes last and loses its CPU on its way out, or before the operation is over: what others had of it is no
 * transfer, and no sign that it was in another operation.
 */
static void test_last_rank_loses_its_cpu(void **state)
{
	const struct stg_state sum = {.group = STG_WORLD, .together = true};

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL / 2 * BIN, 25), 0);
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL * BIN, 75), 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++) {
		bool last = rank == 3;

		add_call_of(0, rank,
			    fragment(last ? 10.15 : 10.1, last ? 10.3 : 10.2, USUAL * BIN, last ? 0.1 * BIN : 0), &sum);
		add_call_of(0, rank, fragment(last ? 20.15 : 20.1, 20.2, USUAL * BIN, last ? 0.03 * BIN : 0), &sum);
		add_call_of(0, rank,
			    fragment(last ? 30.195 : 30.1, last ? 30.3 : 30.2, USUAL * BIN, last ? 0.1 * BIN : 0),
			    &sum);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 3; rank++) {
		assert_parts(rank, 10, 0.045, 0.05 - USUAL / 2, 0);
		assert_parts(rank, 20, 0.045, 0.05 - USUAL / 2, 0);
		assert_parts(rank, 30, 0.1 - USUAL, 0, 0);
	}
	assert_parts(3, 10, 0, 0.05 - USUAL, 0);
	assert_parts(3, 20, 0, 0.02 - USUAL, 0);
	assert_parts(3, 30, 0, 0, 0);
	for (uint32_t rank = 0; rank < 4; rank++)
		histogram__clear(&callers[rank].cpu);
}

/*
 * A rank comes last to an exchange with its neighbours, and loses its CPU in the call: the exchange takes at least as
 * long as it takes the first neighbour from then on. It is the same exchange where it leaves before those that waited
 * for it.
 */
static void test_late_neighbour_loses_its_cpu(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL / 2 * BIN, 25), 0);
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL * BIN, 75), 0);
	}
	call(0, 0, 10.1, 10.15);
	call(0, 1, 10.1, 10.25);
	call(0, 2, 10.1, 10.25);
	add_call(0, 3, fragment(10.2, 10.3, USUAL * BIN, 0.08 * BIN), STG_WORLD);
	call(0, 0, 20.1, 20.15);
	call(0, 1, 20.1, 20.26);
	call(0, 2, 20.1, 20.27);
	call(0, 3, 20.2, 20.25);
	end_calls();
	for (int bin = 10; bin <= 20; bin += 10) {
		assert_parts(0, bin, 0, 0.05 - USUAL, 0);
		assert_parts(1, bin, bin == 10 ? 0.095 : 0.105, 0.05 - USUAL / 2, 0);
		assert_parts(2, bin, bin == 10 ? 0.095 : 0.115, 0.05 - USUAL / 2, 0);
		assert_parts(3, bin, 0, bin == 10 ? 0.02 - USUAL : 0.05 - USUAL, 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++)
		histogram__clear(&callers[rank].cpu);
}

/* While a rank is stopped in a call the others wait for it: what it was not stopped for is transfer at most. */
static void test_a_rank_is_stopped_in_its_call(void **state)
{
	const struct stg_state sum = {.group = STG_WORLD, .together = true};
	static float stopped[BUNDLE_FACTORS];
	struct bundle_rec rec;

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL / 2 * BIN, 25), 0);
		assert_int_equal(histogram__add(&callers[rank].cpu, USUAL * BIN, 75), 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++) {
		rec = fragment(rank == 3 ? 10.11 : 10.1, 10.9, USUAL * BIN, 0);
		if (rank == 3) {
			stopped[VAPRO_STOPPED] = 0.75f * BIN;
			rec.factor = stopped;
		}
		add_call_of(0, rank, rec, &sum);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 3; rank++)
		assert_parts(rank, 10, 0.8 - USUAL - (0.04 - USUAL / 2), 0.04 - USUAL / 2, 0);
	for (uint32_t rank = 0; rank < 4; rank++)
		histogram__clear(&callers[rank].cpu);
}

/* Ranks that exchange with their neighbours: only these wait for a late one, and the others have left before. */
static void test_neighbours_of_a_late_rank(void **state)
{
	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		bool late = rank == 3, beside = rank == 2;

		call(0, rank, late ? 10.2 : 10.1, late || beside ? 10.23 : 10.13);
		/* the late one's call is no longer than usual */
		call(0, rank, late ? 20.2 : 20.1, late ? 20.21 : beside ? 20.21 : 20.13);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 10, rank == 2 ? 0.1 : 0, 0.03 - USUAL, 0);
		assert_parts(rank, 20, rank == 2 ? 0.11 - USUAL : rank == 3 ? 0 : 0.03 - USUAL, 0, 0);
	}
}

/* Calls that wait for no rank: what all of them take longer is transfer, of one rank its slow path. */
static void test_one_sided(void **state)
{
	const struct stg_state put = {.group = STG_WORLD, .one_sided = true};

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		add_call_of(0, rank, fragment(10.1 + 0.2 * rank, 10.2 + 0.2 * rank, USUAL * BIN, 0), &put);
		add_call_of(0, rank, fragment(20.1, rank == 1 ? 20.3 : 20.1 + USUAL, USUAL * BIN, 0), &put);
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		assert_parts(rank, 10, 0, 0.1 - USUAL, 0);
		assert_parts(rank, 20, 0, 0, rank == 1 ? 0.2 - USUAL : 0);
	}
}

/* What is transfer of each bundle, by its number; bundles that are not calls have none. */
static void test_transfers_of_bundles(void **state)
{
	const struct stg_state world = {.group = STG_WORLD};
	const float *transfers;

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		struct bundle_rec rec = fragment(rank == 2 ? 10.15 : 10.1, 10.2, USUAL * BIN, 0);

		assert_int_equal(heatmap__add(&map, &rec, rank, VAPRO_COMMUNICATION, 0, UINT64_MAX), 0);
		assert_int_equal(waiting__add(waiting, &rec, 2 * rank, &callers[rank], &world, 0), 0);
	}
	assert_int_equal(waiting__end(waiting, stg__job(stg, 0), &called), 0);
	assert_int_equal(waiting__transfers(waiting, 20, &transfers), 0);
	assert_non_null(transfers);
	for (uint32_t i = 0; i < 20; i++)
		assert_near(transfers[i] / BIN, i < 8 && i % 2 == 0 ? 0.05 - USUAL : 0, 1e-4);
	waiting__free(waiting);
	begin_calls();
	assert_int_equal(waiting__end(waiting, stg__job(stg, 0), &called), 0);
	assert_int_equal(waiting__transfers(waiting, 20, &transfers), 0);
	assert_null(transfers);
	waiting__free(waiting);
}

/*
 * Two rows of a grid whose communicators have one label: rank 0 to 3 and 4 to 7. In each step their sums end apart, by
 * what the slower one of each took.
 */
static void rows_of_grid(int steps, double slow, bool all_known)
{
	const struct stg_state sum = {.group = 9, .together = true};

	for (int step = 0; step < steps; step++) {
		for (uint32_t rank = 0; rank < 8; rank++) {
			double from = 10 + 0.2 * step + 0.002 * (rank % 4), more = rank < 4 ? slow : 0;
			double to = from + 0.03 + more - 0.002 * (rank % 4) + (rank < 4 ? 0.015 * (step % 3) : 0);

			if (rank == 7 && !all_known)
				add_call_of(0, rank, merged(10 + step / 5, 1 + 1, 0.01), &sum);
			else
				add_call_of(0, rank, fragment(from, to, USUAL * BIN, 0), &sum);
		}
	}
}

/*
 * Communicators of one label that the view does not distinguish, since they mostly leave at one moment: where they do
 * not, each operation has its transfer all the same. A rank that leaves alone may be of any of them.
 */
static void test_operations_of_one_label(void **state)
{
	const struct stg_state sum = {.group = 9, .together = true};

	(void)state;
	begin_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		double begin = rank % 2 ? 0.12 : 0.1, end = rank < 2 ? 0.2 : 0.3;

		add_call_of(0, rank, fragment(10 + begin, 10 + end, USUAL * BIN, 0), &sum);
		add_call_of(0, rank, fragment(20 + begin, 20 + (rank == 3 ? 0.4 : end), USUAL * BIN, 0), &sum);
		add_call_of(1, rank, fragment(30 + begin, 30 + end, USUAL * BIN, 0),
			    &(struct stg_state){.group = STG_WORLD, .together = true});
	}
	end_calls();
	for (uint32_t rank = 0; rank < 4; rank++) {
		double begin = rank % 2 ? 0.12 : 0.1, end = rank < 2 ? 0.2 : 0.3;

		assert_parts(rank, 10, rank % 2 ? 0 : 0.02, end - 0.12 - USUAL, 0);
		assert_parts(rank, 20, (rank == 3 ? 0.4 : end) - begin - USUAL, 0, 0);
		assert_parts(rank, 30, end - begin - USUAL, 0, 0);
	}
}

/* Each communicator has its own transfer; where a rank may belong to any of them the group stays whole. */
static void test_communicators_of_one_label(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		double own = 0;

		other_job(8, 2);
		begin_calls();
		rows_of_grid(40, 0.05, known);
		end_calls();
		for (int bin = 10; bin < 18; bin++)
			own += waited(HEATMAP_TRANSFER, 0, bin) / BIN;
		if (known)
			assert_near(own, 40 * (0.08 - 0.006 - USUAL + 0.015), 0.1);
		else
			assert_near(own, 0, 0.01);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_last_arrivals),
	    TEST(test_other_arrivers),
	    TEST(test_last_rank_loses_its_cpu),
	    TEST(test_a_rank_is_stopped_in_its_call),
	    TEST(test_late_neighbour_loses_its_cpu),
	    TEST(test_neighbours_of_a_late_rank),
	    TEST(test_one_sided),
	    TEST(test_operations_of_one_label),
	    TEST(test_calm),
	    TEST(test_all_are_slow),
	    TEST(test_missing_member),
	    TEST(test_other_call_sites),
	    TEST(test_ended_member),
	    TEST(test_long_operation),
	    TEST(test_open_calls),
	    TEST(test_off_the_cpu),
	    TEST(test_unknown_bytes),
	    TEST(test_merged),
	    TEST(test_single_beside_merged),
	    TEST(test_merged_in_groups),
	    TEST(test_processes),
	    TEST(test_operations_of_processes),
	    TEST(test_own_part),
	    TEST(test_transfers_of_bundles),
	    TEST(test_communicators_of_one_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
