/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What consumers of events rely on, checked where events come from a file or from another machine. */
#ifndef VAPRO_CAPTURE_CHECK_H
#define VAPRO_CAPTURE_CHECK_H

#include "capture/stream.h"

/*
 * Checks an event after so many announcements of threads and states; a text that must be there and is NULL becomes
 * "". Whether the ids of announcements are in order is the caller's to check. Returns what is wrong, or NULL.
 */
const char *capture__check(struct stream_event *event, uint32_t threads, uint32_t states);

#endif
