/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which CPUs the daemon itself runs. */
#ifndef VAPRO_CPUS_H
#define VAPRO_CPUS_H

#include <stddef.h>

/*
 * Settles on the CPUs of a list ("0,2-3"); NULL: on those that are not isolated (isolcpus, nohz_full),
 * if the node isolates any. Returns 0 or -EINVAL with a sentence in err.
 */
int cpus__settle(const char *list, char *err, size_t err_size);

#endif
