/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests that were posted and never seen to complete: by a call that is not watched (MPI_Test), or not
 * at all. They are taken out of the kernel side's table when they are old or their process has ended.
 */
#ifndef VAPRO_REQUESTS_H
#define VAPRO_REQUESTS_H

#include <stdbool.h>
#include <vapro/kernel.h>

/* Whether what is known of a handle of process tgid is to be forgotten. */
typedef bool (*request_stale)(void *ctx, uint32_t tgid, const struct kernel_request *request);

/* Asks stale for every request in the kernel side's map and deletes those it says. */
void requests__age(int map, request_stale stale, void *ctx);

#endif
