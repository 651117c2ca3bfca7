/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Closes links in the background, in parallel. The kernel takes about 0.1 s to remove one perf probe, one after the
 * other however many threads close them, and waits for a grace period at other links, while probes of links that are
 * not begun fire on; the daemon cannot stand still for that long.
 */
#ifndef VAPRO_CLOSER_H
#define VAPRO_CLOSER_H

#include "probe/bpf/modes.h"

struct closer;

/* NULL when out of memory. */
struct closer *closer__new(void);

/* Waits for links being closed. NULL is allowed. */
void closer__free(struct closer *closer);

/* Takes over the link, closing it at once where no thread can be started. */
void closer__close(struct closer *closer, struct kernel_link *link);

/* Whether a link for this process (0: for any) is still being closed. */
bool closer__busy(struct closer *closer, pid_t pid);

/* Waits until all links are closed. */
void closer__wait(struct closer *closer);

#endif
