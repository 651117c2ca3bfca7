/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Closes links in the background, in parallel. The kernel takes about 0.1 s to remove one perf probe, one after the
 * other however many threads close them, and waits for a grace period at other links, while probes of links that are
 * not begun fire on; the daemon cannot stand still for that long.
 */
#ifndef VAPRO_ASYNC_DETACH_H
#define VAPRO_ASYNC_DETACH_H

#include "probe/bpf/modes.h"

struct async_detach;

/* NULL when out of memory. */
struct async_detach *async_detach__new(void);

/* Waits for links being closed. NULL is allowed. */
void async_detach__free(struct async_detach *detacher);

/* Takes over the link, closing it at once where no thread can be started. */
void async_detach__close(struct async_detach *detacher, struct kernel_link *link);

/* Whether a link for this process (0: for any) is still being closed. */
bool async_detach__busy(struct async_detach *detacher, pid_t pid);

/* Whether a link that was handed over at that time (CLOCK_MONOTONIC, ns) or later is still being closed. */
bool async_detach__busy_since(struct async_detach *detacher, uint64_t since_ns);

/* Waits until all links are closed. */
void async_detach__wait(struct async_detach *detacher);

#endif
