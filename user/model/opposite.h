/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics of which more is better (papers/000 section 3.4): Algorithm 1 takes the least norm for the best,
 * so they are converted into the opposite. x becomes 10^12 / x: what differs by 5 % still differs by 5 %,
 * less is more, and a million, which computations of a millisecond count of most events, keeps its weight
 * beside the other metrics. Which ones they are is the user's to say: `larger-is-better` names events of
 * `workload`.
 */
#ifndef VAPRO_OPPOSITE_H
#define VAPRO_OPPOSITE_H

#include <vapro/bundle.h>
#include <vapro/config.h>

/* A bit per magnitude that is to be turned. */
unsigned opposite__which(const struct vapro_config *config);

/* The first name of larger-is-better that is no event of the workload, or false. */
bool opposite__stray(const struct vapro_config *config, char *name, size_t size);

/* The box of a bundle's magnitudes, in place. One of nothing but zeros was not measured, and stays so. */
void opposite__turn(unsigned which, double *low, double *high);

#endif
