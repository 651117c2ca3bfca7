/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builders of the parts of a window's result, which live in the context's arena. */
#ifndef VAPRO_ANALYSIS_RESULT_H
#define VAPRO_ANALYSIS_RESULT_H

#include "analysis/window.h"

#define SITES_MAX 6 /* call-sites of a variance */

struct builder {
	struct analysis_context *context;
	struct analysis_job *job;
	const struct stg_job *about;
	const struct analysis_span *span;
	struct where_index *where; /* NULL: no lookup yet */
};

/* Zeroed room in the arena, or NULL. */
void *result__take(const struct builder *builder, size_t count, size_t size);

/* Orders call-sites by the time lost, most first. */
int result__compare_sites(const void *a, const void *b);

/* Builds where computation of the rows ran, in the states of the call-sites of out. Returns 0 or -ENOMEM. */
int result__inside(const struct builder *builder, const uint32_t *rows, size_t row_count, struct result_variance *out);

bool result__alive(const struct builder *builder, const struct stg_row *row);

/* Returns the end of the places that belong to the same rank as `place`. */
size_t result__end_of_rank(const struct stg_job *about, size_t place);

/* Whether a row's rank has other rows. */
bool result__several_rows(const struct stg_job *about, const struct stg_row *row);

/* Whether some threads of a rank are in the variance and others, which were judged, are not. */
bool result__split_up(const struct builder *builder, const struct variance *variance);

/*
 * Whether other threads of the first process in a variance of computation work, while no probe shows their work: a
 * thread that polls for one of them looks like one that computes slowly.
 */
bool result__team_unseen(const struct builder *builder, const struct variance *variance);

/* Builds heat maps of all classes, those emitted again first. Returns 0 or -ENOMEM. */
int result__heatmaps(const struct builder *builder, struct job_result *result);

/* Builds heat maps of all bins that are retained, of what was emitted last. Returns 0 or -ENOMEM. */
int result__emitted(const struct builder *builder, struct job_result *result);

/*
 * Lists the causes of a variance whose diagnosis is complete but for its words, and names the greatest one and its
 * culprit in the diagnosis. Returns 0 or -ENOMEM.
 */
int result__causes(const struct builder *builder, const struct variance *variance, const struct diagnosis_of *item,
		   struct result_variance *out);

/*
 * Builds the diagnosis of a variance that is complete otherwise; rows: the variance's own, compared with those
 * that builder->where counts. variance NULL: a region chosen by hand. Returns 0 or -ENOMEM.
 */
int result__diagnosis(const struct builder *builder, const struct diagnosis_of *item, const uint32_t *rows,
		      size_t count, const struct variance *variance, struct result_variance *out);

/* A variance that is emitted in this window. */
struct emitted_variance {
	struct variance *variance;
	double lost_seconds;
	struct result_culprit *culprits; /* in the arena */
	uint32_t culprit_count;
	struct result_entered_last entered_last;
};

/* Fills the culprits, or who entered last, of all variances that are emitted, in one pass over the heat map. Returns 0
 * or -ENOMEM. */
int result__culprits(const struct builder *builder, struct emitted_variance *emitted, size_t count);

/* Finds facts that rows share and the others do not; builder->where must be set. Returns 0 or -ENOMEM. */
int result__shared(const struct builder *builder, const uint32_t *rows, size_t count,
		   const struct result_shared **shared, uint32_t *shared_count);

/* Whether all that counts in a diagnosis was emitted already; if not, notes what is emitted now. */
bool result__diagnosis_emitted(struct diagnosis_of *item, const struct result_variance *out);

/* Adds the bundles that are still held to the variations of the job's histories. Returns 0 or -ENOMEM. */
int analysis__vary(struct analysis_context *context, const struct analysis_job *job);

/* Builds the variability of a job that is over, once. Returns 0 or -ENOMEM. */
int result__variability(const struct builder *builder, struct job_result *result);

/* Builds the profiles of the ranks of a job that is over, once: before its variability. Returns 0 or -ENOMEM. */
int result__profiles(const struct builder *builder, struct job_result *result);

/* Builds the hang of a job where it is to be emitted. Returns 0 or -ENOMEM. */
int result__hang(const struct builder *builder, struct job_result *result);

/* What a component took from one rank, or from one process of unknown rank. */
struct noise_hit {
	int32_t rank;
	uint32_t pid; /* 0 where the rank is known */
	const char *host;
	uint64_t slices, ns;
	double observed_ns;
};

/* Adds the components of fragments that are to be emitted to a list with room for them. Returns 0 or -ENOMEM. */
int result__stalls(const struct builder *builder, bool over, struct result_noise *list, uint32_t *count);

/* Builds the noise components that are to be emitted, those of fragments first. Returns 0 or -ENOMEM. */
int result__noise(const struct builder *builder, struct job_result *result);

/* Builds the region chosen by hand, by class. Returns 0 or -ENOMEM. */
int result__selections(const struct builder *builder, struct job_result *result);

#endif
