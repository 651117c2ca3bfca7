/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/factors.h"

#include <math.h>
#include <stddef.h>

const struct counter_group_info counter_group_infos[COUNTER_GROUPS] = {
    [COUNTER_TOP] = {FACTOR_ROOT, 1},
    [COUNTER_FRONTEND] = {NODE_FRONTEND, 2},
    [COUNTER_BAD_SPECULATION] = {NODE_BAD_SPECULATION, 2},
    [COUNTER_BACKEND] = {NODE_BACKEND, 2},
    [COUNTER_MEMORY] = {NODE_MEMORY, 3},
};

/* Relations of the tree, computed once: every bundle of a variance needs them. */
static struct {
	bool ready;
	enum counter_group group[FACTOR_NODES];
	unsigned char member_count[COUNTER_GROUPS + 1], member[COUNTER_GROUPS + 1][FACTOR_NODES]; /* nodes by group */
	/* parts of a parent that are time, ascending; for FACTOR_ROOT the parts that counters measure */
	unsigned char count[FACTOR_NODES + 1], part[FACTOR_NODES + 1][FACTOR_NODES];
} known;

static enum counter_group group_of(int node)
{
	if (node >= NODE_RETIRING && node <= NODE_BACKEND)
		return COUNTER_TOP;
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		if (factor_infos[node].parent == counter_group_infos[group].parent &&
		    !factors__counted((enum factor_node)node) && !factor_infos[node].rest)
			return (enum counter_group)group;
	}
	return COUNTER_GROUPS;
}

static bool part_of(enum factor_node node, enum factor_node parent)
{
	if (factor_infos[node].factor >= VAPRO_FACTOR_COUNTS)
		return false;
	if (parent == FACTOR_ROOT)
		return node >= NODE_RETIRING && node <= NODE_BACKEND;
	return factor_infos[node].parent == parent;
}

static void know(void)
{
	for (int node = 0; node < FACTOR_NODES; node++) {
		enum counter_group group = known.group[node] = group_of(node);

		known.member[group][known.member_count[group]++] = (unsigned char)node;
		for (int parent = 0; parent <= FACTOR_NODES; parent++) {
			if (part_of((enum factor_node)node, (enum factor_node)parent))
				known.part[parent][known.count[parent]++] = (unsigned char)factor_infos[node].factor;
		}
	}
	known.ready = true;
}

const enum counter_group *factors__groups(void)
{
	if (!known.ready)
		know();
	return known.group;
}

const unsigned char *factors__members(enum counter_group group, int *count)
{
	if (!known.ready)
		know();
	*count = known.member_count[group];
	return known.member[group];
}

enum counter_group factors__group(int node)
{
	return factors__groups()[node];
}

static double parts_of(const double *factor, enum factor_node parent)
{
	double sum = 0;

	if (!known.ready)
		know();
	for (int i = 0; i < known.count[parent]; i++)
		sum += factor[known.part[parent][i]];
	return sum;
}

static void scale(double *factor, enum factor_node parent, double by)
{
	if (!known.ready)
		know();
	for (int i = 0; i < known.count[parent]; i++)
		factor[known.part[parent][i]] *= by;
}

/* The kernel attributes parts of its time without claiming that they are all. */
static void settle_within(double *factor, enum factor_node parent)
{
	enum vapro_factor whole = factor_infos[parent].factor;
	double parts = parts_of(factor, parent);

	if (parts <= 0)
		return;
	if (factor[whole] <= 0)
		factor[whole] = parts;
	else if (parts > factor[whole] || parent == NODE_IRQ)
		scale(factor, parent, factor[whole] / parts);
}

static double on_cpu(double sum_ns, const double *factor)
{
	return fmax(0, sum_ns - parts_of(factor, NODE_SUSPENSION) - factor[VAPRO_KERNEL] - factor[VAPRO_IRQ] -
			   factor[VAPRO_FREQUENCY]);
}

/* Parts whose whole was not counted itself may not sum to more than the time on the CPU. */
static void bound(double *factor, unsigned counted, double rest)
{
	double sum = 0;

	for (int group = COUNTER_FRONTEND; group <= COUNTER_BACKEND; group++)
		sum += parts_of(factor, counter_group_infos[group].parent);
	if (!(counted & 1U << COUNTER_BACKEND))
		sum += parts_of(factor, NODE_MEMORY);
	if (sum <= rest)
		return;
	for (int group = COUNTER_FRONTEND; group <= COUNTER_MEMORY; group++)
		scale(factor, counter_group_infos[group].parent, rest / sum);
}

unsigned factors__finalize(double sum_ns, double *factor)
{
	double parts = 0, rest;
	unsigned counted = 0;

	/* Most machines measure no parts, and this runs for every bundle. */
	for (int i = VAPRO_RETIRING; i < VAPRO_FACTOR_COUNTS; i++)
		parts += factor[i];
	if (parts <= 0)
		return 0;

	settle_within(factor, NODE_KERNEL);
	settle_within(factor, NODE_IRQ);
	rest = on_cpu(sum_ns, factor);
	parts = parts_of(factor, FACTOR_ROOT);
	if (parts > 0) {
		scale(factor, FACTOR_ROOT, rest / parts);
		counted |= 1U << COUNTER_TOP;
	}
	for (int group = COUNTER_FRONTEND; group < COUNTER_GROUPS; group++) {
		enum factor_node parent = counter_group_infos[group].parent;
		unsigned whole = group == COUNTER_MEMORY ? COUNTER_BACKEND : COUNTER_TOP;

		parts = parts_of(factor, parent);
		if (parts <= 0)
			continue;
		if (counted & 1U << whole)
			scale(factor, parent, factor[factor_infos[parent].factor] / parts);
		counted |= 1U << group;
	}
	if (!(counted & 1U << COUNTER_TOP))
		bound(factor, counted, rest);
	return counted;
}

void factors__partition(double sum_ns, const double *factor, unsigned counted, double *time)
{
	for (int node = 0; node < FACTOR_NODES; node++)
		time[node] = factor_infos[node].factor < VAPRO_FACTOR_COUNTS ? factor[factor_infos[node].factor] : 0;
	time[NODE_SUSPENSION] = parts_of(factor, NODE_SUSPENSION);
	time[NODE_KERNEL_OTHER] = fmax(0, time[NODE_KERNEL] - parts_of(factor, NODE_KERNEL));
	if (!(counted & 1U << COUNTER_BACKEND))
		time[NODE_MEMORY] = parts_of(factor, NODE_MEMORY);
	if (!(counted & 1U << COUNTER_MEMORY))
		time[NODE_MEMORY_OTHER] = time[NODE_MEMORY];
	if (counted & 1U << COUNTER_TOP)
		return;
	time[NODE_FRONTEND] = parts_of(factor, NODE_FRONTEND);
	time[NODE_BAD_SPECULATION] = parts_of(factor, NODE_BAD_SPECULATION);
	time[NODE_BACKEND] = time[NODE_MEMORY] + time[NODE_CORE];
	time[NODE_ON_CPU] =
	    fmax(0, on_cpu(sum_ns, factor) - time[NODE_FRONTEND] - time[NODE_BAD_SPECULATION] - time[NODE_BACKEND]);
}
