// SPDX-License-Identifier: GPL-2.0-or-later
/* The cost of functions' probes, by the counts of every CPU: see row_attacher_private.h. */
#include "probe/attach/row_costs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_image.h"
#include "probe/attach/row_plan.h"

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

/* Call rates of functions before they are opened: see row_attacher.h. */

#define LOOK_NS 10000000ULL	 /* long enough for a function that is too expensive */
#define LONG_LOOK_NS 20000000ULL /* where there was little to count */
#define LOOK_FEW 16		 /* fewer calls count as little */
#define LOOK_HITS_NS 3000000.0	 /* most that the hits of a look may cost, each after a long pause */
#define LOOK_HITS 50		 /* least hits that end a look */
#define LOOK_STEP_NS 1000000
#define LEARN_NS 500000000ULL /* between two looks at teams' functions, then twice as long each time */
#define LEARN_LOOKS 6

static uint64_t hits_of(const struct row_attacher *attacher)
{
	return __atomic_load_n(kernel_side__shared(attacher->base.side)->row_looks, __ATOMIC_RELAXED);
}

/* Waits until enough was counted. */
static void wait_for_hits(const struct row_attacher *attacher, uint64_t begin_ns, uint64_t enough)
{
	const struct timespec step = {.tv_nsec = LOOK_STEP_NS};
	uint64_t before = hits_of(attacher);

	for (;;) {
		uint64_t passed, hits;

		nanosleep(&step, NULL);
		passed = mono_now() - begin_ns;
		hits = hits_of(attacher) - before;
		if (hits >= enough || passed >= LONG_LOOK_NS || (passed >= LOOK_NS && hits >= LOOK_FEW))
			return;
	}
}

/* The number of hits that is enough and costs little. */
static uint64_t enough_hits(const struct costs *costs, struct row_probe *const *probes, size_t count,
			    enum row_sites_wanted wanted)
{
	double most = costs->entry_ns + costs->pause_ns[0][KERNEL_PAUSES - 1];
	bool stepped = false;

	for (size_t i = 0; i < count && !stepped; i++)
		stepped = probes[i]->function.stepped || (wanted == ROW_LOOK && probes[i]->function.exit_stepped);
	if (stepped)
		most += row_costs__stepping_ns(costs);
	return most * LOOK_HITS < LOOK_HITS_NS ? (uint64_t)(LOOK_HITS_NS / most) : LOOK_HITS;
}

/* The process to look at: 0 where links are for all of them, else one stands for the others. */
static pid_t subject_of(const struct row_image *image)
{
	const struct attached *base = &image->base;

	for (size_t i = 0; i < base->mapper_count; i++)
		if (!base->alone[i])
			return 0;
	return base->mapper_count ? base->pids[base->mapper_count - 1] : 0;
}

/* Counts the hits of functions at these sites, from their marks on. */
static int count_hits(struct row_attacher *attacher, struct row_image *image, struct row_probe *const *probes,
		      size_t count, enum row_sites_wanted wanted)
{
	pid_t pid = subject_of(image);
	double processes = pid || !image->base.mapper_count ? 1 : (double)image->base.mapper_count;
	struct kernel_link *link = NULL;
	uint64_t begin_ns, end_ns;
	int status;

	status = row_attacher__link(attacher, image, probes, count, wanted, pid, NULL, &link);
	if (status)
		return status;
	/* hits while the link was set belong to no known time */
	for (size_t i = 0; i < count; i++) {
		row_attacher__measure(attacher, probes[i]);
		row_costs__mark(probes[i]);
	}
	begin_ns = mono_now();
	wait_for_hits(attacher, begin_ns, enough_hits(attacher->costs, probes, count, wanted));
	end_ns = mono_now();
	for (size_t i = 0; i < count && wanted == ROW_LOOK_ENTRIES; i++) {
		row_attacher__measure(attacher, probes[i]);
		row_costs__estimate_exits(attacher->costs, probes[i]);
	}
	row_attacher__rate(attacher, probes, count, (double)(end_ns - begin_ns), processes);
	attachments__unlink(&attacher->base, link);
	return 0;
}

int row_image__look(struct row_attacher *attacher, struct row_image *image, struct row_probe *const *probes,
		    size_t count, double most)
{
	struct row_probe **fitting = calloc(count + 1, sizeof(*fitting));
	struct row_load *loads = NULL;
	double highest = 0;
	size_t fitting_count = 0;
	int status = -ENOMEM;

	if (!fitting)
		return status;
	for (size_t i = 0; i < count; i++)
		row_attacher__describe_row(attacher, image, probes[i]);
	status = count_hits(attacher, image, probes, count, ROW_LOOK_ENTRIES);
	for (size_t i = 0; i < count; i++)
		highest = fmax(highest, probes[i]->share);
	for (size_t i = 0; i < count; i++) {
		/* the functions that it ends in may be those that others call too often */
		if (highest > most && !probes[i]->share && probes[i]->function.ends_elsewhere)
			probes[i]->share = highest;
	}
	loads = row_costs__loads(probes, count);
	if (loads)
		row_plan__sum_families(loads, count);
	for (size_t i = 0; loads && i < count; i++)
		if (loads[i].family_share <= most)
			fitting[fitting_count++] = probes[i];
	if (!status && fitting_count)
		status = count_hits(attacher, image, fitting, fitting_count, ROW_LOOK);
	free(loads);
	free(fitting);
	return status;
}

void row_image__learn_teams(struct row_attacher *attacher, struct row_image *image, uint64_t now_ns)
{
	struct row_probe **forks;
	size_t count = 0;
	uint64_t calls = 0;

	if (!image->learn_ns || now_ns < image->learn_ns)
		return;
	image->learn_ns = 0;
	forks = calloc(image->probe_count + 1, sizeof(*forks));
	for (size_t i = 0; forks && i < image->probe_count; i++)
		if (image->probes[i]->state == ROW_LEFT_OUT &&
		    functions__row(image->probes[i]->function.row)->kind == KERNEL_ROW_FORK)
			forks[count++] = image->probes[i];
	if (count && !count_hits(attacher, image, forks, count, ROW_LOOK_ENTRIES)) {
		for (size_t i = 0; i < count; i++)
			calls += forks[i]->calls - forks[i]->calls_mark;
		if (!calls && image->learn_looks < LEARN_LOOKS)
			image->learn_ns = now_ns + (LEARN_NS << image->learn_looks++);
	}
	free(forks);
}
