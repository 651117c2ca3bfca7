/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is one moment for calls that no rank leaves before all have entered (struct stg_state, together): the ranks of a
 * communicator end such a call within it.
 */
#ifndef VAPRO_DETECT_TOGETHER_H
#define VAPRO_DETECT_TOGETHER_H

#define TOGETHER_SHARE 0.2 /* of a call's time, up to which two ends are apart that are one moment ... */
#define TOGETHER_NS 20e3   /* ... and what waking a rank takes, added to it */

/* How far apart the ends of an operation may be, whose longest call took so many ns; ns. */
static inline double together__most_apart(double longest_ns)
{
	return TOGETHER_SHARE * longest_ns + TOGETHER_NS;
}

#endif
