/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The usual time of a series, disturbed or not, and whether fragments are slower than that. */
#include "model/series.h"

#include "model/judgement.h"

#include <math.h>

#define SCATTER_FLOOR 0.02 /* share of the mean: no time repeats better */

void series__merge_usual(struct series_usual *into, const struct series_usual *from, double share)
{
	into->n += share * from->n;
	into->bundles += share * from->bundles;
	into->dur += share * from->dur;
	into->dur_sq += share * from->dur_sq;
	into->net += share * from->net;
	into->net_sq += share * from->net_sq;
}

static struct series_usual without(const struct series *series, const struct series_usual *own)
{
	struct series_usual all = series->usual;

	series__merge_usual(&all, &series->usual_live, 1);
	if (own)
		series__merge_usual(&all, own, -1);
	return all;
}

static double mean_of(const struct series_usual *usual, const struct vapro_config *config, bool net)
{
	if (usual->n < (double)config->rare_members)
		return 0;
	return (net ? usual->net : usual->dur) / usual->n;
}

double series__usual_ns(const struct series *series, const struct vapro_config *config, bool net,
			const struct series_usual *own)
{
	struct series_usual usual = without(series, own);

	return mean_of(&usual, config, net);
}

bool series__unusual(const struct series *series, const struct vapro_config *config, double n, double sum_ns, bool net,
		     const struct series_usual *own)
{
	struct series_usual usual = without(series, own);
	double mean = mean_of(&usual, config, net), squares = net ? usual.net_sq : usual.dur_sq;
	double variance, here;

	if (mean <= 0 || n <= 0 || usual.bundles < 2)
		return false;
	here = sum_ns / n;
	if (mean >= config->threshold * here)
		return false;
	/* The means of n fragments scatter by the variance of one over n: this undoes it. */
	variance = fmax(0, squares - usual.n * mean * mean) / (usual.bundles - 1);
	variance = fmax(variance, SCATTER_FLOOR * SCATTER_FLOOR * mean * mean);
	return (here - mean) * sqrt(n) >= SIGMAS_UNUSUAL * sqrt(variance);
}

double series__view_chance(const struct series *series, double expected_ns)
{
	double n = 0, ns = 0;

	for (int i = 0; i < SERIES_THIRDS; i++) {
		n += series->third_n[i];
		ns += series->third_ns[i];
	}
	if (series->view_bundles < 2)
		return (ns - n * expected_ns) * (ns - n * expected_ns);
	/* as in series__unusual */
	return n * fmax(0, series->view_squares - ns * ns / n) / (series->view_bundles - 1);
}
