/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs on which the daemon itself runs. */
#ifndef VAPRO_CPUS_H
#define VAPRO_CPUS_H

#include <stddef.h>

/*
 * Restricts the daemon to the CPUs of a list ("0,2-3"), or, for NULL, to CPUs that are not isolated (isolcpus,
 * nohz_full), if the node isolates any. Returns 0 or -EINVAL with a sentence in err.
 */
int cpus__finalize(const char *list, char *err, size_t err_size);

#endif
