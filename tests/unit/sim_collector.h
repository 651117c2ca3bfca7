/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Between the two halves of the simulator: sim.c is the job, whose ranks run and wait; sim_collector.c
 * is vaprod's side, which merges their fragments into bundles and feeds windows of them to an analysis.
 */
#ifndef VAPRO_SIM_COLLECTOR_H
#define VAPRO_SIM_COLLECTOR_H

#include "sim.h"

/* states of the job: three computations, two allreduces, a write */
enum { C1, C2, C3, A1, A2, W, STATES };

struct cell {
	struct vapro_bundle bundle;
	uint32_t bucket;
	bool used;
};

#define SIM_CELLS 256

struct rank {
	double t;     /* ns since start */
	double slice; /* on-CPU time left before the hog runs */
	uint64_t calls, bin;
	struct cell cells[SIM_CELLS];
	double least[STATES];
	unsigned seen[STATES], singles;
	double bin_factor;
	uint64_t factor_bin;
};

struct window {
	double begin, end;
	struct vapro_bundle *open;
	size_t open_count, open_capacity;
};

struct sim {
	const struct sim_scenario *s;
	struct sim_report *report;
	uint64_t seed;
	struct rank *ranks;
	struct vapro_bundle *bundles;
	size_t count, capacity;
	struct vapro_interference *interference;
	size_t interference_count, interference_capacity;
	struct window windows[64];
	int window_count;
	enum vapro_workload_source source;
};

struct fragment {
	int rank, state;
	double start, end, preempted, blocked_io, blocked_other, instructions;
};

/* Converts nanoseconds since the start to UTC. */
uint64_t sim_utc(double t);

/* Handles an ended fragment as the kernel side does. */
void sim_emit(struct sim *sim, const struct fragment *f);

/* Emits the bundles that a rank still merges into. */
void sim_flush(struct sim *sim, struct rank *rank);

/* Gives a rank's CPU to a hog or another rank between two times. */
void sim_preempt(struct sim *sim, int rank, uint32_t pid, double from, double to);

/* Feeds threads, states, then the emitted bundles by window; reads the results into the report. */
void sim_feed(struct sim *sim, struct analysis *analysis);

#endif
