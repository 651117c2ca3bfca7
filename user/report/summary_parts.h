/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of a summary: filled by summary.c, printed by summary_print.c. */
#ifndef VAPRO_REPORT_SUMMARY_PARTS_H
#define VAPRO_REPORT_SUMMARY_PARTS_H

#include <vapro/analysis.h>
#include "report/asides.h"
#include "report/regions.h"
#include "report/source_names.h"

/* Uncovered time of one state and reason, over all windows. */
struct gap {
	char *state; /* for people */
	char *key;   /* its call-sites and labels, the same before and after they are named */
	enum vapro_uncovered_reason reason;
	double rank_seconds;
};

struct job_summary {
	char *name, *said; /* name as printed, and as reported by the job's processes */
	uint32_t user;
	uint64_t begin_ns, end_ns;
	uint32_t world_size, ranks;
	bool partial;
	double rank_seconds; /* weight of all sums below */
	double covered[VAPRO_CLASSES], covered_total;
	double performed[VAPRO_CLASSES], performed_weight[VAPRO_CLASSES];
	double overhead, overhead_max;
	uint64_t fragments, lost[VAPRO_LOSSES];
	uint64_t small_count; /* slow regions too small for a variance */
	double small_seconds;
	struct gap *gaps;
	size_t gap_count, gap_capacity;
};

struct summary {
	const struct source_names *names; /* or NULL */
	struct job_summary *jobs;
	size_t job_count, job_capacity;
	struct regions regions;
	struct asides asides;
	double cpu_pct_seconds, cpu_seconds;
	uint64_t cpu_end_ns; /* a window has several jobs, its daemon's time counts once */
	char **chosen;	     /* verdicts on the region chosen by hand */
	size_t chosen_count, chosen_capacity;
	char **troubles;
	size_t trouble_count, trouble_capacity;
};

/* Reasons for uncovered time, for people. */
extern const char *const summary_reason_text[VAPRO_UNCOVERED_REASONS];

/* Fills a region from a variance. Returns 0 or -ENOMEM. */
int region__fill(struct region *region, const struct result_variance *variance, const struct source_names *names);

#endif
