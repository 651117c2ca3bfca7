/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One output of NDJSON lines: a file or standard output, with the lines that are not written yet.
 *
 * A target that appends serves a live run: it never waits long for a reader. Lines that a reader does
 * not read are retained up to a limit; beyond it new lines are dropped whole and counted, until the
 * reader has read half of the retained bytes. Standard output may be shared with other processes, and O_NONBLOCK
 * belongs to all of them: a pipe or terminal is therefore opened once more by way of /proc, so that
 * the flag is this process's own; a socket is written with MSG_DONTWAIT.
 *
 * A target that replaces serves a replay, and waits for its reader.
 *
 * A file whose name ends in ".zst" gets a zstd frame at each flush (capture/packed_lines.h).
 */
#ifndef VAPRO_LINE_TARGET_H
#define VAPRO_LINE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/output_file.h"

struct line_target;

/*
 * limit: bytes retained for a reader that has stopped. path NULL: standard output. The file has mode
 * 0640 and is opened as output_file.h says; lines begin at a line start, whatever the file holds.
 * Returns NULL with errno set.
 */
struct line_target *line_target__open(const char *path, enum output_file_mode mode, size_t limit);

/*
 * From now on a regular file gets no more than so many bytes (0: any): lines beyond are lost and counted, until the
 * file is another one, or shorter, at line_target__reopen().
 */
void line_target__limit(struct line_target *target, uint64_t bytes);

/*
 * Adds a line of this length, its newline included. spare: bytes of the limit that are left to later lines. Returns as
 * line_target__flush() does.
 */
int line_target__put(struct line_target *target, const char *line, size_t length, size_t spare);

/*
 * Writes all lines. Returns 0, also where a reader has stopped, or the -errno of the first failure,
 * once: all lines that were not written are lost then.
 */
int line_target__flush(struct line_target *target);

/* Writes what a stopped reader accepts now; other targets write nothing. Returns as line_target__flush() does. */
int line_target__retry(struct line_target *target);

/*
 * Opens the file by its path again, where the path is another file now or writing has failed for good.
 * Returns 0, or -errno: the old file stays in use then.
 */
int line_target__reopen(struct line_target *target);

const char *line_target__name(const struct line_target *target);
uint64_t line_target__lost(const struct line_target *target);

/* Returns how many of these the limit cost. */
uint64_t line_target__over(const struct line_target *target);

/* Changes of a reader; FULL: the limit was reached. */
enum line_target_news { LINE_TARGET_NO_NEWS, LINE_TARGET_STALLED, LINE_TARGET_RESUMED, LINE_TARGET_FULL };

/* Returns the change since the last call; *lines: lines dropped, when the reader has resumed. */
enum line_target_news line_target__news(struct line_target *target, uint64_t *lines);

/*
 * Flushes, waits at most a second for a reader in a live run, and frees. Returns 0 or the
 * first error, reported before or not, -ETIMEDOUT where lines were lost because of a reader. NULL is fine.
 */
int line_target__close(struct line_target *target);

#endif
