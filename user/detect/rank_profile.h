/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile of each rank of a job: for how long it was in computation and in each function of communication and IO,
 * over the whole run, and how much of that was evaluated. It is the table of mpiP, made of the sums that coverage is
 * made of: for each class the evaluated times of all ranks are the seconds of the coverage.
 */
#ifndef VAPRO_DETECT_RANK_PROFILE_H
#define VAPRO_DETECT_RANK_PROFILE_H

#include "base/archive.h"
#include "detect/coverage.h"
#include "model/series.h"

struct rank_profile;

enum { PROFILE_FUNCTIONS = 64 };     /* in a job; further ones are one of their class, PROFILE_OTHER */
enum { PROFILE_FUNCTION_NAME = 40 }; /* bytes of a name */
#define PROFILE_OTHER "other"
#define PROFILE_POLLING "polling" /* computation in which calls poll, which is communication */

/*
 * Adds a window whose coverage is complete to the profile of its job, which is made where *profile is NULL. Returns 0
 * or -ENOMEM.
 */
int rank_profile__add(struct rank_profile **profile, const struct series_book *book, uint32_t job,
		      const struct coverage *coverage);

/*
 * Fills the parts of a rank's time, by the row of its first thread, most time first, and its whole time, ns. Texts are
 * the profile's. parts: room for PROFILE_FUNCTIONS + VAPRO_CLASSES. Returns the number of parts.
 */
uint32_t rank_profile__of(const struct rank_profile *profile, uint32_t row, struct result_profile_part *parts,
			  double *wall_ns);

void rank_profile__free(struct rank_profile *profile);
size_t rank_profile__bytes(const struct rank_profile *profile);

/* Writes or reads the profile of a job with so many rows; *profile to be read is NULL. */
void rank_profile__archive(struct archive *archive, struct rank_profile **profile, size_t rows);

#endif
