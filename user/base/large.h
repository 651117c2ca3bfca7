/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of an array that is visited all over, in turns with others: with pages of 4 KiB the look-up of pages takes up
 * to half of the time of a visit. From LARGE_PAGE bytes on the array begins at a border of huge pages, which the system
 * is asked for; whether it has some changes nothing but the speed.
 */
#ifndef VAPRO_LARGE_H
#define VAPRO_LARGE_H

#include <stddef.h>

enum { LARGE_PAGE = 2 << 20 }; /* bytes of a huge page of x86-64 and, with pages of 4 KiB, of arm64 */

/*
 * Like realloc, for an array that grows and of which some bytes are used: others need not be kept. The old memory is
 * given back while it is copied, so that both together take little more than one. free frees the array.
 */
void *large__grow(void *old, size_t used, size_t bytes);

#endif
