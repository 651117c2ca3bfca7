/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures of several hosts as one stream: times are converted to UTC, threads and states renumbered
 * (states with equal texts become one), windows are those of the host that began first, then of the
 * next one that lasts longer. At most about one window per file is read ahead.
 */
#ifndef VAPRO_COLLECT_CAPTURE_MERGE_H
#define VAPRO_COLLECT_CAPTURE_MERGE_H

#include <stddef.h>
#include "capture/stream.h"

/* Works as capture__replay(). A damaged or cut file ends early; the others go on. */
int capture_merge(const char *const *paths, size_t count, int run, struct stream_sink *sink, char *err,
		  size_t err_size);

#endif
