/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of a summary: filled by summary.c, printed by summary_print.c. */
#ifndef VAPRO_REPORT_SUMMARY_PARTS_H
#define VAPRO_REPORT_SUMMARY_PARTS_H

#include <cjson/cJSON.h>
#include <vapro/analysis.h>
#include "analysis/causes.h"
#include "report/findings.h"
#include "report/obstacles.h"
#include "report/regions.h"
#include "report/source_names.h"

#define SUMMARY_HOST_SHIFT                                                                                             \
	40 /* of a region's number, to which that of its host is added: more than a vaprod counts                      \
	    */

enum { VARIABILITY_RECORDS = 1000 }; /* of all jobs */
enum { EARLIER_TEXTS = 1000 };	     /* of all jobs */
enum { PROFILE_RECORDS = 8192 };     /* ranks of all jobs */

/* Uncovered time of one state and reason, over all windows. */
struct gap {
	char *state;	   /* for people */
	uint64_t state_id; /* 0: time that belongs to no state */
	enum vapro_uncovered_reason reason;
	double rank_seconds;
};

/* Windows that follow each other, with as many ranks. */
struct job_span {
	uint64_t begin_ns, end_ns;
	double rank_seconds;
	uint32_t ranks;
};

struct job_summary {
	char *name, *said; /* name as printed, and as reported by the job's processes */
	uint32_t user;
	char *program; /* path of the executable of its processes; NULL: not known */
	bool programs; /* there are several */
	char *called;  /* what its user calls it; NULL: not known */
	char **hosts;  /* each once */
	size_t host_count, host_capacity, host_guess;
	uint64_t begin_ns, end_ns;
	uint32_t world_size, ranks;
	bool partial;
	struct job_span *spans; /* for shares of an hour */
	size_t span_count, span_capacity;
	double rank_seconds; /* weight of all sums below */
	double covered[VAPRO_CLASSES], covered_total;
	double performed[VAPRO_CLASSES], performed_weight[VAPRO_CLASSES];
	double overhead, overhead_weight, overhead_max; /* weight: time of which the overhead is known */
	uint32_t overhead_pid;				/* process of the maximum; 0: not known */
	bool overhead_long;				/* the maximum is that of a window which is no short one */
	uint64_t fragments, lost[VAPRO_LOSSES];
	double unseen_s; /* longest time of a rank without a judged fragment; 0: unknown */
	int32_t unseen_rank;
	uint64_t small_count; /* slow regions too small for a variance */
	double small_seconds;
	struct gap *gaps;
	size_t gap_count, gap_capacity;
};

/* A hang as last reported. */
struct hang_said {
	char *job, *text;
	uint64_t id;
	bool alarm;
	enum vapro_severity severity;
};

struct summary {
	const struct source_names *names; /* or NULL */
	struct vapro_config config;	  /* what was in force; of this only thresholds count */
	struct job_summary *jobs;
	size_t job_count, job_capacity;
	struct regions regions;
	struct findings findings;
	struct hang_said *hangs;
	size_t hang_count, hang_capacity;
	struct obstacles *obstacles;
	struct table *processes; /* watched: (pid, host) and (rank, job) -> place of the job; NULL: none yet */
	uint64_t start_ns;	 /* of what lies before the first window; 0: nothing does */
	double cpu_pct_seconds, cpu_seconds;
	uint64_t cpu_end_ns; /* a window has several jobs, its daemon's time counts once */
	char **hosts;	     /* of records of regions, in the order of their first */
	size_t host_count, host_capacity;
	char **chosen; /* verdicts on the region chosen by hand */
	size_t chosen_count, chosen_capacity;
	cJSON **variability; /* records, at most VARIABILITY_RECORDS */
	size_t variability_count, variability_capacity;
	char **earlier; /* what is said of runs beside earlier ones, at most EARLIER_TEXTS */
	size_t earlier_count, earlier_capacity;
	cJSON **profiles; /* records rank_profile, at most PROFILE_RECORDS, by job and rank */
	size_t profile_count, profile_capacity;
	char **troubles;
	size_t trouble_count, trouble_capacity;
};

/* Says what would help against a reason. */
extern const char *const summary_reason_help[VAPRO_UNCOVERED_REASONS];

/* What a cause of loss means, for people. */
extern const char *const summary_loss_text[VAPRO_LOSSES];

#define RESULT_TEXT_SIZE 3200

/*
 * Says of a job in which nothing was compared why that is, and what would help: what kept its processes from being
 * seen, if anything did, else the reason of most of its time. Returns whether it is such a job; a job of which there is
 * no window is none. Where something was found all the same, that comes first, and this is summary__little_compared().
 */
bool summary__no_result(const struct summary *summary, const struct job_summary *job, char *text, size_t size);

/*
 * Says of a job in which nothing was found and nothing compared why that is or, of another one, that little was
 * compared. list: the causes that were found. Returns whether there is such a sentence.
 */
bool summary__say_coverage(const struct summary *summary, const struct cause_list *list, const struct job_summary *job,
			   bool little, char *text, size_t size);

/*
 * Says why there is no result at all, where there is neither a window nor a region; command and replayed: as in struct
 * summary_options. Returns whether that is so.
 */
bool summary__nothing_watched(const struct summary *summary, const char *command, bool replayed, char *text,
			      size_t size);

/* Says that no slow region was found, and in which share of the time one could have been. */
void summary__say_nothing_found(const struct summary *summary, char *text, size_t size);

/* Adds a hang in words; a later one of its job and id replaces it. Returns 0 or -ENOMEM. */
int summary__add_hang(struct summary *summary, const char *job, const struct result_hang *hang, const char *text);

/* What a record says of a process. */
struct summary_process {
	const char *job; /* as reported */
	uint32_t user;	 /* of the job, as in struct vapro_thread */
	uint32_t pid;
	int64_t rank;		/* -1: unknown */
	const char *exe, *host; /* NULL: unknown */
	const char *command;	/* NULL: unknown */
	const char *called;	/* what its user calls the job; NULL: unknown */
	bool refused, attached; /* it is not watched; it is from now on */
	const char *reason;	/* of this, NULL: there is none */
};

/* Adds what a process says of its job, and what keeps it from being seen. Returns 0 or -ENOMEM. */
int summary__add_process(struct summary *summary, const struct summary_process *process);

/* Adds a warning about a process of a host where it is about something that keeps it from being seen. 0 or -ENOMEM. */
int summary__add_warning(struct summary *summary, const char *code, uint32_t pid, const char *host, const char *text);

/* Rolls the regions up, and rates them by all time of their job. Returns 0 or -ENOMEM. */
int summary__causes(struct summary *summary, struct causes **causes, struct cause_list *list);

#endif
