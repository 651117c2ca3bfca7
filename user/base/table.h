/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash table from a pair of 64-bit keys to a 32-bit index: the model finds the object of a
 * (thread, state, workload) in constant time. Entries are removed in bulk (table__prune), never one by
 * one. The table owns no object.
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

/*
 * Goes through all entries in no order; *at is 0 before the first, and is moved. Returns false after the last one.
 */
bool table__next(const struct table *table, size_t *at, uint64_t *a, uint64_t *b, uint32_t *value);

/* Removes the entries whose values keeps() rejects. Returns 0 or, with nothing changed, -ENOMEM. */
int table__prune(struct table *table, bool (*keeps)(const void *ctx, uint32_t value), const void *ctx);

/* Room of a table, and making room: a size is a power of two. table__reserve returns 0 or -ENOMEM. */
size_t table__size(const struct table *table);
int table__reserve(struct table *table, size_t size);

size_t table__bytes(const struct table *table);

/* 64-bit mixing of two keys, also for hashes of texts. */
uint64_t table__hash(uint64_t a, uint64_t b);

#endif
