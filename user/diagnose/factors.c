/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/factors.h"

#include <math.h>
#include <stddef.h>

const struct factor_info factor_infos[FACTOR_NODES] = {
    [NODE_ON_CPU] = {"on_cpu", 1, FACTOR_ROOT},
    [NODE_RETIRING] = {"retiring", 1, FACTOR_ROOT},
    [NODE_FRONTEND] = {"frontend", 1, FACTOR_ROOT},
    [NODE_BAD_SPECULATION] = {"bad_speculation", 1, FACTOR_ROOT},
    [NODE_BACKEND] = {"backend", 1, FACTOR_ROOT},
    [NODE_KERNEL] = {"kernel", 1, FACTOR_ROOT},
    [NODE_IRQ] = {"irq", 1, FACTOR_ROOT},
    [NODE_SUSPENSION] = {"suspension", 1, FACTOR_ROOT},
    [NODE_PREEMPTED] = {"preempted", 2, NODE_SUSPENSION},
    [NODE_WAKEUP_WAIT] = {"wakeup_wait", 2, NODE_SUSPENSION},
    [NODE_BLOCKED_IO] = {"blocked_io", 2, NODE_SUSPENSION},
    [NODE_BLOCKED_OTHER] = {"blocked_other", 2, NODE_SUSPENSION},
    [NODE_THROTTLED] = {"throttled", 2, NODE_SUSPENSION},
    [NODE_STEAL] = {"steal", 2, NODE_SUSPENSION},
};

/* Leaves that are told as they are. */
static const struct {
	enum factor_node node;
	enum vapro_factor factor;
} leaves[] = {
    {NODE_RETIRING, VAPRO_RETIRING},
    {NODE_FRONTEND, VAPRO_FRONTEND},
    {NODE_BAD_SPECULATION, VAPRO_BAD_SPECULATION},
    {NODE_BACKEND, VAPRO_BACKEND},
    {NODE_KERNEL, VAPRO_KERNEL},
    {NODE_IRQ, VAPRO_IRQ},
    {NODE_PREEMPTED, VAPRO_PREEMPTED},
    {NODE_WAKEUP_WAIT, VAPRO_WAKEUP_WAIT},
    {NODE_BLOCKED_IO, VAPRO_BLOCKED_IO},
    {NODE_BLOCKED_OTHER, VAPRO_BLOCKED_OTHER},
    {NODE_THROTTLED, VAPRO_THROTTLED},
    {NODE_STEAL, VAPRO_STEAL},
};

bool factors__partition(double sum_ns, const double *factor, double *time)
{
	double top_down, rest;

	for (int node = 0; node < FACTOR_NODES; node++)
		time[node] = 0;
	for (size_t i = 0; i < sizeof(leaves) / sizeof(*leaves); i++)
		time[leaves[i].node] = factor[leaves[i].factor];
	for (int node = NODE_PREEMPTED; node <= NODE_STEAL; node++)
		time[NODE_SUSPENSION] += time[node];
	top_down = time[NODE_RETIRING] + time[NODE_FRONTEND] + time[NODE_BAD_SPECULATION] + time[NODE_BACKEND];
	rest = fmax(0, sum_ns - time[NODE_SUSPENSION] - time[NODE_KERNEL] - time[NODE_IRQ]);
	if (top_down <= 0) {
		time[NODE_ON_CPU] = rest;
		return false;
	}
	/* Counters stop at the borders of the probes, the clock does not: their shares are what counts. */
	for (int node = NODE_RETIRING; node <= NODE_BACKEND; node++)
		time[node] *= rest / top_down;
	return true;
}
