/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where finished NDJSON lines go: a file, standard output, or both. Lines are buffered and written
 * whole at a flush (one per window). A target that fails costs lines, never the run: the error is
 * reported once, the lines are counted, and a full disk is tried again at the next flush, after the
 * file was cut back to its last whole line.
 */
#ifndef VAPRO_REPORT_SINK_H
#define VAPRO_REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SINK_BACKLOG (4U << 20) /* bytes that are kept for a reader that has stopped */

struct line_sink;

/*
 * For a replay: path is a file, replaced now (NULL = none, "-" = standard output). With to_stdout lines
 * go to standard output as well. Neither is fine too: lines are dropped, and not counted as lost. A
 * reader that is slow is waited for. Returns NULL with an errno that output_file__reason() explains.
 */
struct line_sink *line_sink__open(const char *path, bool to_stdout);

/*
 * The same for a live run: lines are added to the file, and a reader that stops (of a pipe, FIFO, socket
 * or terminal) costs lines and no time: up to backlog bytes are kept for it, then new lines are dropped
 * whole and counted (line_target.h).
 */
struct line_sink *line_sink__append(const char *path, bool to_stdout, size_t backlog);

/*
 * Adds one line, without its newline. Returns 0, or once per failing target its -errno; what failed
 * is then in line_sink__error(). The caller may go on.
 */
int line_sink__put(struct line_sink *sink, const char *line);

/* Writes what is buffered. Returns as line_sink__put() does. */
int line_sink__flush(struct line_sink *sink);

/* Writes what readers that had stopped take now; costs nothing where none had. */
void line_sink__retry(struct line_sink *sink);

/*
 * Opens the file by its path again: whoever rotates logs has moved it away. Returns 0, or -errno with a
 * sentence: lines go on to the file that was open then.
 */
int line_sink__reopen(struct line_sink *sink, char *err, size_t err_size);

/*
 * The next thing that readers did since the last call: returns the code of a warning, with a sentence
 * in text, or NULL.
 */
const char *line_sink__news(struct line_sink *sink, char *text, size_t size);

/* The latest error as a sentence with the target's name, or NULL. Lives as long as the sink. */
const char *line_sink__error(const struct line_sink *sink);

/* Lines that a target did not get. */
uint64_t line_sink__lost(const struct line_sink *sink);

/*
 * Flushes and frees; a live run's readers have a second to take what is left. Returns 0 or the first
 * error of any target, reported before or not; NULL is fine.
 */
int line_sink__close(struct line_sink *sink);

#endif
