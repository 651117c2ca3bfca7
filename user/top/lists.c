// SPDX-License-Identifier: GPL-2.0-or-later
/* What the lists show: identities, filters, orders. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "top/model_private.h"

enum { JOBS_LOST, JOBS_NAME, JOBS_USER, JOBS_SPEED, JOBS_OVERHEAD };
enum { RANKS_SPEED, RANKS_RANK, RANKS_PID, RANKS_CALLS, RANKS_OVERHEAD };
enum { REGIONS_LOST, REGIONS_LATEST, REGIONS_CLASS };

static const char *const job_orders[] = {"lost", "job", "user", "speed", "overhead"};
static const char *const rank_orders[] = {"speed", "rank", "pid", "calls", "overhead"};
static const char *const region_orders[] = {"lost", "latest", "class"};

static const struct {
	const char *const *names;
	unsigned count;
} orders[TOP_LISTS] = {
    [TOP_JOBS] = {job_orders, 5}, [TOP_RANKS] = {rank_orders, 5}, [TOP_REGIONS] = {region_orders, 3}};

const char *const *top_model__orders(enum top_list list, unsigned *count)
{
	*count = orders[list].count;
	return orders[list].names;
}

/* ---- identities, which last from one snapshot to the next */

uint64_t top_job__identity(const struct top_job *job)
{
	uint64_t hash = 14695981039346656037ULL ^ job->user; /* FNV-1a */

	for (const char *at = job->name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211ULL;
	return hash | 1;
}

const struct top_job *top_model__job(const struct top_model *model)
{
	for (size_t i = 0; model->snapshot && i < model->snapshot->job_count; i++) {
		if (top_job__identity(&model->snapshot->jobs[i]) == model->job)
			return &model->snapshot->jobs[i];
	}
	return NULL;
}

const struct top_process *top_model__process(const struct top_model *model)
{
	const struct top_job *job = top_model__job(model);

	for (size_t i = 0; job && i < job->process_count; i++) {
		if (job->processes[i].pid == model->process)
			return &job->processes[i];
	}
	return NULL;
}

const struct region *top_model__region(const struct top_model *model)
{
	const struct regions *regions = model->snapshot ? top_snapshot__regions(model->snapshot) : NULL;

	for (size_t i = 0; regions && i < regions->count; i++) {
		if (regions->items[i].id == model->region)
			return &regions->items[i];
	}
	return NULL;
}

uint64_t top_model__identity(const struct top_model *model, enum top_list list, size_t item)
{
	if (list == TOP_JOBS)
		return top_job__identity(&model->snapshot->jobs[item]);
	if (list == TOP_RANKS)
		return top_model__job(model)->processes[item].pid;
	return top_snapshot__regions(model->snapshot)->items[item].id;
}

/* ---- filters */

/* Returns whether a text contains another, in lower or upper case. */
static bool contains(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (; text && *text; text++) {
		if (!strncasecmp(text, part, length))
			return true;
	}
	return !length;
}

static bool shows_job(const struct top_model *model, const struct top_job *job)
{
	const char *filter = model->rows[TOP_JOBS].filter;

	if (model->only_user && job->user != model->only_user)
		return false;
	return contains(job->name, filter) || contains(job->user_name, filter) ||
	       (job->process_count && contains(job->processes[0].exe, filter));
}

static bool shows_process(const struct top_model *model, const struct top_job *job, const struct top_process *process)
{
	const char *filter = model->rows[TOP_RANKS].filter;
	char numbers[64];

	snprintf(numbers, sizeof(numbers), "rank %d pid %u", process->rank, process->pid);
	return contains(numbers, filter) || contains(process->exe, filter) || contains(process->probes, filter) ||
	       contains(job->host, filter);
}

/* Returns whether a region's job is among those that are shown. */
static bool of_shown_job(const struct top_model *model, const struct region *region)
{
	for (size_t i = 0; i < model->snapshot->job_count; i++) {
		const struct top_job *job = &model->snapshot->jobs[i];

		if (top_job__has(job, region))
			return !model->only_user || job->user == model->only_user;
	}
	return false;
}

static bool shows_region(const struct top_model *model, const struct region *region)
{
	const struct top_job *job = top_model__job(model);
	const struct top_process *process = top_model__process(model);
	enum top_page page = model->page == TOP_PAGE_REGION ? model->from : model->page;
	char text[2048];

	if (!of_shown_job(model, region) || (page != TOP_PAGE_JOBS && (!job || !top_job__has(job, region))))
		return false;
	if (page == TOP_PAGE_RANK) {
		if (!process || !top__includes(region, process->rank))
			return false;
	} else if (top_snapshot__has_cause(model->snapshot, region)) {
		return false; /* it is on the page of its cause */
	}
	top__sentence(region, text, sizeof(text));
	return contains(text, model->rows[TOP_REGIONS].filter) ||
	       contains(region->class, model->rows[TOP_REGIONS].filter) ||
	       contains(region->job, model->rows[TOP_REGIONS].filter);
}

/* ---- order */

/* Orders numbers, the least first, unknown ones last. */
static int compare_numbers(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a < b ? -1 : a > b;
}

/* Orders numbers, the greatest first, unknown ones last. */
static int compare_most(double a, double b)
{
	return isnan(a) || isnan(b) ? compare_numbers(a, b) : compare_numbers(b, a);
}

static int compare_jobs(const struct top_job *a, const struct top_job *b, unsigned order)
{
	int found = order == JOBS_USER	     ? strcmp(a->user_name, b->user_name)
		    : order == JOBS_SPEED    ? compare_numbers(top__slowest(a->speed), top__slowest(b->speed))
		    : order == JOBS_OVERHEAD ? compare_most(a->overhead_pct, b->overhead_pct)
					     : 0;

	if (order == JOBS_LOST)
		found = top_job__hangs(a) != top_job__hangs(b) ? top_job__hangs(b) - top_job__hangs(a)
							       : compare_most(a->lost_s, b->lost_s);

	if (!found)
		found = strcmp(a->name, b->name);
	return found ? found : compare_numbers(a->user, b->user);
}

static int compare_processes(const struct top_process *a, const struct top_process *b, unsigned order)
{
	int found = order == RANKS_SPEED      ? compare_numbers(top__slowest(a->speed), top__slowest(b->speed))
		    : order == RANKS_PID      ? compare_numbers(a->pid, b->pid)
		    : order == RANKS_CALLS    ? compare_most(a->calls_per_s, b->calls_per_s)
		    : order == RANKS_OVERHEAD ? compare_most(a->overhead_pct, b->overhead_pct)
					      : 0;

	if (!found)
		found = compare_numbers(a->rank, b->rank);
	return found ? found : compare_numbers(a->pid, b->pid);
}

static int compare_regions(const struct region *a, const struct region *b, unsigned order)
{
	int found = 0;

	if (order == REGIONS_LOST) {
		found = a->ended - b->ended; /* what lasts comes first */
		if (!found)
			found = b->alarm - a->alarm;
		if (!found)
			found = compare_most(a->lost_seconds + a->caused_seconds, b->lost_seconds + b->caused_seconds);
	} else if (order == REGIONS_CLASS) {
		found = strcmp(a->class ? a->class : "", b->class ? b->class : "");
	}
	if (!found)
		found = a->begin_ns != b->begin_ns ? a->begin_ns > b->begin_ns ? -1 : 1 : 0;
	return found ? found : a->id > b->id ? -1 : a->id < b->id;
}

struct ordering {
	const struct top_model *model;
	const struct top_job *job;
	const struct regions *regions;
	enum top_list list;
};

static int compare_items(const void *left, const void *right, void *ctx)
{
	const struct ordering *by = ctx;
	const struct top_rows *rows = &by->model->rows[by->list];
	size_t a = *(const size_t *)left, b = *(const size_t *)right;
	int found;

	if (by->list == TOP_JOBS)
		found = compare_jobs(&by->model->snapshot->jobs[a], &by->model->snapshot->jobs[b], rows->order);
	else if (by->list == TOP_RANKS)
		found = compare_processes(&by->job->processes[a], &by->job->processes[b], rows->order);
	else
		found = compare_regions(&by->regions->items[a], &by->regions->items[b], rows->order);
	return rows->reverse ? -found : found;
}

/* Adds the items of a list that are shown. */
static void fill(struct top_model *model, struct ordering *by, size_t count)
{
	struct top_rows *rows = &model->rows[by->list];

	rows->count = 0;
	if (grow(&rows->items, &rows->capacity, count, sizeof(*rows->items)))
		return;
	for (size_t i = 0; i < count; i++) {
		bool shown = by->list == TOP_JOBS    ? shows_job(model, &model->snapshot->jobs[i])
			     : by->list == TOP_RANKS ? shows_process(model, by->job, &by->job->processes[i])
						     : shows_region(model, &by->regions->items[i]);

		if (shown)
			rows->items[rows->count++] = i;
	}
}

/* Moves the cursor to what was selected; where that has gone, the cursor stays in its row. */
static void find_selected(struct top_model *model, enum top_list list)
{
	struct top_rows *rows = &model->rows[list];

	for (size_t i = 0; rows->selected && i < rows->count; i++) {
		if (top_model__identity(model, list, rows->items[i]) != rows->selected)
			continue;
		rows->cursor = i;
		return;
	}
	if (rows->cursor >= rows->count)
		rows->cursor = rows->count ? rows->count - 1 : 0;
}

void top_model__arrange(struct top_model *model)
{
	struct ordering by = {.model = model, .job = top_model__job(model)};

	if (model->snapshot)
		by.regions = top_snapshot__regions(model->snapshot);
	for (int list = 0; list < TOP_LISTS; list++) {
		struct top_rows *rows = &model->rows[list];

		by.list = (enum top_list)list;
		fill(model, &by,
		     !model->snapshot	 ? 0
		     : list == TOP_JOBS	 ? model->snapshot->job_count
		     : list == TOP_RANKS ? by.job ? by.job->process_count : 0
					 : by.regions->count);
		if (rows->count)
			qsort_r(rows->items, rows->count, sizeof(*rows->items), compare_items, &by);
		find_selected(model, by.list);
	}
}
