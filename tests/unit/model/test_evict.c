// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that meets new edges for ever: under the memory cap the newest edges are still judged, histories of
 * edges not met for long make room, and edges that are still met stay known.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "model/evict.h"
#include "model/judge.h"
#include "sim.h"
#include "model/job_series.h"

#define RANKS 16
#define BIN VAPRO_BIN_NS
#define MS 1000000ULL
#define EDGES 2 /* new edges in a bin of 200 ms: ten a second */
#define WINDOW_BINS 50
#define FRAGMENTS 10
#define MEMBERS 60
#define LASTS 6 /* bins in which an edge is met */
#define LOOP 0	/* the computation that is met in each bin */
/* with room for the table of states, which doubles when it has 32,768, in the 328th window */
#define CAP (33 << 20)

struct flow {
	struct analysis *analysis;
	uint64_t bin;
	uint32_t states;
	double covered, shed_share;
	struct vapro_shed shed;
	uint64_t evicted;
};

static void add_state(struct flow *flow)
{
	char from[32], to[32];
	struct vapro_state state = {.id = flow->states, .class = VAPRO_COMPUTATION, .from = from, .to = to};

	snprintf(from, sizeof(from), "a@1+0x%x", flow->states);
	snprintf(to, sizeof(to), "a@1+0x%x", flow->states + 1);
	flow->states++;
	assert_int_equal(analysis__add_state(flow->analysis, &state), 0);
}

static void begin(struct flow *flow, struct vapro_config *config, uint64_t cap)
{
	*flow = (struct flow){.bin = SIM_BEGIN_NS / BIN};
	sim_config(config);
	config->memory_cap = cap;
	flow->analysis = analysis__new(config, VAPRO_BY_ARGUMENTS);
	assert_non_null(flow->analysis);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct vapro_thread thread = {
		    .id = rank, .rank = (int32_t)rank, .world_size = RANKS, .pid = 10 + rank, .job = "j", .host = "h"};

		assert_int_equal(analysis__add_thread(flow->analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(flow->analysis, rank, SIM_BEGIN_NS, 0), 0);
	}
	add_state(flow);
}

static void add(struct flow *flow, uint32_t rank, uint32_t state)
{
	struct vapro_bundle bundle = {.thread = rank,
				      .state = state,
				      .n = FRAGMENTS,
				      .start_ns = flow->bin * BIN,
				      .end_ns = (flow->bin + 1) * BIN - MS,
				      .sum_ns = FRAGMENTS * MS,
				      .min_ns = MS,
				      .max_ns = MS};

	assert_int_equal(analysis__add_bundle(flow->analysis, &bundle), 0);
}

static void window(struct flow *flow)
{
	uint64_t begin_ns = flow->bin * BIN;
	const struct job_result *results;
	uint32_t count;

	for (int bin = 0; bin < WINDOW_BINS; bin++, flow->bin++) {
		uint32_t oldest;

		for (int i = 0; i < EDGES; i++)
			add_state(flow);
		oldest = flow->states > EDGES * LASTS ? flow->states - EDGES * LASTS : LOOP + 1;
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			add(flow, rank, LOOP);
			for (uint32_t i = oldest; i < flow->states; i++)
				add(flow, rank, i);
		}
	}
	assert_int_equal(analysis__end_window(flow->analysis, begin_ns, flow->bin * BIN, false, &results, &count), 0);
	assert_int_equal(count, 1);
	flow->covered = results[0].coverage_total;
	flow->shed_share = 0;
	for (uint32_t i = 0; i < results[0].uncovered_count; i++)
		flow->shed_share += results[0].uncovered[i].reason == VAPRO_SHED ? results[0].uncovered[i].share : 0;
	analysis__shed(flow->analysis, &flow->shed);
	flow->evicted += flow->shed.evicted;
}

static void test_an_hour(void **state)
{
	struct vapro_config config, without;
	struct flow flow, free_flow;

	(void)state;
	begin(&free_flow, &without, 0);
	for (int i = 0; i < 6; i++)
		window(&free_flow);
	begin(&flow, &config, CAP);
	for (int i = 0; i < 360; i++) {
		window(&flow);
		assert_true(flow.shed.bytes <= CAP);
		assert_int_equal(flow.shed.bundles, 0);
		assert_true(flow.shed_share <= 0);
	}
	/* thirty thousand edges on each rank, and the last are judged as well as those of a short run without a cap */
	assert_true(flow.evicted > (uint64_t)RANKS * EDGES * WINDOW_BINS * 300);
	assert_true(flow.covered > free_flow.covered - 0.01);
	/* all but the first fragments of each edge */
	assert_true(flow.covered > 0.5);
	analysis__free(flow.analysis);
	analysis__free(free_flow.analysis);
}

static struct vapro_bundle bundle_of(uint32_t thread, uint32_t state, double bytes)
{
	struct vapro_bundle bundle = {.thread = thread,
				      .state = state,
				      .n = MEMBERS,
				      .start_ns = 1000,
				      .end_ns = 1000 + MEMBERS * MS,
				      .sum_ns = MEMBERS * MS,
				      .min_ns = MS,
				      .max_ns = MS};

	bundle.magnitude_min[VAPRO_BYTES] = bundle.magnitude_max[VAPRO_BYTES] = bytes;
	return bundle;
}

/* The oldest series go, used or recently met series stay, and free numbers are used again. */
static void test_oldest_go(void **state)
{
	unsigned char used[64] = {0};
	struct vapro_config config;
	struct stg *stg = stg__new();
	struct series_book book;
	struct vapro_bundle bundle;
	struct bundle_rec rec[40];

	(void)state;
	sim_config(&config);
	assert_int_equal(series__init(&book, &config, VAPRO_BY_ARGUMENTS, stg), 0);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct vapro_thread thread = {
		    .id = rank, .rank = (int32_t)rank, .pid = rank + 1, .job = "j", .host = "h"};

		assert_int_equal(stg__add_thread(stg, &thread), 0);
	}
	for (uint32_t i = 0; i < 12; i++) {
		char to[16];
		struct vapro_state call = {.id = i, .class = VAPRO_COMMUNICATION, .to = to, .labels = "f=x"};

		snprintf(to, sizeof(to), "a+%u", i);
		assert_int_equal(stg__add_state(stg, &call), 0);
	}
	/* a call each window, of two ranks and two sizes */
	for (uint32_t i = 0; i < 40; i++) {
		book.window = i / 4;
		bundle = bundle_of(i & 1, i / 4, i & 2 ? 8000 : 8);
		assert_int_equal(series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle,
					     bundle.factor, &rec[i]),
				 0);
	}
	assert_int_equal(book.count, 40);
	assert_int_equal(book.workload_count, 20);
	used[rec[0].series] = 1;
	/* whole windows: three of the first one, and all of the next two */
	assert_int_equal(evict__series(&book, used, 8), 3 + 4 + 4);
	assert_int_equal(book.series[rec[0].series].job, 0);
	assert_int_equal(book.series[rec[11].series].job, SERIES_NONE);
	assert_int_equal(book.series[rec[12].series].job, 0);
	assert_int_equal(evict__series(&book, used, 8), 0);
	/* series met in the last two windows never go */
	assert_int_equal(evict__series(&book, used, 40), 20);
	assert_int_equal(book.series[rec[32].series].job, 0);
	judge__refresh(&book);
	judge__bundle(&book, &rec[0]);
	assert_true(rec[0].covered);
	book.window = 10;
	book.full = true;
	for (uint32_t i = 0; i < 28; i++) {
		bundle = bundle_of(i & 1, 10 + i / 16, 1000 << i / 2 % 8);
		assert_int_equal(series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle,
					     bundle.factor, &rec[i]),
				 0);
		assert_true(rec[i].series < 40);
		assert_int_equal(book.series[rec[i].series].cpu.n, MEMBERS);
	}
	bundle = bundle_of(1, 11, 1e9);
	assert_int_equal(
	    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec[31]),
	    -ENOSPC);
	series__free(&book);
	stg__free(stg);
}

/* Threads whose last history went with the unused room go on with a new one. */
static void test_shrink(void **state)
{
	struct vapro_config config;
	struct stg *stg = stg__new();
	struct series_book book;
	struct vapro_bundle bundle;
	struct bundle_rec rec;
	unsigned char used[64] = {1};

	(void)state;
	sim_config(&config);
	assert_int_equal(series__init(&book, &config, VAPRO_BY_ARGUMENTS, stg), 0);
	for (uint32_t i = 0; i < 8; i++) {
		char to[16];
		struct vapro_thread thread = {.id = i, .rank = (int32_t)i, .pid = i + 1, .job = "j", .host = "h"};
		struct vapro_state call = {.id = i, .class = VAPRO_COMMUNICATION, .to = to, .labels = "f=x"};

		snprintf(to, sizeof(to), "a+%u", i);
		assert_int_equal(stg__add_thread(stg, &thread), 0);
		assert_int_equal(stg__add_state(stg, &call), 0);
	}
	for (uint32_t i = 0; i < 64; i++) {
		bundle = bundle_of(i / 8, i % 8, 8);
		assert_int_equal(
		    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec),
		    0);
	}
	book.window = 10;
	assert_int_equal(evict__series(&book, used, 64), 63);
	evict__shrink(&book);
	assert_int_equal(book.count, 1);
	for (uint32_t i = 8; i-- > 0;) {
		bundle = bundle_of(i, i, 8);
		assert_int_equal(
		    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec),
		    0);
		assert_int_equal(rec.series, i ? 8 - i : 0);
		assert_int_equal(book.series[rec.series].thread, i);
		assert_int_equal(book.series[rec.series].cpu.n, i ? MEMBERS : 2 * MEMBERS);
	}
	series__free(&book);
	stg__free(stg);
}

/* The list of a job has each of its series once, in ascending order, whatever numbers were released and taken again. */
static void check_list(const struct series_book *book, uint32_t job, size_t expected)
{
	struct series_ids ids = job_series__ids(book, job);

	assert_int_equal(ids.count, expected);
	for (size_t i = 0; i < ids.count; i++) {
		assert_int_equal(book->series[ids.ids[i]].job, job);
		assert_true(!i || ids.ids[i - 1] < ids.ids[i]);
	}
}

static void test_lists(void **state)
{
	struct vapro_config config;
	struct stg *stg = stg__new();
	struct series_book book;
	struct vapro_bundle bundle;
	struct bundle_rec rec;
	unsigned char used[64] = {0};

	(void)state;
	sim_config(&config);
	assert_int_equal(series__init(&book, &config, VAPRO_BY_ARGUMENTS, stg), 0);
	for (uint32_t i = 0; i < 12; i++) {
		char to[16];
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i / 3,
					      .pid = i + 1,
					      .job = i % 3 ? i % 3 == 1 ? "j" : "k" : "l",
					      .host = "h"};
		struct vapro_state call = {.id = i, .class = VAPRO_COMMUNICATION, .to = to, .labels = "f=x"};

		snprintf(to, sizeof(to), "a+%u", i);
		assert_int_equal(stg__add_thread(stg, &thread), 0);
		assert_int_equal(stg__add_state(stg, &call), 0);
	}
	check_list(&book, 0, 0);
	for (uint32_t i = 0; i < 48; i++) {
		book.window = i % 2;
		bundle = bundle_of(i % 12, i / 12, 8);
		assert_int_equal(
		    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec),
		    0);
	}
	for (uint32_t job = 0; job < 3; job++)
		check_list(&book, job, 16);
	/* those of every second thread go, and the last job gets new ones */
	book.window = 3;
	assert_int_equal(evict__series(&book, used, 24), 24);
	for (uint32_t i = 0; i < 20; i++) {
		bundle = bundle_of(i % 4 * 3 + 2, 4 + i / 4, 8);
		assert_int_equal(
		    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec),
		    0);
	}
	check_list(&book, 0, 8);
	check_list(&book, 2, 28);
	assert_int_equal(series__forget(&book, 2), 0);
	check_list(&book, 2, 0);
	bundle = bundle_of(0, 11, 8);
	assert_int_equal(
	    series__add(&book, (struct series_of){bundle.thread, bundle.state}, &bundle, bundle.factor, &rec), 0);
	evict__shrink(&book);
	check_list(&book, 0, 9);
	check_list(&book, 1, 8);
	check_list(&book, 2, 0);
	check_list(&book, 99, 0);
	series__free(&book);
	stg__free(stg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_oldest_go), cmocka_unit_test(test_shrink),
					   cmocka_unit_test(test_lists), cmocka_unit_test(test_an_hour)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
