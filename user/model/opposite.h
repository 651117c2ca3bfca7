/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics of which more is better (papers/000 section 3.4): Algorithm 1 takes the least norm for the best,
 * so they are converted into the opposite: cache hits into the instructions that did not hit, x into
 * instructions - x, and nothing where x is as many. A difference keeps its weight beside the other
 * metrics, which 1 / x would not: few hits would outweigh all else. Where instructions were not counted
 * there is no opposite, and x stays. Which metrics they are is the user's to say: `larger-is-better` names
 * events of `workload` beside instructions.
 */
#ifndef VAPRO_OPPOSITE_H
#define VAPRO_OPPOSITE_H

#include <vapro/bundle.h>
#include <vapro/config.h>

/* A bit per magnitude that is to be turned. */
unsigned opposite__which(const struct vapro_config *config);

/* The first name of larger-is-better that is no event of the workload, or false. */
bool opposite__stray(const struct vapro_config *config, char *name, size_t size);

/* The box of a bundle's magnitudes, in place. */
void opposite__turn(unsigned which, double *low, double *high);

#endif
