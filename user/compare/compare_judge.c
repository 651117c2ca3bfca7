// SPDX-License-Identifier: GPL-2.0-or-later
#include "compare/compare_private.h"

#include "model/judgement.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sort.h>

#define QUIET_SHARE 0.4 /* of the ranks, those nearest to the common change: as many as half may have a fault */

/* Rows of one kind of comparison, one per unit, whose common change is subtracted. */
struct set {
	struct compare_row **rows;
	size_t count;
	bool logs; /* ratios; else differences of shares */
};

static double change_of(const struct set *set, const struct compare_row *row)
{
	return set->logs ? log(row->ratio) : row->ratio;
}

/* Robust standard deviation of the changes around the common one. */
static double spread_of(const struct set *set, double common, double *scratch)
{
	for (size_t i = 0; i < set->count; i++)
		scratch[i] = fabs(change_of(set, set->rows[i]) - common);
	gsl_sort(scratch, 1, set->count);
	/* of a normal distribution so many lie as near to its middle */
	return scratch[(size_t)(QUIET_SHARE * (double)set->count)] / gsl_cdf_ugaussian_Pinv((1 + QUIET_SHARE) / 2);
}

/*
 * Finds the change that most rows agree on, sets what each is beyond it with its probability, and whether it may be
 * named: that is so where it is large enough, and remains so without the common change. *p: of the common change.
 */
static double judge_set(const struct set *set, double threshold, double *scratch, int *agree, double *p)
{
	double reach, common, spread;

	for (size_t i = 0; i < set->count; i++)
		scratch[i] = set->logs ? set->rows[i]->error : 0;
	reach = fmax(threshold, SIGMAS_AGREE * shift__median(scratch, set->count));
	for (size_t i = 0; i < set->count; i++)
		scratch[i] = change_of(set, set->rows[i]);
	common = shift__common(scratch, set->count, reach, agree);
	for (size_t i = 0; i < set->count; i++)
		scratch[i] = set->logs ? shift__p(change_of(set, set->rows[i]) / set->rows[i]->error) : set->rows[i]->p;
	*p = *agree ? fmin(1, 2 * shift__median(scratch, set->count)) : 1;
	spread = set->count >= LEAST_RANKS ? spread_of(set, common, scratch) : 0;
	for (size_t i = 0; i < set->count; i++) {
		struct compare_row *row = set->rows[i];
		double change = change_of(set, row), beyond = change - common;

		row->beyond = set->logs ? exp(beyond) : beyond;
		if (set->logs)
			row->p = shift__p(beyond / row->error);
		row->named = fabs(change) >= threshold && fabs(beyond) >= threshold && change * beyond > 0 &&
			     fabs(beyond) >= SIGMAS_UNUSUAL * spread;
	}
	return common;
}

/* Adjusts the probabilities of rows [begin, end); those that are not significant are not named. */
static int adjust(struct comparison *result, enum compare_what what, bool job_wide)
{
	double *p = calloc(result->row_count + 1, sizeof(*p));
	size_t count = 0, at = 0;

	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < result->row_count; i++)
		if (result->rows[i].what == what && (result->rows[i].unit == COMPARE_ALL) == job_wide)
			p[count++] = result->rows[i].p;
	if (shift__adjust(p, count)) {
		free(p);
		return -ENOMEM;
	}
	for (size_t i = 0; i < result->row_count; i++) {
		struct compare_row *row = &result->rows[i];

		if (row->what != what || (row->unit == COMPARE_ALL) != job_wide)
			continue;
		row->p = p[at++];
		row->named &= row->p < CHANCE_MOST;
	}
	free(p);
	return 0;
}

static int add_units(struct comparison *result)
{
	for (uint32_t i = 0; i < result->unit_count; i++) {
		const struct compare_unit *unit = &result->units[i];
		struct compare_row *row;
		double by, error;

		if (!(unit->base_s > 0))
			continue;
		row = compare__row(result, COMPARE_RANK, (int32_t)i);
		if (!row)
			return -ENOMEM;
		by = log(unit->now_s / unit->base_s);
		error = unit->error / unit->now_s;
		row->ratio = exp(by);
		row->low = exp(by - SHIFT_Z95 * error);
		row->high = exp(by + SHIFT_Z95 * error);
		row->error = error;
		row->base_s = unit->base_s;
		row->seconds = unit->now_s - unit->base_s;
	}
	return 0;
}

/* Adds the sums of a set's rows as a row for the whole job. */
static int add_common(struct comparison *result, const struct set *set, enum compare_what what, double common, double p,
		      double threshold)
{
	const struct compare_row first = *set->rows[0];
	double base = 0, seconds = 0, error = 0, work = 0, calls_a = 0, calls_b = 0, spread_a = 0, spread_b = 0;
	double share_a = 0, share_b = 0;
	struct compare_row *row;

	for (size_t i = 0; i < set->count; i++) {
		const struct compare_row *from = set->rows[i];

		base += from->base_s;
		seconds += from->seconds;
		error = hypot(error, from->error * from->base_s);
		work += from->base_s * log(from->work);
		calls_a += (double)from->calls_a;
		calls_b += (double)from->calls_b;
		spread_a += from->spread_a * from->base_s;
		spread_b += from->spread_b * from->base_s;
		share_a += from->share_a * from->base_s;
		share_b += from->share_b * from->base_s;
	}
	row = compare__row(result, what, COMPARE_ALL);
	if (!row)
		return -ENOMEM;
	error /= base;
	row->kind = first.kind;
	row->cause = first.cause;
	row->ratio = set->logs ? exp(common) : common;
	row->low = set->logs ? exp(common - SHIFT_Z95 * error) : common;
	row->high = set->logs ? exp(common + SHIFT_Z95 * error) : common;
	row->beyond = row->ratio;
	row->error = error;
	row->p = p;
	row->base_s = base;
	row->seconds = seconds;
	row->calls_a = (uint64_t)calls_a;
	row->calls_b = (uint64_t)calls_b;
	row->call_a_ns = calls_b > 0 ? base * 1e9 / calls_b : 0;
	row->call_b_ns = calls_b > 0 ? (base + seconds) * 1e9 / calls_b : 0;
	row->spread_a = spread_a / base;
	row->spread_b = spread_b / base;
	row->share_a = share_a / base;
	row->share_b = share_b / base;
	row->work = set->logs ? exp(work / base) : NAN;
	row->named = fabs(common) >= threshold;
	return 0;
}

/* Judges the rows of one kind of comparison that are equal in key, and adds what they have in common. */
static int judge_rows(struct comparison *result, enum compare_what what, uint32_t key, double threshold)
{
	struct compare_row **rows = calloc(result->row_count + 1, sizeof(*rows));
	double *scratch = calloc(result->row_count + 1, sizeof(*scratch)), common, p;
	struct set set = {.rows = rows, .logs = what != COMPARE_CAUSE};
	int agree = 0, error = rows && scratch ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < result->row_count; i++) {
		struct compare_row *row = &result->rows[i];

		if (row->what == what && row->unit != COMPARE_ALL &&
		    (what == COMPARE_RANK || (what == COMPARE_CAUSE ? row->cause : row->kind) == key))
			rows[set.count++] = row;
	}
	if (!error && set.count) {
		common = judge_set(&set, threshold, scratch, &agree, &p);
		if (what == COMPARE_RANK)
			result->common = agree;
		if (agree)
			error =
			    add_common(result, &set, what == COMPARE_RANK ? COMPARE_JOB : what, common, p, threshold);
	}
	free(rows);
	free(scratch);
	return error;
}

/* A change of a state that hardly matters to its ranks is not named. */
static void drop_trifles(struct comparison *result, double threshold)
{
	double all = 0;

	for (uint32_t i = 0; i < result->unit_count; i++)
		all += result->units[i].base_s;
	for (size_t i = 0; i < result->row_count; i++) {
		struct compare_row *row = &result->rows[i];
		double base = row->unit == COMPARE_ALL ? all : result->units[row->unit].base_s;

		if (row->what == COMPARE_STATE)
			row->named &= fabs(row->seconds) >= SHARE_MEANINGFUL * threshold * base;
	}
}

/* Names a host where most of its ranks are named in one direction, whether for their work or for a cause. */
static int add_host(struct comparison *result, const char *host)
{
	double base = 0, now = 0, error = 0, p = 0;
	uint32_t units = 0, slower = 0, faster = 0;
	struct compare_row *row;

	for (uint32_t i = 0; i < result->unit_count; i++)
		units += !strcmp(result->units[i].host_b, host);
	for (size_t i = 0; i < result->row_count; i++) {
		const struct compare_row *rank = &result->rows[i];

		if (rank->what != COMPARE_RANK || strcmp(result->units[rank->unit].host_b, host))
			continue;
		base += rank->base_s;
		now += rank->base_s + rank->seconds;
		error = hypot(error, rank->error * rank->base_s);
		slower += rank->named && rank->seconds > 0;
		faster += rank->named && rank->seconds < 0;
		if (rank->named)
			p = fmax(p, rank->p);
	}
	if (!(base > 0))
		return 0;
	row = compare__row(result, COMPARE_HOST, COMPARE_ALL);
	if (!row)
		return -ENOMEM;
	row->host = host;
	row->ratio = row->beyond = now / base;
	row->error = error / base;
	row->low = row->ratio * exp(-SHIFT_Z95 * row->error);
	row->high = row->ratio * exp(SHIFT_Z95 * row->error);
	row->base_s = base;
	row->seconds = now - base;
	row->named = 2 * slower > units || 2 * faster > units;
	row->p = row->named ? p : 1;
	return 0;
}

static int add_hosts(struct comparison *result)
{
	bool several = false;
	int error = 0;

	for (uint32_t i = 1; i < result->unit_count; i++)
		several |= strcmp(result->units[i].host_b, result->units[0].host_b) != 0;
	for (uint32_t i = 0; several && !error && i < result->unit_count; i++) {
		bool first = true;

		for (uint32_t k = 0; first && k < i; k++)
			first = strcmp(result->units[k].host_b, result->units[i].host_b) != 0;
		if (first)
			error = add_host(result, result->units[i].host_b);
	}
	return error;
}

int compare__judge(struct comparison *result, const struct compare_options *options)
{
	double threshold = log1p(options->threshold);
	int error = add_units(result);

	for (size_t i = 0; i < result->row_count; i++) {
		struct compare_row *row = &result->rows[i];

		if (row->least) {
			row->p = shift__p(log(row->ratio) / row->error);
			row->beyond = row->ratio;
			row->named = fabs(log(row->ratio)) >= threshold;
		}
	}
	if (!error)
		error = judge_rows(result, COMPARE_RANK, 0, threshold);
	for (uint32_t i = 0; !error && i < result->match.count; i++)
		error = judge_rows(result, COMPARE_STATE, result->match.pairs[i].b, threshold);
	for (uint32_t i = 0; !error && i < PROFILE_CAUSES; i++)
		error = judge_rows(result, COMPARE_CAUSE, i, options->threshold);
	for (int what = 0; !error && what < COMPARE_WHATS; what++) {
		error = adjust(result, (enum compare_what)what, true);
		if (!error)
			error = adjust(result, (enum compare_what)what, false);
	}
	drop_trifles(result, options->threshold);
	return error ? error : add_hosts(result);
}
