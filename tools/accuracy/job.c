/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SOCKETS 2

int job__host(const struct job *job, int rank)
{
	return job->cyclic ? rank % job->hosts : (int)((int64_t)rank * job->hosts / job->ranks);
}

int job__socket(const struct job *job, int rank)
{
	int host = job__host(job, rank), first, next, number, count;

	if (job->cyclic) {
		number = rank / job->hosts;
		count = (job->ranks - host + job->hosts - 1) / job->hosts;
	} else {
		first = (host * job->ranks + job->hosts - 1) / job->hosts;
		next = ((host + 1) * job->ranks + job->hosts - 1) / job->hosts;
		number = rank - first;
		count = next - first;
	}
	return host * SOCKETS + (2 * number >= count);
}

bool job__has(const struct job *job, const struct job_ranks *ranks, int rank)
{
	int number = ranks->of == RANKS_HOST	 ? job__host(job, rank)
		     : ranks->of == RANKS_SOCKET ? job__socket(job, rank)
						 : rank;

	if (ranks->of == RANKS_SECOND_SOCKETS)
		return job__socket(job, rank) & 1;
	return ranks->of == RANKS_ALL || (number >= ranks->first && number <= ranks->last);
}

void job__program(struct job *job, double length_ns, double calls, double writes)
{
	const struct job_step steps[] = {
	    [JOB_COMPUTE] = {.kind = STEP_COMPUTE, .ns = length_ns, .memory = 0.1},
	    [JOB_EXCHANGE] = {.kind = STEP_EXCHANGE, .ns = 0.6 * calls * length_ns, .bytes = 65536},
	    [JOB_MEMORY] = {.kind = STEP_COMPUTE, .ns = 0.7 * length_ns, .memory = 0.6},
	    [JOB_ALLREDUCE] = {.kind = STEP_COLLECTIVE, .ns = 0.4 * calls * length_ns, .bytes = 8},
	    [JOB_WRITE] = {.kind = STEP_WRITE, .ns = writes * length_ns, .bytes = 1 << 20},
	};

	memcpy(job->steps, steps, sizeof(steps));
	job->step_count = writes > 0 ? JOB_WRITE + 1 : JOB_ALLREDUCE + 1;
}

struct job_effect *job__effect(struct job *job, enum effect_kind kind, double begin, double end, double factor)
{
	struct job_effect *effect = &job->effects[job->effect_count++];

	*effect = (struct job_effect){.kind = kind, .begin = begin, .end = end, .factor = factor};
	switch (kind) {
	case EFFECT_CPU_BUSY:
	case EFFECT_STALLS:
	case EFFECT_MOVING:
		effect->cause = VAPRO_PREEMPTED;
		effect->reported = true;
		break;
	case EFFECT_FREQUENCY:
		effect->cause = VAPRO_FREQUENCY;
		effect->reported = true;
		break;
	case EFFECT_SLEEP:
	case EFFECT_DEVICE:
		effect->cause = VAPRO_BLOCKED_OTHER;
		effect->reported = true;
		break;
	default:
		effect->cause = VAPRO_DRAM;
	}
	return effect;
}

struct job_effect *job__fault(struct job *job, enum vapro_class class, enum finding counts, enum finding arguments,
			      enum effect_kind kind, double begin, double end, double factor)
{
	struct job_effect *effect = job__effect(job, kind, begin, end, factor);

	job->faults[job->fault_count++] = (struct job_fault){
	    .class = class,
	    .expected = {[VAPRO_BY_INSTRUCTIONS] = counts, [VAPRO_BY_ARGUMENTS] = arguments},
	};
	effect->fault = job->fault_count;
	return effect;
}

static struct fragment begin_fragment(const struct sim *sim, int rank, int step)
{
	return (struct fragment){.rank = rank, .step = step, .start = sim->ranks[rank].t};
}

/* When ranks enter a call, and when they would without slow calls. */
struct arrivals {
	double *at, *usual;
};

static void exchange(struct sim *sim, int step, const struct arrivals *arrived)
{
	int ranks = sim->job->ranks;

	for (int rank = 0; rank < ranks; rank++) {
		arrived->at[rank] = sim->ranks[rank].t;
		arrived->usual[rank] = sim->ranks[rank].usual_t;
	}
	for (int rank = 0; rank < ranks; rank++) {
		struct fragment fragment = begin_fragment(sim, rank, step);
		int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
		double transfer = cost__transfer(sim, &fragment);
		double last = fmax(arrived->at[rank], fmax(arrived->at[left], arrived->at[right]));
		double usual = fmax(arrived->usual[rank], fmax(arrived->usual[left], arrived->usual[right]));

		cost__wait(sim, &fragment, last + transfer);
		cost__end_call(sim, &fragment, usual + fragment.plain);
		collect__fragment(sim, &fragment);
	}
}

static void collective(struct sim *sim, int step)
{
	double last = 0, usual = 0;

	for (int rank = 0; rank < sim->job->ranks; rank++) {
		last = fmax(last, sim->ranks[rank].t);
		usual = fmax(usual, sim->ranks[rank].usual_t);
	}
	for (int rank = 0; rank < sim->job->ranks; rank++) {
		struct fragment fragment = begin_fragment(sim, rank, step);

		cost__wait(sim, &fragment, last + cost__transfer(sim, &fragment));
		cost__end_call(sim, &fragment, usual + fragment.plain);
		collect__fragment(sim, &fragment);
	}
}

static void alone(struct sim *sim, int step)
{
	for (int rank = 0; rank < sim->job->ranks; rank++) {
		struct fragment fragment = begin_fragment(sim, rank, step);
		double before = sim->ranks[rank].t;

		if (sim->job->steps[step].kind == STEP_COMPUTE)
			cost__compute(sim, &fragment);
		else
			cost__write(sim, &fragment);
		sim->ranks[rank].usual_t += sim->ranks[rank].t - before;
		collect__fragment(sim, &fragment);
	}
}

static double earliest(const struct sim *sim)
{
	double t = INFINITY;

	for (int rank = 0; rank < sim->job->ranks; rank++)
		t = fmin(t, sim->ranks[rank].t);
	return t;
}

static void simulate(struct sim *sim, const struct arrivals *arrived)
{
	const struct job *job = sim->job;

	while (!sim->status && earliest(sim) < job->seconds * S_NS) {
		for (int step = 0; step < job->step_count; step++) {
			const struct job_step *at = &job->steps[step];

			if (at->every && (unsigned)sim->iteration % at->every != at->every - 1)
				continue;
			if (at->kind == STEP_EXCHANGE)
				exchange(sim, step, arrived);
			else if (at->kind == STEP_COLLECTIVE)
				collective(sim, step);
			else
				alone(sim, step);
		}
		sim->iteration++;
		collect__close_windows(sim, earliest(sim));
	}
}

static void free_sim(struct sim *sim)
{
	for (int rank = 0; sim->ranks && rank < sim->job->ranks; rank++)
		free(sim->ranks[rank].held);
	for (int i = 0; i < JOB_EFFECTS; i++)
		free(sim->occurrences[i]);
	free(sim->ranks);
	free(sim->pending);
	free(sim->spanning);
	free(sim->interference);
}

int job__run(const struct job *job, enum vapro_workload_source source, double window_s, struct stream_sink *sink,
	     struct truths *truths, struct job_totals *totals)
{
	struct sim sim = {
	    .job = job,
	    .source = source,
	    .sink = sink,
	    .draw = {.seed = job->seed * 7919 + 1},
	    .ranks = calloc((size_t)job->ranks, sizeof(*sim.ranks)),
	    .truths = truths,
	    .totals = totals,
	    .window_end = fmin(window_s, job->seconds) * S_NS,
	    .window_s = window_s,
	};
	double *times = calloc((size_t)job->ranks, 2 * sizeof(*times));

	*truths = (struct truths){0};
	*totals = (struct job_totals){.elapsed_seconds = job->ranks * job->seconds};
	for (int i = 0; i < JOB_FAULTS; i++)
		sim.truth_of[i] = -1;
	if (!sim.ranks || !times || !cost__prepare(&sim)) {
		sim.status = -ENOMEM;
	} else {
		collect__announce(&sim);
		if (job->bulk)
			bulk__run(&sim);
		else if (job->shape)
			job->shape->run(&sim);
		else
			simulate(&sim, &(struct arrivals){times, times + job->ranks});
		collect__end(&sim);
		truth__settle(&sim);
	}
	free_sim(&sim);
	free(times);
	return sim.status;
}
