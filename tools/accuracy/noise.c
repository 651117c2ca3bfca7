/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is random in a healthy machine. All of it is silent: no counter and no record of the kernel shows it. */
#include "simulation.h"

#define TAIL_SHARE 0.02 /* of computations that have a Pareto tail */
#define TAIL_MOST 30	/* times as long */
#define WARM_S 14

/* Speed of a rank: an AR(1) process that is looked at when a computation begins. */
static double wander(struct sim *sim, struct rank *rank)
{
	const struct job_noise *noise = &sim->job->noise;
	double correlation = exp(-(rank->t - rank->speed_t) / (noise->wander_s * S_NS));

	rank->speed = correlation * rank->speed + sqrt(1 - correlation * correlation) * draw__gauss(&sim->draw);
	rank->speed_t = rank->t;
	return 1 + noise->wander * fmax(-3, fmin(3, rank->speed));
}

static double of_host(const struct sim *sim, int rank, double t_s)
{
	const struct job_noise *noise = &sim->job->noise;
	uint64_t host = (uint64_t)job__host(sim->job, rank), seed = sim->job->seed;
	double factor = 1;

	if (noise->wave > 0)
		factor *= 1 + noise->wave * sin(6.283185307 * (t_s / noise->wave_s + draw__hash(seed, host, 1)));
	if (noise->steps > 0) {
		double shift = draw__hash(seed, host, 2);

		factor *= 1 + noise->steps * draw__hash(seed, host, 3 + (uint64_t)(t_s / noise->steps_s + shift));
	}
	return factor;
}

double noise__computation(struct sim *sim, const struct fragment *fragment)
{
	const struct job_noise *noise = &sim->job->noise;
	struct rank *rank = &sim->ranks[fragment->rank];
	double factor = of_host(sim, fragment->rank, rank->t / S_NS);

	if (noise->heavy > 0)
		factor *= exp(noise->heavy * draw__gauss(&sim->draw));
	if (noise->pareto > 0 && draw__unit(&sim->draw) < TAIL_SHARE)
		factor *= fmin(TAIL_MOST, pow(1 - draw__unit(&sim->draw), -1 / noise->pareto));
	if (noise->wander > 0)
		factor *= wander(sim, rank);
	if (noise->alternates > 1 && rank->members[fragment->step] % 2)
		factor *= noise->alternates;
	if (noise->locality > 1)
		factor *= 1 + (noise->locality - 1) * draw__hash(sim->job->seed, (uint64_t)fragment->rank, 0x10ca1);
	return factor;
}

double noise__call(struct sim *sim, const struct fragment *fragment)
{
	const struct job_step *step = &sim->job->steps[fragment->step];
	double sigma = step->kind == STEP_WRITE ? sim->job->noise.writes : sim->job->noise.calls;

	sigma = fmax(sigma, step->scatter);
	return sigma > 0 ? exp(sigma * draw__gauss(&sim->draw)) : 1;
}

/* Code that is not compiled yet takes more instructions as well as more time. */
double noise__work(const struct sim *sim, int rank)
{
	double t_s = sim->ranks[rank].t / S_NS, warm = sim->job->noise.warm;

	return warm > 1 && t_s < WARM_S ? 1 + (warm - 1) * (1 - t_s / WARM_S) : 1;
}

/* Error of a counter, as where it is multiplexed. */
double noise__counter(struct sim *sim)
{
	double error = sim->job->noise.counters;

	return error > 0 ? 1 + error * draw__gauss(&sim->draw) : 1;
}
