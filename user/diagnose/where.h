/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What slow rows share and the others do not: host, CPU model, socket, NUMA node, core type, cgroup, CPU. Facts
 * come from outside, by thread, and are kept here; what is not known of all slow rows is left out.
 */
#ifndef VAPRO_WHERE_H
#define VAPRO_WHERE_H

#include "model/intern.h"
#include "model/stg.h"

#define WHERE_FACTS 7

struct places {
	struct vapro_place *items; /* by thread; texts are interned */
	size_t count, capacity;
	struct intern *texts;
};

struct where {
	const char *fact;
	char value[128];
	uint32_t others; /* rows that have it too and are not slow */
};

/* Returns 0 or -ENOMEM. */
int places__add(struct places *places, const struct vapro_place *place);
void places__free(struct places *places);

/*
 * Of the rows of a job; slow[row]: 1 slow, 0 another one, 2 to be left out. Fills at most WHERE_FACTS,
 * the widest first, and their number. Returns 0 or -ENOMEM.
 */
int where__find(const struct places *places, const struct stg *stg, uint32_t job, const unsigned char *slow,
		struct where *where, uint32_t *count);

/* The place of the first slow row that is under a CPU quota; NULL where none is. Returns 0 or -ENOMEM. */
int where__limit(const struct places *places, const struct stg *stg, uint32_t job, const unsigned char *slow,
		 const struct vapro_place **limited);

#endif
