// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/costs.h"

#include <math.h>

#define TIMED_LEAST 16 /* fewer timed hits have no reliable mean */

/* Returns how much longer our BPF program takes at a hit in the process than in the calibration, ns. */
static double program_extra(const struct costs *costs, const struct kernel_counters *counters, int returned)
{
	if (counters->timed[returned] < TIMED_LEAST)
		return 0;
	return costs__extra((double)counters->timed_ns[returned] / (double)counters->timed[returned],
			    costs->program_ns[returned]);
}

double costs__of(const struct costs *costs, const struct kernel_counters *counters)
{
	double returned = (double)counters->exit, entered = (double)(counters->enter + counters->left);
	double cost = entered * costs->entry_ns + returned * costs__extra(costs->call_ns, costs->entry_ns) +
		      (double)counters->stepped * costs__extra(costs->stepped_call_ns, costs->call_ns) +
		      (double)counters->syscalls * costs->syscall_ns;

	cost += (double)(counters->enter - counters->rows) * program_extra(costs, counters, 0) +
		returned * program_extra(costs, counters, 1);
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < KERNEL_PAUSES; i++)
			cost += (double)counters->pauses[half][i] * costs->pause_ns[half][i];
	return cost;
}

double costs__of_return(const struct costs *costs, const struct kernel_counters *counters)
{
	return costs__extra(costs->call_ns, costs->entry_ns) + program_extra(costs, counters, 1);
}

double costs__stepped_ratio(const struct costs *costs)
{
	return costs->call_ns > 0 ? fmax(1, costs->stepped_call_ns / costs->call_ns) : 1;
}
