/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A simulated job that the pure floors have judged; included by the one file that is the test. */
#ifndef VAPRO_TESTS_SIMULATED_H
#define VAPRO_TESTS_SIMULATED_H

#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct sim_report report;

static inline void run(const struct sim_scenario *scenario)
{
	sim_run(scenario, VAPRO_BY_ARGUMENTS, &report);
}

/* Prints all findings before it fails. */
#define expect(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			sim_print(&report);                                                                            \
			fail_msg("%s", #condition);                                                                    \
		}                                                                                                      \
	} while (0)

static inline const struct sim_found *effect_of(uint64_t id)
{
	for (int i = 0; i < report.found_count; i++) {
		if (report.found[i].effect_of == id)
			return &report.found[i];
	}
	return NULL;
}

#endif
