/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface of the pure floors: it takes bundles in, holds them by job, and runs the jobs at a window's end. */
#include "analysis/analysis_private.h"
#include "analysis/clock_shift.h"
#include "analysis/diagnose.h"
#include "analysis/memory.h"
#include "analysis/history.h"
#include "analysis/result.h"

#include "model/groups.h"
#include "base/grow.h"
#include "base/job_names.h"
#include "model/judge.h"

#define WINDOW_MOST_NS 86400000000000ULL /* a day */

/* Frees all bundles of a job. */
static void drop_recs(struct analysis_context *context, struct analysis_job *job)
{
	for (size_t i = 0; i < job->rec_count; i++)
		series__drop(&context->series, &job->recs[i]);
	for (size_t i = 0; i < job->open_count; i++)
		series__drop(&context->series, &job->open[i]);
	job->rec_count = job->open_count = 0;
}

static void free_job(struct analysis_context *context, struct analysis_job *job)
{
	drop_recs(context, job);
	free(job->recs);
	free(job->open);
	free(job->interference);
	heatmap__free(&job->map);
	waiting__free(job->waiting);
	variance__free(&job->book);
	diagnoses__free(&job->diagnoses);
	diagnoses__free(&job->chosen);
	chosen_sites__free(&job->chosen_sites);
	account__clear(&job->account);
	noise__clear(&job->noise);
	rank_profile__free(job->profile);
	stalls__clear(&job->stalls);
	sensing__clear(&job->sensing);
	clocks__free(job->clocks);
	coverage__clear(&job->coverage);
	sets__clear(&job->sets);
	spatial__clear(&job->spatial);
	hang__clear(&job->hang);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		free(job->emitted_again[class].rows);
	history__clear(context, &job->history);
}

struct analysis *analysis__new(const struct vapro_config *config, enum vapro_workload_source source)
{
	struct analysis *analysis = calloc(1, sizeof(*analysis));

	if (!analysis)
		return NULL;
	analysis->context.config = *config;
	analysis->context.source = source;
	analysis->context.stg = stg__new();
	analysis->context.hops = hops__new();
	analysis->context.inside = inside__new();
	analysis->context.host_clocks = host_clocks__new();
	if (!analysis->context.stg || !analysis->context.hops || !analysis->context.inside ||
	    !analysis->context.host_clocks ||
	    series__init(&analysis->context.series, &analysis->context.config, source, analysis->context.stg)) {
		analysis__free(analysis);
		return NULL;
	}
	return analysis;
}

void analysis__free(struct analysis *analysis)
{
	if (!analysis)
		return;
	for (size_t i = 0; i < analysis->job_count; i++)
		free_job(&analysis->context, &analysis->jobs[i]);
	free(analysis->jobs);
	free(analysis->order);
	free(analysis->results);
	series__free(&analysis->context.series);
	hops__free(analysis->context.hops);
	inside__free(analysis->context.inside);
	host_clocks__free(analysis->context.host_clocks);
	stg__free(analysis->context.stg);
	driver__free(&analysis->context.driver);
	places__free(&analysis->context.places);
	free(analysis->context.selection.ranks);
	free(analysis->context.normal);
	arena__clear(&analysis->context.arena);
	free(analysis);
}

int analysis__select(struct analysis *analysis, const struct vapro_selection *selection)
{
	struct selection_of *own = &analysis->context.selection;
	size_t size = selection->range_count * sizeof(*own->ranks);
	void *ranks = malloc(size + 1);

	if (!ranks)
		return -ENOMEM;
	if (size)
		memcpy(ranks, selection->ranks, size);
	free(own->ranks);
	*own = (struct selection_of){
	    .ranks = ranks,
	    .range_count = selection->range_count,
	    .active = true,
	    .relative = selection->relative,
	    .begin_ns = selection->begin_ns,
	    .end_ns = selection->end_ns ? selection->end_ns : UINT64_MAX,
	};
	return 0;
}

void analysis__held_elsewhere(struct analysis *analysis, size_t bytes)
{
	analysis->context.memory.elsewhere = bytes;
}

void analysis__remember(struct analysis *analysis, double seconds, uint64_t bytes)
{
	analysis->context.remember_bins = (uint64_t)(seconds * 1e9) / VAPRO_BIN_NS;
	analysis->context.remember_bytes = bytes;
}

/*
 * A job that is silent for a whole window has most likely ended: only what its states learnt is retained,
 * until all its ranks are known to have ended.
 */
static int put_to_rest(struct analysis_context *context, struct analysis_job *job, const struct analysis_span *span)
{
	if (job->forgotten)
		return 0;
	job->forgotten = stg__job_over(context->stg, job->id, span->begin_ns);
	if (job->forgotten) {
		uint32_t id = job->id;

		free_job(context, job);
		*job = (struct analysis_job){.id = id, .forgotten = true};
		return series__forget(&context->series, id);
	}
	if (analysis__vary(context, job) || history__add_all(context, job))
		return -ENOMEM;
	history__trim(context, job, span);
	account__clear(&job->account);
	heatmap__free(&job->map);
	free(job->recs);
	free(job->open);
	free(job->interference);
	job->recs = job->open = NULL;
	job->interference = NULL;
	job->rec_capacity = job->open_capacity = 0;
	job->interference_count = job->interference_capacity = 0;
	return 0;
}

/* Activity under the name of a job that ended is a new job of that name. */
static int wake(struct analysis_job *job)
{
	if (!job->forgotten)
		return 0;
	job->waiting = waiting__new();
	job->forgotten = !job->waiting;
	return job->waiting ? 0 : -ENOMEM;
}

/* Marks jobs whose last records were emitted. Returns whether there is any. */
static bool mark_jobs(const struct analysis *analysis, bool *jobs)
{
	bool any = false;

	for (size_t i = 0; i < analysis->job_count; i++) {
		const struct analysis_job *job = &analysis->jobs[i];

		jobs[i] = job->forgotten && !job->vacant && !job->active;
		any |= jobs[i];
	}
	return any;
}

/* Marks states that are gone and in no use. Events that were held for the window after may still come of the others. */
static bool mark_states(const struct analysis *analysis, bool *states)
{
	const struct analysis_context *context = &analysis->context;
	const struct series_book *book = &context->series;
	size_t count = stg__states(context->stg);
	bool any = false;

	if (!stg__gone(context->stg))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct stg_state *state = stg__state(context->stg, (uint32_t)i);

		states[i] = state->gone && state->gone - 1 != book->window;
	}
	for (size_t i = 0; i < book->count; i++) {
		if (book->series[i].job != SERIES_NONE && book->series[i].state < count)
			states[book->series[i].state] = false;
	}
	inside__use(context->inside, states);
	for (size_t i = 0; i < analysis->job_count; i++) {
		hang__use(&analysis->jobs[i].hang, states);
		stalls__use(&analysis->jobs[i].stalls, states);
	}
	for (size_t i = 0; i < stg__threads(context->stg); i++) {
		const struct stg_thread *thread = stg__thread(context->stg, (uint32_t)i);

		if (thread->last_ns)
			states[thread->last_state] = false;
	}
	for (size_t i = 0; i < count; i++)
		any |= states[i];
	return any;
}

static int release_marked(struct analysis *analysis, const struct stg_over *over)
{
	struct analysis_context *context = &analysis->context;

	for (size_t i = 0; i < analysis->job_count; i++) {
		if (!over->jobs[i] && analysis->jobs[i].waiting)
			waiting__use_groups(analysis->jobs[i].waiting, over->texts);
		if (over->jobs[i])
			analysis->jobs[i].vacant = true;
	}
	if (stg__forget(context->stg, over))
		return -ENOMEM;
	analysis->job_count = stg__jobs(context->stg);
	hops__release(context->hops, context->stg);
	return places__release(&context->places, context->stg);
}

/*
 * Gives numbers again that are over: of jobs that were forgotten in an earlier window and had nothing since, with their
 * threads and rows, and of states that were gone before the last window began and have no history. Returns 0 or
 * -ENOMEM.
 */
static int release(struct analysis *analysis)
{
	const struct stg *stg = analysis->context.stg;
	bool *jobs = calloc(analysis->job_count + 1, sizeof(*jobs));
	bool *states = calloc(stg__states(stg) + 1, sizeof(*states));
	unsigned char *texts = calloc(stg__texts(stg) + 1, sizeof(*texts));
	bool over_jobs, over_states;
	int error = jobs && states && texts ? 0 : -ENOMEM;

	over_jobs = !error && mark_jobs(analysis, jobs);
	over_states = !error && mark_states(analysis, states);
	if (over_jobs || over_states)
		error = release_marked(analysis, &(struct stg_over){.jobs = jobs, .states = states, .texts = texts});
	free(jobs);
	free(states);
	free(texts);
	return error;
}

static int compare_announced(const void *a, const void *b, void *stg)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t first = stg__job(stg, left)->announced, second = stg__job(stg, right)->announced;

	if (first != second)
		return first < second ? -1 : 1;
	return left < right ? -1 : left > right;
}

/* Lists the jobs in the order in which they were announced, whatever numbers they have. Returns 0 or -ENOMEM. */
static int order_jobs(struct analysis *analysis)
{
	analysis->order_count = 0;
	if (grow(&analysis->order, &analysis->order_capacity, analysis->job_count, sizeof(*analysis->order)))
		return -ENOMEM;
	for (uint32_t i = 0; i < analysis->job_count; i++) {
		if (!analysis->jobs[i].vacant)
			analysis->order[analysis->order_count++] = i;
	}
	if (analysis->order_count)
		qsort_r(analysis->order, analysis->order_count, sizeof(*analysis->order), compare_announced,
			analysis->context.stg);
	return 0;
}

static bool worth_a_word(const struct analysis_context *context, const struct analysis_job *job, uint64_t end_ns)
{
	/* one computation may last for several windows */
	if (stg__job_goes_on(context->stg, job->id, end_ns))
		return true;
	if (job->active || job->hang.open ||
	    job->chosen.count) /* a chosen region is emitted at the end, also of a job that has ended */
		return true;
	for (size_t i = 0; i < job->book.count; i++) {
		if (!job->book.variances[i].over)
			return true;
	}
	return false;
}

/*
 * Returns the begin of the part of a window that is judged. Each bin of that part takes memory, and the times of a
 * damaged or hostile file may be years apart.
 */
static uint64_t begin_of(uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns && end_ns - begin_ns > WINDOW_MOST_NS ? end_ns - WINDOW_MOST_NS : begin_ns;
}

int analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
			 const struct job_result **results, uint32_t *count)
{
	struct analysis_context *context = &analysis->context;
	const uint64_t from_ns = begin_of(begin_ns, end_ns);
	uint64_t third = (uint64_t)(context->config.window_s / 3 * 1e9);
	struct analysis_span span = {
	    .begin_ns = from_ns,
	    .end_ns = end_ns,
	    .view = (from_ns > third ? from_ns - third : 0) / VAPRO_BIN_NS,
	    .begin = from_ns / VAPRO_BIN_NS,
	    .end = end_ns / VAPRO_BIN_NS,
	    .retire = (end_ns > third ? end_ns - third : 0) / VAPRO_BIN_NS,
	    .last = last,
	};
	uint32_t used = 0;

	analysis__finalize_selection(&context->selection, from_ns);
	analysis_memory__begin(context);
	*results = NULL;
	*count = 0;
	arena__clear(&context->arena);
	if (release(analysis) || order_jobs(analysis) ||
	    grow(&analysis->results, &analysis->result_capacity, analysis->job_count, sizeof(*analysis->results)))
		return -ENOMEM;
	groups__find(&context->series);
	for (size_t i = 0; i < analysis->job_count; i++) {
		if (clock_shift__end_window(context, &analysis->jobs[i], span.begin) ||
		    analysis_window__learn(context, &analysis->jobs[i], span.view, span.end))
			return -ENOMEM;
	}
	if (judge__refresh(&context->series))
		return -ENOMEM;
	for (size_t i = 0; i < analysis->order_count; i++) {
		struct analysis_job *job = &analysis->jobs[analysis->order[i]];

		if (!worth_a_word(context, job, end_ns)) {
			if (put_to_rest(context, job, &span))
				return -ENOMEM;
			continue;
		}
		if (wake(job) || analysis_window__run(context, job, &span) ||
		    analysis_result__build(context, job, &span, &analysis->results[used]) ||
		    analysis_window__retire(context, job, &span))
			return -ENOMEM;
		used++;
	}
	for (size_t i = 0; i < analysis->job_count; i++)
		inside__retain(context->inside, context->stg, analysis->jobs[i].id, &analysis->jobs[i].book);
	history__bound(context, analysis->jobs, analysis->job_count, span.end);
	analysis__switch_stage(context, analysis->jobs);
	analysis_memory__finalize(context, analysis->jobs, analysis->job_count);
	*results = analysis->results;
	*count = used;
	return 0;
}

int analysis__query(struct analysis *analysis, const struct vapro_selection *selection, const char *name,
		    uint64_t now_ns, const struct job_result **results, uint32_t *count)
{
	struct analysis_context *context = &analysis->context;

	*results = NULL;
	*count = 0;
	arena__clear(&context->arena);
	if (analysis__select(analysis, selection) || order_jobs(analysis) ||
	    grow(&analysis->results, &analysis->result_capacity, analysis->job_count, sizeof(*analysis->results)))
		return -ENOMEM;
	groups__find(&context->series);
	for (size_t i = 0; i < analysis->job_count; i++) {
		if (analysis_window__learn(context, &analysis->jobs[i], 0, UINT64_MAX))
			return -ENOMEM;
	}
	if (judge__refresh(&context->series))
		return -ENOMEM;
	for (size_t i = 0; i < analysis->order_count; i++) {
		struct analysis_job *job = &analysis->jobs[analysis->order[i]];
		bool wanted = job_names__match(name, stg__job(context->stg, job->id)->name);

		if (!job->rec_count && !job->open_count && !job->history.rec_count && !job->history.open_count)
			continue;
		if (analysis__respond(context, job, now_ns, wanted, &analysis->results[*count]))
			return -ENOMEM;
		(*count)++;
	}
	*results = analysis->results;
	return 0;
}

int analysis__emitted(struct analysis *analysis, const struct job_result **results, uint32_t *count)
{
	struct analysis_context *context = &analysis->context;

	*results = NULL;
	*count = 0;
	arena__clear(&context->arena);
	if (order_jobs(analysis) ||
	    grow(&analysis->results, &analysis->result_capacity, analysis->job_count, sizeof(*analysis->results)))
		return -ENOMEM;
	for (size_t i = 0; i < analysis->order_count; i++) {
		struct analysis_job *job = &analysis->jobs[analysis->order[i]];
		struct builder builder = {.context = context, .job = job, .about = stg__job(context->stg, job->id)};

		if (result__emitted(&builder, &analysis->results[*count]))
			return -ENOMEM;
		(*count)++;
	}
	*results = analysis->results;
	return 0;
}

void analysis__stage_request(const struct analysis *analysis, struct vapro_stage_request *request)
{
	const struct driver_wish *wish = driver__current(&analysis->context.driver);

	*request = (struct vapro_stage_request){.stage = 1, .interrupts = analysis->context.driver.interrupts};
	if (!wish)
		return;
	request->stage = counter_group_infos[wish->group].stage;
	request->expand = factor_infos[counter_group_infos[wish->group].parent].name;
	request->job = stg__job(analysis->context.stg, wish->job)->name;
	request->variance = wish->variance;
}

void analysis__hop_request(struct analysis *analysis, uint64_t now_ns, struct vapro_hop_event *event)
{
	/* out of memory nothing is decided now */
	if (hops__next(analysis->context.hops, &analysis->context.series, now_ns, event))
		*event = (struct vapro_hop_event){0};
}

int analysis__hopped(struct analysis *analysis, const struct vapro_hop_event *event, uint64_t now_ns)
{
	return hops__note(analysis->context.hops, event, now_ns);
}

void analysis__shed(const struct analysis *analysis, struct vapro_shed *shed)
{
	*shed = analysis->context.memory.reported;
}

void analysis__refuse_stage(struct analysis *analysis, const char *expand)
{
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		if (!strcmp(factor_infos[counter_group_infos[group].parent].name, expand))
			driver__refuse(&analysis->context.driver, (enum counter_group)group);
	}
}
