/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/breakdown.h"

#include <math.h>
#include <string.h>

_Static_assert(FACTOR_NODES <= 64, "nodes are bits");

static bool cpu_node(int node)
{
	return node <= NODE_BACKEND;
}

/* Splits the time on the CPU: stage 1's split holds for fragments that were not counted at that stage too. */
static void settle_cpu(const struct contribution *from, double *impact)
{
	double counted = 0;

	if (from->counted[COUNTER_TOP] > 0) {
		for (int node = NODE_RETIRING; node <= NODE_BACKEND; node++)
			counted += fmax(0, impact[node]);
		for (int node = NODE_RETIRING; node <= NODE_BACKEND && counted > 0; node++)
			impact[node] = fmax(0, impact[node]) * (1 + fmax(0, impact[NODE_ON_CPU]) / counted);
		if (counted > 0)
			impact[NODE_ON_CPU] = 0;
		return;
	}
	for (int node = NODE_FRONTEND_LATENCY; node <= NODE_CORE; node++) {
		if (node == NODE_MEMORY && from->counted[COUNTER_BACKEND] <= 0)
			continue;
		impact[factor_infos[node].parent] += impact[node];
		impact[NODE_ON_CPU] -= impact[node];
	}
	if (from->counted[COUNTER_BACKEND] > 0)
		return;
	for (int node = NODE_L1; node <= NODE_STORE; node++) {
		impact[NODE_MEMORY] += impact[node];
		impact[NODE_BACKEND] += impact[node];
		impact[NODE_ON_CPU] -= impact[node];
	}
}

/* Scales parts to the loss of their whole, whenever they were counted. */
static void settle_parts(const struct contribution *from, double *impact)
{
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		enum factor_node parent = counter_group_infos[group].parent;
		bool whole = from->counted[group == COUNTER_MEMORY ? COUNTER_BACKEND : COUNTER_TOP] > 0;
		double sum = 0;

		if (from->counted[group] <= 0 || !whole)
			continue;
		for (int pass = 0; pass < 2; pass++) {
			for (int node = 0; node < FACTOR_NODES; node++) {
				if (factor_infos[node].parent != parent || factors__counted(node) ||
				    factor_infos[node].rest)
					continue;
				if (!pass)
					sum += fmax(0, impact[node]);
				else
					impact[node] =
					    sum > 0 ? fmax(0, impact[node]) / sum * fmax(0, impact[parent]) : 0;
			}
		}
	}
}

/* Whether the time that a set of counts is a part of is known, so that they only split it. */
static bool whole_counted(const struct contribution *from, enum priced set)
{
	return set == PRICED_KERNEL ? from->kernel
				    : from->counted[COUNTER_BACKEND] > 0 || from->counted[COUNTER_MEMORY] > 0;
}

static double available(const struct contribution *from, enum priced set, const double *impact)
{
	double sum = 0;

	if (whole_counted(from, set))
		return fmax(0, impact[set == PRICED_KERNEL ? NODE_KERNEL_OTHER : NODE_MEMORY_OTHER]);
	if (set == PRICED_MEMORY && from->counted[COUNTER_TOP] > 0)
		return fmax(0, impact[NODE_BACKEND]);
	for (int node = 0; cpu_node(node); node++)
		sum += fmax(0, impact[node]);
	return sum;
}

/* Moves the cost of a set's counts to their place in the tree. */
static void move(const struct contribution *from, enum priced set, double cost, double *impact)
{
	double sum = available(from, set, impact);

	if (whole_counted(from, set)) {
		impact[set == PRICED_KERNEL ? NODE_KERNEL_OTHER : NODE_MEMORY_OTHER] = sum - cost;
		return;
	}
	if (set == PRICED_MEMORY && from->counted[COUNTER_TOP] > 0) {
		impact[NODE_MEMORY] = cost;
		return;
	}
	for (int node = 0; cpu_node(node) && sum > 0; node++)
		impact[node] = fmax(0, impact[node]) * (1 - cost / sum);
	impact[set == PRICED_KERNEL ? NODE_KERNEL : NODE_BACKEND] += cost;
	if (set == PRICED_MEMORY)
		impact[NODE_MEMORY] += cost;
}

static void price(const struct contribution *from, enum priced set, const struct vapro_config *config, double *impact,
		  struct breakdown *breakdown)
{
	const struct priced_info *info = &priced_infos[set];
	struct regression_options options = regression_defaults;
	struct regression_result result;
	double cost = 0, least = available(from, set, impact), scale;

	options.alpha = config->p_value;
	regression__fit(&from->rows[set], &options, &result);
	breakdown->outcome[set] = result.outcome;
	breakdown->rows[set] = from->rows[set].rows;
	breakdown->r2[set] = result.r2;
	for (uint32_t i = 0; i < info->count; i++) {
		const struct regression_factor *factor = &result.factor[i];
		struct breakdown_node *node = &breakdown->node[info->first + i];
		double excess = impact[info->first + i];

		impact[info->first + i] = 0;
		if (result.outcome != REGRESSION_FITTED || factor->fate == REGRESSION_CONSTANT)
			continue;
		node->present = node->regression = true;
		node->p = factor->p;
		node->implied = factor->fate == REGRESSION_COLLINEAR;
		for (uint32_t k = 0; k < info->count; k++) {
			if (!(factor->shared & 1U << k))
				continue;
			node->shared |= 1ULL << (info->first + k);
			breakdown->node[info->first + k].shared |= 1ULL << (info->first + i);
		}
		if (!factor->significant || !isfinite(factor->coefficient))
			continue;
		impact[info->first + i] = fmax(0, factor->coefficient * excess);
		if (!node->implied)
			cost += impact[info->first + i];
	}
	scale = cost > least ? least / cost : 1;
	for (uint32_t i = 0; i < info->count; i++)
		impact[info->first + i] *= scale;
	if (result.outcome == REGRESSION_FITTED && cost > 0)
		move(from, set, cost * scale, impact);
	if (cost > 0 && !whole_counted(from, set))
		breakdown->node[info->parent].regression = true;
}

static void find_present(const struct contribution *from, const double *impact, struct breakdown *breakdown)
{
	struct breakdown_node *nodes = breakdown->node;

	for (int node = NODE_KERNEL; node <= NODE_SUSPENSION; node++)
		nodes[node].present = true;
	for (int node = NODE_RETIRING; node <= NODE_BACKEND; node++)
		nodes[node].present = from->counted[COUNTER_TOP] > 0 || impact[node] > 0;
	nodes[NODE_ON_CPU].present = from->counted[COUNTER_TOP] <= 0 || impact[NODE_ON_CPU] > 0;
	for (int node = NODE_PREEMPTED; node <= NODE_STOPPED; node++)
		nodes[node].present = impact[NODE_SUSPENSION] > 0;
	nodes[NODE_FREQUENCY].present = impact[NODE_FREQUENCY] > 0;
	for (int node = NODE_FRONTEND_LATENCY; node <= NODE_SOFT_IRQ; node++)
		nodes[node].present = impact[node] > 0;
	for (int node = NODE_L1; node <= NODE_STORE; node++)
		nodes[node].present = impact[node] > 0;
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		for (int node = 0; node < FACTOR_NODES; node++) {
			if (factor_infos[node].parent == counter_group_infos[group].parent && !factors__counted(node) &&
			    !factor_infos[node].rest && impact[counter_group_infos[group].parent] > 0)
				nodes[node].present |= from->counted[group] > 0;
		}
	}
	for (int set = 0; set < PRICED_SETS; set++) {
		int rest = set == PRICED_KERNEL ? NODE_KERNEL_OTHER : NODE_MEMORY_OTHER;

		/* The rest of a whole is shown only beside the whole's parts. */
		for (int node = 0; node < FACTOR_NODES; node++) {
			if (factor_infos[node].parent == priced_infos[set].parent && node != rest)
				nodes[rest].present |= impact[node] > 0 && impact[rest] > 0;
		}
	}
}

/* A finer factor is major only below a major one; one that cannot be distinguished from a major one is major too. */
static void find_major(const struct vapro_config *config, struct breakdown *breakdown)
{
	for (int node = 0; node < FACTOR_NODES; node++) {
		enum factor_node parent = factor_infos[node].parent;

		breakdown->node[node].major = breakdown->node[node].present && !breakdown->node[node].implied &&
					      !factor_infos[node].rest &&
					      breakdown->node[node].share > config->major_share &&
					      (parent == FACTOR_ROOT || breakdown->node[parent].major);
	}
	for (int node = 0; node < FACTOR_NODES; node++) {
		for (int other = 0; breakdown->node[node].implied && other < FACTOR_NODES; other++) {
			if (breakdown->node[node].shared & 1ULL << other && breakdown->node[other].major &&
			    !breakdown->node[other].implied)
				breakdown->node[node].major = true;
		}
	}
}

/* What calls usually sleep for hides no more than that: a whole has cost what its most expensive part has. */
static void settle_suspension(double *impact)
{
	for (int node = NODE_PREEMPTED; node <= NODE_STOPPED; node++) {
		if (factor_infos[node].parent == NODE_SUSPENSION)
			impact[NODE_SUSPENSION] = fmax(impact[NODE_SUSPENSION], impact[node]);
	}
}

void breakdown__make(const struct contribution *from, const struct vapro_config *config, struct breakdown *breakdown)
{
	double impact[FACTOR_NODES], sum[FACTOR_NODES + 1] = {0};

	memset(breakdown, 0, sizeof(*breakdown));
	for (int node = 0; node < FACTOR_NODES; node++)
		breakdown->node[node].p = NAN;
	memcpy(impact, from->impact, sizeof(impact));
	settle_cpu(from, impact);
	settle_parts(from, impact);
	settle_suspension(impact);
	impact[NODE_MEMORY_OTHER] = from->counted[COUNTER_MEMORY] > 0 ? 0 : fmax(0, impact[NODE_MEMORY]);
	price(from, PRICED_KERNEL, config, impact, breakdown);
	price(from, PRICED_MEMORY, config, impact, breakdown);
	find_present(from, impact, breakdown);
	for (int node = 0; node < FACTOR_NODES; node++) {
		breakdown->node[node].impact_ns = fmax(0, impact[node]);
		if (breakdown->node[node].present && !breakdown->node[node].implied)
			sum[factor_infos[node].parent] += fmax(0, impact[node]);
	}
	for (int node = 0; node < FACTOR_NODES; node++) {
		double whole = sum[factor_infos[node].parent];

		if (breakdown->node[node].present && whole > 0)
			breakdown->node[node].share = fmin(1, fmax(0, impact[node]) / whole);
	}
	find_major(config, breakdown);
}
