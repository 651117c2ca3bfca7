/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_SAMPLE_COST_H
#define VAPRO_SAMPLE_COST_H

struct kernel_side;

/*
 * Measures on a child what a sample of a clock (probe/bpf/sampler.h) costs the thread that is sampled. Sets *cost_ns;
 * returns 0, or -errno where the kernel refuses such a clock.
 */
int sample_cost__measure(struct kernel_side *side, double *cost_ns);

#endif
