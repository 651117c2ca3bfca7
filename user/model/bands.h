/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Splits states by the bands of dynamic rules (config/rules.h): a state with computations of several bands
 * becomes one state per band, distinguished by a label. Incoming ids are the source's; outgoing ids are dense
 * from 0 in the order of first use.
 */
#ifndef VAPRO_BANDS_H
#define VAPRO_BANDS_H

#include "base/archive.h"
#include "config/rules.h"

struct bands;

/* The rules are final and outlive the object. NULL when out of memory. */
struct bands *bands__new(const struct rules *rules);
void bands__free(struct bands *bands);

/* Writes or reads the states; an object to be read is new. */
void bands__archive(struct archive *archive, struct bands *bands);

/* Adds a source state; texts are copied. Returns 0, -EINVAL where its id is neither known nor next, or -ENOMEM. */
int bands__add_state(struct bands *bands, const struct vapro_state *state);

/*
 * Sets the outgoing state of a bundle, and its flag where the band is not certain. Returns 1 with *fresh where
 * the state must be announced first (its texts live as long as this object), 0, -EINVAL for an unknown
 * state, or -ENOMEM.
 */
int bands__place(struct bands *bands, struct vapro_bundle *bundle, struct vapro_state *is_new);

#endif
