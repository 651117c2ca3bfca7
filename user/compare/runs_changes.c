// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the cells of many runs to the changes of ranks, hosts and runs over what is usual. What the median of absolute
 * deviations of few values says of their spread is uncertain: Student's distribution has that.
 */
#include "compare/runs_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "compare/shift.h"
#include "model/judgement.h"

#define QUARTILE 0.674489751 /* standard deviations on either side that half of a normal distribution lies within */

double runs__spread(const double *values, uint32_t count)
{
	double *sorted = malloc((count + 1) * sizeof(*sorted)), middle, spread;

	if (!sorted)
		return -1;
	memcpy(sorted, values, count * sizeof(*sorted));
	middle = shift__median(sorted, count);
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = fabs(values[i] - middle);
	spread = shift__median(sorted, count) / QUARTILE;
	free(sorted);
	return spread;
}

double runs__chance(double deviation, double spread, uint32_t count)
{
	return count < RUNS_LEAST || !(spread > 0) ? 1
						   : 2 * gsl_cdf_tdist_Q(fabs(deviation) / spread, (count - 1) / 2.0);
}

double runs_changes__chances(const struct runs_changes *all, const double *changes, const double *values, double least,
			     double *p, size_t count)
{
	uint32_t used = 0, at = 0;
	double spread;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			all->scratch[used++] = values[i];
	spread = runs__spread(all->scratch, used);
	if (spread < 0)
		return -1;
	spread = fmax(spread, least);
	for (size_t i = 0; i < count; i++)
		if (!isnan(changes[i]))
			all->p[at++] = runs__chance(changes[i], spread, used);
	if (shift__adjust(all->p, at))
		return -1;
	at = 0;
	for (size_t i = 0; i < count; i++)
		p[i] = isnan(changes[i]) ? 1 : all->p[at++];
	return spread;
}

/* The median of a rank's changes in a state over the runs on a host; host 0: over all. NAN: none. */
static double median_on(const struct runs_changes *all, uint32_t unit, uint32_t kind, uint32_t host)
{
	const struct runs_cells *cells = all->cells;
	size_t count = 0;

	for (uint32_t run = 0; run < cells->runs; run++) {
		double change = (double)cells->change[runs__cell(cells, run, unit, kind)];

		if (!isnan(change) && (!host || cells->hosts[runs__unit(cells, run, unit)] == host))
			all->scratch[count++] = change;
	}
	return count ? shift__median(all->scratch, count) : NAN;
}

/*
 * What is usual of a rank in a state: the median over the runs. Where five or more hosts had the rank, each counts
 * once, so that a host that most runs used is no measure of itself. medians: room for a value of each host.
 */
static double usual(const struct runs_changes *all, uint32_t unit, uint32_t kind, double *medians)
{
	size_t count = 0;

	for (uint32_t host = 1; host <= all->cells->host_count; host++) {
		medians[count] = median_on(all, unit, kind, host);
		count += !isnan(medians[count]);
	}
	return count < RUNS_LEAST ? median_on(all, unit, kind, 0) : shift__median(medians, count);
}

/* Makes the changes over the base those over what is usual. */
static int centre(struct runs_changes *all, struct runs_cells *cells)
{
	double *medians = malloc((cells->host_count + 1) * sizeof(*medians));

	if (!medians)
		return -ENOMEM;
	for (uint32_t unit = 0; unit < cells->units; unit++) {
		for (uint32_t kind = 0; kind < cells->kinds; kind++) {
			double middle = usual(all, unit, kind, medians);

			for (uint32_t run = 0; run < cells->runs; run++)
				cells->change[runs__cell(cells, run, unit, kind)] -= (float)middle;
		}
	}
	free(medians);
	return 0;
}

/* Sums a rank's states up to its change. */
static void add_unit(struct runs_changes *all, uint32_t run, uint32_t unit)
{
	const struct runs_cells *cells = all->cells;
	double base = 0, now = 0;

	for (uint32_t kind = 0; kind < cells->kinds; kind++) {
		double change = (double)cells->change[runs__cell(cells, run, unit, kind)];
		double seconds = cells->base_s[(size_t)unit * cells->kinds + kind];

		if (isnan(change))
			continue;
		base += seconds;
		now += seconds * exp(change);
	}
	all->unit[runs__unit(cells, run, unit)] = base > 0 ? log(now / base) : NAN;
}

/* The change that most ranks of a run agree on, of their `count` ones in the scratch; 0 where they do not. */
static double agreed(const struct runs_changes *all, size_t count, double reach)
{
	int agree;

	return count == 1 ? all->scratch[0] : shift__common(all->scratch, count, reach, &agree);
}

/* How near to each other changes of a run's ranks agree. */
static double reach_of(const struct runs_changes *all, uint32_t run)
{
	const struct runs_cells *cells = all->cells;
	size_t first = runs__cell(cells, run, 0, 0), count = 0;

	for (size_t i = 0; i < (size_t)cells->units * cells->kinds; i++)
		if (!isnan(cells->change[first + i]))
			all->scratch[count++] = (double)cells->error[first + i];
	return fmax(all->threshold, SIGMAS_AGREE * shift__median(all->scratch, count));
}

static double common_of(const struct runs_changes *all, uint32_t run)
{
	double reach = reach_of(all, run);
	size_t count = 0;

	for (uint32_t unit = 0; unit < all->cells->units; unit++)
		if (!isnan(all->unit[runs__unit(all->cells, run, unit)]))
			all->scratch[count++] = all->unit[runs__unit(all->cells, run, unit)];
	return agreed(all, count, reach);
}

double runs_changes__of_state(const struct runs_changes *all, uint32_t run, uint32_t kind)
{
	const struct runs_cells *cells = all->cells;
	double reach = reach_of(all, run);
	size_t count = 0;

	for (uint32_t unit = 0; unit < cells->units; unit++)
		if (!isnan(cells->change[runs__cell(cells, run, unit, kind)]))
			all->scratch[count++] = (double)cells->change[runs__cell(cells, run, unit, kind)];
	return count ? agreed(all, count, reach) : NAN;
}

double runs_changes__of_run(const struct runs_changes *all, uint32_t run)
{
	double base = 0, now = 0;

	for (uint32_t unit = 0; unit < all->cells->units; unit++) {
		double change = all->unit[runs__unit(all->cells, run, unit)];

		if (isnan(change))
			continue;
		base += all->weight[unit];
		now += all->weight[unit] * exp(change);
	}
	return base > 0 ? log(now / base) : NAN;
}

bool runs_changes__is_alone(const struct runs_changes *all, uint32_t run, uint32_t host)
{
	for (uint32_t unit = 0; unit < all->cells->units; unit++) {
		uint32_t on = all->cells->hosts[runs__unit(all->cells, run, unit)];

		if (on && on != host + 1)
			return false;
	}
	return true;
}

/* The median change of the ranks of a run on a host, beyond what all of the run have in common where it has others. */
static double host_of(const struct runs_changes *all, uint32_t run, uint32_t host)
{
	size_t count = 0;

	for (uint32_t unit = 0; unit < all->cells->units; unit++) {
		double change = all->unit[runs__unit(all->cells, run, unit)];

		if (!isnan(change) && all->cells->hosts[runs__unit(all->cells, run, unit)] == host + 1)
			all->scratch[count++] = change;
	}
	if (!count)
		return NAN;
	return shift__median(all->scratch, count) - (runs_changes__is_alone(all, run, host) ? 0 : all->common[run]);
}

int runs_changes__make(struct runs_changes *all, struct runs_cells *cells, double threshold)
{
	size_t units = (size_t)cells->runs * cells->units, hosts = (size_t)cells->runs * cells->host_count;
	size_t room = units + hosts + (size_t)cells->units * cells->kinds + 1;

	*all = (struct runs_changes){
	    .cells = cells,
	    .threshold = log1p(threshold),
	    .unit = calloc(units + 1, sizeof(*all->unit)),
	    .weight = calloc(cells->units + 1, sizeof(*all->weight)),
	    .common = calloc(cells->runs + 1, sizeof(*all->common)),
	    .host = calloc(hosts + 1, sizeof(*all->host)),
	    .scratch = calloc(room, sizeof(*all->scratch)),
	    .p = calloc(room, sizeof(*all->p)),
	};
	if (!all->unit || !all->weight || !all->common || !all->host || !all->scratch || !all->p || centre(all, cells))
		return -ENOMEM;
	for (uint32_t unit = 0; unit < cells->units; unit++)
		for (uint32_t kind = 0; kind < cells->kinds; kind++)
			all->weight[unit] += cells->base_s[(size_t)unit * cells->kinds + kind];
	for (uint32_t run = 0; run < cells->runs; run++) {
		for (uint32_t unit = 0; unit < cells->units; unit++)
			add_unit(all, run, unit);
		all->common[run] = common_of(all, run);
		for (uint32_t host = 0; host < cells->host_count; host++)
			all->host[runs__host(cells, run, host)] = host_of(all, run, host);
	}
	return 0;
}

void runs_changes__clear(struct runs_changes *all)
{
	free(all->unit);
	free(all->weight);
	free(all->common);
	free(all->host);
	free(all->scratch);
	free(all->p);
	*all = (struct runs_changes){0};
}
