/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The progressive driver (VAPRO (PPoPP'22) section 4.3): major factors of the current stage decide which
 * parts are counted next. Per-CPU counters are the node's, so the wishes of all variances of all jobs
 * queue, and one group of counters is on at a time, for all wishes for that group. A wish ends
 * when enough was counted, when its variance ends, when the factor is major no longer, or after
 * DRIVER_PATIENCE windows. With no wish left it is stage 1 again. The driver is pure: it only says what is wanted.
 */
#ifndef VAPRO_DRIVER_H
#define VAPRO_DRIVER_H

#include "diagnose/diagnoses.h"

enum { DRIVER_QUEUE = 64 }; /* wishes: one that finds no room comes again with the next window */
#define DRIVER_PATIENCE 3   /* windows: a group that was not counted by then will not be */

struct driver_wish {
	uint32_t job, variance;
	enum counter_group group;
	bool seen; /* seen in this window */
};

struct driver {
	struct driver_wish *queue; /* the group of the first wish is on */
	size_t count, capacity;
	unsigned windows; /* windows that the first wish has had */
	unsigned refused; /* groups that the node cannot count, as bits: no case wishes for them */
	bool interrupts;  /* to be timed until the next window ends, whatever counter is on */
	bool interrupted; /* some case of this window wants interrupts timed */
};

/*
 * Notes what a case still wants, after each window and for each variance that goes on; counted: groups
 * that any bundle of the node has, as bits; least: abnormal fragments that are enough. Fills
 * wished. Returns 0 or -ENOMEM.
 */
int driver__see(struct driver *driver, uint32_t job, struct diagnosis_of *item, unsigned counted, double least);

/* Ends the window, after all cases were seen. Returns whether a wish is given up, and which. */
bool driver__switch(struct driver *driver, struct driver_wish *vain);

/* The node cannot count a group: all wishes for it are given up. */
void driver__refuse(struct driver *driver, enum counter_group group);

/* Returns the wish that is served now; NULL: stage 1. */
const struct driver_wish *driver__current(const struct driver *driver);

/* Returns a case's stage, and whether it is the final one. */
int driver__stage(const struct diagnosis_of *item, bool *final);

/* Writes or reads all wishes, of so many jobs; a driver to be read is empty. */
void driver__archive(struct archive *archive, struct driver *driver, size_t jobs);

void driver__free(struct driver *driver);

#endif
