/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which CPUs the daemon itself runs. */
#ifndef VAPRO_CPUS_H
#define VAPRO_CPUS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Settles on the CPUs of a list ("0,2-3"); NULL: on those that are not isolated (isolcpus, nohz_full),
 * if the node isolates any. Returns 0 or -EINVAL with a sentence in err.
 */
int cpus__settle(const char *list, char *err, size_t err_size);

/*
 * CPU time of this thread and of the children that it has waited for, ns: what reading images and setting probes
 * costs, here and in children.
 */
uint64_t cpus__spent_ns(void);

#endif
