/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A heat map of ranks, four of one host as a rule, that tests paint, bin by bin; included by the one file that is the
 * test. */
#ifndef VAPRO_TESTS_PAINTED_H
#define VAPRO_TESTS_PAINTED_H

#include "detect/region.h"
#include "near.h"
#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BIN ((double)VAPRO_BIN_NS)
#define FIRST 1000

static struct vapro_config config;
static struct stg *stg;
static const struct stg_job *job;
static struct heatmap map;

/* Makes a job with rank i on host i modulo hosts. */
static inline void make_job(uint32_t ranks, uint32_t hosts)
{
	stg = stg__new();
	for (uint32_t i = 0; i < ranks; i++) {
		char host[8] = {'h', (char)('0' + i % hosts)};
		struct vapro_thread thread = {.id = i, .rank = (int32_t)i, .pid = i, .job = "j", .host = host};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
		stg__touch(stg, i, 1, true);
	}
	job = stg__job(stg, 0);
	memset(&map, 0, sizeof(map));
	assert_int_equal(heatmap__rows(&map, ranks, 100), 0);
	heatmap__advance(&map, FIRST, FIRST + 50);
}

static inline int setup(void **state)
{
	(void)state;
	sim_config(&config);
	make_job(4, 1);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	heatmap__free(&map);
	stg__free(stg);
	return 0;
}

/* Replaces the job of four ranks. */
static inline void other_job(uint32_t ranks, uint32_t hosts)
{
	teardown(NULL);
	make_job(ranks, hosts);
}

/* Returns factors, which stay valid for the next few calls. */
static inline float *factors(void)
{
	static float ring[16][BUNDLE_FACTORS];
	static unsigned next;
	float *own = ring[next++ % 16];

	memset(own, 0, sizeof(*ring));
	return own;
}

static inline struct bundle_rec fragment(double from_bin, double to_bin, double reference, double preempted)
{
	float *factor = factors();
	struct bundle_rec rec = {
	    .ratio = 1,
	    .factor = factor,
	    .start_ns = (uint64_t)((FIRST + from_bin) * BIN),
	    .end_ns = (uint64_t)((FIRST + to_bin) * BIN),
	    .n = 1,
	    .covered = 1,
	    .reference = (float)reference,
	};

	rec.sum_ns = (double)(rec.end_ns - rec.start_ns);
	rec.max_ns = (float)rec.sum_ns;
	factor[VAPRO_PREEMPTED] = (float)preempted;
	return rec;
}

static inline void paint(uint32_t row, int from, int to, enum vapro_class class, double performance, bool attributed)
{
	for (int bin = from; bin < to; bin++) {
		double preempted = attributed ? (1 - performance) * BIN : 0;
		struct bundle_rec rec = fragment(bin, bin + 0.999, 0.999 * performance * BIN, preempted);

		heatmap__add(&map, &rec, row, class, 0, UINT64_MAX);
	}
}

static inline double performance(uint32_t row, int bin, enum vapro_class class)
{
	struct cell cell = heatmap__cell(&map, row, FIRST + (uint64_t)bin, class);

	return cell__performance(&cell, &config);
}

static inline double lost(uint32_t row, int bin, enum vapro_class class)
{
	struct cell cell = heatmap__cell(&map, row, FIRST + (uint64_t)bin, class);

	return cell__lost(&cell);
}

static inline double waited(enum heatmap_part part, uint32_t row, int bin)
{
	return heatmap__wait(&map, part, row, FIRST + (uint64_t)bin);
}

static inline size_t grown(struct region_result *result)
{
	memset(result, 0, sizeof(*result));
	result->small_to = UINT64_MAX;
	assert_int_equal(region__grow(&map, job, &config, VAPRO_BY_ARGUMENTS, result), 0);
	return result->count;
}

/* Checks that a draft has the bins [begin, end), from the map's first bin. */
static inline void assert_bins(const struct draft *draft, uint64_t begin, uint64_t end)
{
	assert_int_equal(draft->begin, FIRST + begin);
	assert_int_equal(draft->end, FIRST + end);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
