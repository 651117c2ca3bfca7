/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs and their scores as a table for people, with the bars of "Done when", and as JSON. */
#ifndef VAPRO_ACCURACY_REPORT_H
#define VAPRO_ACCURACY_REPORT_H

#include "cases.h"
#include "papers.h"
#include "score.h"

#define RUN_NAME 48

/* What a simple rule (baseline.h) finds of the same events. */
struct plain_score {
	bool hit[SCORE_TRUTHS];
	uint32_t by_kind[ALARM_KINDS];
};

/* One case with one length, seed and mode: plain data in shared memory. */
struct run {
	const struct accuracy_case *at;
	char name[RUN_NAME]; /* KIND/LENGTH */
	double length_ms;
	uint64_t seed;
	enum vapro_workload_source source;
	bool failed;
	/* of the job */
	int ranks;
	double seconds, jitter;
	bool cyclic;
	struct job_totals totals;
	/* of its run */
	double cpu_s, rss_mib, window_cpu_max, coverage;
	struct score score;
	struct plain_score plain; /* of part "shapes" */
	struct paper_result paper;
};

extern const char *const report__mode_name[JOB_MODES];

void report__progress(const struct run *run, size_t finished, size_t count);
void report__verbose(const struct run *run, const struct findings *findings, FILE *out);
/* The case studies of the papers, one line each. Returns how many are missed. */
unsigned report__papers(const struct run *runs, size_t count, FILE *out);

void report__table(const struct run *runs, size_t count, FILE *out);

/* The jobs of many shapes: what is found and missed by class, beside the simple rule. */
bool report__is_shape(const struct run *run);
size_t report__others(const struct run *runs, size_t count); /* runs before the first one of them: they come last */
void report__shapes(const struct run *runs, size_t count, FILE *out);

/* A number that has to reach, or not to pass, a bar. NAN: there was nothing to measure. */
void report__check(FILE *out, const char *what, double value, double bar, bool at_least, const char *unit);

/* Writes DIR/accuracy.json. Returns 0, or 1 with a sentence on stderr. */
int report__json(const struct run *runs, size_t count, const char *directory);

/* The sums of one mode, or of one kind of it. */
struct summary_of {
	unsigned runs, quiet, quiet_alarmed, quiet_stalled, failed;
	unsigned demanded, hit; /* faults, without stalls, that an alarm must report */
	unsigned all_hit;	/* with stalls */
	unsigned places, places_hit, drifts, drifts_hit;
	unsigned stalls, stalls_hit;
	unsigned unsupported, unsupported_hit, below, below_hit, free, free_hit;
	unsigned alarms[ALARM_KINDS];
	unsigned split;			/* faults with further alarms */
	unsigned lasting, lasting_good; /* in time, retained, loss within 5 % */
	unsigned late, dropped, lasting_loss;
	unsigned times, times_good;
	double *loss, *begin, *end, *ratio; /* absolute errors, sorted by report__sum */
	size_t loss_count, begin_count, end_count, ratio_count;
};

bool report__sum(const struct run *runs, size_t count, enum vapro_workload_source source, const char *kind,
		 struct summary_of *sum);
void report__free(struct summary_of *sum);

/* A part of a sorted list: 0.5 the median; NAN where it is empty. */
double report__quantile(const double *sorted, size_t count, double part);

#endif
