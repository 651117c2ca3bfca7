/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The case studies of the papers: beside what score.h demands of every job, the
 * finding must have all ranks and no other, name the place that they share, and
 * have in its verdict the cause that the paper found.
 */
#ifndef VAPRO_ACCURACY_PAPERS_H
#define VAPRO_ACCURACY_PAPERS_H

#include "findings.h"

#define PAPER_TEXT 160

struct paper {
	const char *kind;  /* of the case */
	const char *study; /* paper and what it found, for people */
	const char *place; /* "host n2": in what the ranks share, or in the verdict; NULL: none is demanded */
	/* words of an alarm's verdict, with and without counts: all parts between ';', one of those between '|' */
	const char *verdict[JOB_MODES];
	double ratio;	    /* of the finding, 0: none is demanded ... */
	double also_ratio;  /* ... another one that is as true, 0: none */
	double within;	    /* relative */
	double lost_within; /* of the loss, relative; 0: none is demanded */
	double coverage;    /* mean of the windows, with counts; 0: none is demanded */
	double raised_s;    /* after its begin an alarm must be raised; 0: whenever */
	double stalls_s;    /* mean length of the stalls that are one noise component; 0: none is demanded */
	bool waiting;	    /* all waiting has to be an effect of the alarms */
};

/* The result of a case: plain data, for shared memory. */
struct paper_result {
	bool judged; /* it is a case study, and something is demanded */
	bool good;
	char wanted[64], found[PAPER_TEXT], missing[PAPER_TEXT];
};

extern const struct paper papers[];
extern const size_t paper_count;

/* NULL: no case study. */
const struct paper *papers__find(const char *kind);

void papers__judge(const struct paper *paper, enum vapro_workload_source source, const struct truths *truths,
		   const struct findings *findings, struct paper_result *result);

#endif
