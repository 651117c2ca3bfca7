// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which fragments were stalls, and how long others waited for them. A bundle counts once, before it leaves the view:
 * its reference is known best then, and so is what of a call was waiting for late peers.
 */
#include "analysis/window_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What all rows lost themselves, and waited for late peers, in a bin. */
struct bin_waits {
	double own_ns, late_ns;
};

struct adding {
	struct analysis_context *context;
	struct analysis_job *job;
	size_t rows;
	uint64_t until;		 /* first bin that does not count yet */
	struct bin_waits *waits; /* of the bins of the map, once there is a stall */
};

bool analysis__job_over(const struct stg_job *about, const struct analysis_span *span)
{
	if (span->last)
		return true;
	for (size_t row = 0; row < about->row_count; row++) {
		const struct stg_row *at = &about->rows[row];

		if (!at->to_ns || at->to_ns > span->end_ns)
			return false;
	}
	return about->row_count > 0;
}

/* Whether a bundle is judged by the usual duration of its state, and is to be counted now. */
static bool counts(const struct adding *adding, const struct bundle_rec *rec)
{
	uint64_t bin = bundle_rec__bin(rec);

	return rec->covered && (rec->n == 1 || rec->flags & VAPRO_BUNDLE_ABNORMAL) && !rec->attributed_only &&
	       !rec->no_reference && bin < adding->until && (bin >= adding->job->stalls.until || rec->is_new);
}

static double lost_in(const struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class)
{
	struct cell cell = heatmap__cell(map, row, bin, class);

	return fmax(0, cell__lost(&cell));
}

/* Sums what rows lost and waited, by bin. Returns 0 or -ENOMEM. */
static int sum_waits(struct adding *adding)
{
	const struct heatmap *map = &adding->job->map;

	adding->waits = calloc((size_t)(map->end - map->begin) + 1, sizeof(*adding->waits));
	if (!adding->waits)
		return -ENOMEM;
	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		struct bin_waits *at = &adding->waits[bin - map->begin];

		for (uint32_t row = 0; row < adding->rows; row++) {
			at->own_ns += lost_in(map, row, bin, VAPRO_COMPUTATION) + lost_in(map, row, bin, VAPRO_IO) +
				      heatmap__wait(map, HEATMAP_PATH, row, bin);
			at->late_ns += heatmap__wait(map, HEATMAP_LATE, row, bin);
		}
	}
	return 0;
}

/*
 * How long others waited for a stall: its part of what all ranks lost, of what all ranks waited for late ones, in its
 * bins and the one behind; for each other row at most as long as it.
 */
static int find_wait(struct adding *adding, struct stall_bundle *stall)
{
	const struct heatmap *map = &adding->job->map;
	uint64_t from = stall->start_ns / VAPRO_BIN_NS, to = (stall->end_ns - 1) / VAPRO_BIN_NS + 2;
	double own = 0, late = 0;

	if (!adding->waits && sum_waits(adding))
		return -ENOMEM;
	for (uint64_t bin = from > map->begin ? from : map->begin; bin < to && bin < map->end; bin++) {
		own += adding->waits[bin - map->begin].own_ns;
		late += adding->waits[bin - map->begin].late_ns;
	}
	stall->waited_ns =
	    fmin(late * fmin(1, stall->ns / fmax(own, stall->ns)), stall->ns * (double)(adding->rows - 1));
	return 0;
}

/* Mean time from one fragment of a history's state to the next, on its thread; 0: not known. */
static double gap_of(const struct adding *adding, const struct bundle_rec *rec, const struct series *series)
{
	uint64_t from = stg__thread(adding->context->stg, series->thread)->from_ns;

	return from && rec->end_ns > from && series->members ? (double)(rec->end_ns - from) / series->members : 0;
}

/* Adds what the fragments of a bundle take beyond the usual duration of their state, and no cause that the kernel
 * states. */
static int add(struct adding *adding, const struct bundle_rec *rec, const struct series *series, double late_ns,
	       bool may_wait)
{
	double usual = series->duration_ns * rec->ratio + series->asleep_ns, n = rec->n;
	double net = rec->sum_ns - bundle_rec__cpu_attributed(rec) - bundle_rec__slowed(rec) - late_ns;
	struct stall_bundle stall = {.row = series->row,
				     .state = series->state,
				     .class = series->class,
				     .n = rec->n,
				     .ns = net / n - usual,
				     .edge_ns = fmax(STALL_LEAST_NS, (STALL_RATIO - 1) * usual),
				     .gap_ns = gap_of(adding, rec, series),
				     .may_wait = may_wait,
				     .start_ns = rec->start_ns,
				     .end_ns = rec->end_ns};

	stall.unequal = rec->n > 1 && rec->max_ns - rec->sum_ns / n > STALL_EQUAL * stall.ns;
	if (!(usual > 0) || stall.ns < stall.edge_ns || rec->end_ns <= rec->start_ns)
		return 0;
	return find_wait(adding, &stall) || stalls__add(&adding->job->stalls, &stall) ? -ENOMEM : 0;
}

/* Adds the calls of a bundle. */
static int add_call(void *arg, uint32_t number, double late_ns, bool may_wait)
{
	struct adding *adding = arg;
	const struct bundle_rec *rec = &adding->job->recs[number];

	return counts(adding, rec) ? add(adding, rec, &adding->context->series.series[rec->series], late_ns, may_wait)
				   : 0;
}

/* Adds computation and IO. Most bundles are no slower than their reference, and need no look at their history. */
static int add_own(struct adding *adding)
{
	int error = 0;

	for (size_t i = 0; !error && i < adding->job->rec_count; i++) {
		const struct bundle_rec *rec = &adding->job->recs[i];
		const struct series *series = &adding->context->series.series[rec->series];

		if (rec->sum_ns <= (double)rec->reference * rec->n || !counts(adding, rec) ||
		    series->class == VAPRO_COMMUNICATION)
			continue;
		error = add(adding, rec, series, 0, false);
	}
	return error;
}

int analysis_window__add_stalls(struct analysis_context *context, struct analysis_job *job,
				const struct analysis_span *span)
{
	const struct stg_job *about = stg__job(context->stg, job->id);
	struct adding adding = {.context = context,
				.job = job,
				.rows = about->row_count,
				.until = analysis__job_over(about, span) ? span->end : span->retire};
	int error = add_own(&adding);

	if (!error)
		error = waiting__visit_own(job->waiting, add_call, &adding);
	if (adding.until > job->stalls.until)
		job->stalls.until = adding.until;
	free(adding.waits);
	return error;
}
