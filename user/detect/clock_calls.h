/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What clocks.h computes with: the calls of a host at one call-site (clock_ends.h), the search for the offset of a pair
 * of hosts (clock_search.h), the state of that offset from window to window (clock_track.h).
 */
#ifndef VAPRO_CLOCK_CALLS_H
#define VAPRO_CLOCK_CALLS_H

#include "model/judgement.h"

#include <vapro/bundle.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLOCK_CALLS = 512 };				  /* bundles: at least ten seconds of a busy call-site */
#define CLOCK_PAIRS_LEAST 16				  /* fewer calls are not compared */
#define CLOCK_OFFSET_MOST_NS 10e9			  /* a greater offset is not searched */
#define CLOCK_LITTLE_NS (SHARE_MEANINGFUL * VAPRO_BIN_NS) /* an offset that does not matter; step of a search */
#define CLOCK_NOISE_NS 20e3				  /* of a cost: costs that differ by less are equal */
enum { CLOCK_TRIES_MOST = 6 }; /* a search that fails is repeated after 1, 3, 7 .. 63 windows */
#define CLOCK_GAP_DECAY 0.8    /* of the longest gap from window to window: gaps leave the calls that are compared */

/* A bundle of calls: the first start and the last end, ns. */
struct clock_calls {
	uint64_t start_ns, end_ns;
	uint32_t n;
};

/* How the clock of one host goes against that of another, by the calls of one call-site. */
struct clock_link {
	bool found;	  /* a candidate at least */
	bool known;	  /* confirmed by calls after those it was found by */
	bool unaudited;	  /* found near equal clocks; whether a greater offset agrees better was not searched yet */
	double slip;	  /* ordinal of the other host's call less the base's ordinal of that call */
	double until;	  /* ordinal of the base's last call that it was found by */
	double offset_ns; /* other less base */
	double spread_ns; /* as in struct clock_offset */
	double cost;	  /* mean deviation of the calls from the offset, ns */
};

/* When a link is searched again; windows are numbered from 1. */
struct clock_schedule {
	uint32_t tries; /* searches since the link was known or new that did not make it known */
	uint64_t due;	/* window from which on it is searched again; 0: at once */
	uint64_t tried; /* window of the latest search; 0: none */
	double gap_ns;	/* longest gap that the latest search had; decays */
};

/* The calls of one rank at one call-site, in order of arrival. */
struct clock_track {
	uint32_t site;
	int32_t rank;
	uint64_t before;	   /* calls that were dropped */
	struct clock_calls *calls; /* at most CLOCK_CALLS */
	size_t count, capacity;
	double each_ns;		   /* typical time from call to call when the calls were listed last; 0: never */
	uint64_t last_ns, pending; /* latest end, and calls of bundles since then */
	double new_gap_ns;	/* longest gap of the calls since the last window, beyond the usual time of its calls */
	struct clock_link link; /* to the base host */
	struct clock_schedule schedule;
};

/* The end of a call whose ordinal is certain. */
struct clock_end {
	double ordinal, ns; /* ns: since the origin */
	double single_ns;   /* how long it took, where it is a bundle of its own; 0: one of several calls */
	/* of the calls up to the next end; of the last end 0 */
	double each_ns;	 /* mean time from call to call */
	double least_ns; /* in which one call follows another at least */
	bool regular;	 /* nothing was late */
};

/* Ends of calls in order; the items belong to others. */
struct clock_ends {
	const struct clock_end *items;
	uint32_t count;
	double each_ns;	    /* typical time from call to call */
	uint64_t origin_ns; /* what times count from */
};

/* The end of a call by the other host's clock, most likely at `ns`. */
struct clock_estimate {
	double own_ns, ns, ordinal;
	const struct clock_end *gap; /* something was late in the gap from this end on; NULL: nothing was */
};

enum { CLOCK_TRIED = 1024 }; /* most differences of clocks that a search tries */

/* How well the calls of two hosts agree for a difference of ordinals. */
struct clock_agreement {
	int64_t slip;
	double offset_ns, cost;
	uint32_t pairs;
};

enum { CLOCK_SAMPLES = 128 }; /* most calls that the first sweep of a search compares */

/* Some of the base's calls, each beside the other host's calls around it: arrays by number of the sample. */
struct clock_samples {
	uint32_t count, least; /* least: regular ones for a comparison */
	uint64_t work;	       /* of one comparison, as in spent */
	double ordinal[CLOCK_SAMPLES], own_ns[CLOCK_SAMPLES];
	uint32_t at[CLOCK_SAMPLES];		       /* the other's item before the sample, and of it: */
	double from[CLOCK_SAMPLES], to[CLOCK_SAMPLES]; /* the ordinals of the item and of the next one */
	double from_ns[CLOCK_SAMPLES], each_ns[CLOCK_SAMPLES];
	bool gap[CLOCK_SAMPLES];		      /* something was late in between */
	double ns[CLOCK_SAMPLES], off[CLOCK_SAMPLES]; /* for one slip: the likeliest end, and how far it is off */
	uint32_t late[CLOCK_SAMPLES];		      /* for one slip: numbers of those in a gap */
};

/* Room for one link at a time. */
struct clock_scratch {
	struct clock_ends base, other;
	struct clock_end other_room[CLOCK_CALLS];
	struct clock_calls sorted[CLOCK_CALLS];
	double differences[CLOCK_CALLS];
	struct clock_samples samples;
	struct clock_estimate estimates[CLOCK_CALLS];
	struct clock_agreement rough[CLOCK_TRIED]; /* by some of the calls, of one search */
	struct clock_agreement exact[CLOCK_TRIED]; /* by all calls, of one search */
	uint32_t rough_count, exact_count;
	uint64_t spent; /* comparisons, as clock_search counts them */
};

enum { CLOCK_GAPS = 4 }; /* longest of each host, that may be the same */

/* The gaps that are longest beyond the typical time of their calls, longest first, and the calls after them. */
struct clock_gaps {
	double ns[CLOCK_GAPS], ordinals[CLOCK_GAPS];
	uint32_t count;
};

/* What is known before a link is estimated. */
struct clock_pair {
	struct clock_track *base;
	const struct clock_ends *base_ends;
	struct clock_track *other;
	double bound_ns; /* the kernels of both hosts say that their clocks are at most so far apart */
	uint64_t window; /* number of this window, from 1 */
};

#endif
