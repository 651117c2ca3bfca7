/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times the node's interrupts while that may explain something (--interrupts auto): in windows for which a diagnosis
 * requests it, and as soon as interrupts take much of a CPU on which a tracked process computes, so that a load that
 * is over before the window ends is timed, too.
 */
#ifndef VAPRO_INTERRUPT_TIMING_H
#define VAPRO_INTERRUPT_TIMING_H

#include "daemon/tracker.h"
#include "probe/bpf/kernel_side.h"
#include "target/interrupts.h"

struct interrupt_timing {
	struct kernel_side *side;
	struct interrupts *load; /* NULL without memory */
	bool noticed;		 /* interrupts took much of a target's CPU in this window */
	bool failed;		 /* interrupts cannot be timed, which was reported */
};

/* side must outlive timing; interrupt_timing__clear frees what it holds. */
void interrupt_timing__init(struct interrupt_timing *timing, struct kernel_side *side);
void interrupt_timing__clear(struct interrupt_timing *timing);

/* Begins to time where the targets' CPUs are interrupted much. To be called once a second. */
void interrupt_timing__second(struct interrupt_timing *timing, struct tracker *tracker,
			      const struct watch_second *second);

/* Decides for the next window; requested: a diagnosis here, or a worker, wants interrupts timed. */
void interrupt_timing__end_window(struct interrupt_timing *timing, struct tracker *tracker, bool requested);

#endif
