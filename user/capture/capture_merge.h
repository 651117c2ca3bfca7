/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of several hosts as one stream: times turned into UTC, thread and state ids made anew
 * (states with equal texts become one), windows those of the host that began first, then of the next
 * one that lasts longer. Reads ahead at most about one window per file.
 */
#ifndef VAPRO_COLLECT_CAPTURE_MERGE_H
#define VAPRO_COLLECT_CAPTURE_MERGE_H

#include <stddef.h>
#include "capture/stream.h"

/* As capture__replay(). A file that is damaged or cut short ends there; the others go on. */
int capture_merge(const char *const *paths, size_t count, int run, struct stream_sink *sink, char *err,
		  size_t err_size);

#endif
