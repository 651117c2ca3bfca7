/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/series.h"

#include "model/alike.h"
#include "model/groups.h"
#include "base/grow.h"
#include "base/large.h"
#include "model/judgement.h"
#include "model/own_part.h"
#include "base/table.h"
#include "model/job_series.h"

#include <math.h>

/* Different sizes of a kind: steps of a tenth from 1 to 10^10. The last workload takes the rest, which is not judged.
 */
enum { WORKLOADS_PER_KIND = 256 };
enum { WIDEN = 8 };	 /* room grows by one part in so many */
enum { SMALL = 1000 };	 /* up to so many series the room is doubled, since each growth copies them to new pages */
enum { FAR_AHEAD = 12 }; /* histories that are fetched in advance */
enum { NEAR_AHEAD = 4 }; /* histories whose histograms are fetched in advance */

const float bundle_rec_no_factors[BUNDLE_FACTORS];

int series__init(struct series_book *book, const struct vapro_config *config, enum vapro_workload_source source,
		 const struct stg *stg)
{
	*book = (struct series_book){
	    .config = config, .source = source, .stg = stg, .free_series = SERIES_NONE, .free_workloads = SERIES_NONE};
	book->factors.element_bytes = sizeof(bundle_rec_no_factors);
	book->by_key = table__new();
	book->by_kind = table__new();
	book->alike = alike__new();
	return book->by_key && book->by_kind && book->alike ? 0 : -ENOMEM;
}

static void clear(struct series *series)
{
	histogram__clear(&series->cpu);
	histogram__clear(&series->net);
	histogram__clear(&series->least);
	histogram__clear(&series->stretch);
	batches__clear(&series->batches);
	batches__clear(&series->batches_live);
	if (series->variation)
		variation__clear(series->variation);
	free(series->variation);
}

void series__free(struct series_book *book)
{
	for (size_t i = 0; i < book->count; i++)
		clear(&book->series[i]);
	batches__clear(&book->scratch);
	free(book->row_batches);
	for (size_t i = 0; i < book->workload_count; i++)
		clusters__free(book->workloads[i].clusters);
	pool__clear(&book->factors);
	free(book->series);
	free(book->latest);
	free(book->workloads);
	job_series__clear(book);
	table__free(book->by_key);
	table__free(book->by_kind);
	alike__free(book->alike);
	*book = (struct series_book){0};
}

/* Allocates a workload number: a released one, or the next. */
static int take_workload(struct series_book *book, uint32_t job, uint32_t *id)
{
	*id = book->free_workloads;
	if (*id != SERIES_NONE) {
		book->free_workloads = book->workloads[*id].next;
		return 0;
	}
	if (job_series__full(book, job))
		return -ENOSPC;
	if (grow(&book->workloads, &book->workload_capacity, book->workload_count + 1, sizeof(*book->workloads)))
		return -ENOMEM;
	*id = (uint32_t)book->workload_count++;
	book->workloads[*id] = (struct workload){.job = SERIES_NONE};
	return 0;
}

/* Doubling many could exceed the memory cap at once. */
static int widen(struct series_book *book)
{
	size_t more = book->capacity < SMALL ? book->capacity : book->capacity / WIDEN;
	size_t capacity = book->capacity + more + WIDEN;
	struct series *series;

	if (book->count < book->capacity)
		return 0;
	series = large__grow(book->series, book->count * sizeof(*series), capacity * sizeof(*series));
	if (!series)
		return -ENOMEM;
	book->series = series;
	book->capacity = capacity;
	return 0;
}

static int take_series(struct series_book *book, uint32_t job, uint32_t *id)
{
	*id = book->free_series;
	if (*id != SERIES_NONE) {
		book->free_series = book->series[*id].next;
		return 0;
	}
	if (job_series__full(book, job))
		return -ENOSPC;
	if (widen(book))
		return -ENOMEM;
	*id = (uint32_t)book->count++;
	book->series[*id] = (struct series){.job = SERIES_NONE};
	return 0;
}

static int find_workload(struct series_book *book, uint32_t job, const struct stg_state *state, const double *size,
			 uint32_t *id)
{
	uint32_t head = SERIES_NONE, last = SERIES_NONE;
	unsigned count = 0;
	int error;

	if (table__get(book->by_kind, job, state->kind, &head)) {
		for (uint32_t at = head; at != SERIES_NONE; at = book->workloads[at].next) {
			if (clusters__near(book->config, book->workloads[at].seed, size)) {
				*id = at;
				return 0;
			}
			last = at;
			count++;
		}
		if (count >= WORKLOADS_PER_KIND) {
			*id = last;
			return 0;
		}
	}
	error = take_workload(book, job, id);
	if (error)
		return error;
	if (last == SERIES_NONE && table__put(book->by_kind, job, state->kind, *id))
		return -ENOMEM;
	if (last != SERIES_NONE)
		book->workloads[last].next = *id;
	book->workloads[*id] = (struct workload){
	    .mixed = count + 1 == WORKLOADS_PER_KIND,
	    .job = job,
	    .kind = state->kind,
	    .common = state->common,
	    .class = state->about.class,
	    .series = SERIES_NONE,
	    .next = SERIES_NONE,
	    .head = head == SERIES_NONE ? *id : head,
	};
	memcpy(book->workloads[*id].seed, size, sizeof(book->workloads[*id].seed));
	return 0;
}

static int make_latest(struct series_book *book, uint64_t key, const double *size, uint32_t id)
{
	memcpy(book->series[id].size, size, sizeof(book->series[id].size));
	return table__put(book->by_key, key, SERIES_LATEST, id);
}

static bool is_of(const struct series_book *book, uint32_t id, struct series_of of, const double *size)
{
	const struct series *series = &book->series[id];

	return series->job != SERIES_NONE && series->thread == of.thread && series->state == of.state &&
	       !memcmp(series->size, size, sizeof(series->size));
}

static int find_series(struct series_book *book, struct series_of of, const double *size, uint32_t *id)
{
	const struct stg_thread *thread = stg__thread(book->stg, of.thread);
	const struct stg_state *state = stg__state(book->stg, of.state);
	uint64_t key = (uint64_t)of.thread << 32 | of.state;
	struct workload *workload;
	uint32_t workload_id, before = SERIES_NONE;
	int error;

	/* Mostly the series is that of last time: the workload of a size never changes. */
	if (table__get(book->by_key, key, SERIES_LATEST, id)) {
		if (is_of(book, *id, of, size))
			return 0;
		before = *id;
	}
	error = find_workload(book, thread->job, state, size, &workload_id);
	if (error)
		return error;
	if (table__get(book->by_key, key, workload_id, id))
		return make_latest(book, key, size, *id);
	error = take_series(book, thread->job, id);
	if (error)
		return error;
	if (job_series__add(book, thread->job, *id))
		return -ENOMEM;
	if (table__put(book->by_key, key, workload_id, *id)) {
		job_series__drop(book, thread->job);
		return -ENOMEM;
	}
	workload = &book->workloads[workload_id];
	book->series[*id] = (struct series){
	    .thread = of.thread,
	    .state = of.state,
	    .workload = workload_id,
	    .job = thread->job,
	    .row = thread->row,
	    .next = workload->series,
	    .class = state->about.class,
	    .usual_frequency = -1,
	};
	/* What is cold at first is the code, whatever its size: another size of the state does not warm up again. */
	if (before != SERIES_NONE && book->series[before].job != SERIES_NONE) {
		book->series[*id].members = book->series[before].members;
		book->series[*id].met_ns = book->series[before].met_ns;
	}
	workload->series = *id;
	return make_latest(book, key, size, *id);
}

/*
 * Bundles of one time come rank by rank, mostly in the order in which their histories began: the next numbers are
 * fetched, since with many ranks no history is still in a cache when it is met again.
 */
SERIES_FETCH void fetch_ahead(const struct series_book *book, uint32_t id)
{
	if (id + FAR_AHEAD < book->count) {
		const char *far = (const char *)&book->series[id + FAR_AHEAD], *near;

		__builtin_prefetch(far, 1);
		__builtin_prefetch(far + 64, 1);
		__builtin_prefetch(far + 128, 1);
		near = (const char *)book->series[id + NEAR_AHEAD].cpu.buckets;
		__builtin_prefetch(near, 1);
		__builtin_prefetch(near + 64, 1);
		__builtin_prefetch(near + 128, 1);
	}
}

/* Programs loop: the follower of a thread's last series most likely follows it again. */
static int follow(struct series_book *book, struct series_of of, const double *size, uint32_t *id)
{
	uint32_t *latest;
	int error;

	if (of.thread >= book->latest_capacity &&
	    grow(&book->latest, &book->latest_capacity, of.thread + 1, sizeof(*book->latest)))
		return -ENOMEM;
	latest = &book->latest[of.thread];
	if (*latest < book->count) {
		*id = book->series[*latest].follower;
		if (*id < book->count && is_of(book, *id, of, size)) {
			*latest = *id;
			return 0;
		}
	}
	error = find_series(book, of, size, id);
	if (error)
		return error;
	book->series[*latest].follower = *id;
	*latest = *id;
	return 0;
}

/* Sets the size of a fragment: the bytes of a call, or the measured magnitudes of a computation. */
static void set_size(const struct series_book *book, enum vapro_class class, const struct vapro_bundle *bundle,
		     double *size)
{
	for (int i = 0; i < VAPRO_MAGNITUDES; i++) {
		if (class == VAPRO_COMPUTATION ? book->source == VAPRO_BY_INSTRUCTIONS : i == VAPRO_BYTES)
			size[i] = (bundle->magnitude_min[i] + bundle->magnitude_max[i]) / 2;
		else
			size[i] = 0;
	}
}

/* Merges before clustering: one set of cells for all sizes and ranks, at the head of the kind. */
static int add_cluster(struct series_book *book, const struct series *series, const struct vapro_bundle *bundle,
		       const double *size, struct bundle_rec *rec)
{
	struct workload *head = &book->workloads[book->workloads[series->workload].head];

	rec->cell = BUNDLE_NO_CELL;
	if (book->source != VAPRO_BY_INSTRUCTIONS || series->class != VAPRO_COMPUTATION)
		return 0;
	if (!(cells__norm(size) > 0)) {
		rec->cell = BUNDLE_NO_WORKLOAD;
		return 0;
	}
	if (bundle->flags & VAPRO_BUNDLE_OPEN) {
		if (head->clusters)
			rec->cell = clusters__find(head->clusters, size);
		return 0;
	}
	head->dirty = true;
	if (!head->clusters)
		head->clusters = clusters__new(book->config);
	if (!head->clusters)
		return -ENOMEM;
	return clusters__add(head->clusters, bundle->magnitude_min, bundle->magnitude_max, bundle->n, bundle->sum_ns,
			     bundle->min_ns, &rec->cell);
}

static int add_history(struct series_book *book, struct series *series, const struct bundle_rec *rec, float least_ns)
{
	double ns = series__compared_ns(series->class, rec), blocked = bundle_rec__blocked(rec);

	series->dirty = true; /* also where no batch has it: its populous durations may be others */
	if (series->class == VAPRO_COMPUTATION && !series->net.n && blocked > SHARE_NEGLIGIBLE * rec->sum_ns &&
	    histogram__merge(&series->net, &series->cpu))
		return -ENOMEM;
	if (series->class == VAPRO_COMPUTATION && (series->net.n > 0 || blocked > SHARE_NEGLIGIBLE * rec->sum_ns) &&
	    histogram__add(&series->net, (ns + blocked) / rec->n, rec->n))
		return -ENOMEM;
	if (histogram__add(&series->cpu, ns / rec->n, rec->n))
		return -ENOMEM;
	if (series->class == VAPRO_COMMUNICATION && own_part__add(series, rec, least_ns))
		return -ENOMEM;
	if (series->class == VAPRO_COMPUTATION && bundle_rec__cpu_attributed(rec) <= SHARE_NEGLIGIBLE * rec->sum_ns)
		successive__add(&series->successive, bundle_rec__bin(rec), ns / rec->n, rec->n);
	if (series->class == VAPRO_COMPUTATION && book->source != VAPRO_BY_INSTRUCTIONS &&
	    groups__add(book, series, rec, ns))
		return -ENOMEM;
	/*
	 * Calls are merged whatever their durations, so their means lie closer together; computations
	 * are merged by bucket, and there the histogram itself decides.
	 */
	if (series->class != VAPRO_COMPUTATION && rec->n > 1 &&
	    rec->max_ns - least_ns > 2 * book->config->certify_width * rec->sum_ns / rec->n)
		series->wide_ns += ns;
	series->dirty = book->workloads[series->workload].dirty = true;
	return 0;
}

static bool take_factors(struct series_book *book, const double *factor, struct bundle_rec *rec)
{
	float *own;

	rec->factor = bundle_rec_no_factors;
	if (!factor)
		return true;
	own = pool__take(&book->factors);
	if (!own)
		return false;
	for (int i = 0; i < VAPRO_FACTORS; i++)
		own[i] = (float)factor[i];
	own[BUNDLE_USUAL_BLOCKED] = own[BUNDLE_USUAL_FREQUENCY] = 0;
	rec->factor = own;
	return true;
}

void series__drop(struct series_book *book, const struct bundle_rec *rec)
{
	if (rec->factor != bundle_rec_no_factors)
		pool__give(&book->factors, (float *)rec->factor);
}

static int add(struct series_book *book, struct series_of of, const struct vapro_bundle *bundle, enum vapro_class class,
	       struct bundle_rec *rec)
{
	double size[VAPRO_MAGNITUDES];
	struct series *series;
	bool early, warm_up;
	int error;

	set_size(book, class, bundle, size);
	error = follow(book, of, size, &rec->series);
	if (error)
		return error;
	fetch_ahead(book, rec->series);
	series = &book->series[rec->series];
	series->window = book->window;
	early = class == VAPRO_COMPUTATION && (uint64_t)series->members + bundle->n <= SERIES_WARM_UP;
	warm_up = early && series->met_ns + (double)bundle->sum_ns <= SERIES_WARM_UP_NS;
	rec->warm_up = warm_up;
	rec->young = early && !warm_up;
	error = add_cluster(book, series, bundle, size, rec);
	if (error || bundle->flags & VAPRO_BUNDLE_OPEN)
		return error;
	series->members += bundle->n;
	series->met_ns += (float)bundle->sum_ns;
	return add_history(book, series, rec, (float)bundle->min_ns);
}

int series__add(struct series_book *book, struct series_of of, const struct vapro_bundle *bundle, const double *factor,
		struct bundle_rec *rec)
{
	const struct stg_state *state = stg__state(book->stg, of.state);
	enum vapro_class class = state->about.class;
	int error;

	*rec = (struct bundle_rec){
	    .start_ns = bundle->start_ns,
	    .end_ns = bundle->end_ns,
	    .sum_ns = (double)bundle->sum_ns,
	    .n = bundle->n,
	    .flags = bundle->flags,
	    .max_ns = (float)bundle->max_ns,
	    .is_new = 1,
	    .ratio = 1,
	    .waits = class == VAPRO_COMMUNICATION && state->group == STG_PROCESS,
	};
	if (!take_factors(book, factor, rec))
		return -ENOMEM;
	error = add(book, of, bundle, class, rec);
	if (error)
		series__drop(book, rec);
	else
		rec->ratio = groups__ratio(&book->series[rec->series], rec);
	return error;
}

int series__unseen(struct series_book *book, uint32_t thread, uint32_t *id)
{
	const double size[VAPRO_MAGNITUDES] = {0};
	int error = find_series(book, (struct series_of){thread, STG_UNSEEN}, size, id);

	if (!error)
		book->series[*id].window = book->window;
	return error;
}

struct survivors {
	const struct series_book *book;
	uint32_t job; /* job to drop */
};

static bool keeps_series(const void *ctx, uint32_t value)
{
	const struct survivors *survivors = ctx;

	return survivors->book->series[value].job != survivors->job;
}

static bool keeps_workload(const void *ctx, uint32_t value)
{
	const struct survivors *survivors = ctx;

	return survivors->book->workloads[value].job != survivors->job;
}

void series__release(struct series_book *book, uint32_t id)
{
	clear(&book->series[id]);
	job_series__drop(book, book->series[id].job);
	book->series[id] = (struct series){.job = SERIES_NONE, .next = book->free_series};
	book->free_series = id;
}

void series__release_workload(struct series_book *book, uint32_t id)
{
	clusters__free(book->workloads[id].clusters);
	book->workloads[id] =
	    (struct workload){.job = SERIES_NONE, .series = SERIES_NONE, .next = book->free_workloads};
	book->free_workloads = id;
}

int series__forget(struct series_book *book, uint32_t job)
{
	struct survivors survivors = {.book = book, .job = job};
	struct series_ids ids = job_series__ids(book, job);

	if (table__prune(book->by_key, keeps_series, &survivors) ||
	    table__prune(book->by_kind, keeps_workload, &survivors))
		return -ENOMEM;
	for (size_t i = 0; i < ids.count; i++)
		series__release(book, ids.ids[i]);
	job_series__forget(book, job);
	for (size_t i = 0; i < book->workload_count; i++) {
		if (book->workloads[i].job == job)
			series__release_workload(book, (uint32_t)i);
	}
	return 0;
}

size_t series__bytes(const struct series_book *book)
{
	size_t bytes = book->capacity * sizeof(*book->series) + book->workload_capacity * sizeof(*book->workloads) +
		       book->latest_capacity * sizeof(*book->latest) + table__bytes(book->by_key) +
		       table__bytes(book->by_kind) + job_series__bytes(book);

	for (size_t i = 0; i < book->count; i++)
		bytes += (book->series[i].cpu.capacity + book->series[i].net.capacity + book->series[i].least.capacity +
			  book->series[i].stretch.capacity) *
			     sizeof(struct histogram_bucket) +
			 (book->series[i].batches.capacity + book->series[i].batches_live.capacity) *
			     sizeof(struct batch_bucket) +
			 variation__bytes(book->series[i].variation);
	for (size_t i = 0; i < book->workload_count; i++)
		bytes += book->workloads[i].clusters ? clusters__bytes(book->workloads[i].clusters) : 0;
	return bytes;
}
