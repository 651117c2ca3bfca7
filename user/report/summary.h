/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The summary at the end of a run, for a person: what was slow, when, which ranks, the cost, the cause,
 * the interferers, and how far the numbers can be trusted. The summary collects job results window by
 * window, and copies them.
 */
#ifndef VAPRO_REPORT_SUMMARY_H
#define VAPRO_REPORT_SUMMARY_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <vapro/analysis.h>

#include "report/source_names.h"

struct region;
struct regions;
struct summary;

struct summary *summary__new(void);
void summary__free(struct summary *summary);

/* Names call-sites from here on; NULL: no more. The names are read in summary__add() only. */
void summary__name(struct summary *summary, const struct source_names *names);

/* Adds one job's window. daemon_cpu_pct NAN where unknown. Returns 0 or -ENOMEM. */
int summary__add(struct summary *summary, const struct job_result *result, double daemon_cpu_pct);

/* Adds a copied fact from elsewhere that must be shown ("!!!"): lost lines or input. */
int summary__add_trouble(struct summary *summary, const char *text);

/* Sets the thresholds that decide the severity of causes; without it those of the defaults hold. */
void summary__configure(struct summary *summary, const struct vapro_config *config);

/*
 * Adds a record of vapro/1, as a line of `vaprod`; records of other types are ignored. Returns 0, -EINVAL with the
 * reason in *why, or -ENOMEM.
 */
int summary__add_record(struct summary *summary, const cJSON *record, const char **why);

/*
 * Returns the number of a region among those of all hosts: each vaprod numbers its own. host and id: of the record. The
 * first host's are as they are. Returns 0 when out of memory, and for 0.
 */
uint64_t summary__region_id(struct summary *summary, const char *host, uint64_t id);

/* Returns the slow regions, which stay the summary's. */
const struct regions *summary__regions(const struct summary *summary);
struct regions *summary__regions_of(struct summary *summary);

/* Adds a host of a job; user as in struct vapro_thread. Returns 0 or -ENOMEM. */
int summary__add_host(struct summary *summary, const char *job, uint32_t user, const char *host);

/* Sets the time from which offsets count where no window begins earlier. */
void summary__start(struct summary *summary, uint64_t start_ns);

/* Reasons for uncovered time, for people. */
extern const char *const summary_reason_text[VAPRO_UNCOVERED_REASONS];

#define SUMMARY_JOB_NAME 1024

/* What a job is called in titles and sentences. */
struct summary_title {
	const char *job;     /* its identity */
	const char *called;  /* its name, as its user chose it; NULL: not known */
	const char *program; /* path of its program; NULL: not known */
	bool others;	     /* there are other programs */
	bool whole;	     /* the identity is not shortened: another job's would be the same */
	uint32_t user;	     /* as in struct vapro_thread */
};

/*
 * Writes a title: program and name first, then the short identity: heat "my heat" (slurm 2, user ann); of a job of
 * which neither is known: job slurm:2 (user ann). Its characters are harmless. Returns buf, of SUMMARY_JOB_NAME bytes.
 */
char *summary__job_name(const struct summary_title *title, char *buf);

struct job_summary;

/* Writes the title of one of a summary's jobs in the same way. */
char *summary__job_title(const struct summary *summary, const struct job_summary *job, char *buf);

/* Fills a region from a variance, with its diagnosis where it has one. Returns 0 or -ENOMEM. */
int summary__fill_region(struct region *region, const struct result_variance *variance,
			 const struct source_names *names);

/* Fills what a diagnosis says of a region. Returns 0 or -ENOMEM. */
int summary__fill_diagnosis(struct region *region, const struct result_diagnosis *diagnosis);

/*
 * Describes a state for a person, by the names that were read (or NULL), and the called function. malloc'ed, defused,
 * or NULL.
 */
char *summary__describe(const struct vapro_state *state, const struct source_names *names);

/* Describes the state of a record's item, whose labels are its member of that name, as summary__describe(). */
char *summary__describe_item(const cJSON *item);

struct summary_options {
	unsigned width;	     /* 0: 80 columns */
	bool all;	     /* all causes and regions, not only the worst */
	const char *more;    /* how the rest is seen; NULL: it is not */
	const char *command; /* what was run, for a run in which nothing was found; NULL: nothing was run */
	bool replayed;	     /* of recorded input: where that has no process, nothing says that there was none */
};

/* Prints the causes, worst first, and the head of each job. options NULL: all of it by default. */
void summary__print_top(struct summary *summary, FILE *out, const struct summary_options *options);

/* Sorts and prints the regions, and what lies beside them. */
void summary__print_rest(struct summary *summary, FILE *out, const struct summary_options *options);

/* Prints both. */
void summary__print(struct summary *summary, FILE *out, const struct summary_options *options);

#endif
