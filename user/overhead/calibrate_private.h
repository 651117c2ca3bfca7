/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that only calibration at the start (calibrate.c) and while running (recalibrate.c) share. */
#ifndef VAPRO_CALIBRATE_PRIVATE_H
#define VAPRO_CALIBRATE_PRIVATE_H

#include "overhead/calibrate.h"
#include "target/process.h"

#define CALIBRATION_SLOT (KERNEL_SLOTS - 1)
#define CALIBRATION_ROW (KERNEL_FUNCTIONS - 1)

/* A child of vaprod that calls functions of vaprod on request. */
struct child {
	pid_t pid;
	int requests, answer;
};

/* Returns 0 or -errno. */
int calibrate__start_child(struct kernel_side *side, struct child *child);
void calibrate__end_child(const struct child *child);

/*
 * Returns the least time of a call, ns; 0 without a response. 'q': an emulated one, in some milliseconds; 'w': the time
 * of a batch of work, equal for all requests.
 */
double calibrate__measure(const struct child *child, char what);

/* Probes entry and return of the emulated function in the child alone. self: this program, as it is mapped. */
int calibrate__link_call(struct kernel_side *side, const struct process *self, pid_t pid, struct kernel_link **link);

#endif
