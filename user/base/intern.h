/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts as numbers: equal texts (call-sites, labels, jobs) have equal ids, so the model compares
 * and hashes integers. Copies live as long as the object, unless intern__retain drops them; ids are dense from 0 but
 * for those that were dropped, and these are given again, the lowest first.
 */
#ifndef VAPRO_INTERN_H
#define VAPRO_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct intern;

struct intern *intern__new(void);
void intern__free(struct intern *intern);

/* NULL is a text of its own, unlike "". Returns the id, or INTERN_NONE when out of memory. */
uint32_t intern__id(struct intern *intern, const char *text);

/*
 * Drops the texts whose ids used[] (by id) has not marked. Ids and places in memory of the others stay. Returns 0, or
 * -ENOMEM with nothing changed.
 */
int intern__retain(struct intern *intern, const unsigned char *used);

/*
 * Leaves out the next id, as if its text had been dropped; further texts follow it until intern__skipped is called.
 * Returns 0 or -ENOMEM.
 */
int intern__skip(struct intern *intern);
void intern__skipped(struct intern *intern);

/* The number of ids, that of NULL and those below the highest that were dropped included. */
size_t intern__count(const struct intern *intern);

size_t intern__bytes(const struct intern *intern);

/* Returns NULL for the id of NULL, and for one that was dropped. */
const char *intern__text(const struct intern *intern, uint32_t id);

#endif
