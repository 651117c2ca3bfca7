/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From counts to shares: how the pipeline's time divides (VAPRO (PPoPP'22) section 4.1). Each
 * formula partitions one thing (stage 1: the whole, later stages: one part of the stage above), so its
 * shares are never negative and sum to 1. Pure; the vendors' formulas, CPU by CPU.
 */
#ifndef VAPRO_TOPDOWN_H
#define VAPRO_TOPDOWN_H

#include <stdbool.h>

#define TOPDOWN_PARTS 5 /* most parts of a group */
#define TOPDOWN_LEVEL1 4
#define TOPDOWN_LEVEL1_NAMES                                                                                           \
	{                                                                                                              \
		"retiring", "frontend", "bad_speculation", "backend"                                                   \
	}

/* Inputs of formulas beside the counts of their own events. */
struct topdown {
	double width;	     /* slots per cycle */
	double instructions; /* instructions of the same time; 0 where not counted */
	double retiring;     /* share of stage 1, for later stages; 0 where not known */
	double l2_share;     /* share of first-cache misses that the second cache serves; 0 where not known */
	bool smt;	     /* two threads share the core, and counts are the core's */
};

/*
 * count: counts of the events in the order of their group, 0 for those that were left out. Fills share.
 * Returns false where nothing was counted.
 */
typedef bool (*topdown_formula)(const double *count, const struct topdown *about, double *share);

/* Stage 1: retiring, frontend, bad_speculation, backend. */
bool topdown__skylake(const double *count, const struct topdown *about, double *share);
bool topdown__icelake(const double *count, const struct topdown *about, double *share);
bool topdown__zen4(const double *count, const struct topdown *about, double *share);
bool topdown__zen2(const double *count, const struct topdown *about, double *share);	    /* approximate */
bool topdown__neoverse_n1(const double *count, const struct topdown *about, double *share); /* approximate */
bool topdown__neoverse_v1(const double *count, const struct topdown *about, double *share);
bool topdown__neoverse_v2(const double *count, const struct topdown *about, double *share);
bool topdown__neoverse_n2_early(const double *count, const struct topdown *about, double *share);
bool topdown__neoverse_v3(const double *count, const struct topdown *about, double *share);
bool topdown__a64fx(const double *count, const struct topdown *about, double *share);

/* Stage 2: two parts of one part. */
bool topdown__skylake_backend(const double *count, const struct topdown *about, double *share);
bool topdown__skylake_frontend(const double *count, const struct topdown *about, double *share);
bool topdown__skylake_retiring(const double *count, const struct topdown *about, double *share);
bool topdown__icelake_frontend(const double *count, const struct topdown *about, double *share);
bool topdown__zen4_frontend(const double *count, const struct topdown *about, double *share);
/* The first count is part of the second: that part, and the rest. */
bool topdown__part_of(const double *count, const struct topdown *about, double *share);
/* Two counts that add up to the whole. */
bool topdown__two_parts(const double *count, const struct topdown *about, double *share);

/* Stage 3 of memory: l1, l2, l3, dram, store; on A64FX l1, l2, dram; elsewhere fills by their source. */
bool topdown__stalls_by_level(const double *count, const struct topdown *about, double *share);
bool topdown__l2_share(const double *count, const struct topdown *about, double *share);
bool topdown__a64fx_memory(const double *count, const struct topdown *about, double *share);
bool topdown__fills(const double *count, const struct topdown *about, double *share);

/* Clocks in place of counters: all time is the backend's. */
bool topdown__clocks(const double *count, const struct topdown *about, double *share);

/*
 * Share of the time in user mode of the factor that a later stage divides, by a count of all time at the
 * end of its group. NAN where that was not counted.
 */
typedef double (*topdown_whole)(const double *count, const struct topdown *about);

double topdown__whole_second(const double *count, const struct topdown *about); /* second of third count */
double topdown__whole_slots(const double *count, const struct topdown *about);	/* the same, of cycles in slots */
double topdown__whole_icelake_frontend(const double *count, const struct topdown *about);
double topdown__whole_stalls(const double *count, const struct topdown *about);
double topdown__whole_a64fx_backend(const double *count, const struct topdown *about);
double topdown__whole_a64fx_memory(const double *count, const struct topdown *about);
double topdown__whole_all(const double *count, const struct topdown *about);

#endif
