/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The findings of the analysis on a job, window by window: a sink of events that runs the pure floors in process. */
#ifndef VAPRO_ACCURACY_FINDINGS_H
#define VAPRO_ACCURACY_FINDINGS_H

#include <stdio.h>

#include "job.h"

/* The last revision of a variance. Times are seconds since the job's start. */
struct found_variance {
	uint64_t id, effect_of;
	enum vapro_class class;
	bool also[VAPRO_CLASSES];
	double lost_by_class[VAPRO_CLASSES];
	double begin, end, lost, caused, share, performance;
	double ratio_slow; /* of the states that are slow */
	int32_t *ranks;	   /* ascending */
	uint32_t rank_count;
	enum vapro_severity severity;
	enum vapro_confidence confidence;
	enum vapro_region_state state;
	bool alarm, slow_path;
	double raised;	/* end of the window that first made it an alarm (of warning or above); NAN: none did */
	double dropped; /* end of the window that last withdrew it; NAN: none, or it came back */
	uint32_t revisions;
	int32_t *last; /* ranks that entered last, ascending */
	uint32_t last_count;
	char cause[32]; /* the major factor of most impact */
	char place[96]; /* what its ranks share: "host n2, socket 1" */
	char evidence[160];
	char verdict[256];
};

struct found_imbalance {
	enum vapro_class class;
	int32_t *ranks;
	uint32_t rank_count;
	double ratio_slow;	   /* of the states that are slow */
	double ratio, first, last; /* ends of the first and the last window that had it */
	double lost;
	bool certain;
	uint64_t variance;
	char place[96];
	uint32_t windows;
};

struct found_clock {
	char host[32];
	bool known;
	double offset, spread, corrected; /* s, of the last window */
};

#define FOUND_CLOCKS 64

/* How the time of a workload varied. */
struct found_variability {
	enum vapro_class class;
	enum vapro_variability_work work;
	struct variability_figures figures;
	double seconds, call_p50_s, call_p95_s, call_above_s;
	int32_t temporal_rank;
	char labels[128], ranks[64], place[96]; /* ranks that are slow, and what they share */
};

#define FOUND_VARIABILITY 20

/* The last revision of a noise component. */
struct found_noise {
	uint32_t id;
	enum vapro_noise_source source;
	enum vapro_class class;
	double n, lost, period, share, regularity; /* s */
	enum vapro_noise_together together;
	char what[48], ranks[64];
};

#define FOUND_NOISE 32

struct found_drift {
	double first, last, ratio;
	uint32_t windows;
};

struct findings {
	struct found_variance *variances;
	size_t variance_count, variance_capacity;
	struct found_imbalance *imbalances; /* those of equal class and ranks are one */
	size_t imbalance_count, imbalance_capacity;
	struct found_drift drift;		 /* of any state; windows 0: none */
	struct found_clock clocks[FOUND_CLOCKS]; /* of the first hosts */
	uint32_t clock_count;
	struct found_variability variability[FOUND_VARIABILITY];
	uint32_t variability_count;
	struct found_noise noise[FOUND_NOISE];
	uint32_t noise_count;
	uint32_t windows;
	double rank_seconds, covered_seconds; /* of ranks, and part of them that was judged */
	double small_seconds;
	uint64_t small_count;
	double window_cpu_max; /* s of CPU at a window's end */
};

/* Closing the sink frees the analysis, not the findings. NULL when out of memory. */
struct stream_sink *findings__sink(const struct vapro_config *config, enum vapro_workload_source source,
				   struct findings *findings);
void findings__free(struct findings *findings);

/* Adds the results of a window that has ended. 0 or -ENOMEM. */
int findings__read(struct findings *findings, const struct job_result *result);

/* Returns the share of all ranks' time in the run that was judged; 0 before the first window. */
static inline double findings__coverage(const struct findings *findings)
{
	return findings->rank_seconds > 0 ? findings->covered_seconds / findings->rank_seconds : 0;
}

void findings__print(const struct findings *findings, FILE *out);

/* "3-7,9" of ascending numbers; cut short with "..." where the room ends. */
void findings__ranks(const int32_t *ranks, uint32_t count, char *text, size_t size);

#endif
