// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes in what the stream brings: threads, states, bundles, accounts, interference, facts and places. */
#include "analysis/analysis_private.h"
#include "analysis/clock_shift.h"
#include "analysis/history.h"
#include "analysis/memory.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int analysis__add_thread(struct analysis *analysis, const struct vapro_thread *thread)
{
	int error = stg__add_thread(analysis->context.stg, thread);
	uint32_t id = error ? STG_NONE : stg__thread_number(analysis->context.stg, thread->id);
	struct analysis_job *job;

	if (id == STG_NONE)
		return error;
	id = stg__thread(analysis->context.stg, id)->job;
	if (id < analysis->job_count && !analysis->jobs[id].vacant)
		return 0;
	if (grow(&analysis->jobs, &analysis->job_capacity, (size_t)id + 1, sizeof(*analysis->jobs)))
		return -ENOMEM;
	job = &analysis->jobs[id];
	*job = (struct analysis_job){.id = id, .waiting = waiting__new()};
	if (!job->waiting)
		return -ENOMEM;
	if (id == analysis->job_count)
		analysis->job_count++;
	return 0;
}

int analysis__add_state(struct analysis *analysis, const struct vapro_state *state)
{
	return stg__add_state(analysis->context.stg, state);
}

int analysis__state_gone(struct analysis *analysis, uint32_t state)
{
	uint32_t number = stg__state_number(analysis->context.stg, state);

	if (number == STG_NONE)
		return -EINVAL;
	stg__state_gone(analysis->context.stg, number, analysis->context.series.window);
	return 0;
}

static bool possible(const struct vapro_bundle *bundle, const double *factor)
{
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
	const double *factor = bundle_rec__any_factor(bundle->factor) ? bundle->factor : NULL;
	const struct series_of of = {stg__thread_number(analysis->context.stg, bundle->thread),
				     stg__state_number(analysis->context.stg, bundle->state)};
	double final[VAPRO_FACTORS];
	struct analysis_job *job;
	struct bundle_rec rec;
	unsigned counted = 0;
	int error = 0;

	if (of.thread == STG_NONE || of.state == STG_NONE || !possible(bundle, factor))
		return -EINVAL;
	if (factor) {
		memcpy(final, factor, sizeof(final));
		counted = factors__finalize((double)bundle->sum_ns, final);
		factor = final;
	}
	job = &analysis->jobs[stg__thread(analysis->context.stg, of.thread)->job];
	if (!(bundle->flags & VAPRO_BUNDLE_OPEN) && stg__hosts(analysis->context.stg, job->id) > 1)
		error = clock_shift__observe(&analysis->context, job, of.thread, of.state, bundle->start_ns + offset_ns,
					     bundle->end_ns + offset_ns, bundle->n);
	if (error)
		return error;
	offset_ns += bundle->n == 1 ? clock_shift__exact(&analysis->context, job, of.thread)
				    : clock_shift__bins(&analysis->context, job, of.thread);
	if (!(bundle->flags & VAPRO_BUNDLE_OPEN) && job->rec_count == job->rec_capacity) {
		error = analysis_memory__reserve(&analysis->context, analysis->jobs, analysis->job_count, job);
		if (error)
			return refuse(&analysis->context, job, bundle, error);
	}
	error = stg__touch(analysis->context.stg, of.thread, bundle->start_ns + offset_ns,
			   !(bundle->flags & VAPRO_BUNDLE_OPEN));
	if (!error)
		error = series__add(&analysis->context.series, of, bundle, factor, &rec);
	if (error)
		return refuse(&analysis->context, job, bundle, error);
	analysis_memory__look(&analysis->context, analysis->jobs, analysis->job_count);
	rec.start_ns += offset_ns;
	rec.end_ns += offset_ns;
	rec.counted = (uint8_t)counted;
	analysis->context.counted |= counted;
	job->active = true;
	if (bundle->flags & VAPRO_BUNDLE_OPEN) {
		if (grow(&job->open, &job->open_capacity, job->open_count + 1, sizeof(*job->open))) {
			series__drop(&analysis->context.series, &rec);
			return -ENOMEM;
		}
		job->open[job->open_count++] = rec;
		return 0;
	}
	stg__finished(analysis->context.stg, of.thread, of.state, rec.end_ns);
	job->recs[job->rec_count++] = rec;
	job->bundles++;
	job->fragments += bundle->n;
	return 0;
}

/* Finds out what a task is to the job of a thread that it ran instead of. */
static void relate(const struct stg *stg, const struct stg_thread *thread,
		   const struct vapro_interference *interference, struct interference_rec *rec)
{
	const struct stg_thread *other;
	uint32_t pid;

	rec->other_job = STG_NONE;
	rec->task.relation = VAPRO_MONITOR;
	if (interference->monitor)
		return;
	rec->task.relation = VAPRO_OWN_THREAD;
	if (interference->process == thread->about.pid ||
	    stg__task(stg, thread->about.host, thread->about.pid, interference->pid))
		return;
	/* older captures do not know the process: an MPI program's ranks run on their first threads */
	pid = interference->process ? interference->process : interference->pid;
	other = stg__task(stg, thread->about.host, pid, pid);
	rec->task.relation = !other ? VAPRO_FOREIGN : other->job == thread->job ? VAPRO_SAME_JOB : VAPRO_OTHER_JOB;
	if (rec->task.relation != VAPRO_OTHER_JOB)
		return;
	rec->other_job = other->job;
	rec->task.rank = other->about.rank;
}

int analysis__add_interference(struct analysis *analysis, const struct vapro_interference *interference)
{
	uint32_t id = stg__thread_number(analysis->context.stg, interference->thread);
	const struct stg_thread *thread;
	struct interference_rec *rec;
	struct analysis_job *job;

	if (id == STG_NONE)
		return -EINVAL;
	thread = stg__thread(analysis->context.stg, id);
	job = &analysis->jobs[thread->job];
	if (grow(&job->interference, &job->interference_capacity, job->interference_count + 1,
		 sizeof(*job->interference)))
		return -ENOMEM;
	rec = &job->interference[job->interference_count++];
	*rec = (struct interference_rec){
	    .thread = id,
	    .row = thread->row,
	    .bin = clock_shift__bin(&analysis->context, job, id, interference->bin),
	    .task = {.pid = interference->pid,
		     .seconds = (double)(interference->preempted_ns + interference->wakeup_wait_ns) / 1e9},
	};
	relate(analysis->context.stg, thread, interference, rec);
	memcpy(rec->task.comm, interference->comm, sizeof(rec->task.comm));
	rec->task.comm[sizeof(rec->task.comm) - 1] = 0;
	return noise__add(&job->noise, &(struct noise_slices){
					   .name = rec->task.comm,
					   .relation = rec->task.relation,
					   .process = interference->process,
					   .thread = id,
					   .bin = rec->bin,
					   .slices = interference->slices,
					   .ns = interference->preempted_ns + interference->wakeup_wait_ns,
					   .longest_us = interference->longest_us,
				       });
}

int analysis__add_account(struct analysis *analysis, const struct vapro_account *account)
{
	struct vapro_account shifted = *account;
	struct analysis_job *job;

	shifted.thread = stg__thread_number(analysis->context.stg, account->thread);
	if (shifted.thread == STG_NONE)
		return -EINVAL;
	job = &analysis->jobs[stg__thread(analysis->context.stg, shifted.thread)->job];
	job->active = true;
	shifted.bin = clock_shift__bin(&analysis->context, job, shifted.thread, account->bin);
	return account__add(&job->account, analysis->context.stg, &shifted);
}

int analysis__add_inside(struct analysis *analysis, uint32_t thread, uint32_t state, const char *site, uint64_t samples)
{
	uint32_t own_thread = stg__thread_number(analysis->context.stg, thread);
	uint32_t own_state = stg__state_number(analysis->context.stg, state);

	if (own_thread == STG_NONE || own_state == STG_NONE)
		return -EINVAL;
	return inside__add(analysis->context.inside, own_thread, own_state, site, samples);
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
	if (overhead > sum->overhead_max_pct) {
		sum->overhead_max_pct = overhead;
		sum->overhead_max_pid = facts->pid;
	}
	sum->processes++;
	analysis->jobs[id].active = true;
	return 0;
}

int analysis__thread_seen(struct analysis *analysis, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t id = stg__thread_number(analysis->context.stg, thread);
	uint64_t shift_ns;

	if (id == STG_NONE)
		return -EINVAL;
	shift_ns =
	    clock_shift__exact(&analysis->context, &analysis->jobs[stg__thread(analysis->context.stg, id)->job], id);
	return stg__thread_seen(analysis->context.stg, id, from_ns ? from_ns + shift_ns : 0,
				to_ns && to_ns != UINT64_MAX ? to_ns + shift_ns : to_ns);
}

int analysis__add_host_clock(struct analysis *analysis, const struct vapro_host_clock *clock)
{
	return host_clocks__set(analysis->context.host_clocks, clock);
}

int analysis__place(struct analysis *analysis, const struct vapro_place *place)
{
	struct vapro_place own = *place;

	own.thread = stg__thread_number(analysis->context.stg, place->thread);
	if (own.thread == STG_NONE)
		return -EINVAL;
	if (stg__set_place(analysis->context.stg, &own))
		return -ENOMEM;
	return places__add(&analysis->context.places, &own);
}
