/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sleep between two passes of vaprod's loop. It ends early where a buffer of new mappings fills up, and where a
 * thread has spent much on the hits of its probes since the last charge: so the loop needs few passes while programs
 * keep their budget, and none of them overdraws unseen.
 */
#ifndef VAPRO_SLEEPER_H
#define VAPRO_SLEEPER_H

#include "overhead/costs.h"

struct finder;
struct kernel_side;
struct sleeper;

/* finder: or NULL. Both outlive the sleeper. NULL when out of memory. */
struct sleeper *sleeper__new(struct kernel_side *side, const struct finder *finder);
void sleeper__free(struct sleeper *sleeper);

/* Sets which hits wake, by what they cost; where costs are not known none does. */
void sleeper__set_costs(struct sleeper *sleeper, const struct costs *costs);

/* Sleeps for at most limit_ns. May return early after a signal. */
void sleeper__sleep(struct sleeper *sleeper, long limit_ns);

#endif
