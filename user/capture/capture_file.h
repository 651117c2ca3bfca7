/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One capture open for reading, event by event. The reader checks the layout and what a consumer
 * relies on: ids dense from 0, known before use, classes in range, texts present where needed.
 */
#ifndef VAPRO_COLLECT_CAPTURE_FILE_H
#define VAPRO_COLLECT_CAPTURE_FILE_H

#include "capture/capture_format.h"

struct capture_file;

/*
 * Opens a run of the file (1 = the first, -1 = the last) and reads its head. Returns NULL with errno set
 * and a sentence in err.
 */
struct capture_file *capture_file__open(const char *path, int run, char *err, size_t err_size);
void capture_file__close(struct capture_file *file);

/*
 * Reads the next event; its texts live until the next call. Returns 1, 0 after STREAM_END (an event of
 * its own), -ENODATA where the file was cut short, -EBADMSG where it is damaged, or another negative
 * errno; errors come with a sentence that names file and offset. All but 1 are final.
 */
int capture_file__next(struct capture_file *file, struct stream_event *event, char *err, size_t err_size);

/* The tunables of the head as JSON; lives as long as the file. */
const char *capture_file__tunables(const struct capture_file *file);

/* How many runs the file holds; *run is the number of this one, from 1. */
size_t capture_file__runs(const struct capture_file *file, size_t *run);

#endif
