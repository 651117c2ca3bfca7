/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that only calibration at the start (calibrate.c) and while running (recalibrate.c) share. */
#ifndef VAPRO_CALIBRATE_PRIVATE_H
#define VAPRO_CALIBRATE_PRIVATE_H

#include "overhead/calibrate.h"
#include "target/process.h"

#define CALIBRATION_SLOT (KERNEL_SLOTS - 1)
#define CALIBRATION_ROW (KERNEL_FUNCTIONS - 1)

/* Functions of vaprod, one of each class of site (calibrate_child.c). */
void calibrate__emulated(void);
void calibrate__stepped(void);
void calibrate__around(void (*inner)(void)); /* emulated too; calls the given function */
extern void (*const calibrate_nop5)(void);   /* a five-byte nop; NULL: this CPU has none */

/* Of entries and returns after pauses, by the length of the pause, ns: how long they take, and their preamble. */
struct paused {
	double spent[2][KERNEL_PAUSES], preamble[2][KERNEL_PAUSES];
};

/* A child of vaprod that calls functions of vaprod on request. */
struct child {
	pid_t pid;
	int requests, answer;
};

/* Returns 0 or -errno. */
int calibrate__start_child(struct kernel_side *side, struct child *child);
void calibrate__end_child(const struct child *child);

/* The two halves of ending a child: kills it, and returns whether it has ended since, without waiting for that. */
void calibrate__kill_child(const struct child *child);
bool calibrate__has_ended(const struct child *child);

/*
 * Returns the least time of a call, ns; 0 without a response. 'q': an emulated one, in some milliseconds; 'w': the time
 * of a batch of work, equal for all requests.
 */
double calibrate__measure(const struct child *child, char what);

/* The two halves of a measurement, of which neither waits. 0 or -errno; the second -EAGAIN until there is a response.
 */
int calibrate__request(const struct child *child, char what);
int calibrate__answer(const struct child *child, double *ns);

/*
 * Probes a function in one process alone, entry and return or the entry only. self: this program, as it is mapped.
 * Returns 0 with *link, or -errno.
 */
int calibrate__link(struct kernel_side *side, const struct process *self, void (*function)(void), pid_t pid,
		    bool entry_only, struct kernel_link **link);

/* Probes entry and return of the emulated function so. */
int calibrate__link_call(struct kernel_side *side, const struct process *self, pid_t pid, struct kernel_link **link);

#endif
