/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the rows of a variance became slow, by the sharpest steps of their computation. Work that grows has no step, and
 * work that is distributed again has one on many rows in the same moment: the speed of one place alone changes at once
 * while the other rows go on as before.
 */
#ifndef VAPRO_ONSET_H
#define VAPRO_ONSET_H

#include "detect/evidence_input.h"

struct onset {
	bool known;	/* the map has what was before the variance */
	bool sharp;	/* its rows became slow within a few computations */
	bool lone;	/* so they did, and no others changed; shortly before its begin or within it */
	uint64_t bin;	/* of that step; where there is none, the begin of the variance */
	uint64_t width; /* bins on either side that are compared, some computations long */
	double ratio;	/* of its rows' time after and before the step, beside that of the other rows */
};

/* Out of memory no step is known. */
struct onset onset__of(const struct variance *variance, const struct evidence_input *input);

/* Whether at least two states of a row took longer after the step than before it, as far as bundles are retained. */
bool onset__two_states(const struct onset *onset, const struct variance *variance, const struct evidence_input *input);

/*
 * Whether the rows of a variance were slow as soon as they were seen: that they became slow, and did not just have more
 * work, is not known.
 */
bool onset__from_start(const struct variance *variance, const struct evidence_input *input);

#endif
