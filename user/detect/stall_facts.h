/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the latest stalls of a kind say, and whether they are noise. Without counts the work of a computation is not
 * known to be equal: a longer one in one state alone may be more work.
 */
#ifndef VAPRO_DETECT_STALL_FACTS_H
#define VAPRO_DETECT_STALL_FACTS_H

#include "detect/stall_kinds.h"

/* Finds the facts of a kind. Returns 0 or -ENOMEM. */
int stall_facts__find(const struct stalls *stalls, const struct stall_kind *kind, const struct stg_job *job,
		      struct stall_facts *facts);

/*
 * Whether stalls of a kind are noise: most fragments between them are as usual, or they would be a slow time. fixed:
 * the work is known to be equal.
 */
bool stall_facts__is_noise(const struct stall_facts *facts, bool fixed);

/*
 * Whether two kinds of computations without counts are noise together: ranks lose both, in different states and at the
 * same moments, which come at irregular times. One state alone may have more work then.
 */
bool stall_facts__coincide(const struct stall_facts *a, const struct stall_facts *b);

#endif
