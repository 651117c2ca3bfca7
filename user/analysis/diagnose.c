/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/diagnose.h"

#include "base/grow.h"

#define MOSTLY 0.5 /* share of the time in which others ran */

/* Adds the normal sums of a series. */
static void add_normal(struct series_pile *sum, const struct series *series)
{
	const struct series_pile *piles[] = {&series->normal, &series->normal_live};

	for (int i = 0; i < 2; i++) {
		sum->n += piles[i]->n;
		sum->sum_ns += piles[i]->sum_ns;
		for (int f = 0; f < VAPRO_FACTORS; f++)
			sum->factor[f] += piles[i]->factor[f];
		for (int group = 0; group < COUNTER_GROUPS; group++)
			sum->counted_n[group] += piles[i]->counted_n[group];
	}
}

/* Copies a group of counters from another pile. */
static void take_group(struct series_pile *pile, const struct series_pile *from, enum counter_group group)
{
	pile->counted_n[group] = from->counted_n[group];
	for (int node = 0; node < FACTOR_NODES; node++) {
		if (factors__group(node) == group)
			pile->factor[factor_infos[node].factor] = from->factor[factor_infos[node].factor];
	}
}

/* Prefetches the normal sums of an upcoming bundle. */
SERIES_FETCH void fetch_normal(const struct series_book *book, const struct bundle_rec *rec, size_t i, size_t count)
{
	series__fetch(book->series, rec, i, count, offsetof(struct series, normal_live),
		      offsetof(struct series, normal_live) + sizeof(struct series_pile));
	series__fetch(book->series, rec, i, count, offsetof(struct series, normal),
		      offsetof(struct series, normal) + sizeof(struct series_pile));
}

static void add_workload(const struct analysis_context *context, uint32_t workload)
{
	struct workload_pile *all = &context->normal[workload];
	uint32_t at = context->series.workloads[workload].series;

	for (; at != SERIES_NONE; at = context->series.series[at].next)
		add_normal(&all->pile, &context->series.series[at]);
	all->known = true;
}

int analysis__forget_normal(struct analysis_context *context)
{
	size_t count = context->series.workload_count;

	if (grow(&context->normal, &context->normal_capacity, count, sizeof(*context->normal)))
		return -ENOMEM;
	if (count)
		memset(context->normal, 0, count * sizeof(*context->normal));
	return 0;
}

/*
 * Returns the normal pile of a bundle's series; where the series has seen too few normal fragments, or none
 * with the counters that are on now, that of its workload on all ranks. Other work is no measure for work
 * that is not fixed.
 */
struct series_pile analysis__normal_pile(const struct analysis_context *context, const struct bundle_rec *rec)
{
	const struct series *series = &context->series.series[rec->series];
	struct series_pile own = {0};
	double least = (double)context->config.rare_members;
	struct workload_pile *all = &context->normal[series->workload];
	bool enough;

	if (rec->attributed_only)
		return own;
	add_normal(&own, series);
	enough = own.n >= least;
	for (int group = 0; group < COUNTER_GROUPS; group++)
		enough &= !(context->counted & 1U << group) || own.counted_n[group] >= least;
	if (enough)
		return own;
	if (!all->known)
		add_workload(context, series->workload);
	if (own.n < least)
		return all->pile;
	for (int group = 0; group < COUNTER_GROUPS; group++) {
		if (own.counted_n[group] < least)
			take_group(&own, &all->pile, (enum counter_group)group);
	}
	return own;
}

static bool has_row(const struct variance *variance, const struct stg_job *job, uint32_t row)
{
	size_t low = 0, high = variance->row_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (job->place[variance->rows[middle]] < job->place[row])
			low = middle + 1;
		else
			high = middle;
	}
	return low < variance->row_count && variance->rows[low] == row;
}

/*
 * Returns the normal pile for a bundle of a set of ranks that always takes longer: that of the other ranks. Before the
 * set was known, its own fragments passed for normal.
 */
static struct series_pile normal_of_others(const struct analysis_context *context, const struct analysis_job *job,
					   const struct variance *variance, const struct bundle_rec *rec)
{
	uint32_t workload = context->series.series[rec->series].workload;
	const struct stg_job *about = stg__job(context->stg, job->id);
	struct workload_pile *all = &context->normal[workload];

	if (rec->attributed_only)
		return (struct series_pile){0};
	if (all->set != variance->id) {
		all->set = variance->id;
		all->others = (struct series_pile){0};
		for (uint32_t at = context->series.workloads[workload].series; at != SERIES_NONE;
		     at = context->series.series[at].next) {
			if (!has_row(variance, about, context->series.series[at].row))
				add_normal(&all->others, &context->series.series[at]);
		}
	}
	return all->others.n >= (double)context->config.rare_members ? all->others
								     : analysis__normal_pile(context, rec);
}

/* A workload that a variance contains. */
struct concern {
	uint32_t workload, variance;
	uint32_t number; /* number of the workload among those of all variances */
};

static int compare_concerns(const void *a, const void *b)
{
	const struct concern *left = a, *right = b;

	if (left->workload != right->workload)
		return left->workload < right->workload ? -1 : 1;
	return (left->variance > right->variance) - (left->variance < right->variance);
}

static size_t first_concern(const struct concern *concerns, size_t count, uint32_t workload)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (concerns[middle].workload < workload)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Observations of a workload's normal fragments. */
struct normal_rows {
	struct contribution retiring, staying;
};

static int add_rows(struct diagnosis_of *item, enum case_part part, const struct contribution *rows)
{
	struct contribution *into;
	bool any = false;

	for (int set = 0; set < PRICED_SETS; set++)
		any |= rows->rows[set].rows > 0;
	if (!any)
		return 0;
	into = diagnoses__part(item, part);
	if (!into)
		return -ENOMEM;
	contribution__merge(into, rows);
	return 0;
}

/* Adds a workload's normal observations to all its variances, which share them. */
static int share_rows(struct diagnoses *diagnoses, const struct concern *concerns, size_t count,
		      const struct normal_rows *rows)
{
	for (size_t i = 0; i < count; i++) {
		struct diagnosis_of *item = diagnoses__get(diagnoses, concerns[i].variance);
		const struct normal_rows *own = &rows[concerns[i].number];

		if (!item || add_rows(item, CASE_RETIRING, &own->retiring) ||
		    add_rows(item, CASE_STAYING, &own->staying))
			return -ENOMEM;
	}
	return 0;
}

/* Normal fragments of the same workloads, wherever they ran, show what events cost as well as those in the variance. */
static int add_normal_rows(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
			   const struct parts *parts)
{
	struct concern *concerns = calloc(parts->count + 1, sizeof(*concerns));
	struct normal_rows *rows = NULL; /* indexed by the workload's number */
	size_t count = 0, rec_count = 0, workloads = 0, part = 0;
	int error = -ENOMEM;

	if (!concerns)
		return -ENOMEM;
	for (size_t i = 0; i < parts->count; i++) {
		const struct series *series = &context->series.series[parts->items[i].rec->series];

		if (!parts->items[i].guest && analysis__priceable(series))
			concerns[count++] = (struct concern){series->workload, parts->items[i].variance, 0};
	}
	if (count)
		qsort(concerns, count, sizeof(*concerns), compare_concerns);
	for (size_t i = 0; i < count; i++) {
		if (rec_count && !compare_concerns(&concerns[rec_count - 1], &concerns[i]))
			continue;
		workloads += !rec_count || concerns[rec_count - 1].workload != concerns[i].workload;
		concerns[i].number = (uint32_t)workloads - 1;
		concerns[rec_count++] = concerns[i];
	}
	rows = calloc(workloads + 1, sizeof(*rows));
	if (!rows)
		goto cleanup;
	for (size_t i = 0; i < job->rec_count && rec_count; i++) {
		const struct bundle_rec *rec = &job->recs[i];
		const struct series *series = &context->series.series[rec->series];
		struct contribution_row row;
		struct series_pile pile;
		size_t at;

		fetch_normal(&context->series, job->recs, i, job->rec_count);
		/* Parts come in the order of the bundles; a bundle with a part is in its case already. */
		while (part < parts->count && parts->items[part].rec < rec)
			part++;
		if ((part < parts->count && parts->items[part].rec == rec) || bundle_rec__bin(rec) >= span->end ||
		    !analysis__normal(context, rec))
			continue;
		at = first_concern(concerns, rec_count, series->workload);
		if (at == rec_count || concerns[at].workload != series->workload)
			continue;
		pile = analysis__normal_pile(context, rec);
		if (!contribution__row(rec, &pile, &row))
			continue;
		at = concerns[at].number;
		contribution__add_row(bundle_rec__bin(rec) < span->retire ? &rows[at].retiring : &rows[at].staying,
				      &row, 1);
	}
	error = share_rows(&job->diagnoses, concerns, rec_count, rows);
cleanup:
	free(rows);
	free(concerns);
	return error;
}

static int diagnose_parts(struct analysis_context *context, struct analysis_job *job, const struct parts *parts)
{
	/* In the order of ids, so that none has to be put between others later. */
	for (size_t i = 0; i < job->book.count; i++) {
		if (!diagnoses__get(&job->diagnoses, job->book.variances[i].id))
			return -ENOMEM;
	}
	for (size_t i = 0; i < job->book.count; i++) {
		if (job->book.variances[i].merged_into &&
		    diagnoses__merge(&job->diagnoses, job->book.variances[i].id, job->book.variances[i].merged_into))
			return -ENOMEM;
	}
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->items[i];
		const struct series *series = &context->series.series[part->rec->series];
		const struct variance *variance = variance__find(&job->book, part->variance);
		struct diagnosis_of *item;
		struct contribution *into;
		struct contribution_row row;
		struct series_pile pile;
		bool lasting;

		if (part->guest || (variance && !variance__counts(variance, part->rec, series->class)))
			continue;
		item = diagnoses__get(&job->diagnoses, part->variance);
		into = item ? diagnoses__part(item, part->retiring ? CASE_RETIRING : CASE_STAYING) : NULL;
		if (!into)
			return -ENOMEM;
		lasting = variance && variance->lasting;
		pile = lasting ? normal_of_others(context, job, variance, part->rec)
			       : analysis__normal_pile(context, part->rec);
		/* All bundles of a set that always takes longer are abnormal, however small the excess. */
		contribution__add(into, part->rec, series->class, part->share,
				  lasting || contribution__abnormal(part->rec, &context->config), &pile,
				  &context->config);
		if (analysis__priceable(series) && contribution__row(part->rec, &pile, &row))
			contribution__add_row(into, &row, part->share);
	}
	return 0;
}

static int diagnose_interference(const struct analysis_context *context, struct analysis_job *job,
				 const struct analysis_span *span)
{
	for (size_t i = 0; i < job->interference_count; i++) {
		struct interference_rec *at = &job->interference[i];
		struct result_interferer task;
		struct diagnosis_of *item;
		uint32_t owner = analysis__owner_of(job, at);

		if (!owner)
			continue;
		item = diagnoses__get(&job->diagnoses, owner);
		task = analysis__task(context, at);
		if (!item || diagnoses__interfere(item, at->bin < span->retire ? CASE_RETIRING : CASE_STAYING, &task,
						  at->row, at->bin))
			return -ENOMEM;
		at->counted = at->bin < span->retire;
	}
	return 0;
}

/* Notes what each ongoing variance still wants counted; one that waits for others has its cause elsewhere. */
static int request_stages(struct analysis_context *context, struct analysis_job *job)
{
	for (size_t i = 0; i < job->book.count; i++) {
		struct variance *variance = &job->book.variances[i];
		struct diagnosis_of *item = diagnoses__get(&job->diagnoses, variance->id);
		bool final;

		if (!item)
			return -ENOMEM;
		item->wished = 0;
		if (variance->state != VAPRO_REGION_CLOSED && !variance->waiting &&
		    driver__see(&context->driver, job->id, item, context->counted,
				(double)context->config.rare_members))
			return -ENOMEM;
		variance->diagnosed = (uint32_t)driver__stage(item, &final) << 1;
		variance->diagnosed |= final;
	}
	return 0;
}

void analysis__switch_stage(struct analysis_context *context, struct analysis_job *jobs)
{
	struct driver_wish vain = {0};
	struct diagnosis_of *item;

	if (!driver__switch(&context->driver, &vain))
		return;
	item = diagnoses__find(&jobs[vain.job].diagnoses, vain.variance);
	if (item)
		item->tried |= 1U << vain.group;
}

/*
 * What this monitor takes from a rank for a moment, to attach to its job, is its overhead, and reported as that: no
 * reason to alarm anybody, whatever share of a short job it is. A loss of --min-lost or more stays an alarm.
 */
static void excuse_monitor(const struct analysis_context *context, struct analysis_job *job)
{
	for (size_t i = 0; i < job->book.count; i++) {
		struct variance *variance = &job->book.variances[i];
		const struct diagnosis_of *item = diagnoses__find(&job->diagnoses, variance->id);
		double own = item ? interferers__monitor(&item->interferers[CASE_SUM]) : 0;

		if (!variance->alarm || own <= 0 || own < MOSTLY * interferers__seconds(&item->interferers[CASE_SUM]) ||
		    variance__lost(variance) >= context->config.min_lost_s * 1e9)
			continue;
		variance->alarm = false;
		variance->severity = VAPRO_INFO;
	}
}

int analysis__diagnose(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span,
		       const struct parts *parts)
{
	if (analysis__forget_normal(context) || diagnose_parts(context, job, parts) ||
	    add_normal_rows(context, job, span, parts) || diagnose_interference(context, job, span))
		return -ENOMEM;
	if (diagnoses__sum(&job->diagnoses))
		return -ENOMEM;
	for (size_t i = 0; i < job->diagnoses.count; i++) {
		struct diagnosis_of *item = job->diagnoses.items[i];

		if (item->stale)
			breakdown__make(diagnoses__sum_of(item), &context->config, &item->breakdown);
	}
	excuse_monitor(context, job);
	return request_stages(context, job) || analysis__diagnose_selection(context, job, span) ? -ENOMEM : 0;
}
