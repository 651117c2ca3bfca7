/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures of several hosts as one stream (stream_merge.h). */
#ifndef VAPRO_COLLECT_CAPTURE_MERGE_H
#define VAPRO_COLLECT_CAPTURE_MERGE_H

#include <stddef.h>
#include "capture/stream.h"

/* Is given the bytes that the merge holds, after each window. */
struct merge_watch {
	void (*held)(struct merge_watch *watch, size_t bytes);
};

/* Works as capture__replay(). A damaged or cut file ends early; the others go on. watch may be NULL. */
int capture_merge(const char *const *paths, size_t count, int run, struct stream_sink *sink, struct merge_watch *watch,
		  char *err, size_t err_size);

#endif
