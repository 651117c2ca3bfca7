/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places of threads: facts that come from outside, held by thread. */
#ifndef VAPRO_PLACES_H
#define VAPRO_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <vapro/analysis.h>

#include "base/archive.h"

struct intern;
struct stg;

struct places {
	struct vapro_place *items; /* by thread; texts are interned */
	size_t count, capacity;
	struct intern *texts;
};

/* Returns 0 or -ENOMEM. */
int places__add(struct places *places, const struct vapro_place *place);

/* Forgets the places of threads whose numbers are free: others may get them. Returns 0 or -ENOMEM. */
int places__release(struct places *places, const struct stg *stg);

/* Writes or reads all places; an object to be read is empty. */
void places__archive(struct archive *archive, struct places *places);
void places__free(struct places *places);

#endif
