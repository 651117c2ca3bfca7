// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/recalibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include "overhead/calibrate_private.h"
#include "probe/bpf/kernel_side.h"

#define BOUND 1.25

static bool differs(double a, double b)
{
	return a > b * BOUND || b > a * BOUND;
}

bool recalibrate__judge(struct recalibration *recalibration, double call_ns, double found_ns, double *ratio)
{
	double doubted = recalibration->doubted_ns;

	recalibration->doubted_ns = 0;
	if (call_ns <= 0 || found_ns <= 0 || !differs(call_ns, found_ns))
		return false;
	if (doubted <= 0 || (doubted > call_ns) != (found_ns > call_ns)) {
		recalibration->doubted_ns = found_ns;
		return false;
	}
	/* of two results that agree, the one nearer to the present cost counts */
	if ((found_ns > call_ns) == (doubted < found_ns))
		found_ns = doubted;
	*ratio = found_ns / call_ns;
	return true;
}

void recalibrate__scale(struct costs *costs, double ratio)
{
	costs->entry_ns *= ratio;
	costs->call_ns *= ratio;
	costs->stepped_call_ns *= ratio;
	costs->nop5_ns *= ratio;
	costs->syscall_ns *= ratio;
	costs->bystander_ns *= ratio;
	costs->beside_ns *= ratio;
	for (int returned = 0; returned < 2; returned++) {
		costs->program_ns[returned] *= ratio;
		for (int i = 0; i < KERNEL_PAUSES; i++) {
			costs->pause_ns[returned][i] *= ratio;
			costs->preamble_ns[returned][i] *= ratio;
		}
	}
}

double recalibrate__measure(struct kernel_side *side)
{
	struct bpf_process_state tracked = {.slot = CALIBRATION_SLOT};
	struct bpf_function_state row = {.known = 1};
	struct process *self = NULL;
	struct kernel_link *link;
	struct child child;
	uint32_t key = CALIBRATION_ROW;
	double bare, found = 0;
	char err[256];

	if (kernel_side__frugal(side) || process__read(getpid(), &self, err, sizeof(err)))
		return 0;
	if (calibrate__start_child(side, &child))
		goto out;
	bpf_map_update_elem(kernel_side__map(side, KERNEL_MAP_FUNCTIONS), &key, &row, BPF_ANY);
	bare = calibrate__measure(&child, 'q');
	if (!kernel_side__track(side, child.pid, &tracked) && !calibrate__link_call(side, self, child.pid, &link)) {
		found = calibrate__measure(&child, 'q') - bare;
		kernel_side__unlink(side, link);
	}
	kernel_side__untrack(side, child.pid);
	calibrate__end_child(&child);
out:
	process__free(self);
	return found > 0 ? found : 0;
}
