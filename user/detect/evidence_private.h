/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by evidence.c and evidence_calls.c. */
#ifndef VAPRO_EVIDENCE_PRIVATE_H
#define VAPRO_EVIDENCE_PRIVATE_H

#include "detect/evidence.h"

/*
 * Whether `ns` per fragment of a series is slower than most other ranks in this view. Always true where equal work is
 * known to be equal.
 */
bool evidence__beyond_others(const struct evidence_input *input, uint32_t series, double ns);

/* Sets whether a variance is confirmed, and its evidence text. */
__attribute__((format(printf, 3, 4))) void evidence__say(struct variance *variance, bool confirmed, const char *format,
							 ...);
void evidence__say_oversubscribed(struct variance *variance);

/* The share of a class's loss that lies in states which take longer than usual. */
double evidence__strange_share(const struct evidence_input *input, const struct variance *variance,
			       enum vapro_class class);

/* The share of a class's loss in calls that are faster on other ranks, or were faster before, beyond their scatter. */
double evidence__proven_share(const struct evidence_input *input, const struct variance *variance,
			      enum vapro_class class);

/* Whether two states of one rank are slow in the same bins, both beyond what they usually take. */
bool evidence__two_states(const struct evidence_input *input, const struct variance *variance);

/* The waits for a CPU that the kernel attributes, ns, without those for threads of the same process. */
double evidence__by_others(const struct tally *tally, enum vapro_class class);

/* Whether a wait of threads for each other was spent off the CPU mostly, so that others of them might have it. */
bool evidence__gave_way(const struct variance *variance, double share);

void evidence__judge_suspended(struct variance *variance, const struct evidence_input *input);
void evidence__judge_io(struct variance *variance, const struct evidence_input *input);
void evidence__judge_path(struct variance *variance, const struct evidence_input *input);
void evidence__judge_waiting(struct variance *variance, const struct evidence_input *input,
			     const struct variance_book *book);

#endif
