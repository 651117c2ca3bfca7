// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/sample_cost.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "overhead/calibrate_private.h"
#include "probe/bpf/sampler.h"

#define PERIOD_NS 50000 /* a sample this often while measuring: their cost is beyond the noise then */
#define ROUNDS 2

int sample_cost__measure(struct kernel_side *side, double *cost_ns)
{
	const struct bpf_process_state tracked = {.slot = CALIBRATION_SLOT};
	double bare = INFINITY, sampled = INFINITY;
	struct child child = {.pid = -1};
	int status = calibrate__start_child(side, &child);

	*cost_ns = 0;
	if (status)
		return status;
	status = kernel_side__track(side, child.pid, &tracked);
	/* in turns, the least of each: a disturbance lasts longer than a batch */
	for (int i = 0; i < ROUNDS && !status; i++) {
		int clock;

		bare = fmin(bare, calibrate__measure(&child, 'w'));
		clock = sampler__open(side, child.pid, PERIOD_NS);
		if (clock < 0) {
			status = clock;
			break;
		}
		sampled = fmin(sampled, calibrate__measure(&child, 'w'));
		close(clock);
	}
	/* samples come in the sampled time, which is longer */
	if (!status && bare > 0 && sampled > 0)
		*cost_ns = costs__extra(sampled, bare) / (sampled / PERIOD_NS);
	kernel_side__untrack(side, child.pid);
	calibrate__end_child(&child);
	return status;
}
