/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums that are the same in any order: each term is rounded to a grid on which doubles add without rounding, so that
 * parts of a job can be summed anywhere and merged as they arrive (docs/many-nodes-scale.md).
 */
#ifndef VAPRO_EXACT_H
#define VAPRO_EXACT_H

#include <math.h>

/* A term in ns, whole: sums are exact up to 2^53 ns, 104 days of rank time. */
static inline double exact__ns(double ns)
{
	return rint(ns);
}

/* A number of fragments, in steps of 2^-20: sums are exact up to 2^33. */
static inline double exact__count(double n)
{
	return rint(n * 0x1p20) * 0x1p-20;
}

#endif
