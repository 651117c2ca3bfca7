/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that are equal but for a tolerance. */
#ifndef VAPRO_TESTS_NEAR_H
#define VAPRO_TESTS_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static inline void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.9g is not within %.3g of %.9g", a, tolerance, b);
}

#endif
