/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of states that are the same in all processes and runs: a hash of the call-sites and of the labels that count
 * across ranks. Records have the number as `state_id`, by which those about one state belong together.
 */
#ifndef VAPRO_MODEL_STATE_ID_H
#define VAPRO_MODEL_STATE_ID_H

#include <vapro/bundle.h>

enum { STATE_ID_SIZE = 17 }; /* 16 hex digits and the NUL */

/* Returns the number of a state; 0 for NULL, which is time that belongs to no state. */
uint64_t state_id__of(const struct vapro_state *state);

/* Writes the number as hex digits; returns text, or NULL for NULL. */
const char *state_id__text(const struct vapro_state *state, char text[STATE_ID_SIZE]);

/* Parses the text; 0 for NULL and for what is no number. */
uint64_t state_id__parse(const char *text);

#endif
