/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What programs of a shape of their own consist of: what one rank does next. Each rank has a clock of its own. A rank
 * computes, posts, and waits for what it depends on, so that a late rank delays those that wait for it and no others.
 */
#ifndef VAPRO_ACCURACY_SHAPE_H
#define VAPRO_ACCURACY_SHAPE_H

#include "simulation.h"

/* A moment, and when it would have been without slow calls; ns. */
struct moment {
	double at, usual;
};

/* A computation of `need` ns when undisturbed; 0: as long as the step says. So of all below. */
void shape__compute(struct sim *sim, int rank, int step, double need);
void shape__write(struct sim *sim, int rank, int step, double need);

/* A call that waits for no rank. Returns when it has ended. */
struct moment shape__post(struct sim *sim, int rank, int step, double need);

/* A call that ends a transfer after what it waits for. */
void shape__wait(struct sim *sim, int rank, int step, struct moment until, double need);

/* A call that ends for all members when the last one has come: ranks first, first + stride, ... */
struct members {
	int first, stride, count;
};
void shape__together(struct sim *sim, int step, struct members members, double need);
struct members shape__world(const struct sim *sim);

/* All ranks exchange with those beside them: in a ring, or in a grid of job->columns where that is above 1. */
void shape__halo(struct sim *sim, int step);

/* The later of two moments, on each clock. */
struct moment shape__later(struct moment a, struct moment b);
struct moment shape__now(const struct sim *sim, int rank);

/* The rank whose clock is least, of first..last. */
int shape__first(const struct sim *sim, int first, int last);

/* Closes windows that all ranks have passed. Whether the job goes on. */
bool shape__goes_on(struct sim *sim);

/* The program ends for a rank: it makes no fragment any more. */
void shape__leave(struct sim *sim, int rank);

/* A number of a rank or of all that the program draws itself: log-normal with median 1, the same for equal arguments.
 */
double shape__drawn(const struct sim *sim, double sigma, uint64_t a, uint64_t b);

/* What shapes have in common: 16 or 32 ranks on hosts of four, a minute, jitter; where the job has none yet. */
void shape__usual(struct job *job, struct draw *draw);
void shape__steps(struct job *job, const struct job_step *steps, size_t count);
void shape__scale(struct job *job, double factor); /* of the lengths of computations */
#define SHAPE_STEPS(job, ...)                                                                                          \
	do {                                                                                                           \
		static const struct job_step list[] = __VA_ARGS__;                                                     \
		shape__steps(job, list, sizeof(list) / sizeof(*list));                                                 \
	} while (0)

extern const struct shape shape_grid, shape_sweep, shape_farm, shape_stealing, shape_amr, shape_phases, shape_mpmd,
    shape_uncoupled, shape_gpu, shape_nested, shape_pieces, shape_shrinking, shape_sends;

#endif
