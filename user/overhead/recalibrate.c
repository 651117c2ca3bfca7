// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/recalibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
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

/* Where a measurement is: which of its calls the child is timing, or that it is to end. */
enum phase { BARE, PROBED, ENDING };

struct remeasurement {
	struct kernel_side *side;
	struct child child;
	struct kernel_link *link; /* or NULL */
	enum phase phase;
	double bare_ns, found_ns;
};

/* Removes what was made for the child, and kills it. */
static void leave(struct remeasurement *measuring)
{
	kernel_side__unlink(measuring->side, measuring->link);
	measuring->link = NULL;
	kernel_side__untrack(measuring->side, measuring->child.pid);
	calibrate__kill_child(&measuring->child);
	measuring->phase = ENDING;
}

/* Has the child time bare calls. Returns NULL where that is not possible. */
static struct remeasurement *begin(struct kernel_side *side)
{
	struct remeasurement *measuring = calloc(1, sizeof(*measuring));
	struct bpf_function_state row = {.known = 1};
	uint32_t key = CALIBRATION_ROW;

	if (!measuring || calibrate__start_child(side, &measuring->child)) {
		free(measuring);
		return NULL;
	}
	measuring->side = side;
	bpf_map_update_elem(kernel_side__map(side, KERNEL_MAP_FUNCTIONS), &key, &row, BPF_ANY);
	if (calibrate__request(&measuring->child, 'q'))
		leave(measuring);
	return measuring;
}

/* Probes the child, and has it time such calls. Returns 0 or -errno. */
static int probe(struct remeasurement *measuring)
{
	const struct bpf_process_state tracked = {.slot = CALIBRATION_SLOT};
	struct process *self = NULL;
	char err[256];
	int status = process__read(getpid(), &self, err, sizeof(err));

	if (!status)
		status = kernel_side__track(measuring->side, measuring->child.pid, &tracked);
	if (!status)
		status = calibrate__link_call(measuring->side, self, measuring->child.pid, &measuring->link);
	process__free(self);
	return status ? status : calibrate__request(&measuring->child, 'q');
}

/* Takes a response of the child. */
static void take(struct remeasurement *measuring, double ns)
{
	if (measuring->phase == BARE) {
		measuring->bare_ns = ns;
		measuring->phase = PROBED;
		if (!probe(measuring))
			return;
	} else {
		measuring->found_ns = ns - measuring->bare_ns;
	}
	leave(measuring);
}

bool recalibrate__step(struct recalibration *recalibration, struct kernel_side *side, double *found_ns)
{
	struct remeasurement *measuring = recalibration->measuring;
	double ns;
	int status;

	*found_ns = 0;
	if (!measuring) {
		recalibration->measuring = kernel_side__frugal(side) ? NULL : begin(side);
		return !recalibration->measuring;
	}
	if (measuring->phase != ENDING) {
		status = calibrate__answer(&measuring->child, &ns);
		if (!status)
			take(measuring, ns);
		else if (status != -EAGAIN)
			leave(measuring);
		return false;
	}
	if (!calibrate__has_ended(&measuring->child))
		return false;
	*found_ns = measuring->found_ns > 0 ? measuring->found_ns : 0;
	free(measuring);
	recalibration->measuring = NULL;
	return true;
}

void recalibrate__stop(struct recalibration *recalibration)
{
	struct remeasurement *measuring = recalibration->measuring;

	if (!measuring)
		return;
	if (measuring->phase != ENDING)
		leave(measuring);
	while (!calibrate__has_ended(&measuring->child))
		usleep(1000);
	free(measuring);
	recalibration->measuring = NULL;
}
