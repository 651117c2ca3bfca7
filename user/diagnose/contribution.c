/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/contribution.h"

#include <math.h>

bool contribution__abnormal(const struct kept *kept, const struct vapro_config *config)
{
	return kept->sum_ns > config->abnormal_ratio * kept->reference * kept->n;
}

void contribution__shares(const double *impact, double *shares)
{
	for (int parent = 0; parent <= FACTOR_NODES; parent++) {
		double sum = 0;

		for (int node = 0; node < FACTOR_NODES; node++) {
			if ((int)factor_infos[node].parent == parent)
				sum += fmax(0, impact[node]);
		}
		for (int node = 0; node < FACTOR_NODES; node++) {
			if ((int)factor_infos[node].parent == parent)
				shares[node] = sum > 0 ? fmax(0, impact[node]) / sum : 0;
		}
	}
}

void contribution__add(struct contribution *contribution, const struct kept *kept, double share,
		       const struct series_pile *normal, const struct vapro_config *config)
{
	double factor[VAPRO_FACTORS], time[FACTOR_NODES], usual[FACTOR_NODES], impact[FACTOR_NODES],
	    shares[FACTOR_NODES];
	bool counters;

	if (!contribution__abnormal(kept, config)) {
		contribution->normal += kept->n * share;
		contribution->approx |= kept->max_ns > config->abnormal_ratio * kept->reference;
		return;
	}
	for (int i = 0; i < VAPRO_FACTORS; i++)
		factor[i] = kept->factor[i];
	counters = factors__partition(kept->sum_ns, factor, time);
	if (normal->n > 0) {
		factors__partition(normal->sum_ns, normal->factor, usual);
		for (int node = 0; node < FACTOR_NODES; node++)
			usual[node] *= kept->n / normal->n;
	} else {
		/* Nothing normal was seen: undisturbed it would spend its reference as it spends its time on the CPU.
		 */
		double on_cpu = kept->sum_ns - time[NODE_SUSPENSION];

		for (int node = 0; node < FACTOR_NODES; node++)
			usual[node] = 0;
		for (int node = 0; node < NODE_SUSPENSION && on_cpu > 0; node++)
			usual[node] = time[node] / on_cpu * fmin(on_cpu, (double)kept->reference * kept->n);
	}
	for (int node = 0; node < FACTOR_NODES; node++) {
		impact[node] = time[node] - usual[node];
		contribution->impact[node] += impact[node] * share;
	}
	contribution__shares(impact, shares);
	for (int node = 0; node < FACTOR_NODES; node++) {
		enum factor_node parent = factor_infos[node].parent;

		/* A finer factor is major only below a major one. */
		if (shares[node] > config->major_share &&
		    (parent == FACTOR_ROOT || shares[parent] > config->major_share))
			contribution->duration[node] += kept->sum_ns * share;
	}
	contribution->abnormal += kept->n * share;
	contribution->approx |= kept->n > 1 && !(kept->flags & VAPRO_BUNDLE_ABNORMAL);
	contribution->counters |= counters;
}

void contribution__merge(struct contribution *into, const struct contribution *from)
{
	for (int node = 0; node < FACTOR_NODES; node++) {
		into->impact[node] += from->impact[node];
		into->duration[node] += from->duration[node];
	}
	into->abnormal += from->abnormal;
	into->normal += from->normal;
	into->approx |= from->approx;
	into->counters |= from->counters;
}
