// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/costs.h"

#include <math.h>

#define TIMED_LEAST 16	 /* fewer timed hits have no reliable mean */
#define LONGER_LEAST 0.1 /* a difference below, to a time without a pause, is noise */
#define LONGER_MOST 4	 /* beyond it the cost of a hit grows slower than the time of the program's first part */

/* Returns how much longer our BPF program takes at a hit in the process than in the calibration, ns. */
static double program_extra(const struct costs *costs, const struct kernel_counters *counters, int returned)
{
	if (counters->timed[returned] < TIMED_LEAST)
		return 0;
	return costs__extra((double)counters->timed_ns[returned] / (double)counters->timed[returned],
			    costs->program_ns[returned]);
}

double costs__of_pauses(const struct costs *costs, int returned, const uint64_t pauses[KERNEL_PAUSES],
			uint64_t preamble_ns)
{
	const double *preambles = costs->preamble_ns[returned];
	double cost = 0, hits = 0, usual = 0, warm = preambles[0], longer;

	for (int i = 1; i < KERNEL_PAUSES; i++)
		warm = fmin(warm, preambles[i]);
	for (int i = 0; i < KERNEL_PAUSES; i++) {
		cost += (double)pauses[i] * costs->pause_ns[returned][i];
		usual += (double)pauses[i] * (preambles[i] - warm);
		hits += (double)pauses[i];
	}
	if (usual <= hits * warm * LONGER_LEAST)
		return cost; /* not measured, or hardly longer than without a pause, as the hit itself */
	longer = ((double)preamble_ns - hits * warm) / usual;
	return cost * fmax(0, fmin(longer, LONGER_MOST));
}

double costs__after_pauses(const struct costs *costs, const struct kernel_counters *counters, double *pauses)
{
	double cost = 0, usual = 0, most = 0;

	for (int half = 0; half < 2; half++)
		cost += costs__of_pauses(costs, half, counters->pauses[half], counters->preamble_ns[half]);
	for (int i = 0; i < KERNEL_PAUSES; i++) {
		usual += (double)counters->pauses[0][i] * costs->pause_ns[0][i];
		if (counters->pauses[0][i])
			most = fmax(most, costs->pause_ns[0][i]);
	}
	*pauses = most > 0 ? usual / most : 0;
	return cost;
}

double costs__of(const struct costs *costs, const struct kernel_counters *counters)
{
	double returned = (double)counters->exit, entered = (double)(counters->enter + counters->left);
	double cost = entered * costs->entry_ns + returned * costs__extra(costs->call_ns, costs->entry_ns) +
		      (double)counters->stepped * costs__extra(costs->stepped_call_ns, costs->call_ns) +
		      (double)counters->syscalls * costs->syscall_ns,
	       pauses;

	cost += (double)(counters->enter - counters->rows) * program_extra(costs, counters, 0) +
		returned * program_extra(costs, counters, 1);
	return cost + costs__after_pauses(costs, counters, &pauses);
}

double costs__of_others(const struct costs *costs, const struct kernel_counters *counters, uint32_t others)
{
	double calls = (double)(counters->enter - counters->rows), suppressed = calls - (double)counters->exit;

	if (!others)
		return 0;
	return calls * others * costs->beside_ns + fmax(0, suppressed) * costs__extra(costs->call_ns, costs->entry_ns);
}

void costs__hits_since(const struct kernel_counters *now, const struct kernel_counters *since,
		       struct kernel_counters *delta)
{
	*delta = (struct kernel_counters){.enter = now->enter - since->enter,
					  .exit = now->exit - since->exit,
					  .stepped = now->stepped - since->stepped,
					  .left = now->left - since->left,
					  .rows = now->rows - since->rows};
	for (int returned = 0; returned < 2; returned++) {
		delta->timed[returned] = now->timed[returned];
		delta->timed_ns[returned] = now->timed_ns[returned];
		delta->preamble_ns[returned] = now->preamble_ns[returned] - since->preamble_ns[returned];
		for (int i = 0; i < KERNEL_PAUSES; i++)
			delta->pauses[returned][i] = now->pauses[returned][i] - since->pauses[returned][i];
	}
}

double costs__of_return(const struct costs *costs, const struct kernel_counters *counters)
{
	return costs__extra(costs->call_ns, costs->entry_ns) + program_extra(costs, counters, 1);
}

double costs__stepped_ratio(const struct costs *costs)
{
	return costs->call_ns > 0 ? fmax(1, costs->stepped_call_ns / costs->call_ns) : 1;
}
