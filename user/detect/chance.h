/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a loss is within what its work scatters by itself: then it proves no disturbance.
 */
#ifndef VAPRO_CHANCE_H
#define VAPRO_CHANCE_H

#include "detect/evidence_input.h"

/*
 * Whether the loss of a variance in a class may be chance: whether its fragments, drawn from those that other rows have
 * in the same states, would take as long somewhere in the run once in a hundred runs. References are the lowest group,
 * and regions are where values are high, among many rows and bins. Durations are compared in units of references, since
 * ranks may have different work; where no other row has a state, all of its fragments are looked at. Where there are
 * hardly any, nothing is known: false.
 */
bool chance__explains(const struct variance *variance, const struct evidence_input *input, enum vapro_class class);

#endif
