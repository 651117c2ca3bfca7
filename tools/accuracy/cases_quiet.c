/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is no fault, though it may look like one. */
#include "cases.h"

static void jitter(struct job *job, struct draw *draw, double length_ms)
{
	cases__usual(job, draw, length_ms, 0.05, 0);
	job->jitter = draw__between(draw, 0.01, 0.06);
}

static const struct accuracy_case cases[] = {
    {"simulated", "jitter", CASE_QUIET, {0.1, 1, 20, 500}, jitter},
};

const struct case_table quiet_cases = {cases, sizeof(cases) / sizeof(*cases)};
