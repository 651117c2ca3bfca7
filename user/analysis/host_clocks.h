/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernels of hosts say of their own clocks (struct vapro_host_clock), by the host's name. */
#ifndef VAPRO_HOST_CLOCKS_H
#define VAPRO_HOST_CLOCKS_H

#include <vapro/bundle.h>

#include "base/archive.h"

struct host_clocks;

struct host_clocks *host_clocks__new(void);
void host_clocks__free(struct host_clocks *clocks);
size_t host_clocks__bytes(const struct host_clocks *clocks);

/* Notes what is known of a host from now on; its name is copied. Returns 0 or -ENOMEM. */
int host_clocks__set(struct host_clocks *clocks, const struct vapro_host_clock *clock);

/* How far off the host's clock is at most, ns; INFINITY: not synchronised, or unknown. */
double host_clocks__error_ns(const struct host_clocks *clocks, const char *host);

/* Writes or reads all that is known; clocks to be read are new. */
void host_clocks__archive(struct archive *archive, struct host_clocks *clocks);

#endif
