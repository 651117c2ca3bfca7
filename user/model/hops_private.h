/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What hops consist of, for hops.c and their checkpoints. */
#ifndef VAPRO_HOPS_PRIVATE_H
#define VAPRO_HOPS_PRIVATE_H

#include "base/intern.h"
#include "model/hops.h"

#define FRAMES_MOST 5 /* frames of a call-site's text: the site and its callers */

/* Time in states, by how well their durations are known. */
struct sums {
	double steady_ns, spread_ns, few_ns, n;
	double grouped_ns;   /* part of spread_ns that would be steady if callers distinguished the groups */
	double disturbed_ns; /* time of computations that the kernel interrupted */
};

struct site {
	char *text, *symbol; /* symbol: NULL where unknown */
	enum vapro_hop hop;
	uint64_t since_ns; /* begin of the trial */
	double before;	   /* steadiness before the trial */
	double doubted_ns; /* time that was judged when the trial had no success for the first time; 0: it was not */
	uint32_t below;	   /* call-site that this site calls, + 1; 0: it calls MPI, or does IO */
	unsigned depth;	   /* frames below the site */
	unsigned callers;  /* callers seen */
	uint32_t only;	   /* first caller seen, + 1 */
	/* sums of the present review */
	struct sums own;   /* states that end at the site */
	struct sums above; /* states that end at any of its callers */
};

/* Numbers of the call-sites at a state's end, innermost first. */
struct chain {
	uint32_t site[FRAMES_MOST];
	unsigned count;
};

struct hops_state {
	struct chain end[2];
	bool counts; /* it is a computation */
	bool vacant; /* its number is free, or was when the next state of that number was not read yet */
};

/* The last steadiness of a series: it is computed again once the series has grown. */
struct hops_series {
	double n, steady, near;
};

struct hops {
	struct intern *texts; /* ids of sites, from 1 */
	struct site *sites;
	size_t site_count, site_room;
	struct hops_state *states; /* by state id */
	size_t state_count, state_room;
	struct hops_series *series; /* by number in the book */
	size_t series_room;
	double all_ns;
};

#endif
