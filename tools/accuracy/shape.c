/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct fragment begin(const struct sim *sim, int rank, int step, double need)
{
	return (struct fragment){.rank = rank,
				 .step = step,
				 .start = sim->ranks[rank].t,
				 .need = need,
				 .bytes = floor(sim->size * sim->job->steps[step].bytes)};
}

struct moment shape__now(const struct sim *sim, int rank)
{
	return (struct moment){sim->ranks[rank].t, sim->ranks[rank].usual_t};
}

struct moment shape__later(struct moment a, struct moment b)
{
	return (struct moment){fmax(a.at, b.at), fmax(a.usual, b.usual)};
}

static void alone(struct sim *sim, int rank, int step, double need, void (*cost)(struct sim *, struct fragment *))
{
	struct fragment fragment = begin(sim, rank, step, need);
	double before = sim->ranks[rank].t;

	cost(sim, &fragment);
	sim->ranks[rank].usual_t += sim->ranks[rank].t - before;
	collect__fragment(sim, &fragment);
}

void shape__compute(struct sim *sim, int rank, int step, double need)
{
	alone(sim, rank, step, need, cost__compute);
}

void shape__write(struct sim *sim, int rank, int step, double need)
{
	alone(sim, rank, step, need, cost__write);
}

void shape__wait(struct sim *sim, int rank, int step, struct moment until, double need)
{
	struct fragment fragment = begin(sim, rank, step, need);
	double transfer = cost__transfer(sim, &fragment);

	until = shape__later(until, shape__now(sim, rank));
	cost__wait(sim, &fragment, until.at + transfer);
	cost__end_call(sim, &fragment, until.usual + fragment.plain);
	collect__fragment(sim, &fragment);
}

struct moment shape__post(struct sim *sim, int rank, int step, double need)
{
	shape__wait(sim, rank, step, shape__now(sim, rank), need);
	return shape__now(sim, rank);
}

struct members shape__world(const struct sim *sim)
{
	return (struct members){0, 1, sim->job->ranks};
}

void shape__together(struct sim *sim, int step, struct members members, double need)
{
	struct moment last = shape__now(sim, members.first);

	for (int i = 1; i < members.count; i++)
		last = shape__later(last, shape__now(sim, members.first + i * members.stride));
	for (int i = 0; i < members.count; i++)
		shape__wait(sim, members.first + i * members.stride, step, last, need);
}

/* Up to four ranks beside a rank. Returns how many. */
static int beside(const struct job *job, int rank, int *others)
{
	int columns = job->columns, count = 0;

	if (columns <= 1) {
		others[count++] = (rank + job->ranks - 1) % job->ranks;
		others[count++] = (rank + 1) % job->ranks;
		return count;
	}
	if (rank % columns)
		others[count++] = rank - 1;
	if (rank % columns < columns - 1 && rank + 1 < job->ranks)
		others[count++] = rank + 1;
	if (rank >= columns)
		others[count++] = rank - columns;
	if (rank + columns < job->ranks)
		others[count++] = rank + columns;
	return count;
}

void shape__halo(struct sim *sim, int step)
{
	struct moment *arrived = calloc((size_t)sim->job->ranks, sizeof(*arrived));

	if (!arrived) {
		sim->status = sim->status ? sim->status : -ENOMEM;
		return;
	}
	for (int rank = 0; rank < sim->job->ranks; rank++)
		arrived[rank] = shape__now(sim, rank);
	for (int rank = 0; rank < sim->job->ranks; rank++) {
		struct moment last = arrived[rank];
		int others[4], count = beside(sim->job, rank, others);

		for (int i = 0; i < count; i++)
			last = shape__later(last, arrived[others[i]]);
		shape__wait(sim, rank, step, last, 0);
	}
	free(arrived);
}

int shape__first(const struct sim *sim, int first, int last)
{
	int least = first;

	for (int rank = first + 1; rank <= last; rank++)
		least = sim->ranks[rank].t < sim->ranks[least].t ? rank : least;
	return least;
}

bool shape__goes_on(struct sim *sim)
{
	double t = sim->ranks[shape__first(sim, 0, sim->job->ranks - 1)].t;

	collect__close_windows(sim, t);
	return !sim->status && t < sim->job->seconds * S_NS;
}

void shape__leave(struct sim *sim, int rank)
{
	sim->ranks[rank].t = INFINITY;
}

double shape__drawn(const struct sim *sim, double sigma, uint64_t a, uint64_t b)
{
	struct draw draw = {.seed = draw__mix(sim->job->seed ^ draw__mix(a ^ draw__mix(b + 0x9e3779b97f4a7c15ULL)))};

	return sigma > 0 ? exp(sigma * draw__gauss(&draw)) : 1;
}

void shape__steps(struct job *job, const struct job_step *steps, size_t count)
{
	memcpy(job->steps, steps, count * sizeof(*steps));
	job->step_count = (int)count;
}

void shape__usual(struct job *job, struct draw *draw)
{
	bool few = draw__unit(draw) < 0.6;

	job->ranks = job->ranks ? job->ranks : few ? 16 : 32;
	job->hosts = job->hosts ? job->hosts : job->ranks < 4 ? job->ranks : job->ranks / 4;
	job->columns = job->ranks < 4 ? 1 : job->ranks == 16 ? 4 : 8;
	job->seconds = job->seconds > 0 ? job->seconds : 60;
	job->jitter = draw__between(draw, 0.005, 0.02);
}

void shape__scale(struct job *job, double factor)
{
	for (int i = 0; i < job->step_count; i++)
		job->steps[i].ns *= job->steps[i].kind == STEP_COMPUTE ? factor : 1;
}
