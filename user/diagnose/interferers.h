/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who ran instead: time taken from the threads of a variance, added by (comm, pid). Sums add over windows. */
#ifndef VAPRO_INTERFERERS_H
#define VAPRO_INTERFERERS_H

#include <vapro/analysis.h>

#include <stddef.h>

struct interferers {
	struct result_interferer *items;
	size_t count, capacity;
};

/* Pid 0 is the idle task: it takes nothing from anybody. Returns 0 or -ENOMEM. */
int interferers__add(struct interferers *interferers, const char *comm, uint32_t pid, double seconds);
int interferers__merge(struct interferers *into, const struct interferers *from);

/* Most seconds first. */
void interferers__sort(struct interferers *interferers);
void interferers__clear(struct interferers *interferers);

#endif
