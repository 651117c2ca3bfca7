/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash table from a pair of 64-bit keys to a 32-bit index: how the model finds the object of a
 * (thread, state, workload) in constant time. Entries are not removed one by one, but all that are not
 * to be kept at once. Owns nothing but itself.
 */
#ifndef VAPRO_TABLE_H
#define VAPRO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table;

struct table *table__new(void);
void table__free(struct table *table);
bool table__get(const struct table *table, uint64_t a, uint64_t b, uint32_t *value);

/* Sets or replaces. Returns 0 or -ENOMEM. */
int table__put(struct table *table, uint64_t a, uint64_t b, uint32_t value);

/* Removes the entries whose values are not to be kept. Returns 0 or, with nothing changed, -ENOMEM. */
int table__prune(struct table *table, bool (*keeps)(const void *ctx, uint32_t value), const void *ctx);

size_t table__bytes(const struct table *table);

/* 64-bit mixing of two keys; also what texts are hashed with. */
uint64_t table__hash(uint64_t a, uint64_t b);

#endif
