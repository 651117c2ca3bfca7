// SPDX-License-Identifier: GPL-2.0-or-later
/* The cost of functions' probes, by the counts of every CPU: see row_attacher_private.h. */
#include <stdlib.h>

#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_plan.h"
#include "probe/attach/row_image.h"
#include "probe/attach/row_costs.h"

double row_costs__stepping_ns(const struct costs *costs)
{
	return costs->stepped_call_ns > costs->call_ns ? costs->stepped_call_ns - costs->call_ns : 0;
}

static double stepped_exits(const struct row_function *function)
{
	return function->exit_sites ? (double)function->exit_stepped / function->exit_sites : 0;
}

void row_costs__mark(struct row_probe *probe)
{
	probe->calls_mark = probe->calls;
	probe->cost_mark = probe->cost;
}

/* The cost of one CPU's hits so far. */
static struct row_cost cost_of(const struct costs *costs, const struct row_function *function,
			       const struct kernel_function_counters *hits)
{
	double stepping_ns = row_costs__stepping_ns(costs);
	struct row_cost cost = {
	    .entry_ns = (double)hits->entry_hits * (costs->entry_ns + function->stepped * stepping_ns),
	    .exit_ns = (double)hits->exit_hits * (costs->entry_ns + stepped_exits(function) * stepping_ns)};

	cost.pauses_ns = costs__of_pauses(costs, 0, hits->pauses, hits->preamble_ns);
	cost.entry_ns += cost.pauses_ns;
	return cost;
}

/* Adds the cost since the last time of the busiest CPU: threads wait for their own hits only. */
static void add_busiest(const struct row_attacher *attacher, struct row_probe *probe,
			const struct kernel_function_counters *per_cpu)
{
	struct row_cost busiest = {0};

	for (uint32_t cpu = 0; cpu < attacher->base.cpus; cpu++) {
		struct row_cost now = cost_of(attacher->costs, &probe->function, &per_cpu[cpu]);
		struct row_cost spent = {.entry_ns = now.entry_ns - probe->cpu[cpu].entry_ns,
					 .exit_ns = now.exit_ns - probe->cpu[cpu].exit_ns,
					 .pauses_ns = now.pauses_ns - probe->cpu[cpu].pauses_ns};

		probe->cpu[cpu] = now;
		if (spent.entry_ns + spent.exit_ns > busiest.entry_ns + busiest.exit_ns)
			busiest = spent;
	}
	probe->cost.entry_ns += busiest.entry_ns;
	probe->cost.exit_ns += busiest.exit_ns;
	probe->cost.pauses_ns += busiest.pauses_ns;
}

void row_costs__estimate_exits(const struct costs *costs, struct row_probe *probe)
{
	const struct row_function *function = &probe->function;
	double stepping_ns = row_costs__stepping_ns(costs);
	double entry_ns = costs->entry_ns + function->stepped * stepping_ns;
	double exit_ns = costs->entry_ns + stepped_exits(function) * stepping_ns;
	double pauses_ns = probe->cost.pauses_ns - probe->cost_mark.pauses_ns;
	double spent_ns = probe->cost.entry_ns - probe->cost_mark.entry_ns;

	if (entry_ns > 0)
		probe->cost.exit_ns += pauses_ns + (spent_ns - pauses_ns) * exit_ns / entry_ns;
}

void row_attacher__measure(struct row_attacher *attacher, struct row_probe *probe)
{
	const struct kernel_function_counters *per_cpu = attachments__counters(&attacher->base, probe->function.row);

	if (!per_cpu)
		return;
	probe->calls = 0;
	for (uint32_t cpu = 0; cpu < attacher->base.cpus; cpu++)
		probe->calls += per_cpu[cpu].entry_hits;
	add_busiest(attacher, probe, per_cpu);
}

bool row_costs__share_exit(const struct row_function *a, const struct row_function *b)
{
	for (size_t i = 1; i < a->site_count; i++) /* the first is the entry */
		for (size_t j = 1; j < b->site_count; j++)
			if (a->sites[i].offset == b->sites[j].offset)
				return true;
	return false;
}

void row_image__join_family(struct row_image *image, struct row_probe *probe)
{
	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *other = image->probes[i];
		unsigned int joined = other->family;

		if (other == probe || row_probe__same_family(other, probe) ||
		    !row_costs__share_exit(&other->function, &probe->function))
			continue;
		if (!probe->family)
			probe->family = joined ? joined : ++image->families;
		other->family = probe->family;
		for (size_t j = 0; joined && j < image->probe_count; j++)
			if (image->probes[j]->family == joined)
				image->probes[j]->family = probe->family;
	}
}

struct row_load *row_costs__loads(struct row_probe *const *probes, size_t count)
{
	struct row_load *loads = calloc(count + 1, sizeof(*loads));

	for (size_t i = 0; loads && i < count; i++)
		loads[i] = (struct row_load){
		    .family = probes[i]->family, .share = probes[i]->share, .own_share = probes[i]->own_share};
	return loads;
}

/* Cost of hits at exits with a function's number since its mark. */
static double exits_ns(const struct row_probe *probe)
{
	return probe->cost.exit_ns - probe->cost_mark.exit_ns;
}

void row_attacher__rate(struct row_attacher *attacher, struct row_probe *const *probes, size_t count, double passed_ns,
			double processes)
{
	for (size_t i = 0; i < count; i++)
		row_attacher__measure(attacher, probes[i]);
	for (size_t i = 0; i < count; i++) {
		struct row_probe *probe = probes[i];
		double entry_ns = probe->cost.entry_ns - probe->cost_mark.entry_ns, exit_ns = exits_ns(probe);

		probe->own_share = (entry_ns + exit_ns) / passed_ns;
		for (size_t j = 0; j < count; j++)
			if (exits_ns(probes[j]) > exit_ns && row_probe__same_family(probe, probes[j]) &&
			    row_costs__share_exit(&probe->function, &probes[j]->function))
				exit_ns = exits_ns(probes[j]);
		probe->calls_per_s =
		    (double)(probe->calls - probe->calls_mark) / passed_ns * 1e9 / (processes > 1 ? processes : 1);
		probe->share = (entry_ns + exit_ns) / passed_ns;
	}
}

static void scale(struct row_cost *cost, double ratio)
{
	cost->entry_ns *= ratio;
	cost->exit_ns *= ratio;
	cost->pauses_ns *= ratio;
}

void row_attacher__scale(struct row_attacher *attacher, double ratio)
{
	for (size_t i = 0; i < attacher->base.count; i++)
		for (size_t j = 0; j < row_attacher__image(attacher, i)->probe_count; j++) {
			struct row_probe *probe = row_attacher__image(attacher, i)->probes[j];

			scale(&probe->cost, ratio);
			scale(&probe->cost_mark, ratio);
			for (uint32_t cpu = 0; cpu < attacher->base.cpus; cpu++)
				scale(&probe->cpu[cpu], ratio);
		}
}
