/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What calibration at the start (calibrate.c) and while running (recalibrate.c) share and nobody else sees. */
#ifndef VAPRO_CALIBRATE_PRIVATE_H
#define VAPRO_CALIBRATE_PRIVATE_H

#include "overhead/calibrate.h"
#include "target/process.h"

#define CALIBRATION_SLOT (KERNEL_SLOTS - 1)
#define CALIBRATION_ROW (KERNEL_FUNCTIONS - 1)

/* A process of our own that calls functions of our own when it is asked to. */
struct child {
	pid_t pid;
	int ask, answer;
};

/* 0 or -errno. */
int calibrate__start_child(struct child *child);
void calibrate__end_child(const struct child *child);

/* Least time of a call, ns; 0 where the child does not answer. 'q': an emulated one, in some milliseconds. */
double calibrate__measure(const struct child *child, char what);

/* Probes entry and return of the emulated function in the child alone. self: this program, as it is mapped. */
int calibrate__link_call(struct kernel_side *side, const struct process *self, pid_t pid, struct kernel_link **link);

#endif
