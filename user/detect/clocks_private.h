/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by clocks.c and clock_track.c: the calls of a host at one call-site, and the offset of a pair of hosts. */
#ifndef VAPRO_DETECT_CLOCKS_PRIVATE_H
#define VAPRO_DETECT_CLOCKS_PRIVATE_H

#include "detect/clocks.h"

#define CLOCK_CALLS 512 /* bundles: at least ten seconds of a busy call-site */

/* A bundle of calls: the first start and the last end, ns. */
struct clock_calls {
	uint64_t start_ns, end_ns;
	uint32_t n;
};

/* How the clock of one host goes against that of another, by the calls of one call-site. */
struct clock_link {
	bool found;	  /* a candidate at least */
	bool known;	  /* confirmed by calls after those it was found by */
	double slip;	  /* ordinal of the other host's call less the base's ordinal of that call */
	double until;	  /* ordinal of the base's last call that it was found by */
	double offset_ns; /* other less base */
	double spread_ns; /* as in struct clock_offset */
	double cost;	  /* mean deviation of the calls from the offset, ns */
};

/* The calls of one rank at one call-site, in order of arrival. */
struct clock_track {
	uint32_t site;
	int32_t rank;
	uint64_t before;	   /* calls that were dropped */
	struct clock_calls *calls; /* at most CLOCK_CALLS */
	size_t count, capacity;
	struct clock_link link; /* to the first host by name */
};

/* The end of a call whose ordinal is certain. */
struct clock_end {
	double ordinal, ns; /* ns: since the origin of the scratch */
};

struct clock_ends {
	struct clock_end items[CLOCK_CALLS];
	uint32_t count;
	double each_ns; /* typical time from call to call */
};

/* Room for one link at a time. */
struct clock_scratch {
	uint64_t origin_ns;
	struct clock_ends base, other;
	struct clock_calls sorted[CLOCK_CALLS];
	double differences[CLOCK_CALLS];
};

/*
 * Finds the offset between two tracks of one call-site. It is a candidate until later calls alone show the same. A link
 * that is known stays as long as it agrees, as nothing else agrees for certain, and as no calls can be compared.
 */
void clock_track__link(const struct clock_track *base, const struct clock_track *other, struct clock_scratch *scratch,
		       struct clock_link *link);

#endif
