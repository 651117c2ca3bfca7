/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A job of four ranks whose rank 1 is slow for 6 s (12 to 18 s after its start) for a reason that the test
 * knows, through the whole analysis; and the analysis's diagnosis. Shared by the tests of why.
 */
#ifndef VAPRO_TESTS_SLOW_RANK_H
#define VAPRO_TESTS_SLOW_RANK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diagnose/driver.h"
#include "sim.h"

#define RANKS 4
#define MS 1e6
#define BASE_NS (10 * MS)
#define SLOW 1
#define ALL_GROUPS ((1U << COUNTER_GROUPS) - 1)

/* Jitters of each leaf of a quiet fragment. */
extern const double slow_rank_jitters[2];

struct cause {
	enum factor_node node;
	double share; /* extra share of BASE_NS; for a count its price */
	double every; /* 1: all fragments in the time, else that share of them */
};

struct run {
	struct cause causes[3];
	unsigned groups; /* counter groups that are on: all stages at once, or those that the driver requests */
	bool progressive;
	bool kernel_has_none; /* the kernel's time is unobserved */
	bool always;	      /* slow from the start to the end */
	bool rare;	      /* some fragments of other work, few and long, at the same time */
	bool hidden;	      /* causes cost time that no factor shows, beside counts */
	double jitter;	      /* jitter of each leaf of a quiet fragment */
	bool merged;	      /* neighbours of a state come merged, slow and other fragments apart */
	double better;	      /* share of frontend that vanishes during the slow time: less frontend is better */
	double seconds;
	const struct vapro_selection *selection;
	bool places;
	uint64_t seed;
	double put[FACTOR_NODES]; /* the truth: share of BASE_NS that causes added */
	/* a query to a copy during the run */
	const struct vapro_selection *query;
	double query_at, remember, window; /* s; window 0: the default */
	uint64_t remember_bytes;
	struct response *response;
};

struct diagnosed_factor {
	char name[32], parent[32], shared[128];
	int stage;
	double share, impact, p;
	bool major, regression, implied;
};

struct diagnosed {
	struct diagnosed_factor factor[FACTOR_NODES];
	uint32_t count, reports, stages[8];
	bool finals[8], final;
	char outcome[24];
	double lost, rows;
	char verdict[512], shared_facts[128];
	struct response_region {
		uint32_t abnormal, normal;
		double lost, performance, begin, end;
		char verdict[512], who[64];
		enum vapro_class class;
	} chosen[3];
	uint32_t chosen_count, rares;
	struct result_rare rare; /* the last reported one */
	int requests[64];
	char expands[64][24];
	int request_count;
};

/* Response of a copy, in memory shared with the copy. */
struct response {
	struct diagnosed diagnosed;
	uint32_t jobs;
	double begin, end; /* bounds of retained data, s */
	uint64_t fragments;
	double judged;
};

/* Does the whole run, and gathers its reports. */
void slow_rank__run(struct run *run, struct diagnosed *diagnosed);

/* Queries a copy, as the daemon does, so the analysis goes on unchanged. The response is in run->response. */
void slow_rank__query(const struct run *run, struct analysis *analysis);

/* Returns the report on a factor, or NULL. */
const struct diagnosed_factor *slow_rank__find(const struct diagnosed *diagnosed, const char *name);
void slow_rank__show(const struct diagnosed *diagnosed);

/* Returns a factor's share of the whole loss, along the path down the tree. */
double slow_rank__of_all(const struct diagnosed *diagnosed, const char *name);

/* Expects the factor to within that many points of the whole loss; only the factor and its ancestors are major. */
void slow_rank__expect_only(const struct diagnosed *diagnosed, enum factor_node node, double points);
void slow_rank__assert_levels(const struct diagnosed *diagnosed);

/* Notes the greatest distance of any response from the truth; prints it and begins again. */
void slow_rank__measure(double found, double truth, const char *name);
void slow_rank__report_worst(const char *group);

#endif
