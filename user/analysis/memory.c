/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analysis/memory.h"

#include "analysis/history.h"
#include "model/evict.h"
#include "base/grow.h"

#include <math.h>

#define RECENT 4096	    /* bundles that a further one may be merged with; a power of two */
#define SERIES_ROUGHLY 2048 /* bytes of a new history until it is added up: the struct and a short histogram */
#define SERIES_STEP 256	    /* new histories after which to check again */
#define LEAST_CELLS 64	    /* least cells of a state's workloads; fewer distinguish nothing any more */
#define LEAST_BUNDLES 64
#define SPARE 4	       /* 1/SPARE of all histories is made free at once */
#define SHARES_LEAST 4 /* a user's share of the room for histories is at most one part in so many */
#define BUNDLES_SURE                                                                                                   \
	16		/* bundles of a job whose user has less than a share may take one part in so many of the cap   \
			 */
#define HISTORIES 4 / 3 /* histories may use all but a quarter of the cap: bundles of known states need room too */

static size_t bundle_bytes(const struct analysis_context *context, const struct analysis_job *jobs, size_t job_count)
{
	size_t bytes = context->series.factors.bytes;

	for (size_t i = 0; i < job_count; i++)
		bytes += (jobs[i].rec_capacity + jobs[i].open_capacity + jobs[i].history.rec_capacity +
			  jobs[i].history.open_capacity) *
			     sizeof(struct bundle_rec) +
			 (jobs[i].interference_capacity + jobs[i].history.interference_capacity) *
			     sizeof(*jobs[i].interference);
	return bytes;
}

static size_t job_bytes(const struct analysis_job *job)
{
	size_t bytes = heatmap__bytes(&job->map) + account__bytes(&job->account) + noise__bytes(&job->noise) +
		       rank_profile__bytes(job->profile) + stalls__bytes(&job->stalls) + sensing__bytes(&job->sensing) +
		       (job->waiting ? waiting__bytes(job->waiting) : 0) + lateness__bytes(&job->coverage.lateness) +
		       (job->clocks ? clocks__bytes(job->clocks) : 0);

	for (size_t i = 0; i < job->book.count; i++) {
		const struct variance *variance = &job->book.variances[i];

		bytes += variance->row_capacity * sizeof(*variance->rows) + tally__bytes(&variance->history) +
			 tally__bytes(&variance->retiring) + tally__bytes(&variance->staying) +
			 tally__bytes(&variance->total);
	}
	bytes += hang__bytes(&job->hang);
	return bytes + job->book.capacity * sizeof(*job->book.variances) + diagnoses__bytes(&job->diagnoses) +
	       diagnoses__bytes(&job->chosen) + chosen_sites__bytes(&job->chosen_sites);
}

/* Adds up all memory but that of bundles, which come and go. */
static void add_up(struct analysis_context *context, const struct analysis_job *jobs, size_t job_count)
{
	struct analysis_memory *memory = &context->memory;

	memory->fixed = memory->elsewhere + series__bytes(&context->series) + stg__bytes(context->stg) +
			hops__bytes(context->hops) + inside__bytes(context->inside) +
			host_clocks__bytes(context->host_clocks) + memory->results;
	for (size_t i = 0; i < job_count; i++)
		memory->fixed += job_bytes(&jobs[i]);
	memory->series = context->series.count;
}

/* All but the bundles: histories are nearly all of it, where many are. */
static size_t histories_bytes(const struct analysis_context *context)
{
	size_t more = context->series.count - context->memory.series;

	return context->memory.fixed + more * SERIES_ROUGHLY;
}

static bool histories_fit(const struct analysis_context *context)
{
	return !context->config.memory_cap || histories_bytes(context) * HISTORIES <= context->config.memory_cap;
}

static size_t retained(const struct analysis_context *context, const struct analysis_job *jobs, size_t job_count)
{
	return histories_bytes(context) + bundle_bytes(context, jobs, job_count);
}

static bool fits(const struct analysis_context *context, const struct analysis_job *jobs, size_t job_count, size_t more)
{
	return !context->config.memory_cap || retained(context, jobs, job_count) + more <= context->config.memory_cap;
}

/* Step 0. Open fragments cannot be determined otherwise, and stay. */
static bool forget(struct analysis_context *context, struct analysis_job *jobs, size_t job_count)
{
	size_t before = context->memory.shed.remembered;

	for (size_t i = 0; i < job_count; i++)
		context->memory.shed.remembered += history__forget(context, &jobs[i].history);
	return context->memory.shed.remembered > before;
}

static uint32_t norm_cell(const struct bundle_rec *rec)
{
	return histogram__index(rec->sum_ns / rec->n) / HISTOGRAM_PER_CELL;
}

static bool alike(const struct bundle_rec *a, const struct bundle_rec *b, bool any_norm)
{
	return a->series == b->series && a->cell == b->cell && a->flags == b->flags && a->counted == b->counted &&
	       a->is_new == b->is_new && !a->retained && !b->retained && bundle_rec__bin(a) == bundle_rec__bin(b) &&
	       bundle_rec__first_bin(a) == bundle_rec__bin(a) && bundle_rec__first_bin(b) == bundle_rec__bin(b) &&
	       (any_norm || norm_cell(a) == norm_cell(b)) && a->n <= UINT32_MAX - b->n;
}

static void merge(struct series_book *book, struct bundle_rec *into, struct bundle_rec *from)
{
	into->start_ns = from->start_ns < into->start_ns ? from->start_ns : into->start_ns;
	into->end_ns = from->end_ns > into->end_ns ? from->end_ns : into->end_ns;
	into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
	into->sum_ns += from->sum_ns;
	into->n += from->n;
	if (into->factor == bundle_rec_no_factors) {
		into->factor = from->factor;
		return;
	}
	for (int i = 0; from->factor != bundle_rec_no_factors && i < VAPRO_FACTORS; i++)
		((float *)into->factor)[i] += from->factor[i];
	series__drop(book, from);
}

/* Steps 2 and 5. Bundles of one state and bin come close after each other, so few candidates suffice. */
static bool merge_bundles(struct analysis_context *context, struct analysis_job *job, bool any_norm)
{
	uint32_t *recent = malloc(RECENT * sizeof(*recent));
	size_t live = 0;

	if (!recent)
		return false;
	memset(recent, 0xff, RECENT * sizeof(*recent));
	for (size_t i = 0; i < job->rec_count; i++) {
		struct bundle_rec *from = &job->recs[i];
		uint64_t place = table__hash((uint64_t)from->series << 32 | from->cell, bundle_rec__bin(from)) +
				 (any_norm ? 0 : norm_cell(from));
		uint32_t *at = &recent[place & (RECENT - 1)];

		if (*at < live && alike(&job->recs[*at], from, any_norm)) {
			merge(&context->series, &job->recs[*at], from);
			continue;
		}
		*at = (uint32_t)live;
		job->recs[live++] = *from;
	}
	context->memory.shed.merged += job->rec_count - live;
	job->rec_count = live;
	free(recent);
	return live <= job->rec_capacity / 4 * 3 && job->rec_capacity;
}

static void mark_recs(unsigned char *used, const struct bundle_rec *rec, size_t count)
{
	for (size_t i = 0; i < count; i++)
		used[rec[i].series] = 1;
}

static void mark_tally(unsigned char *used, const struct tally *tally)
{
	for (size_t i = 0; i < tally->series_count; i++)
		used[tally->series[i].series] = 1;
	for (unsigned i = 0; i < tally->worst_count; i++)
		used[tally->worst[i].series] = 1;
}

/* What a user's histories take. */
struct user_room {
	uint32_t user;
	double bytes; /* at first, their number */
};

static uint32_t user_of(const struct analysis_context *context, const struct analysis_job *job)
{
	return stg__job(context->stg, job->id)->user;
}

/* Lists the users of jobs that go on, at most one for each job. Returns their number. */
static size_t list_users(const struct analysis_context *context, const struct analysis_job *jobs, size_t job_count,
			 struct user_room *users)
{
	size_t count = 0, all = 0;

	for (size_t i = 0; i < job_count; i++) {
		size_t at = 0, own;

		if (jobs[i].forgotten)
			continue;
		while (at < count && users[at].user != user_of(context, &jobs[i]))
			at++;
		if (at == count)
			users[count++] = (struct user_room){.user = user_of(context, &jobs[i])};
		own = job_series__ids(&context->series, jobs[i].id).count;
		users[at].bytes += (double)own;
		all += own;
	}
	for (size_t i = 0; all && i < count; i++)
		users[i].bytes *= (double)histories_bytes(context) / (double)all;
	return count;
}

/* Whether a user has less than a share; if not, whether more would leave less than their shares to the others. */
static enum job_room room_of(const struct analysis_context *context, const struct user_room *users, size_t count,
			     size_t user)
{
	double room = (double)context->config.memory_cap / (1.0 * HISTORIES), held = (double)histories_bytes(context);
	double share = room / (double)(count > SHARES_LEAST ? count : SHARES_LEAST);

	if (count < 2)
		return JOB_ROOM_SHARED;
	if (users[user].bytes <= share)
		return JOB_ROOM_SURE;
	for (size_t i = 0; i < count; i++) {
		if (i != user)
			held += fmax(0, share - users[i].bytes);
	}
	return held > room ? JOB_ROOM_NONE : JOB_ROOM_SHARED;
}

/*
 * Sets the room of all jobs. Returns whether some have none; out of memory all are treated alike, and the cap is
 * everybody's.
 */
static bool bound_users(struct analysis_context *context, struct analysis_job *jobs, size_t job_count)
{
	struct user_room *users = context->config.memory_cap ? calloc(job_count + 1, sizeof(*users)) : NULL;
	size_t count = users ? list_users(context, jobs, job_count, users) : 0;
	bool any = false;

	for (size_t i = 0; i < job_count; i++) {
		bool has = count && !jobs[i].forgotten;
		size_t at = 0;

		while (has && users[at].user != user_of(context, &jobs[i]))
			at++;
		jobs[i].room = has ? room_of(context, users, count, at) : JOB_ROOM_SHARED;
		if (job_series__bound(&context->series, jobs[i].id, jobs[i].room))
			jobs[i].room = JOB_ROOM_SHARED;
		any |= jobs[i].room == JOB_ROOM_NONE;
	}
	free(users);
	return any;
}

/* Has the histories of those who have room stay. */
static void spare_others(const struct series_book *book, unsigned char *used)
{
	for (size_t i = 0; i < book->count; i++) {
		if (book->series[i].job != SERIES_NONE && !job_series__full(book, book->series[i].job))
			used[i] = 1;
	}
}

/*
 * Step 1. Histories that bundles or variances refer to stay, and where some users have no room, those of the others.
 * Returns whether any history went.
 */
static bool evict(struct analysis_context *context, const struct analysis_job *jobs, size_t job_count, bool bounded)
{
	unsigned char *used = calloc(context->series.count + 1, 1);
	size_t evicted;

	if (!used)
		return false;
	for (size_t i = 0; i < job_count; i++) {
		mark_recs(used, jobs[i].recs, jobs[i].rec_count);
		mark_recs(used, jobs[i].open, jobs[i].open_count);
		mark_recs(used, jobs[i].history.recs, jobs[i].history.rec_count);
		mark_recs(used, jobs[i].history.open, jobs[i].history.open_count);
		for (size_t k = 0; k < jobs[i].book.count; k++) {
			const struct variance *variance = &jobs[i].book.variances[k];

			mark_tally(used, &variance->history);
			mark_tally(used, &variance->retiring);
			mark_tally(used, &variance->staying);
			mark_tally(used, &variance->total);
		}
	}
	if (bounded)
		spare_others(&context->series, used);
	evicted = evict__series(&context->series, used, context->series.count / SPARE);
	free(used);
	/* Other data has grown: histories have less of the cap now. */
	if (!histories_fit(context))
		evict__shrink(&context->series);
	add_up(context, jobs, job_count);
	context->memory.look_at = context->series.count + SERIES_STEP;
	context->memory.shed.evicted += evicted;
	return evicted > 0;
}

/* Step 3. */
static void cut_history(struct analysis_context *context, struct analysis_job *jobs, size_t job_count)
{
	for (size_t i = 0; i < job_count; i++)
		context->memory.shed.bins += heatmap__cut(&jobs[i].map);
	context->memory.short_history = true;
}

/* Step 4. */
static bool widen_cells(struct analysis_context *context)
{
	bool any = false;

	for (size_t i = 0; i < context->series.workload_count; i++) {
		struct clusters *clusters = context->series.workloads[i].clusters;

		if (clusters && clusters__coarsen(clusters, LEAST_CELLS)) {
			context->memory.shed.coarser++;
			any = true;
		}
	}
	return any;
}

static bool shed_steps(struct analysis_context *context, struct analysis_job *jobs, size_t job_count, size_t more)
{
	if (forget(context, jobs, job_count) && fits(context, jobs, job_count, more))
		return true;
	if (!context->memory.short_history) {
		cut_history(context, jobs, job_count);
		add_up(context, jobs, job_count);
	}
	while (!fits(context, jobs, job_count, more) && widen_cells(context))
		add_up(context, jobs, job_count);
	return fits(context, jobs, job_count, more);
}

static int enlarge(struct analysis_job *job, size_t capacity)
{
	struct bundle_rec *rec = realloc(job->recs, capacity * sizeof(*rec));

	if (!rec)
		return -ENOMEM;
	job->recs = rec;
	job->rec_capacity = capacity;
	return 0;
}

int analysis_memory__reserve(struct analysis_context *context, struct analysis_job *jobs, size_t job_count,
			     struct analysis_job *job)
{
	size_t more = job->rec_capacity ? job->rec_capacity : LEAST_BUNDLES, now, left;

	if (job->rec_count < job->rec_capacity)
		return 0;
	if (fits(context, jobs, job_count, more * sizeof(*job->recs)))
		return enlarge(job, job->rec_capacity + more);
	if (forget(context, jobs, job_count) && fits(context, jobs, job_count, more * sizeof(*job->recs)))
		return enlarge(job, job->rec_capacity + more);
	/* what others hold is no reason to drop the bundles of a user who has hardly any */
	if (job->room == JOB_ROOM_SURE &&
	    (job->rec_capacity + more) * sizeof(*job->recs) <= context->config.memory_cap / BUNDLES_SURE)
		return enlarge(job, job->rec_capacity + more);
	if (context->memory.exhausted)
		return -ENOSPC;
	if (merge_bundles(context, job, false))
		return 0;
	if (shed_steps(context, jobs, job_count, more * sizeof(*job->recs)))
		return enlarge(job, job->rec_capacity + more);
	now = retained(context, jobs, job_count);
	left = now < context->config.memory_cap ? (context->config.memory_cap - now) / sizeof(*job->recs) : 0;
	if (left >= LEAST_BUNDLES)
		return enlarge(job, job->rec_capacity + left);
	if (merge_bundles(context, job, true))
		return 0;
	context->memory.exhausted = context->series.full = true;
	return job->rec_count < job->rec_capacity ? 0 : -ENOSPC;
}

void analysis_memory__look(struct analysis_context *context, struct analysis_job *jobs, size_t job_count)
{
	if (context->series.count < context->memory.look_at || context->series.full)
		return;
	context->memory.look_at = context->series.count + SERIES_STEP;
	if (bound_users(context, jobs, job_count)) {
		add_up(context, jobs, job_count);
		evict(context, jobs, job_count, true);
	}
	if (histories_fit(context) && fits(context, jobs, job_count, 0))
		return;
	add_up(context, jobs, job_count);
	/* Numbers that are free may be used all the same. */
	if (evict(context, jobs, job_count, false) && fits(context, jobs, job_count, 0)) {
		context->series.full = !histories_fit(context);
		return;
	}
	context->series.full = !shed_steps(context, jobs, job_count, 0) || !histories_fit(context);
}

void analysis_memory__refused(struct analysis_context *context, struct analysis_job *job,
			      const struct vapro_bundle *bundle)
{
	context->memory.shed.bundles++;
	context->memory.shed.fragments += bundle->n;
	context->memory.shed.seconds += (double)bundle->sum_ns / 1e9;
	job->facts.shed_ns += (double)bundle->sum_ns;
	job->facts.shed += bundle->n;
	job->active = true;
}

void analysis_memory__begin(struct analysis_context *context)
{
	context->memory.reported = context->memory.shed;
	context->memory.shed = (struct vapro_shed){0};
}

/* Frees room that a burst of bundles left behind. */
static void shrink(struct analysis_job *jobs, size_t job_count)
{
	for (size_t i = 0; i < job_count; i++) {
		size_t wanted = jobs[i].rec_count > LEAST_BUNDLES ? jobs[i].rec_count : LEAST_BUNDLES;

		if (jobs[i].rec_capacity > wanted)
			enlarge(&jobs[i], wanted);
	}
}

void analysis_memory__finalize(struct analysis_context *context, struct analysis_job *jobs, size_t job_count)
{
	struct analysis_memory *memory = &context->memory;

	memory->results = arena__bytes(&context->arena);
	add_up(context, jobs, job_count);
	if (bound_users(context, jobs, job_count))
		evict(context, jobs, job_count, true);
	if (!fits(context, jobs, job_count, 0) || !histories_fit(context))
		evict(context, jobs, job_count, false);
	memory->look_at = context->series.count + SERIES_STEP;
	context->series.full = memory->exhausted = false;
	context->series.window++;
	if (!fits(context, jobs, job_count, 0))
		shrink(jobs, job_count);
	if (!fits(context, jobs, job_count, 0) && !shed_steps(context, jobs, job_count, 0)) {
		for (size_t i = 0; i < job_count; i++)
			merge_bundles(context, &jobs[i], true);
		shrink(jobs, job_count);
	}
	context->series.full = !fits(context, jobs, job_count, 0) || !histories_fit(context);
	memory->reported.bytes = retained(context, jobs, job_count);
}
