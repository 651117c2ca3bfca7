/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranks without calls that are seen, as processes that communicate by sockets, show that they wait for a late rank by
 * their sleep only: the kernel's account (account.h) has it. What a row slept in a bin beyond what it sleeps in most
 * bins in which no rank of its job lost anything counts as waiting for a late peer. It is no loss by itself; caused.h
 * divides it among the losses of other rows at that time. A row of which fragments are seen shows its waits in these.
 */
#ifndef VAPRO_DETECT_SLEPT_H
#define VAPRO_DETECT_SLEPT_H

#include "detect/account.h"

/*
 * Enters the waits of bins [view, end) in the map, to be rebuilt in each window (HEATMAP_OPEN_LATE); nothing while too
 * few bins are calm to know usual sleep. Call after account__make. Returns 0 or -ENOMEM.
 */
int slept__enter(const struct account *account, const struct vapro_config *config, struct heatmap *map, uint64_t view,
		 uint64_t end);

#endif
