/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting is not work (ARCHITECTURE section 7): what communication costs beyond its reference, waits
 * for a CPU taken out, is split per group and bin. The last arriver waits for nobody, so the least
 * excess of any member that was alive in the bin is transfer for all of them; what a member waited
 * beyond that it waited for a late peer. Threads of a process that wait for each other (STG_PROCESS)
 * are a group per process. A member that was not in a call at all has no excess, hence
 * nothing is transfer while somebody computes. Before the view only fragments that reach back are
 * left to count, and all of their excess is taken as late peer.
 */
#ifndef VAPRO_WAITING_H
#define VAPRO_WAITING_H

#include "detect/heatmap.h"
#include "model/series.h"

struct waiting;

struct waiting *waiting__new(void);
void waiting__free(struct waiting *waiting);

size_t waiting__bytes(const struct waiting *waiting);

/* Starts the bins [view, end) of a job of `rows` rows. Returns 0 or -ENOMEM. */
int waiting__begin(struct waiting *waiting, struct heatmap *map, size_t rows, uint64_t view, uint64_t end);

/* Adds a covered communication bundle; from is the first bin that may still change. Returns 0 or -ENOMEM. */
int waiting__add(struct waiting *waiting, const struct kept *kept, uint32_t row, uint32_t group, uint64_t from);

/* Writes late and transfer into the cells. Returns 0 or -ENOMEM. */
int waiting__end(struct waiting *waiting, const struct stg_job *job);

#endif
