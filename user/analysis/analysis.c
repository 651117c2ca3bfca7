/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface of the pure floors: it takes bundles in, holds them by job, and runs the jobs at a window's end. */
#include "analysis/diagnose.h"
#include "analysis/memory.h"
#include "analysis/history.h"

#include "model/groups.h"
#include "base/grow.h"
#include "model/judge.h"
#include "model/score.h"

#include <math.h>

struct analysis {
	struct analysis_context context;
	struct analysis_job *jobs;
	size_t job_count, job_capacity;
	struct job_result *results;
	size_t result_capacity;
};

/* Frees all bundles of a job. */
static void drop_kept(struct analysis_context *context, struct analysis_job *job)
{
	for (size_t i = 0; i < job->kept_count; i++)
		series__drop(&context->series, &job->kept[i]);
	for (size_t i = 0; i < job->open_count; i++)
		series__drop(&context->series, &job->open[i]);
	job->kept_count = job->open_count = 0;
}

static void free_job(struct analysis_context *context, struct analysis_job *job)
{
	drop_kept(context, job);
	free(job->kept);
	free(job->open);
	free(job->interference);
	heatmap__free(&job->map);
	waiting__free(job->waiting);
	variance__free(&job->book);
	cases__free(&job->cases);
	cases__free(&job->chosen);
	account__clear(&job->account);
	coverage__clear(&job->coverage);
	sets__clear(&job->sets);
	spatial__clear(&job->spatial);
	for (int class = 0; class < VAPRO_CLASSES; class ++)
		free(job->emitted_again[class].rows);
	past__clear(context, &job->past);
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
	if (!analysis->context.stg || !analysis->context.hops ||
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
	free(analysis->results);
	series__free(&analysis->context.series);
	hops__free(analysis->context.hops);
	stg__free(analysis->context.stg);
	driver__free(&analysis->context.driver);
	places__free(&analysis->context.places);
	free(analysis->context.selection.ranks);
	free(analysis->context.normal);
	arena__clear(&analysis->context.arena);
	free(analysis);
}

int analysis__add_thread(struct analysis *analysis, const struct vapro_thread *thread)
{
	int error = stg__add_thread(analysis->context.stg, thread);

	while (!error && analysis->job_count < stg__jobs(analysis->context.stg)) {
		struct analysis_job *job;

		if (grow(&analysis->jobs, &analysis->job_capacity, analysis->job_count + 1, sizeof(*analysis->jobs)))
			return -ENOMEM;
		job = &analysis->jobs[analysis->job_count];
		*job = (struct analysis_job){.id = (uint32_t)analysis->job_count, .waiting = waiting__new()};
		if (!job->waiting)
			return -ENOMEM;
		analysis->job_count++;
	}
	return error;
}

int analysis__add_state(struct analysis *analysis, const struct vapro_state *state)
{
	return stg__add_state(analysis->context.stg, state);
}

static bool possible(const struct analysis *analysis, const struct vapro_bundle *bundle, const double *factor)
{
	if (bundle->thread >= stg__threads(analysis->context.stg) ||
	    bundle->state >= stg__states(analysis->context.stg))
		return false;
	if (!bundle->n || bundle->end_ns < bundle->start_ns || bundle->min_ns > bundle->max_ns)
		return false;
	for (int i = 0; factor && i < VAPRO_FACTORS; i++) {
		if (!isfinite(factor[i]))
			return false;
	}
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (!(bundle->magnitude_min[i] >= 0 && bundle->magnitude_min[i] <= bundle->magnitude_max[i] &&
		      bundle->magnitude_max[i] <= CELLS_MAGNITUDE_MAX))
			return false;
	}
	/* One thread does one thing at a time: its fragments cannot sum to more than the time they span. */
	return bundle->sum_ns <= bundle->end_ns - bundle->start_ns + 1000ULL * bundle->n;
}

/* A bundle for which the cap leaves no room is reported, and no error. */
static int refuse(struct analysis_context *context, struct analysis_job *job, const struct vapro_bundle *bundle,
		  int error)
{
	if (error != -ENOSPC)
		return error;
	analysis_memory__refused(context, job, bundle);
	return 0;
}

int analysis__add_bundle(struct analysis *analysis, const struct vapro_bundle *bundle)
{
	return analysis__add_bundle_at(analysis, bundle, 0);
}

int analysis__add_bundle_at(struct analysis *analysis, const struct vapro_bundle *bundle, uint64_t offset_ns)
{
	const double *factor = kept__any_factor(bundle->factor) ? bundle->factor : NULL;
	double settled[VAPRO_FACTORS];
	struct analysis_job *job;
	struct kept kept;
	unsigned counted = 0;
	int error;

	if (!possible(analysis, bundle, factor))
		return -EINVAL;
	if (factor) {
		memcpy(settled, factor, sizeof(settled));
		counted = factors__settle((double)bundle->sum_ns, settled);
		factor = settled;
	}
	job = &analysis->jobs[stg__thread(analysis->context.stg, bundle->thread)->job];
	if (!(bundle->flags & VAPRO_BUNDLE_OPEN)) {
		error = analysis_memory__reserve(&analysis->context, analysis->jobs, analysis->job_count, job);
		if (error)
			return refuse(&analysis->context, job, bundle, error);
	}
	error = stg__touch(analysis->context.stg, bundle->thread, bundle->start_ns + offset_ns,
			   !(bundle->flags & VAPRO_BUNDLE_OPEN));
	if (!error)
		error = series__add(&analysis->context.series, bundle, factor, &kept);
	if (error)
		return refuse(&analysis->context, job, bundle, error);
	analysis_memory__look(&analysis->context, analysis->jobs, analysis->job_count);
	kept.start_ns += offset_ns;
	kept.end_ns += offset_ns;
	kept.counted = (uint8_t)counted;
	analysis->context.counted |= counted;
	job->active = true;
	if (bundle->flags & VAPRO_BUNDLE_OPEN) {
		if (grow(&job->open, &job->open_capacity, job->open_count + 1, sizeof(*job->open))) {
			series__drop(&analysis->context.series, &kept);
			return -ENOMEM;
		}
		job->open[job->open_count++] = kept;
		return 0;
	}
	job->kept[job->kept_count++] = kept;
	job->bundles++;
	job->fragments += bundle->n;
	return 0;
}

static enum vapro_relation relation_of(const struct stg *stg, const struct vapro_interference *interference)
{
	const struct stg_thread *thread = stg__thread(stg, interference->thread), *other;
	uint32_t pid;

	if (interference->monitor)
		return VAPRO_MONITOR;
	if (interference->process == thread->about.pid ||
	    stg__task(stg, thread->about.host, thread->about.pid, interference->pid))
		return VAPRO_OWN_THREAD;
	/* older captures do not know the process: an MPI program's ranks run on their first threads */
	pid = interference->process ? interference->process : interference->pid;
	other = stg__task(stg, thread->about.host, pid, pid);
	return other && other->job == thread->job ? VAPRO_SAME_JOB : VAPRO_FOREIGN;
}

int analysis__add_interference(struct analysis *analysis, const struct vapro_interference *interference)
{
	const struct stg_thread *thread;
	struct kept_interference *kept;
	struct analysis_job *job;

	if (interference->thread >= stg__threads(analysis->context.stg))
		return -EINVAL;
	thread = stg__thread(analysis->context.stg, interference->thread);
	job = &analysis->jobs[thread->job];
	if (grow(&job->interference, &job->interference_capacity, job->interference_count + 1,
		 sizeof(*job->interference)))
		return -ENOMEM;
	kept = &job->interference[job->interference_count++];
	*kept = (struct kept_interference){
	    .thread = interference->thread,
	    .row = thread->row,
	    .bin = interference->bin,
	    .task = {.pid = interference->pid,
		     .relation = relation_of(analysis->context.stg, interference),
		     .seconds = (double)(interference->preempted_ns + interference->wakeup_wait_ns) / 1e9},
	};
	memcpy(kept->task.comm, interference->comm, sizeof(kept->task.comm));
	kept->task.comm[sizeof(kept->task.comm) - 1] = 0;
	return 0;
}

int analysis__add_account(struct analysis *analysis, const struct vapro_account *account)
{
	struct analysis_job *job;

	if (account->thread >= stg__threads(analysis->context.stg))
		return -EINVAL;
	job = &analysis->jobs[stg__thread(analysis->context.stg, account->thread)->job];
	job->active = true;
	return account__add(&job->account, analysis->context.stg, account);
}

int analysis__add_facts(struct analysis *analysis, const struct vapro_process_facts *facts)
{
	uint32_t id = stg__find_job(analysis->context.stg, facts->job, facts->user);
	struct coverage_facts *sum;
	double overhead;

	if (id == UINT32_MAX)
		return -EINVAL;
	sum = &analysis->jobs[id].facts;
	overhead = facts->wall_ns ? 100.0 * (double)facts->cost_ns / (double)facts->wall_ns : 0;
	sum->wall_ns += (double)facts->wall_ns;
	sum->governed_ns += (double)facts->governed_ns;
	sum->thinned_ns += (double)facts->thinned_ns;
	sum->thinned += (double)facts->thinned;
	for (int i = 0; i < VAPRO_LOSSES; i++)
		sum->lost[i] += facts->lost[i];
	sum->overhead_sum_pct += overhead;
	sum->overhead_max_pct = fmax(sum->overhead_max_pct, overhead);
	sum->processes++;
	analysis->jobs[id].active = true;
	return 0;
}

int analysis__thread_seen(struct analysis *analysis, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	return stg__thread_seen(analysis->context.stg, thread, from_ns, to_ns);
}

int analysis__place(struct analysis *analysis, const struct vapro_place *place)
{
	if (place->thread >= stg__threads(analysis->context.stg))
		return -EINVAL;
	if (stg__set_place(analysis->context.stg, place))
		return -ENOMEM;
	return places__add(&analysis->context.places, place);
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
	job->forgotten = stg__job_over(context->stg, job->id);
	if (job->forgotten) {
		uint32_t id = job->id;

		free_job(context, job);
		*job = (struct analysis_job){.id = id, .forgotten = true};
		return series__forget(&context->series, id);
	}
	if (past__add_all(context, job))
		return -ENOMEM;
	past__trim(context, job, span);
	account__clear(&job->account);
	heatmap__free(&job->map);
	free(job->kept);
	free(job->open);
	free(job->interference);
	job->kept = job->open = NULL;
	job->interference = NULL;
	job->kept_capacity = job->open_capacity = 0;
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

static bool worth_a_word(const struct analysis_job *job)
{
	if (job->active || job->chosen.count) /* a chosen region is emitted at the end, also of a job that has ended */
		return true;
	for (size_t i = 0; i < job->book.count; i++) {
		if (!job->book.variances[i].over)
			return true;
	}
	return false;
}

int analysis__end_window(struct analysis *analysis, uint64_t begin_ns, uint64_t end_ns, bool last,
			 const struct job_result **results, uint32_t *count)
{
	struct analysis_context *context = &analysis->context;
	uint64_t third = (uint64_t)(context->config.window_s / 3 * 1e9);
	struct analysis_span span = {
	    .begin_ns = begin_ns,
	    .end_ns = end_ns,
	    .view = (begin_ns > third ? begin_ns - third : 0) / VAPRO_BIN_NS,
	    .begin = begin_ns / VAPRO_BIN_NS,
	    .end = end_ns / VAPRO_BIN_NS,
	    .retire = (end_ns > third ? end_ns - third : 0) / VAPRO_BIN_NS,
	    .last = last,
	};
	uint32_t used = 0;

	analysis__settle_selection(&context->selection, begin_ns);
	analysis_memory__begin(context);
	*results = NULL;
	*count = 0;
	arena__clear(&context->arena);
	if (grow(&analysis->results, &analysis->result_capacity, analysis->job_count, sizeof(*analysis->results)))
		return -ENOMEM;
	groups__find(&context->series);
	for (size_t i = 0; i < analysis->job_count; i++) {
		if (analysis_window__learn(context, &analysis->jobs[i], span.view, span.end))
			return -ENOMEM;
	}
	if (judge__refresh(&context->series))
		return -ENOMEM;
	for (size_t i = 0; i < analysis->job_count; i++) {
		struct analysis_job *job = &analysis->jobs[i];

		if (!worth_a_word(job)) {
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
	past__bound(context, analysis->jobs, analysis->job_count, span.end);
	analysis__turn(context, analysis->jobs);
	analysis_memory__settle(context, analysis->jobs, analysis->job_count);
	*results = analysis->results;
	*count = used;
	return 0;
}

int analysis__ask(struct analysis *analysis, const struct vapro_selection *selection, const char *name, uint64_t now_ns,
		  const struct job_result **results, uint32_t *count)
{
	struct analysis_context *context = &analysis->context;

	*results = NULL;
	*count = 0;
	arena__clear(&context->arena);
	if (analysis__select(analysis, selection) ||
	    grow(&analysis->results, &analysis->result_capacity, analysis->job_count, sizeof(*analysis->results)))
		return -ENOMEM;
	groups__find(&context->series);
	for (size_t i = 0; i < analysis->job_count; i++) {
		if (analysis_window__learn(context, &analysis->jobs[i], 0, UINT64_MAX))
			return -ENOMEM;
	}
	if (judge__refresh(&context->series))
		return -ENOMEM;
	for (size_t i = 0; i < analysis->job_count; i++) {
		struct analysis_job *job = &analysis->jobs[i];
		bool asked = !name || !strcmp(name, stg__job(context->stg, job->id)->name);

		if (!job->kept_count && !job->open_count && !job->past.kept_count && !job->past.open_count)
			continue;
		if (analysis__answer(context, job, now_ns, asked, &analysis->results[*count]))
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

/* Scores counts of truth and cluster (or workload); both are numbered within the kind's head. */
int analysis__score(const struct analysis *analysis, struct vapro_score *score)
{
	const struct series_book *book = &analysis->context.series;
	const struct truths *truths = &book->truths;
	struct score_count *counts;
	uint32_t last = SERIES_NONE;

	*score = (struct vapro_score){0};
	if (!truths->count)
		return -ENODATA;
	counts = calloc(truths->count, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (size_t i = 0; i < truths->count; i++) {
		const struct truth_count *at = &truths->items[i];
		uint32_t head = book->workloads[at->workload].head, id = at->workload;

		if (at->cell != KEPT_NO_CELL) {
			const struct cluster *cluster = NULL;

			if (at->cell != KEPT_NO_WORKLOAD)
				cluster = clusters__of(book->workloads[head].clusters, at->cell);
			id = cluster ? cluster->id : 0;
			score->unclustered += cluster ? 0 : at->n;
		}
		counts[i] = (struct score_count){
		    .truth = (uint64_t)head << 32 | at->truth,
		    .cluster = (uint64_t)head << 32 | id,
		    .n = at->n,
		};
	}
	score__of(counts, truths->count, score);
	for (size_t i = 0; i < truths->count; i++) {
		uint32_t head = (uint32_t)(counts[i].cluster >> 32); /* score__of sorts by it */
		const struct clusters *clusters = book->workloads[head].clusters;

		if (head != last && clusters)
			score->approximate += !clusters__certificate(clusters)->exact;
		last = head;
	}
	free(counts);
	return 0;
}
