/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who ran instead: time taken from the threads of a variance, added by (comm, pid). Sums add over windows. */
#ifndef VAPRO_INTERFERERS_H
#define VAPRO_INTERFERERS_H

#include <vapro/analysis.h>

#include <stddef.h>

struct interferers {
	struct result_interferer *items;
	size_t count, capacity;
	double forgotten; /* seconds of those that are not among them any more */
};

/*
 * Pid 0 is the idle task: it takes nothing from anybody. Of very many tasks those that took least so far
 * are forgotten, so that one which takes much is emitted, however late it comes. Returns 0 or -ENOMEM.
 */
int interferers__add(struct interferers *interferers, const char *comm, uint32_t pid, double seconds);
int interferers__merge(struct interferers *into, const struct interferers *from);

/* Seconds of all that were added. */
double interferers__seconds(const struct interferers *interferers);

/* Most seconds first. */
void interferers__sort(struct interferers *interferers);
void interferers__clear(struct interferers *interferers);

#endif
