/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds what slow rows share and the others do not: host, CPU model, socket, NUMA node, core type, cgroup, CPU.
 * Facts come from outside, by thread, and are held here; a fact unknown for any slow row is left out.
 */
#ifndef VAPRO_WHERE_H
#define VAPRO_WHERE_H

#include "base/intern.h"
#include "model/stg.h"
#include "diagnose/places.h"

#include <stdbool.h>

enum { WHERE_FACTS = 7 }; /* facts on the place of a rank */

struct where {
	const char *fact;
	char value[128];
	uint32_t others;  /* rows that have the value too and are not slow */
	const char *host; /* of a fact within a host, where all slow rows are on one; else NULL. As in the rows */
};

/* Numbers of a job's rows by fact and value, counted once for all lookups of a window. */
struct where_index;

/* counts: whether a row is one of those that slow ones are compared with. NULL when out of memory; valid until a row or
 * a place is added. */
struct where_index *where_index__new(const struct places *places, const struct stg *stg, uint32_t job,
				     bool (*counts)(const void *arg, uint32_t row), const void *arg);
void where_index__free(struct where_index *index);

/* Finds the facts of slow rows: at most WHERE_FACTS, the widest first, and their number. Returns 0 or -ENOMEM. */
int where_index__find(const struct where_index *index, const uint32_t *rows, size_t count, struct where *where,
		      uint32_t *found);

/* Returns the place of the first slow row under a CPU quota; NULL where no row is. */
const struct vapro_place *where_index__limit(const struct where_index *index, const uint32_t *rows, size_t count);

#endif
