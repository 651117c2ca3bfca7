/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that were posted and never seen to complete: by an unprobed call (MPI_Test), or not at all.
 * Requests that are old or whose process has ended are removed from the kernel side's table.
 */
#ifndef VAPRO_REQUESTS_H
#define VAPRO_REQUESTS_H

#include <stdbool.h>
#include <vapro/bpf/abi.h>

/* Decides whether to forget a request of process tgid. */
typedef bool (*request_stale)(void *ctx, uint32_t tgid, const struct kernel_request *request);

/* Deletes the requests in the kernel side's map for which stale returns true. */
void requests__age(int map, request_stale stale, void *ctx);

#endif
