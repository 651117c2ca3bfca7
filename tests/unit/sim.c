/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim_collector.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double base_ns[] = {[C1] = 6e6, [C2] = 4e6, [C3] = 3e6};

double sim_random(uint64_t *seed)
{
	uint64_t x = *seed += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

double sim_gauss(uint64_t *seed)
{
	double u = sim_random(seed), v = sim_random(seed);

	return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

void sim_config(struct vapro_config *config)
{
	*config = (struct vapro_config){
	    .window_s = 15,
	    .threshold = 0.85,
	    .min_cells = 2,
	    .min_lost_s = 0.1,
	    .min_share = 0.001,
	    .warning_share = 0.001,
	    .critical_share = 0.05,
	    .support_batches = 25,
	    .valid_bin = 0.1,
	    .cluster_tolerance = 0.05,
	    .cluster_floor = 64,
	    .cluster_cells = 4096,
	    .rare_members = 5,
	    .certify_fragments = 50,
	    .certify_share = 0.7,
	    .certify_width = 0.1,
	    .populous_share = 0.2,
	    .rank_agreement = 0.05,
	    .evidence_share = 0.5,
	    .abnormal_ratio = 1.2,
	    .major_share = 0.25,
	    .p_value = 0.05,
	};
}

static const struct sim_hog *hog_at(const struct sim *sim, int rank, double t, double *next)
{
	*next = INFINITY;
	for (int i = 0; i < sim->s->hog_count; i++) {
		const struct sim_hog *hog = &sim->s->hogs[i];

		if (hog->rank != rank)
			continue;
		if (t >= hog->begin * 1e9 && t < hog->end * 1e9)
			return hog;
		if (t < hog->begin * 1e9)
			*next = fmin(*next, hog->begin * 1e9);
	}
	return NULL;
}

/*
 * Lets a rank run until it has had `need` ns on its CPU and `until` has passed; a hog runs
 * for about 4 ms in between. Returns the time preempted.
 */
static double run(struct sim *sim, int id, double need, double until)
{
	struct rank *rank = &sim->ranks[id];
	double preempted = 0;

	while (need > 0 || rank->t < until) {
		double next, step = fmax(need, until - rank->t);
		const struct sim_hog *hog = hog_at(sim, id, rank->t, &next);

		if (!hog) {
			rank->slice = 0;
			step = fmin(step, fmax(1, next - rank->t));
		} else if (rank->slice <= 0) {
			double burst = 4e6 * (0.75 + 0.5 * sim_random(&sim->seed));

			burst = fmin(burst, hog->end * 1e9 - rank->t);
			sim_preempt(sim, id, hog->pid, rank->t, rank->t + burst);
			rank->t += burst;
			preempted += burst;
			rank->slice = 4e6 * (0.75 + 0.5 * sim_random(&sim->seed));
			continue;
		} else {
			step = fmin(step, rank->slice);
			rank->slice -= step;
		}
		rank->t += step;
		need -= step;
	}
	return preempted;
}

static const double kernel_work[] = {1, 3, 10};

static double work_of(struct sim *sim, int id, int state, int iteration, double *instructions)
{
	const struct sim_scenario *s = sim->s;
	struct rank *rank = &sim->ranks[id];
	double ns = base_ns[state] * (s->scale > 0 ? s->scale : 1), t = rank->t / 1e9;

	if (s->random_work)
		ns *= 0.3 + 1.4 * sim_random(&sim->seed);
	if (s->alternating && state <= C2 && iteration & 1)
		ns *= 2;
	if (s->kernels && state == C1) {
		uint64_t drawn = (uint64_t)iteration * 7919 + 5;

		ns *= kernel_work[s->kernels == SIM_ALTERNATING ? iteration % 3 : (int)(3 * sim_random(&drawn))];
	}
	if (s->modes > 0 && sim_random(&sim->seed) < s->modes)
		ns *= 2;
	if (s->phase_factor > 0 && state == C1 && t >= s->phase_at)
		ns *= s->phase_factor;
	if (s->grow_factor > 0 && t >= s->grow_at)
		ns *= s->grow_factor;
	if (s->slow_rank_factor > 0 && id == s->ranks - 1)
		ns *= s->slow_rank_factor;
	*instructions = ns;
	ns *= 1 + s->drift * t;
	if (s->memory_factor > 0 && id == s->memory_rank && t >= s->memory_begin && t < s->memory_end &&
	    (state == C1 || !s->memory_first))
		ns *= s->memory_factor;
	if (s->bin_noise > 0) {
		uint64_t bin = sim_utc(rank->t) / VAPRO_BIN_NS;

		if (bin != rank->factor_bin) {
			rank->factor_bin = bin;
			rank->bin_factor = 1 + s->bin_noise * sim_random(&sim->seed) * sim_random(&sim->seed);
		}
		ns *= rank->bin_factor;
	}
	return ns * fmax(0.5, 1 + s->noise * sim_gauss(&sim->seed));
}

static void compute(struct sim *sim, int id, int state, int iteration)
{
	struct rank *rank = &sim->ranks[id];
	struct fragment f = {.rank = id, .state = state, .start = rank->t};
	double ns = work_of(sim, id, state, iteration, &f.instructions);

	f.preempted = run(sim, id, ns, 0);
	if (sim->s->naps && state == C3) {
		f.blocked_other = 1.5e6 * (1 + 0.05 * sim_random(&sim->seed));
		rank->t += f.blocked_other;
	}
	if (sim->s->odd_naps > 0 && state == C3 && sim_random(&sim->seed) < sim->s->odd_naps) {
		f.blocked_other += 2e7;
		rank->t += 2e7;
	}
	f.end = rank->t;
	if (f.end < sim->s->seconds * 1e9)
		sim->report->truth_preempted[id % 64] += f.preempted / 1e9;
	sim_emit(sim, &f);
}

static void allreduce(struct sim *sim, int state)
{
	const struct sim_scenario *s = sim->s;
	double last = 0, cost = 2e4 * (1 + 0.3 * sim_random(&sim->seed));

	for (int i = 0; i < s->ranks; i++)
		last = fmax(last, sim->ranks[i].t);
	if (last >= s->transfer_begin * 1e9 && last < s->transfer_end * 1e9)
		cost += s->transfer_ns;
	for (int i = 0; i < s->ranks; i++) {
		struct fragment f = {.rank = i, .state = state, .start = sim->ranks[i].t};

		f.preempted = run(sim, i, 5e3, last + cost);
		f.end = sim->ranks[i].t;
		if (s->spins) {
			sim_preempt(sim, i, 1000 + (uint32_t)((i + 1) % s->ranks), f.start, f.end);
			f.preempted = f.end - f.start;
		}
		sim_emit(sim, &f);
	}
}

static void write_file(struct sim *sim, int id, bool *stalled)
{
	const struct sim_scenario *s = sim->s;
	struct rank *rank = &sim->ranks[id];
	struct fragment f = {.rank = id, .state = W, .start = rank->t};

	f.preempted = run(sim, id, 3e5 * (1 + 0.1 * sim_random(&sim->seed)), 0);
	if (s->stall_s > 0 && !*stalled && id == s->stall_rank && rank->t >= s->stall_at * 1e9) {
		*stalled = true;
		rank->t += s->stall_s * 1e9;
		if (s->stall_attributed)
			f.blocked_io = s->stall_s * 1e9;
	}
	if (s->flush_share > 0 && sim_random(&sim->seed) < s->flush_share) {
		f.blocked_io += 2e7;
		rank->t += 2e7;
	}
	f.end = rank->t;
	sim_emit(sim, &f);
}

static void simulate(struct sim *sim)
{
	const struct sim_scenario *s = sim->s;
	bool stalled = false;

	for (int iteration = 0; sim->ranks[0].t < s->seconds * 1e9; iteration++) {
		for (int i = 0; i < s->ranks; i++)
			compute(sim, i, C1, iteration);
		allreduce(sim, A1);
		for (int i = 0; i < s->ranks; i++) {
			compute(sim, i, C2, iteration);
			if (s->write_every && iteration % s->write_every == s->write_every - 1)
				write_file(sim, i, &stalled);
			compute(sim, i, C3, iteration);
		}
		allreduce(sim, A2);
	}
	for (int i = 0; i < s->ranks; i++)
		sim_flush(sim, &sim->ranks[i]);
}

void sim_run(const struct sim_scenario *scenario, enum vapro_workload_source source, struct sim_report *report)
{
	struct sim sim = {.s = scenario, .report = report, .seed = scenario->seed * 7919 + 1, .source = source};
	struct analysis *analysis;
	struct vapro_config config;

	memset(report, 0, sizeof(*report));
	sim.ranks = calloc((size_t)scenario->ranks, sizeof(*sim.ranks));
	assert_non_null(sim.ranks);
	for (double begin = 0, end = fmin(15, scenario->seconds); begin < scenario->seconds;
	     begin = end, end = fmin(end + 10, scenario->seconds)) {
		sim.windows[sim.window_count].begin = begin * 1e9;
		sim.windows[sim.window_count++].end = end * 1e9;
	}
	simulate(&sim);
	sim_config(&config);
	analysis = analysis__new(&config, source);
	assert_non_null(analysis);
	sim_feed(&sim, analysis);
	analysis__free(analysis);
	for (int i = 0; i < report->found_count; i++) {
		report->alarms += report->found[i].alarm;
		report->ever_alarms += report->found[i].ever_alarm;
	}
	for (int i = 0; i < sim.window_count; i++)
		free(sim.windows[i].open);
	free(sim.bundles);
	free(sim.interference);
	free(sim.ranks);
}
