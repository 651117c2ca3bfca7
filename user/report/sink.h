/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where finished NDJSON lines go: a file, standard output, or both. Lines are buffered and written
 * whole at a flush (one per window). A target that fails costs lines, never the run: the error is
 * told once, the lines are counted, and a full disk is tried again at the next flush, after the
 * file was cut back to its last whole line.
 */
#ifndef VAPRO_REPORT_SINK_H
#define VAPRO_REPORT_SINK_H

#include <stdbool.h>
#include <stdint.h>

struct line_sink;

/*
 * path is a file, truncated now (NULL = none, "-" = standard output). With to_stdout lines go to
 * standard output as well. Neither is fine too: lines are dropped, and not counted as lost.
 * Returns NULL with errno set.
 */
struct line_sink *line_sink__open(const char *path, bool to_stdout);

/*
 * Adds one line, without its newline. Returns 0, or once per failing target its -errno; what failed
 * is then in line_sink__error(). The caller may go on.
 */
int line_sink__put(struct line_sink *sink, const char *line);

/* Writes what is buffered. Returns as line_sink__put() does. */
int line_sink__flush(struct line_sink *sink);

/* The latest error as a sentence with the target's name, or NULL. Lives as long as the sink. */
const char *line_sink__error(const struct line_sink *sink);

/* Lines that a target did not get. */
uint64_t line_sink__lost(const struct line_sink *sink);

/* Flushes and frees. Returns 0 or the first error of any target, told before or not; NULL is fine. */
int line_sink__close(struct line_sink *sink);

#endif
