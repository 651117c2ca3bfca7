/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a loss in computation is within what its work scatters by itself, or came gradually: then it proves no
 * disturbance.
 */
#ifndef VAPRO_CHANCE_H
#define VAPRO_CHANCE_H

#include "detect/evidence_input.h"

/*
 * Whether the fragments of a variance's rows, tested against the mean and the scatter of the same work on all other
 * rows, may be slow by chance. A reference is the lowest group and regions are where values are high, among many rows
 * and windows: six standard deviations are not chance. Where other rows hardly do this work, nothing is known: false.
 */
bool chance__explains(const struct variance *variance, const struct evidence_input *input);

/*
 * Whether the rows of a variance became slow in steps too small to see, as by work that grows: just after its begin
 * they are slower than just before by less than half of what they are slower by in all. Where the map begins with the
 * variance, nothing is known: false.
 */
bool chance__gradual(const struct variance *variance, const struct evidence_input *input);

#endif
