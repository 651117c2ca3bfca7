/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where slow computation runs: samples by thread, by the call after which the computation began, and by place in code.
 * Samples are taken only of threads that have an open variance; they are forgotten with it.
 */
#ifndef VAPRO_DETECT_INSIDE_H
#define VAPRO_DETECT_INSIDE_H

#include "base/archive.h"
#include "detect/variance.h"
#include "model/stg.h"

struct inside;

/* NULL when out of memory. */
struct inside *inside__new(void);
void inside__free(struct inside *inside);

/*
 * Adds samples of a known thread that began its computation after a call of a known state. site NULL: unlisted places.
 * Beyond a limit places are unlisted. Returns 0 or -ENOMEM.
 */
int inside__add(struct inside *inside, uint32_t thread, uint32_t state, const char *site, uint64_t samples);

/* Whether a variance is to be sampled, or its samples are to be held: slow computation that goes on. */
bool inside__is_open(const struct variance *variance);

/*
 * Finds the samples of rows of a job in computation that began at the call-sites from (none: in all): as many
 * places as there is room for, most samples first, and the number of all samples, also of unlisted places. Texts live
 * as long as the object. Returns the number of places; out of memory there is none.
 */
uint32_t inside__find(const struct inside *inside, const struct stg *stg, uint32_t job, const uint32_t *rows,
		      size_t row_count, const char *const *from, uint32_t from_count, struct result_inside *places,
		      uint32_t room, uint64_t *samples);

/* Forgets the samples of a job's threads that have no open variance. */
void inside__retain(struct inside *inside, const struct stg *stg, uint32_t job, const struct variance_book *book);

/* Takes the states of samples out of those marked, by number. */
void inside__use(const struct inside *inside, bool *over);

/* Writes or reads the samples; those that are read have threads and states of stg. */
void inside__archive(struct archive *archive, struct inside *inside, const struct stg *stg);

/* Bytes held. */
size_t inside__bytes(const struct inside *inside);

#endif
