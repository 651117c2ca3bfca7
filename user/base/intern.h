/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts as numbers: equal texts (call-sites, labels, jobs) have equal ids, so the model compares
 * and hashes integers. Copies live as long as the object; ids are dense from 0.
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

/* The number of ids, that of NULL included. */
size_t intern__count(const struct intern *intern);

size_t intern__bytes(const struct intern *intern);

/* Returns NULL for the id of NULL. */
const char *intern__text(const struct intern *intern, uint32_t id);

#endif
