/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States split by the bands of dynamic rules (model/rules.h): a state that computations of several bands
 * belong to becomes one state for each, distinguished by a label. Ids that come in are the source's, those
 * that go out are dense from 0 in the order in which they are first used.
 */
#ifndef VAPRO_BANDS_H
#define VAPRO_BANDS_H

#include "config/rules.h"

struct bands;

/* The rules are settled and outlive it. NULL when out of memory. */
struct bands *bands__new(const struct rules *rules);
void bands__free(struct bands *bands);

/* Keeps a state of the source; texts are copied. Returns 0, -EINVAL where its id is neither known nor next, or -ENOMEM.
 */
int bands__add_state(struct bands *bands, const struct vapro_state *state);

/*
 * Gives a bundle its state going out, and the flag where its band is not certain. Returns 1 with *fresh where
 * that state must be announced first (its texts live as long as this object), 0, -EINVAL for an unknown
 * state, or -ENOMEM.
 */
int bands__place(struct bands *bands, struct vapro_bundle *bundle, struct vapro_state *fresh);

#endif
