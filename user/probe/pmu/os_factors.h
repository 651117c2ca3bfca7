/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Factors that the operating system reports as time beyond the scheduler's switches: which of them this
 * machine has, from which source, and why not the others (ARCHITECTURE section 8).
 */
#ifndef VAPRO_OS_FACTORS_H
#define VAPRO_OS_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

#define OS_FACTORS 6

struct os_factor {
	const char *name;   /* as in the factor tree */
	const char *source; /* what reports it; NULL: nothing */
	bool available, approx;
	const char *reason; /* why not, or a caveat; NULL: none */
};

struct os_facts {
	bool queues;	    /* tasks have group run queues, which hold the facts below */
	bool throttled;	    /* queues say how long they were throttled */
	bool throttled_old; /* the same by the clock of kernels before 6.6 */
	bool steal, irq_time, slow_clock;
	bool interrupts;    /* timing them is wanted */
	bool reports_speed; /* the CPUs report their speed to the kernel */
	bool steal_ever;    /* some steal was reported since boot */
	bool virtual_machine;
};

/* Reads the kernel's type information, /proc and /sys. */
void os_factors__learn(struct os_facts *facts, bool interrupts);

/* Fills OS_FACTORS. Texts are static. */
void os_factors__of(const struct os_facts *facts, struct os_factor *factors);

#endif
