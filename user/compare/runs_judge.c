// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is outlying among runs: a run, a host or a rank in runs, a state that most ranks of a run agree on. What a host
 * has beyond its run is its own, and what a rank has beyond its host.
 */
#include "compare/runs_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "compare/shift.h"
#include "model/judgement.h"

#define NO_UNIT UINT32_MAX

/* Where a host or a rank is outlying. */
struct deviation {
	uint32_t in_runs, of_runs, furthest; /* furthest: run of the cells */
	uint32_t states, of_states, worst;   /* in the furthest run; worst: column */
	double most;			     /* of the furthest run, a logarithm */
	double ratio, state_ratio, p;
};

static bool is_outlying(const struct runs_changes *all, double change, double p)
{
	return !isnan(change) && fabs(change) >= all->threshold && p < CHANCE_MOST;
}

static struct runs_row *add_row(struct runs *result, enum runs_what what)
{
	struct runs_row *row;

	if (grow(&result->rows, &result->row_capacity, result->row_count + 1, sizeof(*result->rows)))
		return NULL;
	row = &result->rows[result->row_count++];
	*row = (struct runs_row){.what = what, .rank = -1};
	return row;
}

static const struct vapro_state *state_of(const struct runs *result, const struct runs_changes *all, uint32_t kind)
{
	const struct profile *profile = result->runs[result->base].profile;

	return &stg__state(profile->stg, profile->kinds[all->cells->kind[kind]].state)->about;
}

/* Replaces values by their logarithms over the median. Returns the median. */
static double over_median(const struct runs_changes *all, double *values, uint32_t count)
{
	double middle;

	for (uint32_t i = 0; i < count; i++)
		all->scratch[i] = values[i];
	middle = shift__median(all->scratch, count);
	for (uint32_t i = 0; i < count; i++)
		values[i] = log(values[i] / middle);
	return middle;
}

/* Says how much each run did, and how long it and equal work in it took, over the median run. values: [4][run]. */
static int judge_runs(struct runs *result, const struct runs_changes *all, double *values)
{
	const struct runs_cells *cells = all->cells;
	double *time = values, *work = values + cells->runs;
	double *time_p = values + 2 * (size_t)cells->runs, *work_p = values + 3 * (size_t)cells->runs, bin;

	for (uint32_t i = 0; i < cells->runs; i++)
		work[i] = result->runs[cells->run_of[i]].calls_ratio;
	over_median(all, work, cells->runs);
	for (uint32_t i = 0; i < cells->runs; i++) {
		result->runs[cells->run_of[i]].calls_ratio = exp(work[i]);
		time[i] = result->runs[cells->run_of[i]].seconds;
		work[i] = runs_changes__of_run(all, i);
	}
	result->median_s = over_median(all, time, cells->runs);
	result->spread = runs__spread(time, cells->runs);
	bin = (double)VAPRO_BIN_NS * 1e-9 / result->median_s; /* to which a length is known */
	if (result->spread < 0 || runs_changes__chances(all, time, time, bin, time_p, cells->runs) < 0 ||
	    runs_changes__chances(all, work, work, SHIFT_LEAST_ERROR, work_p, cells->runs) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < cells->runs; i++) {
		struct runs_run *run = &result->runs[cells->run_of[i]];

		run->time_ratio = exp(time[i]);
		run->time_p = time_p[i];
		run->time_outlying = is_outlying(all, time[i], time_p[i]);
		run->work_ratio = exp(work[i]);
		run->work_p = work_p[i];
		run->work_outlying = is_outlying(all, work[i], work_p[i]);
	}
	return 0;
}

/* In how many states a host (from 0 on; unit: NO_UNIT) or a rank changed as it did as a whole, in its furthest run. */
static void count_states(const struct runs_changes *all, uint32_t host, uint32_t unit, struct deviation *found)
{
	const struct runs_cells *cells = all->cells;
	double most = 0;

	for (uint32_t kind = 0; kind < cells->kinds; kind++) {
		size_t count = 0;
		double change;

		for (uint32_t i = 0; i < cells->units; i++) {
			float cell = cells->change[runs__cell(cells, found->furthest, i, kind)];
			bool has = unit == NO_UNIT ? cells->hosts[runs__unit(cells, found->furthest, i)] == host + 1
						   : i == unit;

			if (has && !isnan(cell))
				all->scratch[count++] = (double)cell - all->common[found->furthest];
		}
		if (!count)
			continue;
		change = shift__median(all->scratch, count);
		found->of_states++;
		found->states += change * found->most > 0 && fabs(change) >= all->threshold;
		if (change * found->most > 0 && fabs(change) > most) {
			most = fabs(change);
			found->state_ratio = exp(change);
			found->worst = kind;
		}
	}
}

/* In which runs the changes of a host or rank, `of` in each row of `stride`, are outlying in one direction. */
static struct deviation find(const struct runs_changes *all, const double *changes, const double *p, size_t stride,
			     size_t of)
{
	struct deviation found = {.p = 1};
	size_t count = 0;

	for (uint32_t run = 0; run < all->cells->runs; run++) {
		size_t at = run * stride + of;

		found.of_runs += !isnan(changes[at]);
		if (is_outlying(all, changes[at], p[at]) && fabs(changes[at]) > fabs(found.most)) {
			found.most = changes[at];
			found.furthest = run;
		}
	}
	for (uint32_t run = 0; run < all->cells->runs; run++) {
		size_t at = run * stride + of;

		if (!is_outlying(all, changes[at], p[at]) || changes[at] * found.most <= 0)
			continue;
		found.p = fmin(found.p, p[at]);
		all->scratch[count++] = changes[at];
	}
	found.in_runs = (uint32_t)count;
	found.ratio = exp(shift__median(all->scratch, count));
	return found;
}

/* Adds a row of a host or rank. Returns NULL when out of memory. */
static struct runs_row *add_deviation(struct runs *result, const struct runs_changes *all, enum runs_what what,
				      const struct deviation *found, uint32_t host)
{
	struct runs_row *row = add_row(result, what);

	if (!row)
		return NULL;
	row->run = all->cells->run_of[found->furthest];
	row->in_runs = found->in_runs;
	row->of_runs = found->of_runs;
	row->host = all->cells->host_names[host];
	row->state = state_of(result, all, found->worst);
	row->states = found->states;
	row->of_states = found->of_states;
	row->ratio = found->ratio;
	row->state_ratio = found->state_ratio;
	row->p = found->p;
	return row;
}

/* What a rank lasted more in a run than it usually does, seconds. */
static double seconds_of(const struct runs_changes *all, uint32_t run, uint32_t unit)
{
	double change = all->unit[runs__unit(all->cells, run, unit)];

	return isnan(change) ? 0 : all->weight[unit] * expm1(change);
}

/* The ranks of a host in a run; adds what they lasted more. */
static uint32_t ranks_on(const struct runs_changes *all, uint32_t run, uint32_t host, double *seconds)
{
	uint32_t ranks = 0;

	for (uint32_t unit = 0; unit < all->cells->units; unit++) {
		if (all->cells->hosts[runs__unit(all->cells, run, unit)] != host + 1)
			continue;
		ranks++;
		*seconds += seconds_of(all, run, unit);
	}
	return ranks;
}

/* Names a host that is outlying in runs, with more evidence than one state of one rank. own: set in these runs. */
static int judge_host(struct runs *result, const struct runs_changes *all, uint32_t host, const double *p, double *own)
{
	const struct runs_cells *cells = all->cells;
	struct deviation found = find(all, all->host, p, cells->host_count, host);
	double seconds = 0;
	uint32_t ranks = 0;
	bool alone = true;
	struct runs_row *row;

	if (!found.in_runs)
		return 0;
	for (uint32_t run = 0; run < cells->runs; run++) {
		size_t at = runs__host(cells, run, host);

		if (!is_outlying(all, all->host[at], p[at]) || all->host[at] * found.most <= 0)
			continue;
		alone &= runs_changes__is_alone(all, run, host);
		ranks = ranks_on(all, run, host, &seconds);
	}
	count_states(all, host, NO_UNIT, &found);
	/* of a run on one host only, the host cannot be distinguished from the run */
	if (found.in_runs < 2 && (alone || (found.states < 2 && found.of_states > 1 && ranks < 2)))
		return 0;
	for (uint32_t run = 0; run < cells->runs; run++) {
		size_t at = runs__host(cells, run, host);

		if (is_outlying(all, all->host[at], p[at]) && all->host[at] * found.most > 0)
			own[at] = all->host[at];
	}
	row = add_deviation(result, all, RUNS_HOST, &found, host);
	if (row)
		row->seconds = seconds;
	return row ? 0 : -ENOMEM;
}

/* What a host's changes differ from its median by, where it was used often enough, else the changes; [run][host]. */
static void host_residuals(const struct runs_changes *all, double *residuals)
{
	const struct runs_cells *cells = all->cells;

	for (uint32_t host = 0; host < cells->host_count; host++) {
		size_t count = 0;
		double middle;

		for (uint32_t run = 0; run < cells->runs; run++)
			if (!isnan(all->host[runs__host(cells, run, host)]))
				all->scratch[count++] = all->host[runs__host(cells, run, host)];
		middle = count < LEAST_REPEATED ? 0 : shift__median(all->scratch, count);
		for (uint32_t run = 0; run < cells->runs; run++)
			residuals[runs__host(cells, run, host)] = all->host[runs__host(cells, run, host)] - middle;
	}
}

/* own: [run][host], 0: what a host that is named changed. values: room for two of each. */
static int judge_hosts(struct runs *result, const struct runs_changes *all, double *own, double *values)
{
	const struct runs_cells *cells = all->cells;
	size_t size = (size_t)cells->runs * cells->host_count;
	double *residuals = values, *p = values + size;
	int error = 0;

	host_residuals(all, residuals);
	if (runs_changes__chances(all, all->host, residuals, SHIFT_LEAST_ERROR, p, size) < 0)
		return -ENOMEM;
	for (uint32_t host = 0; !error && host < cells->host_count; host++)
		error = judge_host(result, all, host, p, own);
	return error;
}

/* Names a rank that is outlying in runs beyond its host. changes, p: [run][unit]. */
static int judge_rank(struct runs *result, const struct runs_changes *all, uint32_t unit, const double *changes,
		      const double *p)
{
	const struct runs_cells *cells = all->cells;
	struct deviation found = find(all, changes, p, cells->units, unit);
	struct runs_row *row;

	if (!found.in_runs)
		return 0;
	count_states(all, 0, unit, &found);
	if (found.states < 2 && found.of_states > 1 && found.in_runs < 2)
		return 0;
	row = add_deviation(result, all, RUNS_RANK, &found, cells->hosts[runs__unit(cells, found.furthest, unit)] - 1);
	if (!row)
		return -ENOMEM;
	row->rank = cells->number[unit];
	for (uint32_t run = 0; run < cells->runs; run++) {
		size_t at = runs__unit(cells, run, unit);

		if (is_outlying(all, changes[at], p[at]) && changes[at] * found.most > 0)
			row->seconds += seconds_of(all, run, unit);
	}
	return 0;
}

/* values: room for two of each run and unit. */
static int judge_ranks(struct runs *result, const struct runs_changes *all, const double *own, double *values)
{
	const struct runs_cells *cells = all->cells;
	size_t size = (size_t)cells->runs * cells->units;
	double *changes = values, *p = values + size;
	int error = 0;

	for (uint32_t run = 0; run < cells->runs; run++) {
		for (uint32_t unit = 0; unit < cells->units; unit++) {
			size_t at = runs__unit(cells, run, unit);
			uint32_t host = cells->hosts[at];

			changes[at] = all->unit[at] - all->common[run];
			if (host)
				changes[at] -= own[runs__host(cells, run, host - 1)];
		}
	}
	if (runs_changes__chances(all, changes, changes, SHIFT_LEAST_ERROR, p, size) < 0)
		return -ENOMEM;
	for (uint32_t unit = 0; !error && cells->units > 1 && unit < cells->units; unit++)
		error = judge_rank(result, all, unit, changes, p);
	return error;
}

/* Names runs in which a state of most ranks is outlying, unless it hardly matters. values: room for two of each run. */
static int judge_state(struct runs *result, const struct runs_changes *all, uint32_t kind, double total_s,
		       double *values)
{
	const struct runs_cells *cells = all->cells;
	double *changes = values, *p = values + cells->runs, base = 0;

	for (uint32_t unit = 0; unit < cells->units; unit++)
		base += cells->base_s[(size_t)unit * cells->kinds + kind];
	for (uint32_t run = 0; run < cells->runs; run++)
		changes[run] = runs_changes__of_state(all, run, kind);
	if (runs_changes__chances(all, changes, changes, SHIFT_LEAST_ERROR, p, cells->runs) < 0)
		return -ENOMEM;
	for (uint32_t run = 0; run < cells->runs; run++) {
		double seconds = base * expm1(changes[run]);
		struct runs_row *row;

		if (!is_outlying(all, changes[run], p[run]) ||
		    fabs(seconds) < SHARE_MEANINGFUL * all->threshold * total_s)
			continue;
		row = add_row(result, RUNS_STATE);
		if (!row)
			return -ENOMEM;
		row->run = cells->run_of[run];
		row->in_runs = 1;
		row->of_runs = cells->runs;
		row->state = state_of(result, all, kind);
		row->states = row->of_states = 1;
		row->ratio = row->state_ratio = exp(changes[run]);
		row->p = p[run];
		row->seconds = seconds;
	}
	return 0;
}

static int by_weight(const void *a, const void *b)
{
	const struct runs_row *x = a, *y = b;
	double x_s = fabs(x->seconds), y_s = fabs(y->seconds);

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x_s != y_s)
		return x_s > y_s ? -1 : 1;
	return x->run != y->run ? (x->run > y->run) - (x->run < y->run) : (x->rank > y->rank) - (x->rank < y->rank);
}

int runs__judge(struct runs *result, struct runs_cells *cells)
{
	size_t hosts = (size_t)cells->runs * cells->host_count, units = (size_t)cells->runs * cells->units;
	double *own = calloc(hosts + 1, sizeof(*own)), total_s = 0;
	double *values = calloc(4 * (size_t)cells->runs + 2 * hosts + 2 * units + 1, sizeof(*values));
	struct runs_changes all;
	int error = runs_changes__make(&all, cells, result->threshold);

	if (!own || !values)
		error = -ENOMEM;
	if (!error)
		error = judge_runs(result, &all, values);
	for (uint32_t unit = 0; !error && unit < cells->units; unit++)
		total_s += all.weight[unit];
	if (!error && cells->runs >= RUNS_LEAST) {
		error = judge_hosts(result, &all, own, values);
		if (!error)
			error = judge_ranks(result, &all, own, values);
		for (uint32_t kind = 0; !error && kind < cells->kinds; kind++)
			error = judge_state(result, &all, kind, total_s, values);
	}
	if (!error && result->row_count)
		qsort(result->rows, result->row_count, sizeof(*result->rows), by_weight);
	runs_changes__clear(&all);
	free(own);
	free(values);
	return error;
}
