/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small simulator of an MPI job and of the collector: N ranks loop over three computations and two
 * allreduces (and now and then a write), with noise, hogs, stalls and changes of work from a scenario;
 * arrival times make the waiting. It merges fragments into bundles as the kernel side does and feeds
 * windows of 15 s with a stride of 10 s to an analysis. Deterministic: its own generator.
 * Times in a scenario are seconds since its start.
 */
#ifndef VAPRO_SIM_H
#define VAPRO_SIM_H

#include <vapro/analysis.h>

#define SIM_BEGIN_NS 1700000000000000000ULL
#define SIM_MONITOR 4000 /* a hog of this pid is vaprod */
#define SIM_HOGS 8
#define SIM_FOUND 256

struct sim_hog {
	int rank;
	double begin, end;
	uint32_t pid;
};

struct sim_scenario {
	int ranks;
	double seconds;
	uint64_t seed;
	double noise;	  /* standard deviation of a fragment's on-CPU time */
	double bin_noise; /* a whole bin of a rank is up to this much slower */
	bool random_work; /* uniform between 0.3 and 1.7 of the usual */
	bool alternating; /* two states cost double in every other iteration */
	enum {
		SIM_ONE_KERNEL,
		SIM_ALTERNATING,
		SIM_AT_RANDOM
	} kernels;		       /* the first computation has 1, 3 or 10 times the work */
	bool naps;		       /* one computation sleeps for a while in each iteration */
	double modes;		       /* share of computations that cost double, at random, always */
	double odd_naps;	       /* share of iterations in which one computation sleeps 20 ms, always */
	double phase_at, phase_factor; /* the first computation changes its work on all ranks */
	double grow_at, grow_factor;   /* all computations change their work on all ranks */
	double drift;		       /* per second, all computations on all ranks */
	double slow_rank_factor;       /* the last rank always has this factor of work */
	struct sim_hog hogs[SIM_HOGS];
	int hog_count;
	int memory_rank; /* rank whose computations are slow on the CPU */
	double memory_begin, memory_end, memory_factor;
	bool memory_first; /* only the first computation of an iteration */
	int write_every;   /* iterations; 0: never */
	int stall_rank;
	double stall_at, stall_s;			  /* time and length of one long write */
	bool stall_attributed;				  /* the kernel attributes that it slept */
	double flush_share;				  /* share of writes that always sleep for 20 ms */
	double transfer_begin, transfer_end, transfer_ns; /* extra time of allreduces on every rank */
	double governed_share;
	bool thinned;	     /* the governor suppresses calls instead of closing links */
	double scale;	     /* factor of all computations; 0: 1 */
	bool threads;	     /* not ranks but threads of one process, which wait at barriers */
	bool inside;	     /* requested threads are sampled, at p@0+0x2 most */
	bool spins;	     /* a waiting rank is on the CPU, and waiting ranks preempt each other */
	uint32_t world_size; /* 0: ranks */
	const char *cpus;    /* CPUs that each rank may use; NULL: unknown */
};

/* A variance as last reported. */
struct sim_found {
	uint64_t id, effect_of;
	enum vapro_class class;
	enum vapro_region_state state;
	bool alarm, ever_alarm, confirmed, still_open, ever_open;
	double observed, whole_lost;
	double begin, end, lost, lost_by_class[VAPRO_CLASSES], performance, ratio_slow, site_ratio;
	int32_t first_rank, last_rank; /* or threads, where the scenario has threads */
	uint32_t rank_count, reports, closed, culprits;
	int32_t culprit;
	char evidence[160], advice[512], who[64];
	char major[64];		      /* finest major factor with most impact */
	double preempted;	      /* its contribution at stage 2 */
	double level_sum[3];	      /* contributions at stage 1, and of suspension at stage 2 */
	enum vapro_relation relation; /* relation of the first interferer */
	struct cpu_demand oversubscribed;
	char interferer[16];
	uint32_t interferer_pid;
	double interferer_seconds;
	uint32_t exemplars, sites;
	char hottest[64]; /* place with most samples; "" none */
	uint64_t hottest_samples, samples;
};

struct sim_report {
	struct sim_found found[SIM_FOUND];
	int found_count, alarms, ever_alarms;
	int windows;
	double coverage_last, coverage_max, coverage_computation, coverage_communication;
	int drifts, imbalances, rares, emitted_again;
	struct result_imbalance imbalance;
	double governed, not_seen, performance;
	bool partial;
	uint32_t thread_lines;	    /* heat-map lines of threads */
	double truth_preempted[64]; /* per rank: seconds preempted in computation */
	uint64_t bundles;
	uint32_t requested_most, requested_last; /* threads to be sampled after a window, and after the last one */
	uint32_t requested_tid;			 /* the first one of the last request that had any */
};

void sim_config(struct vapro_config *config);

/* Runs a scenario from start to end; asserts (cmocka) that the interface accepts everything. */
void sim_run(const struct sim_scenario *scenario, enum vapro_workload_source source, struct sim_report *report);

/* Gathers the analysis's report on the job at the end of a window. */
void sim_read(struct sim_report *report, const struct job_result *result);

/* Returns the variance with most lost seconds among alarms, or NULL. */
const struct sim_found *sim_alarm(const struct sim_report *report);
void sim_print(const struct sim_report *report);

double sim_random(uint64_t *seed);
double sim_gauss(uint64_t *seed);

#endif
