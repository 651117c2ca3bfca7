/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of the variances, or of the hangs, that were reported: a variance counts once however often it changes, and is
 * an alarm if its last revision is one. Bounded: of older variances only the counts remain.
 */
#ifndef VAPRO_REPORTED_H
#define VAPRO_REPORTED_H

#include "base/archive.h"

#include <vapro/analysis.h>

struct reported_variances;

/* Returns NULL when out of memory. */
struct reported_variances *reported__new(void);
void reported__free(struct reported_variances *reported);

/* Notes a revision. Returns 0 or -ENOMEM. */
int reported__note(struct reported_variances *reported, uint64_t id, bool alarm, enum vapro_severity severity);

/* Returns how many variances were noted. */
uint64_t reported__count(const struct reported_variances *reported);

/* Adds the alarms of each severity. */
void reported__alarms(const struct reported_variances *reported, uint64_t alarms[VAPRO_SEVERITIES]);

/* Writes or reads all counts; an object to be read is empty. */
void reported__archive(struct archive *archive, struct reported_variances *reported);

#endif
