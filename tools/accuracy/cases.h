/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of scenarios. Their parameters are drawn by the seed. */
#ifndef VAPRO_ACCURACY_CASES_H
#define VAPRO_ACCURACY_CASES_H

#include "draw.h"
#include "job.h"

#define CASE_LENGTHS 6

enum case_type {
	CASE_FAULT = 1,
	CASE_LASTING = 2, /* a fault to the end of the run, 20 times as long as the good time before */
	CASE_QUIET = 4,	  /* no fault: every alarm is a false one */
	CASE_LARGE = 8,	  /* with the first seed only */
};

struct accuracy_case {
	const char *part, *kind;
	unsigned type;			 /* enum case_type */
	double lengths_ms[CASE_LENGTHS]; /* of the first computation, up to the first 0; none: the case has its own */
	/* The job is zeroed but for kind and seed; draw is seeded by kind, length and seed. */
	void (*make)(struct job *job, struct draw *draw, double length_ms);
	const void *variant;		/* distinguishes it from other cases of the same function */
	void (*study)(struct job *job); /* in place of `make`, where nothing is drawn */
};

#define VARIANT(type, ...) (&(const type){__VA_ARGS__})

struct case_table {
	const struct accuracy_case *cases;
	size_t count;
};

extern const struct case_table fault_cases, call_cases, quiet_cases, papers_cases;
extern const struct case_table shape_fault_cases, shape_call_cases, shape_quiet_cases; /* part "shapes" */

/* Makes the job of a case. */
void cases__make(const struct accuracy_case *at, double length_ms, uint64_t seed, struct job *job);

/* Sets what most cases share: ranks on hosts, a length of the run, the usual program, jitter. */
void cases__usual(struct job *job, struct draw *draw, double length_ms, double calls, double writes);

/* A rank, host or socket at random. */
struct job_ranks cases__rank(const struct job *job, struct draw *draw);
struct job_ranks cases__host(const struct job *job, struct draw *draw);
struct job_ranks cases__socket(const struct job *job, struct draw *draw);

#endif
