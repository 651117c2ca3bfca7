/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/contribution.h"

#include "base/exact.h"

#include <math.h>
#include <string.h>

const struct priced_info priced_infos[PRICED_SETS] = {
    [PRICED_KERNEL] = {NODE_KERNEL, NODE_MINOR_FAULTS, NODE_MIGRATIONS - NODE_MINOR_FAULTS + 1},
    [PRICED_MEMORY] = {NODE_MEMORY, NODE_L2_FILLS, NODE_REMOTE_FILLS - NODE_L2_FILLS + 1},
};

void contribution__shares(const double *impact, double *shares)
{
	double sums[FACTOR_NODES + 1] = {0}; /* by parent */

	for (int node = 0; node < FACTOR_NODES; node++) {
		if (!factors__counted(node) && impact[node] > 0)
			sums[factor_infos[node].parent] += impact[node];
	}
	for (int node = 0; node < FACTOR_NODES; node++)
		shares[node] =
		    !factors__counted(node) && impact[node] > 0 ? impact[node] / sums[factor_infos[node].parent] : 0;
}

static bool has(unsigned counted, enum counter_group group)
{
	return counted & 1U << group;
}

/* Returns the time on the CPU outside of the kernel and of interrupts. */
static double user_time(const double *time)
{
	return time[NODE_ON_CPU] + time[NODE_RETIRING] + time[NODE_FRONTEND] + time[NODE_BAD_SPECULATION] +
	       time[NODE_BACKEND];
}

/* Without normal fragments, an undisturbed bundle would spend its reference as it spends its time on the CPU. */
static void usual_of_reference(const struct bundle_rec *rec, const double *time, double *usual)
{
	double on_cpu = user_time(time) + time[NODE_KERNEL];

	for (int node = 0; node < FACTOR_NODES; node++) {
		bool away = node == NODE_SUSPENSION || factor_infos[node].parent == NODE_SUSPENSION ||
			    node == NODE_IRQ || factor_infos[node].parent == NODE_IRQ || node == NODE_FREQUENCY;

		usual[node] =
		    away || on_cpu <= 0 ? 0 : time[node] / on_cpu * fmin(on_cpu, (double)rec->reference * rec->n);
	}
}

/*
 * Computes what normal fragments spend; groups of counters of the bundle use the normal fragments that were
 * counted with the same groups. Where there are none, the bundle's shares pass for usual: they explain nothing.
 */
static void usual_of_pile(const struct bundle_rec *rec, const double *time, const struct series_pile *pile,
			  double *usual)
{
	double each = bundle_rec__units(rec) / pile->n, rest = pile->sum_ns * each, now = user_time(time), known = 0;
	const enum counter_group *groups = factors__groups();

	for (int node = 0; node < FACTOR_NODES; node++) {
		enum counter_group group = groups[node];
		double n = group == COUNTER_GROUPS ? pile->n : pile->counted_n[group];
		enum vapro_factor factor = factor_infos[node].factor;

		/* most are 0, and factors of groups that the bundle lacks are not read */
		usual[node] = 0;
		if (factor < VAPRO_FACTORS && pile->factor[factor] != 0 && n > 0 &&
		    (rec->counted || group == COUNTER_GROUPS))
			usual[node] = pile->factor[factor] * bundle_rec__units(rec) / n;
		if (factor_infos[node].parent == NODE_SUSPENSION)
			usual[NODE_SUSPENSION] += usual[node];
	}
	rest = fmax(0, rest - usual[NODE_SUSPENSION] - usual[NODE_KERNEL] - usual[NODE_IRQ] - usual[NODE_FREQUENCY]);
	usual[NODE_KERNEL_OTHER] =
	    fmax(0, usual[NODE_KERNEL] - usual[NODE_PAGE_FAULTS] - usual[NODE_SYSTEM_CALLS] - usual[NODE_RECLAIM]);
	for (int node = NODE_RETIRING; node <= NODE_BACKEND; node++) {
		if (has(rec->counted, COUNTER_TOP) && pile->counted_n[COUNTER_TOP] <= 0)
			usual[node] = now > 0 ? time[node] / now * rest : 0;
	}
	for (int group = COUNTER_FRONTEND; rec->counted && group < COUNTER_GROUPS; group++) {
		enum factor_node parent = counter_group_infos[group].parent;
		bool whole = has(rec->counted, group == COUNTER_MEMORY ? COUNTER_BACKEND : COUNTER_TOP);
		const unsigned char *members;
		double sum = 0;
		int count;

		members = factors__members((enum counter_group)group, &count);
		for (int i = 0; i < count; i++) {
			int node = members[i];

			if (!has(rec->counted, (enum counter_group)group))
				usual[node] = 0;
			else if (pile->counted_n[group] <= 0 && whole)
				usual[node] = time[parent] > 0 ? time[node] / time[parent] * usual[parent] : 0;
			else if (pile->counted_n[group] <= 0)
				usual[node] = now > 0 ? time[node] / now * rest : 0;
			sum += usual[node];
		}
		if (!whole)
			usual[parent] = sum;
	}
	usual[NODE_MEMORY_OTHER] = has(rec->counted, COUNTER_MEMORY) ? 0 : usual[NODE_MEMORY];
	if (!has(rec->counted, COUNTER_TOP)) {
		usual[NODE_RETIRING] = 0;
		usual[NODE_BACKEND] = usual[NODE_MEMORY] + usual[NODE_CORE];
		for (int node = NODE_FRONTEND; node <= NODE_BACKEND; node++)
			known += usual[node];
		usual[NODE_ON_CPU] = fmax(0, rest - known);
	}
}

static void split(const struct bundle_rec *rec, const struct series_pile *normal, double *time, double *usual)
{
	double factor[VAPRO_FACTORS];

	if (rec->factor == bundle_rec_no_factors) {
		memset(time, 0, FACTOR_NODES * sizeof(*time));
		time[NODE_ON_CPU] = fmax(0, rec->sum_ns);
	} else {
		for (int i = 0; i < VAPRO_FACTORS; i++)
			factor[i] = rec->factor[i];
		factors__partition(rec->sum_ns, factor, rec->counted, time);
	}
	if (normal->n > 0)
		usual_of_pile(rec, time, normal, usual);
	else
		usual_of_reference(rec, time, usual);
}

/* Returns the time that holds the price of a set of counts. */
static double priced_time(enum priced set, unsigned counted, bool kernel, const double *time)
{
	if (set == PRICED_KERNEL)
		return kernel ? time[NODE_KERNEL_OTHER] : user_time(time) + time[NODE_KERNEL];
	return has(counted, COUNTER_BACKEND) ? time[NODE_MEMORY_OTHER]
	       : has(counted, COUNTER_TOP)   ? time[NODE_BACKEND]
					     : user_time(time);
}

bool contribution__row(const struct bundle_rec *rec, const struct series_pile *normal, struct contribution_row *row)
{
	double time[FACTOR_NODES], usual[FACTOR_NODES];
	bool kernel;

	if (normal->n <= 0)
		return false; /* nothing to compare the counts with */
	split(rec, normal, time, usual);
	kernel = normal->factor[VAPRO_KERNEL] > 0 || time[NODE_KERNEL] > 0;
	for (int set = 0; set < PRICED_SETS; set++) {
		const struct priced_info *info = &priced_infos[set];
		double y = priced_time(set, rec->counted, kernel, time) - priced_time(set, rec->counted, kernel, usual);

		for (uint32_t i = 0; i < info->count; i++) {
			enum vapro_factor factor = factor_infos[info->first + i].factor;

			row->x[set][i] = rec->factor[factor] / rec->n - normal->factor[factor] / normal->n * rec->ratio;
		}
		row->y[set] = y / rec->n;
	}
	row->n = rec->n;
	return true;
}

void contribution__add_row(struct contribution *contribution, const struct contribution_row *row, double share)
{
	for (int set = 0; set < PRICED_SETS; set++) {
		struct regression_moments *rows = &contribution->rows[set];

		if (!rows->factors)
			regression__begin(rows, priced_infos[set].count);
		regression__add(rows, row->y[set], row->x[set], row->n * share);
	}
}

/* A finer factor is major only below a major one. */
static void add_durations(struct contribution *contribution, const double *impact, double ns, double major_share)
{
	double shares[FACTOR_NODES];
	bool major[FACTOR_NODES + 1] = {[FACTOR_ROOT] = true};

	contribution__shares(impact, shares);
	for (int node = 0; node < FACTOR_NODES; node++) {
		major[node] =
		    shares[node] > major_share && major[factor_infos[node].parent] && !factor_infos[node].rest;
		if (major[node])
			contribution->duration[node] += ns;
	}
}

/* Scales the impact of a factor that is a loss to `part` of it. Returns the time that was removed. */
static double scale_loss(double *impact, enum factor_node node, double part)
{
	double removed = fmax(0, impact[node]) * (1 - part);

	impact[node] -= removed;
	return removed;
}

/*
 * A rank waits in its calls, with a CPU or without: there, time off the CPU is a loss only as far as the call took
 * longer (bundle_rec__loss). The rest counts as waiting on the CPU, where such time was missing.
 */
static void separate_waiting(const struct bundle_rec *rec, double *impact)
{
	static const enum factor_node away[] = {NODE_PREEMPTED, NODE_WAKEUP_WAIT, NODE_THROTTLED, NODE_STEAL,
						NODE_STOPPED};
	double most = bundle_rec__loss(rec).cpu, all = fmax(0, impact[NODE_IRQ]), removed, part;

	removed = rec->waits ? scale_loss(impact, NODE_PREEMPTED, 0) : 0;
	for (size_t i = 0; i < sizeof(away) / sizeof(*away); i++)
		all += fmax(0, impact[away[i]]);
	part = all > most ? most / all : 1;
	for (size_t i = 0; i < sizeof(away) / sizeof(*away); i++)
		removed += scale_loss(impact, away[i], part);
	impact[NODE_SUSPENSION] -= removed;
	scale_loss(impact, NODE_HARD_IRQ, part);
	scale_loss(impact, NODE_SOFT_IRQ, part);
	removed += scale_loss(impact, NODE_IRQ, part);
	impact[NODE_ON_CPU] += fmin(removed, fmax(0, -impact[NODE_ON_CPU]));
}

void contribution__add(struct contribution *contribution, const struct bundle_rec *rec, enum vapro_class class,
		       double share, bool abnormal, const struct series_pile *normal, const struct vapro_config *config)
{
	double time[FACTOR_NODES], usual[FACTOR_NODES], impact[FACTOR_NODES];

	split(rec, normal, time, usual);
	contribution->dur += exact__ns(rec->sum_ns * share);
	contribution->ref += exact__ns((double)rec->reference * rec->n * share);
	contribution->kernel |= time[NODE_KERNEL] > 0 || normal->factor[VAPRO_KERNEL] > 0;
	if (!abnormal) {
		contribution->normal += exact__count(rec->n * share);
		contribution->approx |= rec->max_ns > config->abnormal_ratio * rec->reference;
		return;
	}
	for (int node = 0; node < FACTOR_NODES; node++) {
		enum vapro_factor factor = factor_infos[node].factor;

		impact[node] = time[node] - usual[node];
		if (factors__counted(node))
			impact[node] =
			    rec->factor[factor] -
			    (normal->n > 0 ? normal->factor[factor] / normal->n * bundle_rec__units(rec) : 0);
	}
	if (class == VAPRO_COMMUNICATION)
		separate_waiting(rec, impact);
	add_durations(contribution, impact, exact__ns(rec->sum_ns * share), config->major_share);
	if (!has(rec->counted, COUNTER_TOP)) {
		/* breakdown__make puts together wholes of which only parts are known. */
		impact[NODE_ON_CPU] += impact[NODE_FRONTEND] + impact[NODE_BAD_SPECULATION] + impact[NODE_BACKEND];
		impact[NODE_FRONTEND] = impact[NODE_BAD_SPECULATION] = impact[NODE_BACKEND] = 0;
	}
	if (!has(rec->counted, COUNTER_BACKEND))
		impact[NODE_MEMORY] = 0;
	for (int node = 0; node < FACTOR_NODES; node++)
		contribution->impact[node] +=
		    factors__counted(node) ? exact__count(impact[node] * share) : exact__ns(impact[node] * share);
	for (int group = 0; group < COUNTER_GROUPS; group++)
		contribution->counted[group] +=
		    has(rec->counted, (enum counter_group)group) ? exact__count(rec->n * share) : 0;
	contribution->abnormal += exact__count(rec->n * share);
	contribution->approx |= rec->n > 1 && !(rec->flags & VAPRO_BUNDLE_ABNORMAL);
}

void contribution__merge(struct contribution *into, const struct contribution *from)
{
	for (int node = 0; node < FACTOR_NODES; node++) {
		into->impact[node] += from->impact[node];
		into->duration[node] += from->duration[node];
	}
	for (int group = 0; group < COUNTER_GROUPS; group++)
		into->counted[group] += from->counted[group];
	for (int set = 0; set < PRICED_SETS; set++)
		regression__merge(&into->rows[set], &from->rows[set]);
	into->abnormal += from->abnormal;
	into->normal += from->normal;
	into->dur += from->dur;
	into->ref += from->ref;
	into->approx |= from->approx;
	into->kernel |= from->kernel;
}
