// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "overhead/calibrate_private.h"
#include "probe/bpf/kernel_side.h"

#define BESIDE 16    /* links beside another; where each takes long to remove, fewer */
#define FEW_BESIDE 4 /* see above */

/*
 * Measures what a link of another process adds to a call, by a link of this process with the same site many times: the
 * kernel asks each of them at each hit.
 */
static double measure_beside(struct kernel_side *side, const struct process *self, const struct child *child,
			     double call_ns)
{
	const struct process_mapping *mapping = process__mapping_at(self, (uint64_t)(uintptr_t)calibrate__emulated);
	uint32_t count = kernel_side__frugal(side) ? FEW_BESIDE : BESIDE;
	uint64_t offsets[BESIDE], cookies[BESIDE];
	struct kernel_sites sites = {
	    .path = "/proc/self/exe", .offsets = offsets, .cookies = cookies, .count = count, .pid = getpid()};
	struct kernel_link *link;
	double with;

	for (uint32_t i = 0; i < count && mapping; i++) {
		offsets[i] = (uint64_t)(uintptr_t)calibrate__emulated - mapping->start + mapping->offset;
		cookies[i] = CALIBRATION_ROW;
	}
	if (!mapping || kernel_side__link(side, &sites, &link))
		return 0;
	with = calibrate__measure(child, 'e');
	kernel_side__unlink(side, link);
	return costs__extra(with, call_ns) / count;
}

/*
 * Sets the costs of pauses: the times after pauses, with a bare call's own, a tenth of a microsecond, less those of
 * calls back to back.
 */
static void find_pauses(const struct child *child, struct costs *costs)
{
	struct pollfd answer = {.fd = child->answer, .events = POLLIN};
	struct paused paused;
	const double warm[2] = {costs->entry_ns, fmax(0, costs->call_ns - costs->entry_ns)};

	if (calibrate__request(child, 'p') || poll(&answer, 1, -1) != 1 ||
	    read(child->answer, &paused, sizeof(paused)) != sizeof(paused))
		return;
	memcpy(costs->preamble_ns, paused.preamble, sizeof(costs->preamble_ns));
	for (int returned = 0; returned < 2; returned++)
		for (int i = 0; i < KERNEL_PAUSES; i++)
			costs->pause_ns[returned][i] = fmax(0, paused.spent[returned][i] - warm[returned]);
}

/* Sets the mean time of our BPF program, by the hits that were timed since the counters were cleared. */
static void find_programs(const struct kernel_counters *counters, struct costs *costs)
{
	for (int returned = 0; returned < 2; returned++)
		if (counters->timed[returned])
			costs->program_ns[returned] =
			    (double)counters->timed_ns[returned] / (double)counters->timed[returned];
}

/* Tracks the child by other flags from now on: a new generation makes its thread read these. */
static int track_child(struct kernel_side *side, pid_t pid, uint32_t flags)
{
	struct bpf_process_state tracked = {.slot = CALIBRATION_SLOT, .flags = flags};
	int status = kernel_side__track(side, pid, &tracked);

	(*kernel_side__shared(side)->generation)++;
	return status;
}

/* Times of calls of the child without probes, ns. */
struct bare {
	double call, stepped, nop5, read;
};

/* Begins to track the child; measures what a traced system call costs a process that is watched, and another one. */
static int measure_syscalls(struct kernel_side *side, bool syscalls, struct child *child, double bare_read,
			    struct costs *costs)
{
	double beside = 0, traced;
	int status;

	if (syscalls && !kernel_side__watch_syscalls(side, true))
		beside = calibrate__measure(child, 'r');
	status = track_child(side, child->pid, 0);
	if (!syscalls || status)
		return status;
	traced = calibrate__measure(child, 'r');
	kernel_side__watch_syscalls(side, false);
	/* measured before and after: a disturbed measurement would make the others cost nothing */
	bare_read = fmin(bare_read, calibrate__measure(child, 'r'));
	costs->bystander_ns = costs__extra(beside, bare_read);
	costs->syscall_ns = costs__extra(traced, bare_read);
	return 0;
}

/* Measures entry and return of a call, and the entry alone, at sites that the kernel emulates. */
static int measure_calls(struct kernel_side *side, const struct process *self, struct child *child,
			 const struct bare *bare, struct costs *costs)
{
	struct kernel_counters *counters = &kernel_side__shared(side)->counters[CALIBRATION_SLOT];
	struct kernel_link *link;
	int status = calibrate__link_call(side, self, child->pid, &link);

	if (status)
		return status;
	memset(counters, 0, sizeof(*counters));
	costs->call_ns = costs__extra(calibrate__measure(child, 'e'), bare->call);
	find_programs(counters, costs);
	costs->beside_ns = measure_beside(side, self, child, costs->call_ns + bare->call);
	kernel_side__unlink(side, link);
	/* measured next to the call, since a return is the difference */
	track_child(side, child->pid, KERNEL_PROCESS_NO_RETURN);
	status = calibrate__link(side, self, calibrate__emulated, child->pid, true, &link);
	if (status)
		return status;
	costs->entry_ns = costs__extra(calibrate__measure(child, 'e'), bare->call);
	kernel_side__unlink(side, link);
	if (!calibrate_nop5)
		return 0;
	status = calibrate__link(side, self, calibrate_nop5, child->pid, true, &link);
	if (status)
		return status;
	costs->nop5_ns = costs__extra(calibrate__measure(child, 'n'), bare->nop5);
	kernel_side__unlink(side, link);
	return 0;
}

/* Measures a call at a single-stepped site, and what pauses between calls add. */
static int measure_stepped(struct kernel_side *side, const struct process *self, struct child *child,
			   const struct bare *bare, struct costs *costs)
{
	struct kernel_link *link;
	int status;

	track_child(side, child->pid, 0);
	status = calibrate__link(side, self, calibrate__stepped, child->pid, false, &link);
	if (status)
		return status;
	costs->stepped_call_ns = costs__extra(calibrate__measure(child, 's'), bare->stepped);
	kernel_side__unlink(side, link);
	status = calibrate__link(side, self, (void (*)(void))calibrate__around, child->pid, false, &link);
	if (status)
		return status;
	find_pauses(child, costs);
	kernel_side__unlink(side, link);
	return 0;
}

int calibrate__run(struct kernel_side *side, bool syscalls, struct costs *costs, char *err, size_t err_size)
{
	struct bpf_function_state row = {.known = 1};
	uint32_t key = CALIBRATION_ROW;
	struct process *self = NULL;
	struct child child = {.pid = -1};
	struct bare bare;
	int status;

	memset(costs, 0, sizeof(*costs));
	status = process__read(getpid(), &self, err, err_size);
	if (!status)
		status = calibrate__start_child(side, &child);
	if (status) {
		snprintf(err, err_size, "cannot start the calibration child: %s", strerror(-status));
		goto out;
	}
	bpf_map_update_elem(kernel_side__map(side, KERNEL_MAP_FUNCTIONS), &key, &row, BPF_ANY);
	bare.call = calibrate__measure(&child, 'e');
	bare.stepped = calibrate__measure(&child, 's');
	bare.nop5 = calibrate__measure(&child, 'n');
	bare.read = calibrate__measure(&child, 'r');
	status = measure_syscalls(side, syscalls, &child, bare.read, costs);
	if (!status)
		status = measure_calls(side, self, &child, &bare, costs);
	if (!status)
		status = measure_stepped(side, self, &child, &bare, costs);
	if (status)
		snprintf(err, err_size, "cannot probe the calibration child: %s", strerror(-status));
out:
	if (child.pid > 0) {
		kernel_side__untrack(side, child.pid);
		calibrate__end_child(&child);
	}
	process__free(self);
	return status < 0 ? status : 0;
}
