/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/spatial.h"

#include "base/grow.h"
#include "base/table.h"
#include "model/job_series.h"
#include "model/judgement.h"

#include <math.h>

#define DRIFT_WINDOWS 3	  /* windows in a row that a drift needs */
#define DRIFT_STEP 1.01	  /* least rise from window to window, above the jitter of a window's mean */
#define DRIFT_TOTAL 1.05  /* least rise in all */
#define DRIFT_STEADY 0.7  /* share of the whole rise within one window: a step */
#define WITNESS_SHARE 0.2 /* share of the greatest loss of a state: another state is slow, too */

void spatial__clear(struct spatial *spatial)
{
	free(spatial->drifts);
	free(spatial->rares);
	free(spatial->rare_ranks);
	*spatial = (struct spatial){0};
}

static bool is_counted(const struct series_book *book, enum vapro_class class)
{
	return book->source == VAPRO_BY_INSTRUCTIONS && class == VAPRO_COMPUTATION;
}

/* The mean time of a fragment in a half of a window, ns; of counted work, in units of its reference. 0: not known. */
static double half_mean(const struct series_book *book, const struct series *series, int half)
{
	if (series->half_n[half] < LEAST_MEMBERS)
		return 0;
	if (!is_counted(book, series->class))
		return (double)series->half_net_ns[half] / series->half_n[half];
	return series->half_reference_ns[half] > 0 ? series->half_counted_ns[half] / series->half_reference_ns[half]
						   : 0;
}

void spatial__window(struct series_book *book, uint32_t job)
{
	struct series_ids ids = job_series__ids(book, job);

	for (size_t i = 0; i < ids.count; i++) {
		struct series *series = &book->series[ids.ids[i]];
		double means[2] = {half_mean(book, series, 0), half_mean(book, series, 1)};

		if (!(means[0] > 0) || !(means[1] > 0))
			continue;
		if (series->mean_count == SERIES_WINDOWS) {
			memmove(series->halves, series->halves + 2, 2 * (SERIES_WINDOWS - 1) * sizeof(*series->halves));
			series->mean_count--;
		}
		for (int half = 0; half < 2; half++)
			series->halves[2 * series->mean_count + half] = means[half];
		series->mean_count++;
	}
}

static double window_mean(const struct series *series, unsigned window)
{
	return (series->halves[2 * window] + series->halves[2 * window + 1]) / 2;
}

/* Counts windows of a steady rise of the mean, up to now. */
static unsigned rising(const struct series *series)
{
	unsigned windows = series->mean_count ? 1 : 0;

	while (windows && windows < series->mean_count &&
	       window_mean(series, series->mean_count - windows) >=
		   DRIFT_STEP * window_mean(series, series->mean_count - windows - 1))
		windows++;
	return windows;
}

/* A step from one level to another, which at most two neighbouring pairs of halves share, is no drift. */
static bool is_step(const struct series *series, unsigned windows)
{
	const double *first = &series->halves[2 * (series->mean_count - windows)];
	double total = first[2 * windows - 1] - first[0];

	for (unsigned i = 0; i + 2 < 2 * windows; i++) {
		if (first[i + 2] - first[i] > DRIFT_STEADY * total)
			return true;
	}
	return false;
}

static int drift(struct spatial *spatial, const struct series_book *book, const struct stg *stg,
		 const struct workload *workload)
{
	const struct series *any = NULL;
	unsigned windows = SERIES_WINDOWS;
	double ratio = 0;
	size_t count = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		unsigned here = rising(series);

		if (series->window_n < LEAST_MEMBERS)
			continue;
		/* A rise that one rank does not share is no drift. */
		if (here < DRIFT_WINDOWS || (!series->certified && !is_counted(book, series->class)) ||
		    is_step(series, here))
			return 0;
		windows = here < windows ? here : windows;
		any = series;
		count++;
	}
	if (!any || (count < 2 && stg__job(stg, workload->job)->row_count > 1))
		return 0;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (series->window_n >= LEAST_MEMBERS)
			ratio += window_mean(series, series->mean_count - 1) /
				 window_mean(series, series->mean_count - windows) / (double)count;
	}
	if (ratio < DRIFT_TOTAL)
		return 0;
	if (grow(&spatial->drifts, &spatial->drift_capacity, spatial->drift_count + 1, sizeof(*spatial->drifts)))
		return -ENOMEM;
	spatial->drifts[spatial->drift_count++] =
	    (struct result_drift){.state = &stg__state(stg, any->state)->about, .ratio = ratio, .windows = windows};
	return 0;
}

static bool is_rare(const struct series_book *book, const struct series *series)
{
	/* What a call takes is mostly waiting. With clusters, clusters are rare, not series. */
	return series->window_ns > 0 && series->cpu.n > 0 && series->cpu.n < (double)book->config->rare_members &&
	       series->class != VAPRO_COMMUNICATION &&
	       (book->source != VAPRO_BY_INSTRUCTIONS || series->class != VAPRO_COMPUTATION);
}

/* A rare series, in the order of states and ranks. */
struct rare_rank {
	uint32_t state, members;
	int32_t rank;
	double seconds;
};

static int compare_rare_ranks(const void *a, const void *b)
{
	const struct rare_rank *left = a, *right = b;

	if (left->state != right->state)
		return left->state < right->state ? -1 : 1;
	return (left->rank > right->rank) - (left->rank < right->rank);
}

/* Adds the ranks [from, to), which are all of one state. */
static int add_rare_state(struct spatial *spatial, const struct series_book *book, const struct stg *stg,
			  const struct rare_rank *from, const struct rare_rank *to, int32_t *ranks)
{
	struct result_rare sum = {.state = &stg__state(stg, from->state)->about, .ranks = ranks, .norm = NAN};
	double most = 0;

	for (const struct rare_rank *at = from; at < to; at++) {
		sum.rank = at->seconds > most ? at->rank : sum.rank;
		most = fmax(most, at->seconds);
		sum.members += at->members;
		sum.seconds += at->seconds;
		if (!sum.rank_count || ranks[sum.rank_count - 1] != at->rank)
			ranks[sum.rank_count++] = at->rank;
	}
	if (most < book->config->min_lost_s)
		return 0;
	if (grow(&spatial->rares, &spatial->rare_capacity, spatial->rare_count + 1, sizeof(*spatial->rares)))
		return -ENOMEM;
	spatial->rares[spatial->rare_count++] = sum;
	return 0;
}

static struct rare_rank rare_rank_of(const struct series *series, const struct stg_job *job)
{
	return (struct rare_rank){series->state, (uint32_t)series->cpu.n, job->rows[series->row].rank,
				  series->cpu.sum_ns / 1e9};
}

/* Lists rare states once, whatever the number of their ranks. */
static int rare_states(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job)
{
	struct series_ids ids = job_series__ids(book, job);
	struct rare_rank *found;
	size_t count = 0;
	int error = 0;

	for (size_t i = 0; i < ids.count; i++)
		count += is_rare(book, &book->series[ids.ids[i]]);
	if (!count)
		return 0;
	found = calloc(count, sizeof(*found));
	spatial->rare_ranks = calloc(count, sizeof(*spatial->rare_ranks));
	if (!found || !spatial->rare_ranks) {
		free(found);
		return -ENOMEM;
	}
	count = 0;
	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &book->series[ids.ids[i]];

		if (is_rare(book, series))
			found[count++] = rare_rank_of(series, stg__job(stg, job));
	}
	qsort(found, count, sizeof(*found), compare_rare_ranks);
	for (size_t from = 0, to; !error && from < count; from = to) {
		for (to = from + 1; to < count && found[to].state == found[from].state;)
			to++;
		error = add_rare_state(spatial, book, stg, &found[from], &found[to], &spatial->rare_ranks[from]);
	}
	free(found);
	return error;
}

/* Time that one row spent in one rare cluster. */
struct met {
	const struct cluster *cluster;
	uint32_t head, state, row;
	double ns;
};

static int compare_met(const void *a, const void *b)
{
	const struct met *left = a, *right = b;

	if (left->head != right->head)
		return left->head < right->head ? -1 : 1;
	if (left->cluster->id != right->cluster->id)
		return left->cluster->id < right->cluster->id ? -1 : 1;
	if (left->ns != right->ns)
		return left->ns > right->ns ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static double part_in(const struct bundle_rec *rec, uint64_t begin, uint64_t end)
{
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	double share = 0;

	if (first >= begin && last < end)
		return 1;
	for (uint64_t bin = first < begin ? begin : first; bin <= last && bin < end; bin++)
		share += bundle_rec__share(rec, bin);
	return share;
}

struct meetings {
	struct met *items;
	size_t count, capacity;
	struct table *by_row;
};

static int meet(struct meetings *meetings, const struct series_book *book, const struct bundle_rec *rec, double ns)
{
	const struct series *series = &book->series[rec->series];
	uint32_t head = book->workloads[series->workload].head, at;
	const struct cluster *cluster = clusters__of(book->workloads[head].clusters, rec->cell);
	uint64_t key = (uint64_t)head << 32 | cluster->id;

	if (!table__get(meetings->by_row, key, series->row, &at)) {
		at = (uint32_t)meetings->count;
		if (grow(&meetings->items, &meetings->capacity, meetings->count + 1, sizeof(*meetings->items)) ||
		    table__put(meetings->by_row, key, series->row, at))
			return -ENOMEM;
		meetings->items[meetings->count++] = (struct met){cluster, head, series->state, series->row, 0};
	}
	meetings->items[at].ns += ns;
	return 0;
}

/* Adds each cluster once, for its row of most time. */
static int count_rare(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job,
		      struct meetings *meetings)
{
	if (meetings->count)
		qsort(meetings->items, meetings->count, sizeof(*meetings->items), compare_met);
	for (size_t i = 0; i < meetings->count; i++) {
		const struct met *met = &meetings->items[i];

		if ((i && met[-1].head == met->head && met[-1].cluster == met->cluster) ||
		    (double)met->cluster->sum_ns < book->config->min_lost_s * 1e9)
			continue;
		if (grow(&spatial->rares, &spatial->rare_capacity, spatial->rare_count + 1, sizeof(*spatial->rares)))
			return -ENOMEM;
		spatial->rares[spatial->rare_count++] = (struct result_rare){
		    .state = &stg__state(stg, met->state)->about,
		    .rank = stg__job(stg, job)->rows[met->row].rank,
		    .members = (uint32_t)met->cluster->members,
		    .seconds = (double)met->cluster->sum_ns / 1e9,
		    .cluster = met->cluster->id,
		    .norm = met->cluster->norm,
		};
	}
	return 0;
}

static void sum_clusters(struct result_clusters *sum, const struct series_book *book, uint32_t job)
{
	for (size_t i = 0; i < book->workload_count; i++) {
		const struct workload *workload = &book->workloads[i];
		const struct cluster_certificate *certificate;
		const struct cluster *clusters;
		size_t count;

		if (workload->job != job || !workload->clusters)
			continue;
		clusters = clusters__all(workload->clusters, &count);
		certificate = clusters__certificate(workload->clusters);
		sum->states++;
		sum->clusters += (uint32_t)count;
		for (size_t k = 0; k < count; k++) {
			const struct cluster *at = &clusters[k];

			if (at->members < book->config->rare_members)
				sum->rare++;
			else if (at->least_instructions > 0)
				sum->work_ratio = fmax(sum->work_ratio, at->most_instructions / at->least_instructions);
		}
		sum->approximate += !certificate->exact;
		sum->coarser += certificate->widened > 0;
		sum->slack = fmax(sum->slack, certificate->slack);
	}
}

static int compare_rares(const void *a, const void *b)
{
	const struct result_rare *left = a, *right = b;

	if (left->seconds != right->seconds)
		return left->seconds > right->seconds ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	if (left->state->id != right->state->id)
		return left->state->id < right->state->id ? -1 : 1;
	return (left->cluster > right->cluster) - (left->cluster < right->cluster);
}

int spatial__find(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job)
{
	spatial__clear(spatial);
	for (size_t i = 0; i < book->workload_count; i++) {
		const struct workload *workload = &book->workloads[i];

		if (workload->job != job || workload->class != VAPRO_COMPUTATION)
			continue;
		if (drift(spatial, book, stg, workload))
			return -ENOMEM;
	}
	if (rare_states(spatial, book, stg, job))
		return -ENOMEM;
	if (spatial->rare_count)
		qsort(spatial->rares, spatial->rare_count, sizeof(*spatial->rares), compare_rares);
	return 0;
}

int spatial__clusters(struct spatial *spatial, const struct series_book *book, const struct stg *stg, uint32_t job,
		      const struct bundle_rec *rec, size_t count, uint64_t begin, uint64_t end)
{
	struct meetings meetings = {.by_row = table__new()};
	int error = meetings.by_row ? 0 : -ENOMEM;

	/* without clusters no bundle is rare */
	for (size_t i = 0; !error && i < count && book->source == VAPRO_BY_INSTRUCTIONS; i++) {
		double ns = rec[i].reason == VAPRO_RARE ? rec[i].sum_ns * part_in(&rec[i], begin, end) : 0;

		if (ns > 0)
			error = meet(&meetings, book, &rec[i], ns);
	}
	if (!error)
		error = count_rare(spatial, book, stg, job, &meetings);
	if (spatial->rare_count)
		qsort(spatial->rares, spatial->rare_count, sizeof(*spatial->rares), compare_rares);
	sum_clusters(&spatial->clusters, book, job);
	free(meetings.items);
	table__free(meetings.by_row);
	return error;
}

int spatial__alike(struct spatial *spatial, const struct variance_book *variances, const struct series_book *book,
		   const struct stg *stg, uint64_t stride)
{
	const struct variance *worst = NULL;

	/* One cause may be several variances. */
	for (size_t i = 0; i < variances->count; i++) {
		const struct variance *variance = &variances->variances[i];

		if (variance->alike && variance->matched &&
		    (!worst || variance->total.lost[VAPRO_COMPUTATION] > worst->total.lost[VAPRO_COMPUTATION]))
			worst = variance;
	}
	for (size_t i = 0; i < variances->count; i++) {
		const struct variance *variance = &variances->variances[i];
		const struct tally *tally = &variance->total;
		const struct tally_series *most = NULL;
		bool several = false;

		if (variance != worst || variance->end - variance->begin < stride)
			continue;
		for (size_t k = 0; k < tally->series_count; k++) {
			if (!most || tally->series[k].lost > most->lost)
				most = &tally->series[k];
		}
		/* One state that changes on all ranks is a phase of the program. */
		for (size_t k = 0; most && k < tally->series_count; k++)
			several |=
			    book->series[tally->series[k].series].workload != book->series[most->series].workload &&
			    tally->series[k].lost >= WITNESS_SHARE * most->lost;
		if (!several || !(tally->ref[VAPRO_COMPUTATION] > 0))
			continue;
		if (grow(&spatial->drifts, &spatial->drift_capacity, spatial->drift_count + 1,
			 sizeof(*spatial->drifts)))
			return -ENOMEM;
		spatial->drifts[spatial->drift_count++] = (struct result_drift){
		    .state = &stg__state(stg, book->series[most->series].state)->about,
		    .ratio = tally->dur[VAPRO_COMPUTATION] / tally->ref[VAPRO_COMPUTATION],
		    .windows = (uint32_t)((variance->end - variance->begin) / stride),
		};
	}
	return 0;
}
