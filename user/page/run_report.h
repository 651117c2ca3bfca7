/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run as a report shows it, whatever it was read from: the maps and the summary of `vapro view`, and beside them
 * the records that have more detail than those. Reading is separate (run_report__add_file); run_report__finish puts
 * all in order. What is unknown is NULL, NAN or absent.
 */
#ifndef VAPRO_PAGE_RUN_REPORT_H
#define VAPRO_PAGE_RUN_REPORT_H

#include <stdio.h>

#include "analysis/causes.h"
#include "report/state_totals.h"
#include "report/summary_parts.h"
#include "report/view_model.h"

/* A slow region with its latest records. */
struct run_region {
	const struct region *region;
	const cJSON *variance, *diagnosis; /* diagnosis NULL: there is none */
	char number[24]; /* as `vapro view` numbers it: "3"; "3.1" is the first region that waited for it */
};

/* Records of one type, in the order of their lines. */
struct record_list {
	cJSON **items;
	size_t count, capacity;
	struct table *places; /* of the latest records of each, by number and job; NULL: none yet */
};

struct run_report {
	struct view_model view;	      /* maps with rows in order of ranks; counts of lines */
	struct causes *causes;	      /* owns the list */
	struct cause_list cause_list; /* worst first */
	struct run_region *regions;   /* worst first, each followed by those that waited for it */
	size_t region_count;
	struct table *places;			 /* of the regions, by id and job */
	struct record_list variances, diagnoses; /* the latest of each region */
	struct record_list hangs;		 /* the latest of each */
	struct record_list noise; /* the latest of each noise component, in the order of their first ones */
	struct record_list hellos, byes, warnings, stages;
	struct record_list statuses; /* of a running vaprod that was read */
	struct state_totals *states; /* of all states, where the input has them; or NULL */
	uint64_t left_out;	     /* regions that it does not retain */
	uint64_t start_ns, end_ns;   /* UTC: first and last time of all windows and maps; both 0 where there is none */
	uint64_t dropped;	     /* records beyond RUN_REPORT_RECORDS of a type */
	bool out_of_memory;
	uint64_t lines;					    /* seen so far */
	void (*progress)(uint64_t lines, const char *what); /* called for each line; or NULL */
};

#define RUN_REPORT_RECORDS 100000 /* most records of a type */

/* Makes an empty report. Returns 0 or -ENOMEM; run_report__free() is fine after both. */
int run_report__init(struct run_report *report);
void run_report__free(struct run_report *report);

/*
 * Adds the records of a run in NDJSON (run: view_model__add_file). Bad lines are reported on standard error and counted
 * in report->view.bad_lines. Returns 0, -ENOENT where there is no such run, or another negative errno.
 */
int run_report__add_file(struct run_report *report, FILE *file, int run, const char *name);

/* Puts maps, regions and causes in order, after the last file. Returns 0 or -ENOMEM. */
int run_report__finish(struct run_report *report);

/* Returns the region of a job (NULL: of no name) with a number, or NULL. */
const struct run_region *run_report__find(const struct run_report *report, const char *job, uint64_t id);

/* Returns the summary of the run. */
static inline const struct summary *run_report__summary(const struct run_report *report)
{
	return report->view.summary;
}

#define RUN_REPORT_VERDICT_SIZE 3200

/*
 * Writes the verdict on a run in one sentence: its worst cause, that no slow region was found, or why there is no
 * result. Returns what it is: a severity in words, "unconfirmed", "quiet" or "no result". text: RUN_REPORT_VERDICT_SIZE
 * bytes.
 */
const char *run_report__verdict(const struct run_report *report, char *text);

/*
 * Writes what follows the verdict about the at'th job (from 0): how far it could be compared, where that is little or
 * not at all and the verdict does not say it. text: as above. Returns whether there is such a sentence.
 */
bool run_report__coverage(const struct run_report *report, size_t at, char *text);

#endif
