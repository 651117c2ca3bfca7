/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/coverage.h"

#include "base/grow.h"
#include "model/job_series.h"
#include "model/judgement.h"

#include <math.h>
#include <stdlib.h>

#define WORTH_TELLING 0.005 /* least share of the time of a gap with a reason of its own */

#define IDLE_SHARE 0.95 /* of a computation, asleep: from there on it is idle */

struct gap {
	uint32_t state;
	double ns[VAPRO_UNCOVERED_REASONS];
};

void coverage__clear(struct coverage *coverage)
{
	free(coverage->uncovered);
	free(coverage->rows);
	free(coverage->parted);
	lateness__clear(&coverage->lateness);
	*coverage = (struct coverage){0};
}

int coverage__begin(struct coverage *coverage, const struct stg *stg, uint32_t job, uint64_t begin_ns, uint64_t end_ns)
{
	struct lateness lateness = coverage->lateness;

	coverage->lateness = (struct lateness){0};
	coverage__clear(coverage);
	coverage->lateness = lateness;
	coverage->row_count = stg__job(stg, job)->row_count;
	coverage->rows = calloc(coverage->row_count ? coverage->row_count : 1, sizeof(*coverage->rows));
	if (!coverage->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < stg__threads(stg); i++) {
		const struct stg_thread *thread = stg__thread(stg, i);
		uint64_t from = thread->from_ns > begin_ns ? thread->from_ns : begin_ns;
		uint64_t to = thread->to_ns && thread->to_ns < end_ns ? thread->to_ns : end_ns;

		/* The main thread counts in any case: a rank that never calls anything is not covered. */
		if (thread->job != job || !thread->from_ns || to <= from)
			continue;
		if (!thread->about.thread) {
			coverage->wall_ns += (double)(to - from);
			coverage->rows[thread->row].first_ns += (double)(to - from);
		} else if (thread->used) {
			coverage->rows[thread->row].wall_ns += (double)(to - from);
		}
	}
	return lateness__begin(&coverage->lateness, stg__job(stg, job)->row_count, begin_ns / VAPRO_BIN_NS,
			       end_ns / VAPRO_BIN_NS);
}

/* Whether a call's waiting is separated: its state is known, and its durations spread. */
static bool is_parted(const struct series *series, const struct bundle_rec *rec)
{
	return rec->reason == VAPRO_SPREAD && rec->covered && !rec->certified && !rec->no_reference &&
	       series->class == VAPRO_COMMUNICATION;
}

/* The parts of the durations of calls. */
struct call_parts {
	double own;	   /* own part of calls, where it is steady */
	double attributed; /* off the CPU, as the kernel attributes */
	double waited;	   /* the rest, beyond their own part */
};

static struct call_parts parts_of(const struct series *series, const struct bundle_rec *rec)
{
	struct call_parts parts = {.attributed = fmin(rec->sum_ns, bundle_rec__cpu_attributed(rec))};
	double rest = rec->sum_ns - parts.attributed, part = fmin(rest, (double)series->part_ns * rec->n);

	parts.own = series->part_steady ? part : 0;
	parts.waited = rest - part;
	return parts;
}

/* Enters what of a bundle lies in a bin; one: all of it does. */
static void enter_cell(struct coverage *coverage, const struct series *series, const struct bundle_rec *rec,
		       double known, double waited, uint64_t bin, bool one)
{
	struct lateness_cell *cell = lateness__cell(&coverage->lateness, series->row, bin);
	double share = one ? 1 : bundle_rec__share(rec, bin);

	if (series->class == VAPRO_COMMUNICATION) {
		cell->called += (float)(rec->sum_ns * share);
		cell->waited += (float)(waited * share);
	} else {
		cell->known += (float)(known * share);
	}
}

/* Whether a further thread of a rank slept through what is between two of its calls. */
static bool is_idle(const struct coverage *coverage, const struct series *series, const struct bundle_rec *rec)
{
	return series->class == VAPRO_COMPUTATION && coverage->rows[series->row].wall_ns > 0 &&
	       bundle_rec__blocked(rec) >= IDLE_SHARE * rec->sum_ns;
}

/* The time of a bundle before a bin. */
static double before(const struct bundle_rec *rec, uint64_t begin)
{
	uint64_t begin_ns = begin * VAPRO_BIN_NS;

	if (bundle_rec__bin(rec) < begin)
		return rec->sum_ns;
	return rec->n == 1 && rec->start_ns < begin_ns ? (double)(begin_ns - rec->start_ns) : 0;
}

/* Remembers a bundle of calls for coverage__explain. Returns 0 or -ENOMEM. */
static int remember_parted(struct coverage *coverage, const struct bundle_rec *rec)
{
	if (grow_untouched(&coverage->parted, &coverage->parted_capacity, coverage->parted_count + 1,
			   sizeof(*coverage->parted)))
		return -ENOMEM;
	coverage->parted[coverage->parted_count++] = rec;
	return 0;
}

/* Adds a new bundle to a half of the window. */
static void add_half(struct series *series, const struct bundle_rec *rec, bool half)
{
	double net = series__compared_ns(series->class, rec);

	series->window_n += rec->n;
	series->half_n[half] += (float)bundle_rec__units(rec);
	series->half_net_ns[half] += (float)net;
	if (rec->covered && !rec->provisional && rec->cell != BUNDLE_NO_CELL) {
		series->half_counted_ns[half] += (float)net;
		series->half_reference_ns[half] += rec->reference * (float)rec->n;
	}
}

int coverage__add(struct coverage *coverage, struct series *series, const struct bundle_rec *rec, uint64_t begin,
		  uint64_t end)
{
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	bool open = rec->flags & VAPRO_BUNDLE_OPEN, parted = is_parted(series, rec);
	double share = 0, ns, known = rec->certified ? rec->sum_ns : 0, waited = 0;

	if (first >= begin && last < end) {
		share = 1;
	} else {
		/* A window that ended while a computation went on could not count it. */
		if (rec->is_new && rec->certified && !open && series->class == VAPRO_COMPUTATION) {
			double early = before(rec, begin);

			coverage->before_ns += early;
			coverage->rows[series->row].before_ns += early;
		}
		for (uint64_t bin = first < begin ? begin : first; bin <= last && bin < end; bin++)
			share += bundle_rec__share(rec, bin);
	}
	if (share <= 0)
		return 0;
	ns = rec->sum_ns * share;
	if (is_idle(coverage, series, rec)) {
		coverage->rows[series->row].wall_ns = fmax(0, coverage->rows[series->row].wall_ns - ns);
		return 0;
	}
	coverage->seen_ns += ns;
	if (!rec->attributed_only)
		coverage->rows[series->row].seen_ns += ns;
	coverage->fragments += rec->n * share;
	series->window_ns += ns;
	if (parted) {
		struct call_parts parts = parts_of(series, rec);

		known = parts.own;
		waited = parts.waited;
	}
	coverage->covered_ns[series->class] += rec->certified || parted ? known * share : 0;
	if (!rec->certified)
		series->window_uncovered_ns[rec->reason] += ns - (parted ? known * share : 0);
	for (uint64_t bin = first < begin ? begin : first; bin <= last && bin < end; bin++)
		enter_cell(coverage, series, rec, known, waited, bin, first == last);
	/* An open fragment that is not late yet, or coverage by attributed time alone, shows no performance. */
	if (rec->covered && !rec->attributed_only && (!open || rec->sum_ns > rec->reference)) {
		coverage->dur_ns[series->class] += ns;
		coverage->ref_ns[series->class] += (double)rec->reference * rec->n * share;
		if (series->class == VAPRO_COMPUTATION)
			coverage->attributed_ns += bundle_rec__cpu_attributed(rec) * share;
	}
	if (!open && rec->is_new)
		add_half(series, rec, last * 2 >= begin + end);
	return parted ? remember_parted(coverage, rec) : 0;
}

static void explain(struct coverage *coverage, struct series *series, const struct stg *stg,
		    const struct waiting *waiting, const struct bundle_rec *rec)
{
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	struct lateness *lateness = &coverage->lateness;
	struct call_parts parts = parts_of(series, rec);
	double explained = 0;

	for (uint64_t bin = first < lateness->begin ? lateness->begin : first; bin <= last && bin < lateness->end;
	     bin++) {
		double known,
		    share = lateness__explained(lateness, waiting, stg__job(stg, series->job),
						stg__state(stg, series->state)->group, series->row, bin, &known);

		explained += bundle_rec__share(rec, bin) * (share * parts.waited + known * parts.attributed);
	}
	coverage->covered_ns[VAPRO_COMMUNICATION] += explained;
	series->window_uncovered_ns[VAPRO_SPREAD] -= explained;
}

void coverage__explain(struct coverage *coverage, struct series_book *book, const struct waiting *waiting)
{
	for (size_t i = 0; i < coverage->parted_count; i++)
		explain(coverage, &book->series[coverage->parted[i]->series], book->stg, waiting, coverage->parted[i]);
}

/* Whether the further threads of a row count. */
static bool counts(const struct coverage_row *row)
{
	return row->seen_ns >= SHARE_NEGLIGIBLE * row->wall_ns;
}

void coverage__count_threads(struct coverage *coverage)
{
	for (size_t i = 0; i < coverage->row_count; i++)
		if (counts(&coverage->rows[i]))
			coverage->wall_ns += coverage->rows[i].wall_ns;
}

double coverage__row_wall(const struct coverage *coverage, size_t row)
{
	const struct coverage_row *at = &coverage->rows[row];

	return at->first_ns + (counts(at) ? at->wall_ns : 0);
}

static int compare_gaps(const void *a, const void *b)
{
	const struct gap *left = a, *right = b;

	return (left->state > right->state) - (left->state < right->state);
}

static int compare_uncovered(const void *a, const void *b)
{
	const struct result_uncovered *left = a, *right = b;

	if (left->share != right->share)
		return left->share > right->share ? -1 : 1;
	return (left->reason > right->reason) - (left->reason < right->reason);
}

static int add_gap(struct coverage *coverage, const struct vapro_state *state, double ns,
		   enum vapro_uncovered_reason reason)
{
	if (coverage->wall_ns <= 0 || ns < WORTH_TELLING * coverage->wall_ns)
		return 0;
	if (grow(&coverage->uncovered, &coverage->uncovered_capacity, coverage->uncovered_count + 1,
		 sizeof(*coverage->uncovered)))
		return -ENOMEM;
	coverage->uncovered[coverage->uncovered_count++] =
	    (struct result_uncovered){.state = state, .share = ns / coverage->wall_ns, .reason = reason};
	return 0;
}

static int list_gaps(struct coverage *coverage, const struct coverage_facts *facts)
{
	double gap = fmax(0, coverage->wall_ns - coverage->seen_ns);
	double mean = coverage->fragments > 0 ? coverage->seen_ns / coverage->fragments : 0;
	double governed = 0, lost = 0, shed = fmin(gap, facts->shed_ns);

	gap -= shed;
	if (facts->wall_ns > 0)
		governed = facts->governed_ns / facts->wall_ns * coverage->wall_ns;
	governed += facts->thinned_ns + ((double)facts->lost[VAPRO_LOST_GOVERNED] - facts->thinned) * mean;
	governed = fmin(gap, governed);
	gap -= governed;
	/* Truncated handles, unread arguments, approximations, unmatched calls, counters, blocks and waits lose no
	 * time. */
	for (int i = 0; i < VAPRO_LOSSES; i++) {
		if (i != VAPRO_LOST_ARGUMENT && i != VAPRO_LOST_TRUNCATED && i != VAPRO_LOST_APPROXIMATED &&
		    i != VAPRO_LOST_UNMATCHED && i != VAPRO_LOST_COUNTER && i != VAPRO_LOST_GOVERNED &&
		    i != VAPRO_LOST_PUBLISHED && i != VAPRO_LOST_INTERFERENCE)
			lost += (double)facts->lost[i] * mean;
	}
	lost = fmin(gap, lost);
	gap -= lost;
	if (add_gap(coverage, NULL, shed, VAPRO_SHED) || add_gap(coverage, NULL, governed, VAPRO_GOVERNED) ||
	    add_gap(coverage, NULL, lost, VAPRO_LOST) || add_gap(coverage, NULL, gap, VAPRO_NOT_SEEN))
		return -ENOMEM;
	return 0;
}

int coverage__end(struct coverage *coverage, const struct series_book *book, uint32_t job,
		  const struct coverage_facts *facts)
{
	struct gap *gaps = NULL;
	struct series_ids ids = job_series__ids(book, job);
	size_t count = 0, capacity = 0;
	int error = -ENOMEM;

	for (size_t i = 0; i < ids.count; i++) {
		const struct series *series = &book->series[ids.ids[i]];

		if (series->window_ns <= 0)
			continue;
		if (grow(&gaps, &capacity, count + 1, sizeof(*gaps)))
			goto cleanup;
		gaps[count].state = series->state;
		memcpy(gaps[count].ns, series->window_uncovered_ns, sizeof(gaps[count].ns));
		count++;
	}
	if (count)
		qsort(gaps, count, sizeof(*gaps), compare_gaps);
	for (size_t i = 0, next; i < count; i = next) {
		double sum = 0;
		int most = VAPRO_FEW_FRAGMENTS;

		for (next = i + 1; next < count && gaps[next].state == gaps[i].state; next++) {
			for (int reason = 0; reason < VAPRO_UNCOVERED_REASONS; reason++)
				gaps[i].ns[reason] += gaps[next].ns[reason];
		}
		for (int reason = 0; reason < VAPRO_UNCOVERED_REASONS; reason++) {
			sum += gaps[i].ns[reason];
			if (gaps[i].ns[reason] > gaps[i].ns[most])
				most = reason;
		}
		if (add_gap(coverage, &stg__state(book->stg, gaps[i].state)->about, sum, most))
			goto cleanup;
	}
	if (list_gaps(coverage, facts))
		goto cleanup;
	if (coverage->uncovered_count)
		qsort(coverage->uncovered, coverage->uncovered_count, sizeof(*coverage->uncovered), compare_uncovered);
	error = 0;
cleanup:
	free(gaps);
	return error;
}
