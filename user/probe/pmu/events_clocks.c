// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clocks in place of counters (--counters test): the same code with nothing to measure. All time is the
 * backend's, half of that is memory's, and the parts of memory have no group: it is then known beforehand
 * what a variance requests, what is available and what is not.
 */
#include <linux/perf_event.h>

#include "probe/pmu/events.h"

#define CLOCKS "clocks stand for the counters, to test with"
#define CPU_CLOCK                                                                                                      \
	{                                                                                                              \
		"clock.cpu", PERF_COUNT_SW_CPU_CLOCK, 0, EVENT_BUSY                                                    \
	}
#define TASK_CLOCK                                                                                                     \
	{                                                                                                              \
		"clock.task", PERF_COUNT_SW_TASK_CLOCK, 0, EVENT_BUSY                                                  \
	}

static const struct event_group level1 = {.name = "top-down",
					  .stage = 1,
					  .approx = CLOCKS,
					  .parts = TOPDOWN_LEVEL1_NAMES,
					  .formula = topdown__clocks,
					  .events = {CPU_CLOCK, TASK_CLOCK}};

static const struct event_group backend = {.name = "backend",
					   .stage = 2,
					   .parent = "backend",
					   .approx = CLOCKS,
					   .parts = {"memory", "core"},
					   .formula = topdown__two_parts,
					   .whole = topdown__whole_all,
					   .events = {TASK_CLOCK, CPU_CLOCK}};

static const struct event_group *const groups[] = {&level1, &backend, NULL};

const struct event_cpu event_cpu_clocks = {
    .name = "clocks", .title = "clocks", .width = 1, .instructions = CPU_CLOCK, .groups = groups};
