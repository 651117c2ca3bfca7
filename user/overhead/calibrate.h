/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of a probe hit on this node is measured at start on a child of vaprod: no constant is
 * compiled in, since the cost of a trap differs by a factor of 30 between machines.
 */
#ifndef VAPRO_CALIBRATE_H
#define VAPRO_CALIBRATE_H

#include "overhead/costs.h"
#include "probe/bpf/kernel_side.h"

/* Measures costs. Returns 0, or -errno with a sentence in err: then costs are 0 and the run should report that. */
int calibrate__run(struct kernel_side *side, bool syscalls, struct costs *costs, char *err, size_t err_size);

#endif
