/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The analysis as its interface sees it: what comes in (intake.c), and windows and requests (analysis.c). */
#ifndef VAPRO_ANALYSIS_PRIVATE_H
#define VAPRO_ANALYSIS_PRIVATE_H

#include "analysis/window.h"

struct analysis {
	struct analysis_context context;
	struct analysis_job *jobs;
	size_t job_count, job_capacity;
	uint32_t *order; /* numbers of jobs in the order in which they were announced */
	size_t order_count, order_capacity;
	struct job_result *results;
	size_t result_capacity;
};

#endif
