/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of the ranks of a painted job, and the parts of their waiting; included by the one file that is the test.
 * Times are in bins since the beginning of the map. */
#ifndef VAPRO_TESTS_CALLED_H
#define VAPRO_TESTS_CALLED_H

#include "detect/waiting.h"
#include "painted.h"

#define SITES 2
#define CALLERS 16
#define USUAL 0.01 /* usual time of a call */

static struct series callers[SITES * CALLERS];
static struct workload sites[SITES];
static struct series_book called;
static struct waiting *waiting;

/* Adds two call-sites that all ranks know; of the first `old` bins only newly known time is added. */
static inline void begin_calls_after(uint64_t old)
{
	uint32_t ranks = (uint32_t)job->row_count;

	for (uint32_t i = 0; i < SITES * ranks; i++) {
		bool last = i % ranks == ranks - 1;

		callers[i] = (struct series){.row = i % ranks,
					     .workload = i / ranks,
					     .class = VAPRO_COMMUNICATION,
					     .next = last ? SERIES_NONE : i + 1};
		sites[i / ranks] = (struct workload){.series = i / ranks * ranks, .class = VAPRO_COMMUNICATION};
	}
	called = (struct series_book){.config = &config, .series = callers, .workloads = sites, .count = SITES * ranks};
	waiting = waiting__new();
	assert_non_null(waiting);
	assert_int_equal(waiting__begin(waiting, &map, ranks, FIRST, FIRST + old, FIRST + 50), 0);
}

static inline void begin_calls(void)
{
	begin_calls_after(0);
}

static inline void add_call_of(uint32_t site, uint32_t rank, struct bundle_rec rec, const struct stg_state *of)
{
	const struct series *series = &callers[site * job->row_count + rank];

	assert_int_equal(heatmap__add(&map, &rec, rank, VAPRO_COMMUNICATION, 0, UINT64_MAX), 0);
	assert_int_equal(waiting__add(waiting, &rec, 0, series, of, 0), 0);
}

static inline void add_call(uint32_t site, uint32_t rank, struct bundle_rec rec, uint32_t group)
{
	add_call_of(site, rank, rec, &(struct stg_state){.group = group});
}

/* Adds a call that is long enough to be a fragment by itself. */
static inline void call(uint32_t site, uint32_t rank, double from, double to)
{
	add_call(site, rank, fragment(from, to, USUAL * BIN, 0), STG_WORLD);
}

/* Returns merged calls of one bin; excess: their time beyond the usual, summed up. */
static inline struct bundle_rec merged(int bin, uint32_t n, double excess)
{
	struct bundle_rec rec = fragment(bin, bin + 0.999, USUAL * BIN, 0);

	rec.n = n;
	rec.sum_ns = n * USUAL * BIN + excess * BIN;
	return rec;
}

static inline void calls(uint32_t site, uint32_t rank, int bin, double excess)
{
	add_call(site, rank, merged(bin, 10, excess), STG_WORLD);
}

static inline void end_calls(void)
{
	assert_int_equal(waiting__end(waiting, stg__job(stg, 0), &called), 0);
	waiting__free(waiting);
}

/* Checks the three parts of a rank's waiting in a bin, in bins. */
static inline void assert_parts(uint32_t rank, int bin, double late, double transfer, double path)
{
	double parts[] = {waited(HEATMAP_LATE, rank, bin) / BIN, waited(HEATMAP_TRANSFER, rank, bin) / BIN,
			  waited(HEATMAP_PATH, rank, bin) / BIN};

	if (fabs(parts[0] - late) > 1e-4 || fabs(parts[1] - transfer) > 1e-4 || fabs(parts[2] - path) > 1e-4)
		fail_msg("rank %u, bin %d: late %g transfer %g path %g, not %g %g %g", rank, bin, parts[0], parts[1],
			 parts[2], late, transfer, path);
}

#endif
