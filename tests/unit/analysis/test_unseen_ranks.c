// SPDX-License-Identifier: GPL-2.0-or-later
/* A rank that computes for long without a call is unseen for as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <vapro/analysis.h>

#include "near.h"
#include "sim.h"

#define BIN VAPRO_BIN_NS
#define START 8900000000ULL /* a bin of these years */
#define UTC(s) (START * BIN + (uint64_t)((s)*1e9))
#define RANKS 4
#define WORK_NS 9000000ULL /* of a computation; ends every 10 ms */
#define QUIET_RANK 2
#define QUIET_FROM 23.0 /* that rank computes for 3 s, s */
#define QUIET_TO 26.0
#define STRIDE 10 /* s */

static const struct job_result *result;

static struct analysis *begin(void)
{
	static const struct vapro_state states[] = {{.id = 0,
						     .class = VAPRO_COMMUNICATION,
						     .to = "p@0+0x1",
						     .labels = "function=MPI_Barrier comm=0",
						     .common = "function=MPI_Barrier"},
						    {.id = 1,
						     .class = VAPRO_COMPUTATION,
						     .from = "p@0+0x1",
						     .to = "p@0+0x1",
						     .labels = "from.function=MPI_Barrier function=MPI_Barrier",
						     .common = "from.function=MPI_Barrier function=MPI_Barrier"}};
	struct analysis *analysis;
	struct vapro_config config;

	sim_config(&config);
	analysis = analysis__new(&config, VAPRO_BY_ARGUMENTS);
	assert_non_null(analysis);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct vapro_thread thread = {.id = i,
					      .rank = (int32_t)i,
					      .world_size = RANKS,
					      .pid = 10 + i,
					      .tid = 10 + i,
					      .job = "j",
					      .host = "n"};

		assert_int_equal(analysis__add_thread(analysis, &thread), 0);
		assert_int_equal(analysis__thread_seen(analysis, i, UTC(0), 0), 0);
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		assert_int_equal(analysis__add_state(analysis, &states[i]), 0);
	return analysis;
}

static void add(struct analysis *analysis, uint32_t rank, uint32_t n, uint64_t start_ns, uint64_t end_ns, uint64_t ns)
{
	const struct vapro_bundle bundle = {.thread = rank,
					    .state = 1,
					    .n = n,
					    .start_ns = start_ns,
					    .end_ns = end_ns,
					    .sum_ns = n * ns,
					    .min_ns = ns,
					    .max_ns = ns};

	assert_int_equal(analysis__add_bundle(analysis, &bundle), 0);
}

/* Ends a window of a stride, in which all ranks compute. */
static void window(struct analysis *analysis, unsigned from)
{
	const struct vapro_process_facts facts = {.pid = 10, .job = "j", .wall_ns = STRIDE * 1000000000ULL};
	uint32_t count;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		for (uint64_t at = from * 5; at < (from + STRIDE) * 5; at++) {
			uint64_t begin = (START + at) * BIN;

			if (rank == QUIET_RANK && begin >= UTC(QUIET_FROM) && begin < UTC(QUIET_TO))
				continue;
			add(analysis, rank, 20, begin, begin + 199000000, WORK_NS);
		}
	}
	if (from < QUIET_TO && from + STRIDE >= QUIET_TO)
		add(analysis, QUIET_RANK, 1, UTC(QUIET_FROM), UTC(QUIET_TO), (uint64_t)((QUIET_TO - QUIET_FROM) * 1e9));
	assert_int_equal(analysis__add_facts(analysis, &facts), 0);
	assert_int_equal(analysis__end_window(analysis, UTC(from), UTC(from + STRIDE), false, &result, &count), 0);
	assert_int_equal(count, 1);
}

static void long_work_is_unseen(void **state)
{
	struct analysis *analysis = begin();

	(void)state;
	window(analysis, 0);
	window(analysis, 10);
	assert_near(result->sensing.unseen_s, 0.2, 1e-9);
	assert_near(result->sensing.fragments / result->sensing.seconds, 100, 0.5);
	window(analysis, 20);
	assert_near(result->sensing.unseen_s, QUIET_TO - QUIET_FROM, 0.2 + 1e-9);
	assert_int_equal(result->sensing.rank, QUIET_RANK);
	assert_int_equal(result->sensing.intervals[3], 1);
	window(analysis, 30);
	assert_near(result->sensing.unseen_s, 0.2, 1e-9);
	analysis__free(analysis);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(long_work_is_unseen)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
