// SPDX-License-Identifier: GPL-2.0-or-later
/* Call rates of functions before they are opened: see row_attacher.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_costs.h"
#include "probe/attach/row_plan.h"
#include "probe/attach/row_image.h"

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
