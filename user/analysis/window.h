/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One job's way through a window: model -> detect -> diagnose. Internal to the analysis; the interface
 * is include/vapro/analysis.h. Bins are absolute (UTC ns / VAPRO_BIN_NS): the new part is
 * [begin, end), the view [view, end); bundles that end before bin `retire` are dropped afterwards,
 * since the next view begins there. Bundles of states with too few fragments to be judged are held
 * longer, as long as the heat map reaches, and take part once their state is certified: there are
 * fewer than certify_fragments of them.
 */
#ifndef VAPRO_ANALYSIS_WINDOW_H
#define VAPRO_ANALYSIS_WINDOW_H

#include "detect/account.h"
#include "analysis/host_clocks.h"
#include "detect/clocks.h"
#include "detect/coverage.h"
#include "detect/evidence.h"
#include "detect/hang.h"
#include "detect/bundle_shares.h"
#include "detect/inside.h"
#include "detect/noise.h"
#include "detect/rank_profile.h"
#include "detect/sensing.h"
#include "detect/sets.h"
#include "detect/spatial.h"
#include "detect/stall_kinds.h"
#include "detect/variability.h"
#include "detect/waiting.h"
#include "detect/weight.h"
#include "diagnose/driver.h"
#include "diagnose/where.h"
#include "analysis/chosen_sites.h"
#include "base/arena.h"
#include "model/job_series.h"
#include "model/hops.h"

struct interference_rec {
	uint32_t thread, row; /* row: as of the present window */
	uint64_t bin;
	bool counted;	    /* counted for good */
	uint32_t other_job; /* number of the other job that the task is a rank of; STG_NONE */
	struct result_interferer task;
};

/* Data that windows have dropped, retained for queries (history.h). */
struct history {
	struct bundle_rec *recs, *open; /* open: as of the last window's end */
	size_t rec_count, rec_capacity, open_count, open_capacity;
	struct interference_rec *interference;
	size_t interference_count, interference_capacity;
	uint64_t from; /* bin; nothing later is missing */
};

/* Bins before the new part that late fragments changed. */
struct emitted_again {
	uint64_t from;	     /* first such bin, UINT64_MAX = none */
	unsigned char *rows; /* rows with such bins */
};

struct analysis_job {
	uint32_t id;
	struct bundle_rec *recs, *open;
	size_t rec_count, rec_capacity, open_count, open_capacity;
	struct interference_rec *interference;
	size_t interference_count, interference_capacity;
	struct account account;
	struct noise noise;
	struct rank_profile *profile; /* NULL: nothing was seen yet */
	struct stalls stalls;
	struct stall_list stall_list;
	struct sensing sensing;
	struct clocks *clocks; /* of several hosts; NULL: one host, or no collective yet */
	struct coverage_facts facts;
	bool active;	/* something arrived since the last window */
	bool forgotten; /* the job ended, and its histories went */
	enum job_room room;
	bool vacant; /* it is forgotten, and its number is free */
	struct heatmap map;
	struct waiting *waiting;
	uint64_t known_from; /* first bin of the view, or an earlier one of calls that became known in this window */
	struct variance_book book;
	struct diagnoses diagnoses;
	struct diagnoses chosen; /* cases of the region chosen by hand: one per class, with the class + 1 as id */
	struct chosen_sites chosen_sites;
	struct coverage coverage;
	struct sets sets;
	uint64_t small_count; /* regions that cost too little, in the view */
	double small_ns;
	struct spatial spatial;
	struct hang hang;
	struct emitted_again emitted_again[VAPRO_CLASSES];
	struct history history;
	uint64_t bundles, fragments;
	bool variability_known; /* its variability was emitted: what still comes is not part of it */
};

struct analysis_span {
	uint64_t begin_ns, end_ns;
	uint64_t view, begin, end, retire; /* bins */
	bool last;
};

/* The region chosen by hand. */
struct selection_of {
	int32_t (*ranks)[2];
	uint32_t range_count; /* 0: all ranks */
	bool active, relative;
	uint64_t begin_ns, end_ns;
};

/* See memory.h. */
struct analysis_memory {
	size_t fixed;			  /* bytes held by all but the bundles, as last added up */
	size_t elsewhere;		  /* part of fixed that others hold (analysis__held_elsewhere) */
	size_t results;			  /* part of fixed: the results of the window that ended last */
	size_t series, look_at;		  /* histories then; histories at which to add up again */
	bool short_history;		  /* heat maps keep little more than the view */
	bool exhausted;			  /* no step helps any more in this window */
	struct vapro_shed shed, reported; /* shed since the last window, and in the window that ended last */
};

/* Normal fragments of a workload, summed at first use. */
struct workload_pile {
	bool known;
	struct series_pile pile;   /* sums of all ranks */
	uint32_t set;		   /* a lasting variance, or 0: none yet */
	struct series_pile others; /* sums of the ranks outside the set */
};

struct analysis_context {
	struct vapro_config config;
	enum vapro_workload_source source;
	struct stg *stg;
	struct series_book series;
	struct hops *hops;
	struct inside *inside;
	struct host_clocks *host_clocks;
	uint32_t last_variance;
	unsigned counted; /* groups of counters that any bundle has, as bits */
	struct driver driver;
	struct places places;
	struct workload_pile *normal; /* by workload */
	size_t normal_capacity;
	struct selection_of selection;
	uint64_t remember_bins, remember_bytes; /* 0: nothing beyond the next view */
	struct arena arena;
	struct analysis_memory memory;
};

/* Runs everything up to the verdicts. References must be fresh. Returns 0 or -ENOMEM. */
int analysis_window__run(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span);

/* Learns from the bundles that end in bins [view, end); references are to be refreshed then. Returns 0 or -ENOMEM. */
int analysis_window__learn(struct analysis_context *context, struct analysis_job *job, uint64_t view, uint64_t end);

/* Judges all bundles of the job, and sums the cost of undisturbed ones. References must be fresh. 0 or -ENOMEM. */
int analysis_window__judge(struct analysis_context *context, struct analysis_job *job,
			   const struct analysis_span *span);

/* Returns the task of an interference with the name of its job, which lives as long as that. */
struct result_interferer analysis__task(const struct analysis_context *context, const struct interference_rec *at);

/* Returns the variance that an interference lies in, or 0. */
uint32_t analysis__owner_of(const struct analysis_job *job, const struct interference_rec *at);

/* Drops what the next view does not need. Returns 0 or -ENOMEM. */
int analysis_window__retire(struct analysis_context *context, struct analysis_job *job,
			    const struct analysis_span *span);

/* Builds the job's result, in the context's arena. Returns 0 or -ENOMEM. */
int analysis_result__build(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
			   struct job_result *result);

#endif
