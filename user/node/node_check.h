/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a run of the kernels shows of a node. The analysis of jobs judges it: a kernel whose time varies from instance
 * to instance (the record `variability`) has slow ones. Their difference must exceed the scatter in time of the same
 * kernel, since a machine that varies by 20 % by itself does not show 15 %: where it does not, nothing is decided. The
 * same holds where others had the CPUs.
 */
#ifndef VAPRO_NODE_CHECK_H
#define VAPRO_NODE_CHECK_H

#include <cjson/cJSON.h>

#include "node/node_run.h"

enum node_verdict {
	NODE_GOOD,
	NODE_UNDECIDED,
	NODE_SLOWER, /* than the profile */
	NODE_SLOW,   /* instances are slower than the others */
	NODE_WRONG,  /* instances computed wrong results */
	NODE_VERDICTS,
};

extern const char *const node_verdict_name[NODE_VERDICTS];

/* A kernel on all instances, or on those with cores of one type. Shares are fractions: 0.1 is 10 %. */
struct node_finding {
	enum node_kernel kernel;
	char core_type[24]; /* "": all */
	enum node_verdict verdict;
	double mean_ns;	     /* of an iteration; NAN unknown */
	double scatter;	     /* in time: 5th to 95th percentile of the batches of the worst instance; NAN unknown */
	double difference;   /* of the instances, or to the profile; NAN unknown */
	uint32_t *instances; /* that are slow, or wrong; belong to the finding */
	size_t count;
	char why[256]; /* of undecided ones, and of a slow path: a phrase; or "" */
};

struct node_check {
	struct node_finding *items; /* by kernel */
	size_t count, capacity;
	enum node_verdict verdict; /* the worst of them */
	cJSON *records;		   /* records `variability` of the run, an array; NULL for a comparison */
};

/* Judges a run. Returns 0, or a negative errno with a sentence in err; to be cleared in both cases. */
int node_check__judge(struct node_check *check, const struct node_run *run, char *err, size_t err_size);

/*
 * Compares a run with a profile, of which `known` and `now` are the judged checks: their scatter bounds what is
 * decided. Returns 0, or a negative errno with a sentence in err; to be cleared in both cases.
 */
int node_check__compare(struct node_check *check, const struct node_run *profile, const struct node_check *known,
			const struct node_run *run, const struct node_check *now, char *err, size_t err_size);
void node_check__clear(struct node_check *check);

/* Returns the finding on a kernel, NULL: none. */
const struct node_finding *node_check__find(const struct node_check *check, enum node_kernel kernel,
					    const char *core_type);

/* Adds an empty finding; NULL when out of memory. */
struct node_finding *node_check__add(struct node_check *check, enum node_kernel kernel, const char *core_type);

/* Adds an instance to a finding. Returns 0 or -ENOMEM. */
int node_check__add_instance(struct node_finding *finding, uint32_t instance);

/*
 * Says that others had the CPUs for too much of the time: writes which and how much, and returns whether that is so.
 */
bool node_check__busy(const struct node_run *run, char *text, size_t size);

#endif
