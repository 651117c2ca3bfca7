// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions with exits of their own, as those of OpenMP, may spend what the calls of their process and its waits for
 * vaprod leave: the calls show all time of its main thread, and functions that are open by turns little. The hits of
 * both divide the cost.
 */
#include "overhead/enforcer_private.h"

#include <stdio.h>

#define CALLS_NS 1e9	 /* open time after which the share of calls is updated */
#define CALLS_WEIGHT 0.3 /* weight of the new value */

uint32_t enforcer__others(const struct enforcer *enforcer, const struct governed *governed)
{
	return governed->duty ? enforcer->ops.others(enforcer->ctx, governed->duty->image) : 0;
}

static void add_calls(struct calls_cost *calls, const struct costs *costs, const struct kernel_counters *delta,
		      double cost_ns)
{
	double exits = (double)delta->exit * costs__extra(costs->call_ns, costs->entry_ns);
	double all = (double)(delta->enter + delta->left) * costs->entry_ns + exits;

	if (all > 0)
		calls->cost_ns += cost_ns * ((double)(delta->enter - delta->rows) * costs->entry_ns + exits) / all;
}

void enforcer__add_hits(struct governed *governed, const struct costs *costs, const struct kernel_counters *delta,
			uint32_t others, double busiest)
{
	struct governor_load *load = &governed->load;
	double for_others = costs__of_others(costs, delta, others), pauses;

	add_calls(&governed->calls_cost, costs, delta, costs__of(costs, delta) * busiest);
	governed->calls_cost.cost_ns += for_others * busiest;
	/* and returns could be suppressed without them */
	if (others && governed->process.spares_returns)
		for_others += (double)delta->exit * costs__extra(costs->call_ns, costs->entry_ns);
	governed->others_ns += for_others * busiest;
	load->pauses_ns += costs__after_pauses(costs, delta, &pauses) * busiest;
	load->pauses += pauses * busiest;
	load->entries += (double)(delta->enter + delta->left) * busiest;
}

void enforcer__limit_rows(const struct enforcer *enforcer, struct governed *governed, uint64_t now_ns)
{
	struct calls_cost *calls = &governed->calls_cost;
	double rate = governor__rate_left(&enforcer->governor, &governed->account, now_ns), share, waits;

	if (calls->open_ns < CALLS_NS || enforcer->governor.rate <= 0)
		return;
	share = calls->cost_ns / calls->open_ns;
	calls->share += calls->share > 0 ? CALLS_WEIGHT * (share - calls->share) : share;
	waits = calls->early_waits_ns / calls->open_ns;
	calls->open_ns = calls->cost_ns = calls->early_waits_ns = 0;
	enforcer->ops.limit_rows(enforcer->ctx, governed->process.pid, rate - calls->share - waits, now_ns);
}

void enforcer__describe_load(const struct governed *governed, char *text, size_t size)
{
	const struct governor_load *load = &governed->load;
	int used = snprintf(text, size, "process %d (%s)", governed->process.pid, governed->exe);

	if (load->open_ns > 0 && (size_t)used < size)
		snprintf(text + used, size - (size_t)used, ": %.0f calls/s cost %.2g %% of its time",
			 (double)(governed->process.counters->enter - governed->load_calls) / (load->open_ns * 1e-9),
			 load->cost_ns / load->open_ns * 100);
}
