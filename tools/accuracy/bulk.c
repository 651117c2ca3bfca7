/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bundles drawn bin by bin: of each step of each rank one, whose mean, least and most scatter as those of
 * n fragments do. The rest of a bin belongs to the last call, so a rank's time is complete.
 * Jitter only, no effects.
 */
#include "simulation.h"

#include <string.h>

struct bulk {
	double n;		   /* fragments of a step in a bin */
	double wait_ns[JOB_STEPS]; /* mean waiting of calls */
	double extreme, spread;	   /* of n normal numbers: where the largest lies, and its Gumbel scale */
};

/* The mean of the largest of n normal numbers, good to a percent or two. */
static double largest_of(double n)
{
	double root = sqrt(2 * log(fmax(2, n)));

	return root - (log(log(fmax(2, n))) + 2.53) / (2 * root) + 0.577 / root;
}

static double extreme(struct sim *sim, const struct bulk *bulk)
{
	return fmax(0.1, bulk->extreme - bulk->spread * log(-log(draw__unit(&sim->draw) + 1e-12)));
}

static void prepare(const struct sim *sim, struct bulk *bulk)
{
	const struct job *job = sim->job;
	double iteration = 0, scatter = 0, root;

	for (int i = 0; i < job->step_count; i++) {
		const struct job_step *step = &job->steps[i];

		iteration += step->ns;
		if (step->kind == STEP_COMPUTE)
			scatter = hypot(scatter, job->jitter * step->ns);
		if (step->kind == STEP_EXCHANGE)
			bulk->wait_ns[i] = 0.85 * scatter;
		if (step->kind == STEP_COLLECTIVE)
			bulk->wait_ns[i] = largest_of(job->ranks) * scatter;
		iteration += bulk->wait_ns[i];
	}
	bulk->n = floor(VAPRO_BIN_NS / iteration);
	root = sqrt(2 * log(fmax(2, bulk->n)));
	bulk->extreme = root - (log(log(fmax(2, bulk->n))) + 2.53) / (2 * root);
	bulk->spread = 1 / root;
}

static void count(struct sim *sim, int rank, int step, double sum, struct vapro_bundle *bundle)
{
	struct fragment whole = {.rank = rank, .step = step, .end = sum};
	double instructions = 2 * sim->job->steps[step].ns;

	collect__factors(sim, &whole, bundle->factor);
	bundle->magnitude_min[VAPRO_INSTRUCTIONS] = floor(instructions * 0.997);
	bundle->magnitude_max[VAPRO_INSTRUCTIONS] = floor(instructions * 1.003);
}

static void put(struct sim *sim, const struct bulk *bulk, int rank, int step, double from, double sum)
{
	const struct job_step *at = &sim->job->steps[step];
	double mean = sum / bulk->n, low, high;
	bool computes = at->kind == STEP_COMPUTE;
	struct vapro_bundle bundle = {
	    .thread = (uint32_t)rank,
	    .state = (uint32_t)step,
	    .n = (uint32_t)bulk->n,
	    .start_ns = sim_mono(from) + 1,
	    .end_ns = sim_mono(from + VAPRO_BIN_NS) - 2,
	    .sum_ns = (uint64_t)sum,
	    .first_call = sim->ranks[rank].calls,
	};

	if (computes) {
		low = mean * (1 - sim->job->jitter * extreme(sim, bulk));
		high = mean * (1 + sim->job->jitter * extreme(sim, bulk));
	} else {
		low = fmin(mean, at->ns * draw__between(&sim->draw, 1, 1.1));
		high = mean + bulk->wait_ns[step] * draw__between(&sim->draw, 0.5, 1);
		bundle.magnitude_min[VAPRO_BYTES] = bundle.magnitude_max[VAPRO_BYTES] = at->bytes;
	}
	bundle.min_ns = (uint64_t)fmax(0, low);
	bundle.max_ns = (uint64_t)fmax(low, high);
	bundle.last_call = bundle.first_call + bundle.n - 1;
	if (computes && sim->source == VAPRO_BY_INSTRUCTIONS)
		count(sim, rank, step, sum, &bundle);
	sim->ranks[rank].calls += bundle.n;
	sim->totals->fragments += bundle.n;
	sim->totals->fragment_seconds += sum / S_NS;
	collect__bundle(sim, &bundle);
}

static void run_bin(struct sim *sim, const struct bulk *bulk, int rank, double from)
{
	const struct job *job = sim->job;
	double left = (double)VAPRO_BIN_NS - 1000;

	for (int step = 0; step < job->step_count; step++) {
		const struct job_step *at = &job->steps[step];
		double sum = bulk->n * (at->ns + bulk->wait_ns[step]);

		if (at->kind == STEP_COMPUTE)
			sum += sqrt(bulk->n) * job->jitter * at->ns * draw__gauss(&sim->draw);
		else if (step + 1 < job->step_count)
			sum += 0.7 * sqrt(bulk->n) * bulk->wait_ns[step] * draw__gauss(&sim->draw);
		else
			sum = left;
		sum = fmax(0, fmin(sum, left));
		left -= sum;
		put(sim, bulk, rank, step, from, sum);
	}
}

void bulk__run(struct sim *sim)
{
	struct bulk bulk = {0};

	prepare(sim, &bulk);
	for (double from = 0; !sim->status && from < sim->job->seconds * S_NS; from += VAPRO_BIN_NS) {
		for (int rank = 0; !sim->status && rank < sim->job->ranks; rank++)
			run_bin(sim, &bulk, rank, from);
		collect__close_windows(sim, from + VAPRO_BIN_NS);
	}
}
