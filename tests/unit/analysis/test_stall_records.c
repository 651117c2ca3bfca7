// SPDX-License-Identifier: GPL-2.0-or-later
/* Noise components of fragments as windows report them: how long, how often, whom and where; what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include <vapro/analysis.h>

#include "near.h"
#include "sim.h"

#define S 1000000000ULL
#define MS 1000000ULL
#define START (1780000000ULL * S)
#define RANKS 4
#define WINDOW_S 15

/* States of the program: two computations, each with a send behind it. */
enum { FIRST, SEND, SECOND, OTHER_SEND, STATES };

static struct analysis *analysis;
static uint64_t seed;

/* What is wrong with the program. */
static struct fault {
	uint32_t states;      /* bit per state in which stalls are */
	bool ranks[RANKS];    /* that are stalled, ... */
	bool together;	      /* ... all at once */
	bool one_by_one;      /* ... one after the other */
	unsigned every;	      /* steps from one stall to the next */
	uint64_t from, until; /* seconds */
	uint64_t ns;
} fault;

static struct {
	uint64_t times[RANKS], n[RANKS], last;
	struct result_noise noise; /* the last one */
	uint32_t revisions, components;
	char ranks[64], what[64];
	uint64_t exemplar_ns;
	double site_share;
} found;

static struct analysis *new_analysis(void)
{
	struct vapro_config config;

	sim_config(&config);
	config.noise_share = 0.005;
	return analysis__new(&config, VAPRO_BY_ARGUMENTS);
}

static int begin(void **state)
{
	static const char *const labels[] = {"", "comm=0 function=MPI_Send", "", "comm=0 function=MPI_Send"};

	(void)state;
	memset(&fault, 0, sizeof(fault));
	memset(&found, 0, sizeof(found));
	seed = 3;
	analysis = new_analysis();
	for (uint32_t i = 0; i < RANKS; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i,
					      .world_size = RANKS,
					      .pid = 10 + i,
					      .tid = 10 + i,
					      .job = "j",
					      .host = i < 2 ? "n0" : "n1"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, START, 0), 0);
		found.times[i] = START;
	}
	for (uint32_t i = 0; i < STATES; i++) {
		bool call = i == SEND || i == OTHER_SEND;
		char from[32], to[32];

		snprintf(from, sizeof(from), "app@00+0x%x", 0x100 * (i / 2));
		snprintf(to, sizeof(to), "app@00+0x%x", 0x100 * (i / 2 + 1));
		assert_int_equal(
		    analysis__add_state(analysis,
					&(struct vapro_state){.id = i,
							      .class = call ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION,
							      .from = call ? NULL : from,
							      .to = to,
							      .labels = labels[i],
							      .common = call ? "function=MPI_Send" : NULL}),
		    0);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	analysis__free(analysis);
	return 0;
}

static bool is_stalled(uint32_t rank, uint32_t state, unsigned step)
{
	uint64_t second = (found.times[rank] - START) / S;
	unsigned count = 0, place = 0;

	if (!fault.every || !(fault.states >> state & 1) || !fault.ranks[rank] || second < fault.from ||
	    second >= fault.until)
		return false;
	for (uint32_t i = 0; i < RANKS; i++) {
		place = i == rank ? count : place;
		count += fault.ranks[i];
	}
	if (fault.one_by_one)
		return step % fault.every == 3 % fault.every && step / fault.every % count == place;
	return step % fault.every == (fault.together ? 3 : 3 + 5 * rank) % fault.every;
}

/* Adds fragments of all ranks up to a time. */
static void run(unsigned until_s)
{
	static const uint64_t usual[STATES] = {8 * MS, MS, 4 * MS, MS};
	static unsigned steps[RANKS];

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		if (found.times[rank] == START)
			steps[rank] = 0;
		while (found.times[rank] < START + until_s * S) {
			for (uint32_t i = 0; i < STATES; i++) {
				uint64_t ns = (uint64_t)((double)usual[i] * (1 + 0.01 * sim_gauss(&seed)));
				struct vapro_bundle bundle = {.thread = rank, .state = i, .n = 1};

				if (is_stalled(rank, i, steps[rank])) {
					ns += fault.ns;
					found.n[rank]++;
				}
				bundle.start_ns = found.times[rank];
				bundle.end_ns = found.times[rank] += ns;
				bundle.sum_ns = bundle.min_ns = bundle.max_ns = ns;
				if (i == SEND || i == OTHER_SEND)
					bundle.magnitude_min[VAPRO_BYTES] = bundle.magnitude_max[VAPRO_BYTES] = 1024;
				assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
			}
			steps[rank]++;
		}
	}
}

static void note(const struct result_noise *noise)
{
	assert_int_equal(noise->source, VAPRO_NOISE_FRAGMENTS);
	found.components = noise->id > found.components ? noise->id : found.components;
	found.noise = *noise;
	found.revisions++;
	*found.ranks = '\0';
	for (uint32_t i = 0; i < noise->rank_count; i++)
		snprintf(found.ranks + strlen(found.ranks), sizeof(found.ranks) - strlen(found.ranks), "%d ",
			 noise->ranks[i]);
	snprintf(found.what, sizeof(found.what), "%s", noise->what);
	found.exemplar_ns = noise->exemplar_count ? noise->exemplars[0].duration_ns : 0;
	found.site_share = noise->site_count ? noise->sites[0].share : 0;
}

static void window(unsigned from, unsigned to, bool last)
{
	const struct vapro_process_facts facts = {.pid = 10, .job = "j", .wall_ns = (to - from) * S};
	const struct job_result *result;
	uint32_t count;

	run(to);
	assert_int_equal(analysis__add_facts(analysis, &facts), 0);
	assert_int_equal(analysis__end_window(analysis, START + from * S, START + to * S, last, &result, &count), 0);
	assert_int_equal(count, 1);
	for (uint32_t i = 0; i < result->noise_count; i++)
		note(&result->noise[i]);
}

static void run_all(void)
{
	for (unsigned at = 0; at < 60; at += WINDOW_S)
		window(at, at + WINDOW_S, at + WINDOW_S == 60);
}

/* Sends of one rank take 12 ms more in each 20th step. */
static void calls_of_one_rank(void **state)
{
	(void)state;
	fault.states = 1 << SEND;
	fault.ranks[2] = true;
	fault.every = 20;
	fault.until = 60;
	fault.ns = 12 * MS;
	run_all();
	assert_int_equal(found.components, 1);
	assert_true(found.revisions > 1);
	assert_true(found.noise.final);
	/* the last fragments had not ended, or were in no window */
	assert_near((double)found.noise.slices, (double)found.n[2], 2);
	assert_near(found.noise.lost_s / (double)found.noise.slices, 0.012, 1e-4);
	assert_near(found.noise.period_s, 60.0 / (double)found.n[2], 0.01 * 60.0 / (double)found.n[2]);
	assert_true(found.noise.regularity < 0.1);
	assert_string_equal(found.ranks, "2 ");
	assert_string_equal(found.what, "MPI_Send");
	assert_int_equal(found.noise.together, VAPRO_NOISE_APART);
	assert_near((double)found.exemplar_ns, 13e6, 0.2e6);
	assert_near(found.site_share, 1, 1e-9);
}

/* The ranks of one host lose the same moments, whatever they do then. */
static void a_host_stands_still(void **state)
{
	(void)state;
	fault.states = 1 << FIRST | 1 << SECOND;
	fault.ranks[0] = fault.ranks[1] = true;
	fault.together = true;
	fault.every = 40;
	fault.until = 60;
	fault.ns = 30 * MS;
	run_all();
	assert_int_equal(found.components, 1);
	assert_string_equal(found.ranks, "0 1 ");
	assert_string_equal(found.what, "computation");
	assert_int_equal(found.noise.together, VAPRO_NOISE_HOST);
	assert_near(found.noise.lost_s / (double)found.noise.slices, 0.030, 3e-4);
}

/* Analyses a job of its own, with a fault. Returns how many components it has. */
static uint32_t components_of(const struct fault *of)
{
	end(NULL);
	begin(NULL);
	fault = *of;
	run_all();
	return found.components;
}

/* One computation that is longer now and then may be more work: only ranks in turn, each seldom, are none. */
static void work_is_no_noise(void **state)
{
	struct fault longer = {.states = 1 << FIRST, .ranks = {true}, .every = 40, .until = 60, .ns = 60 * MS};

	(void)state;
	assert_int_equal(components_of(&longer), 0);
	for (uint32_t rank = 0; rank < RANKS; rank++)
		longer.ranks[rank] = true;
	longer.together = true;
	assert_int_equal(components_of(&longer), 0);
	longer.together = false;
	longer.one_by_one = true;
	longer.every = 20;
	assert_int_equal(components_of(&longer), 1);
	assert_string_equal(found.ranks, "0 1 2 3 ");
}

/* A rank that is slow for a while has no stalls. */
static void a_slow_time_is_no_noise(void **state)
{
	(void)state;
	fault.states = 1 << FIRST | 1 << SECOND;
	fault.ranks[1] = true;
	fault.every = 1;
	fault.from = 35;
	fault.until = 45;
	fault.ns = 4 * MS;
	fault.one_by_one = false;
	fault.together = false;
	run_all();
	assert_int_equal(found.components, 0);
}

/* Loaded from a checkpoint in the middle, an analysis ends with the same numbers. */
static void checkpoints_have_all_of_it(void **state)
{
	struct result_noise whole;
	char ranks[sizeof(found.ranks)], err[256];

	(void)state;
	for (int with = 0; with < 2; with++) {
		if (with) {
			end(NULL);
			begin(NULL);
		}
		fault.states = 1 << SEND;
		fault.ranks[1] = fault.ranks[3] = true;
		fault.every = 30;
		fault.until = 60;
		fault.ns = 12 * MS;
		for (unsigned at = 0; at < 60; at += WINDOW_S) {
			uint8_t *data;
			size_t size;

			window(at, at + WINDOW_S, at + WINDOW_S == 60);
			if (!with)
				continue;
			assert_int_equal(analysis__save(analysis, &data, &size, err, sizeof(err)), 0);
			analysis__free(analysis);
			analysis = new_analysis();
			assert_int_equal(analysis__load(analysis, data, size, err, sizeof(err)), 0);
			free(data);
		}
		if (!with) {
			whole = found.noise;
			memcpy(ranks, found.ranks, sizeof(ranks));
		}
	}
	assert_true(whole.slices > 0);
	assert_int_equal(found.noise.slices, whole.slices);
	assert_int_equal(found.noise.id, whole.id);
	assert_int_equal(found.noise.revision, whole.revision);
	assert_true(found.noise.lost_s == whole.lost_s);
	assert_true(found.noise.regularity == whole.regularity);
	assert_string_equal(found.ranks, ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(calls_of_one_rank, begin, end),
	    cmocka_unit_test_setup_teardown(a_host_stands_still, begin, end),
	    cmocka_unit_test_setup_teardown(work_is_no_noise, begin, end),
	    cmocka_unit_test_setup_teardown(a_slow_time_is_no_noise, begin, end),
	    cmocka_unit_test_setup_teardown(checkpoints_have_all_of_it, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
