/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of faults, summed up while the job is simulated. */
#include "simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUPPORT 25  /* batches that make a reference */
#define LONELY_S 30 /* that one rank alone needs for one */
#define WARM_UP 10  /* members of a workload that are not judged */
#define BATCH 5	    /* least members of a batch */
#define BAR 1.175   /* ratio to the undisturbed duration: faults below have no sharp begin */
#define AT_ONCE_S 1 /* a fault that begins before is from the start */

long truth__begin(struct sim *sim, int effect)
{
	int fault = sim->job->effects[effect].fault - 1;
	struct truths *truths = sim->truths;
	size_t old = sim->truth_capacity;

	if (truths->count == old) {
		size_t fresh = old ? 2 * old : 8;
		struct truth *items = realloc(truths->items, fresh * sizeof(*items));
		unsigned char **lost = realloc(sim->lost, fresh * sizeof(*lost));
		void *batches = realloc(sim->batches, fresh * sizeof(*sim->batches));
		void *step_lost = realloc(sim->step_lost, fresh * sizeof(*sim->step_lost));

		truths->items = items ? items : truths->items;
		sim->lost = lost ? lost : sim->lost;
		sim->batches = batches ? batches : sim->batches;
		sim->step_lost = step_lost ? step_lost : sim->step_lost;
		if (!items || !lost || !batches || !step_lost)
			goto full;
		sim->truth_capacity = fresh;
	}
	sim->lost[truths->count] = calloc((size_t)sim->job->ranks, 1);
	if (!sim->lost[truths->count])
		goto full;
	for (int i = 0; i < JOB_STEPS; i++) {
		sim->batches[truths->count][i] = (double)sim->all_batches[i];
		sim->step_lost[truths->count][i] = 0;
	}
	truths->items[truths->count] = (struct truth){
	    .fault = fault,
	    .class = sim->job->faults[fault].class,
	    .expected = sim->job->faults[fault].expected[sim->source],
	    .vague = sim->job->faults[fault].vague,
	    .stall = sim->job->effects[effect].kind == EFFECT_STALLS,
	    .cause = sim->job->effects[effect].reported ? sim->job->effects[effect].cause : VAPRO_FACTORS,
	    .begin = INFINITY,
	    .first = INFINITY,
	    .judged = INFINITY,
	};
	sim->truth_of[fault] = (long)truths->count++;
	return sim->truth_of[fault];
full:
	sim->status = sim->status ? sim->status : -ENOMEM;
	return -1;
}

static enum vapro_class class_of(const struct sim *sim, int step)
{
	switch (sim->job->steps[step].kind) {
	case STEP_COMPUTE:
		return VAPRO_COMPUTATION;
	case STEP_WRITE:
		return VAPRO_IO;
	default:
		return VAPRO_COMMUNICATION;
	}
}

void truth__lose(struct sim *sim, int effect, struct fragment *fragment, double from, double extra_ns, bool reported)
{
	int fault = sim->job->effects[effect].fault - 1;
	double end = sim->job->seconds * S_NS;
	struct touched *touched = NULL;
	struct truth *truth;
	long index;

	if (fault < 0 || from >= end || fragment->start >= end)
		return;
	index = sim->truth_of[fault];
	if (index < 0)
		index = truth__begin(sim, effect);
	if (index < 0)
		return;
	for (int i = 0; i < fragment->touched_count; i++) {
		if (fragment->touched[i].truth == (uint32_t)index)
			touched = &fragment->touched[i];
	}
	if (!touched && fragment->touched_count < TOUCHED) {
		touched = &fragment->touched[fragment->touched_count++];
		*touched = (struct touched){.truth = (uint32_t)index};
	}
	if (touched)
		touched->extra_ns += extra_ns;
	truth = &sim->truths->items[index];
	truth->begin = fmin(truth->begin, from / S_NS);
	truth->end = fmax(truth->end, fmin(from + extra_ns, end) / S_NS);
	truth->lost[class_of(sim, fragment->step)] += extra_ns / S_NS;
	truth->attributed += reported ? extra_ns / S_NS : 0;
	truth->hits += sim->job->effects[effect].kind == EFFECT_HITS;
	sim->lost[index][fragment->rank] = 1;
	sim->step_lost[index][fragment->step] += extra_ns;
}

void truth__extend(struct sim *sim, int effect, double until)
{
	int fault = sim->job->effects[effect].fault - 1;
	long index = fault < 0 ? -1 : sim->truth_of[fault];

	if (index >= 0)
		sim->truths->items[index].end =
		    fmax(sim->truths->items[index].end, fmin(until / S_NS, sim->job->seconds));
}

static void count_batches(struct sim *sim, const struct fragment *fragment)
{
	struct rank *rank = &sim->ranks[fragment->rank];
	uint64_t bin = sim_utc(fragment->end) / VAPRO_BIN_NS;
	int step = fragment->step;
	unsigned fresh = 0;

	if (sim->job->steps[step].kind != STEP_COMPUTE)
		rank->members[step]++;
	if (rank->members[step] <= WARM_UP)
		return;
	if (rank->slice_bin[step] != bin) {
		if (rank->slice_members[step] >= BATCH)
			fresh++;
		else
			rank->carried[step] += rank->slice_members[step];
		rank->slice_members[step] = 0;
		rank->slice_bin[step] = bin;
	}
	rank->slice_members[step]++;
	if (rank->carried[step] >= BATCH) {
		fresh += rank->carried[step] / BATCH;
		rank->carried[step] %= BATCH;
	}
	rank->batches[step] += fresh;
	sim->all_batches[step] += fresh;
}

/* Members of its workload before a fragment that has ended: computations are counted when they begin. */
static unsigned members_before(const struct sim *sim, const struct fragment *fragment)
{
	unsigned members = sim->ranks[fragment->rank].members[fragment->step];

	return sim->job->steps[fragment->step].kind == STEP_COMPUTE ? members - 1 : members;
}

/* A fragment has ended: its loss is compared with its undisturbed duration. */
void truth__count(struct sim *sim, const struct fragment *fragment)
{
	double whole = fragment->end - fragment->start;

	for (int i = 0; i < fragment->touched_count; i++) {
		struct truth *truth = &sim->truths->items[fragment->touched[i].truth];
		double without = whole - fragment->touched[i].extra_ns;

		/* of calls that wait, the transfer alone */
		if (sim->job->steps[fragment->step].kind == STEP_EXCHANGE ||
		    sim->job->steps[fragment->step].kind == STEP_COLLECTIVE)
			without = fmin(without, 1.1 * sim->job->steps[fragment->step].ns);
		truth->first = fmin(truth->first, fragment->start / S_NS);
		if (whole >= BAR * without && class_of(sim, fragment->step) == truth->class &&
		    members_before(sim, fragment) >= WARM_UP)
			truth->judged = fmin(truth->judged, fragment->start / S_NS);
		truth->last = fmax(truth->last, fmin(fragment->end / S_NS, sim->job->seconds));
		/* A fragment that the run's end cuts off shows the fault if it has lost by then what a fault must cost.
		 */
		if (fragment->end / S_NS <= sim->job->seconds ||
		    sim->job->seconds - (fragment->start + without) / S_NS >= JOB_LEAST_LOST_S)
			truth->shown = fmax(truth->shown, fmin(fragment->end / S_NS, sim->job->seconds));
		if (class_of(sim, fragment->step) != truth->class)
			continue;
		truth->fragment = fmax(truth->fragment, without / S_NS);
		truth->base += without / S_NS;
	}
	/* in a fault's time, but not disturbed */
	for (uint32_t left = sim->ranks[fragment->rank].active; left; left &= left - 1) {
		const struct job_effect *effect = &sim->job->effects[__builtin_ctz(left)];
		long index = effect->fault ? sim->truth_of[effect->fault - 1] : -1;
		bool counts = index >= 0 && effect->kind == EFFECT_CPU_BUSY &&
			      sim->job->steps[fragment->step].kind == STEP_COMPUTE;

		for (int i = 0; i < fragment->touched_count; i++)
			counts = counts && fragment->touched[i].truth != (uint32_t)index;
		if (counts)
			sim->truths->items[index].base += whole / S_NS;
	}
	count_batches(sim, fragment);
}

/* Batches of one step of ranks without a fault. */
static double healthy(const struct sim *sim, const unsigned char *lost, int step)
{
	double batches = 0;

	for (int rank = 0; rank < sim->job->ranks; rank++)
		batches += lost[rank] ? 0 : sim->ranks[rank].batches[step];
	return batches;
}

static void settle(struct sim *sim, size_t index)
{
	struct truth *truth = &sim->truths->items[index];
	const unsigned char *lost = sim->lost[index];
	int worst = 0;

	truth->ranks = calloc((size_t)sim->job->ranks, sizeof(*truth->ranks));
	for (int rank = 0; truth->ranks && rank < sim->job->ranks; rank++) {
		if (lost[rank])
			truth->ranks[truth->rank_count++] = rank;
	}
	for (int i = 1; i < sim->job->step_count; i++) {
		if (sim->step_lost[index][i] > sim->step_lost[index][worst])
			worst = i;
	}
	truth->batches = sim->batches[index][worst];
	/* a fault from the start is found in comparison with ranks without a fault */
	if (truth->begin < AT_ONCE_S)
		truth->batches = healthy(sim, lost, worst);
	truth->unsupported =
	    !sim->job->few && (truth->batches < SUPPORT || (sim->job->ranks == 1 && truth->begin < LONELY_S));
	/* A fault that lasts to the end of the run ends there, or with the last fragment that shows it. */
	if (truth->end > sim->job->seconds)
		truth->end = sim->job->seconds;
	if (truth->end > truth->shown && truth->shown > truth->begin)
		truth->end = truth->shown;
}

void truth__settle(struct sim *sim)
{
	size_t retained = 0;

	for (size_t i = 0; i < sim->truths->count; i++) {
		settle(sim, i);
		/* an occurrence that never came */
		if (!sim->truths->items[i].rank_count) {
			free(sim->truths->items[i].ranks);
			continue;
		}
		sim->truths->items[retained++] = sim->truths->items[i];
	}
	for (size_t i = 0; i < sim->truths->count; i++)
		free(sim->lost[i]);
	sim->truths->count = retained;
	free(sim->lost);
	free(sim->batches);
	free(sim->step_lost);
}

void truths__free(struct truths *truths)
{
	for (size_t i = 0; i < truths->count; i++)
		free(truths->items[i].ranks);
	free(truths->items);
	*truths = (struct truths){0};
}
