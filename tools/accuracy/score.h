/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The truth against the findings. An alarm is a variance of its last revision with alarm and severity
 * warning or critical that is no other's effect. It hits a fault where the class is equal, the Jaccard
 * index of the ranks at least 0.5 and that of the times at least 0.3; one alarm for one fault.
 *
 * Variances begin and end on borders of 200 ms bins and no analysis can look into a fragment: times are
 * compared with the truth as it is, rounded to bins, and as the disturbed fragments have it; the best
 * counts. Errors of begin and end are distances from the nearer of the moment and its fragment's border.
 */
#ifndef VAPRO_ACCURACY_SCORE_H
#define VAPRO_ACCURACY_SCORE_H

#include "findings.h"

#define SCORE_TRUTHS 48
#define SCORE_ALARMS 48

/* Why a truth is not demanded. */
enum apart {
	APART_NOT,	   /* it is */
	APART_FREE,	   /* its kind demands nothing */
	APART_BELOW,	   /* below the bars */
	APART_UNSUPPORTED, /* no reference before it */
};

struct truth_score {
	/* of the truth */
	enum vapro_class class;
	enum finding expected;
	enum apart apart;
	bool vague, stall, attributed;
	char ranks[40];
	uint32_t rank_count;
	double begin, end, lost, ratio, batches, length;
	/* of the finding; NAN without one */
	bool hit, retained;
	uint32_t parts; /* further alarms within it */
	double jaccard, overlap;
	double begin_error, end_error; /* s */
	bool times_good;	       /* both within 400 ms or one fragment */
	double lost_error;	       /* relative, signed */
	double delay;		       /* from its begin to the end of the window that raised the alarm */
	bool grows;		       /* no moment at which it begins */
	double found_ratio;	       /* of an imbalance */
	char by[16];		       /* alarm, place, imbalance, drift, reported */
	char cause[32];
	char near[112]; /* of a fault that was missed: what was said of most of its ranks and time; "" nothing */
};

enum alarm_kind { ALARM_HIT, ALARM_PART, ALARM_ALLOWED, ALARM_WRONG_CLASS, ALARM_FALSE, ALARM_KINDS };

struct alarm_score {
	enum alarm_kind kind;
	enum vapro_class class;
	char ranks[40];
	double begin, end, lost;
	char evidence[100];
};

/* One job's score: plain data, so that it goes through shared memory. */
struct score {
	uint32_t truth_count, alarm_count; /* of the lists, that end where their room does */
	struct truth_score truths[SCORE_TRUTHS];
	struct alarm_score alarms[SCORE_ALARMS];
	uint32_t by_kind[ALARM_KINDS]; /* all alarms */
	uint32_t withdrawn;	       /* alarms that are none any more */
	uint32_t imbalances, drifts, variances;
	uint32_t stalls; /* noise components of fragments */
};

void score__job(const struct job *job, enum vapro_workload_source source, const struct truths *truths,
		const struct findings *findings, struct score *score);

/* Jaccard index of two ascending lists, and of two spans of time. */
double score__ranks(const int32_t *a, uint32_t a_count, const int32_t *b, uint32_t b_count);
double score__times(double a_begin, double a_end, double b_begin, double b_end);

/* Whether a fault is one that is demanded of a mode. */
enum apart score__apart(const struct job *job, enum vapro_workload_source source, const struct truth *truth);

extern const char *const score__alarm_name[ALARM_KINDS];
extern const char *const score__apart_name[];
extern const char *const score__finding_name[];

#endif
