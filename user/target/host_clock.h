/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel knows of this host's clock. */
#ifndef VAPRO_HOST_CLOCK_H
#define VAPRO_HOST_CLOCK_H

#include <vapro/bundle.h>

/*
 * Reads whether the clock is synchronised, and its greatest error, from adjtimex(2), which changes nothing. Where the
 * call is refused the clock counts as not synchronised. The name is the caller's.
 */
struct vapro_host_clock host_clock__read(const char *host);

/* Whether a clock is worth to be announced again: it became (un)synchronised, or its error doubled or halved. */
bool host_clock__differs(const struct vapro_host_clock *now, const struct vapro_host_clock *announced);

#endif
