/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output of finished NDJSON lines: a file, standard output, or both. Lines are buffered and written
 * whole at a flush (one per window). A target that fails costs lines, never the run: the error is
 * reported once, the lines are counted, and writing to a full disk is tried again at the next flush,
 * after the file was cut back to its last whole line.
 */
#ifndef VAPRO_LINE_SINK_H
#define VAPRO_LINE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/record_filter.h"

#define LINE_SINK_BACKLOG (4U << 20) /* bytes retained for a reader that has stopped */

struct line_sink;

/*
 * Opens a sink for a replay: path is a file, replaced now (NULL = none, "-" = standard output). With
 * to_stdout lines go to standard output as well. With neither, lines are dropped, and not counted as lost.
 * The sink waits for slow readers. Returns NULL with an errno that output_file__reason() explains.
 */
struct line_sink *line_sink__open(const char *path, bool to_stdout);

/*
 * Opens a sink for a live run: lines are added to the file, and a reader that stops (of a pipe, FIFO,
 * socket or terminal) costs lines and no time: up to backlog bytes are retained, then new lines are
 * dropped whole and counted (line_target.h).
 */
struct line_sink *line_sink__append(const char *path, bool to_stdout, size_t backlog);

/*
 * From now on the sink takes these records only, and its file no more than so many bytes (0: any). Lines beyond the
 * limit are lost and counted until the file is reopened as another one; the last line of a run has room left. Returns 0
 * or -ENOMEM.
 */
int line_sink__bound(struct line_sink *sink, enum record_choice records, uint64_t most_bytes);

/*
 * Adds one line, without its newline. Returns 0, or once per failing target its -errno;
 * line_sink__error() then explains the failure. The caller may go on.
 */
int line_sink__put(struct line_sink *sink, const char *line);

/* Writes all buffered lines. Returns as line_sink__put() does. */
int line_sink__flush(struct line_sink *sink);

/* Writes what stopped readers accept now; costs nothing where no reader has stopped. */
void line_sink__retry(struct line_sink *sink);

/*
 * Opens the file by its path again, after a log rotation has moved the file. Returns 0, or -errno with a
 * sentence: lines then still go to the old file.
 */
int line_sink__reopen(struct line_sink *sink, char *err, size_t err_size);

/*
 * Gets the next change of a reader since the last call: returns the code of a warning, with a sentence
 * in text, or NULL.
 */
const char *line_sink__news(struct line_sink *sink, char *text, size_t size);

/* Returns the latest error as a sentence with the target's name, or NULL. Lives as long as the sink. */
const char *line_sink__error(const struct line_sink *sink);

/* Returns the number of lines that a target lost, and how many of these the limit cost. */
uint64_t line_sink__lost(const struct line_sink *sink);
uint64_t line_sink__over(const struct line_sink *sink);

/*
 * Flushes and frees; a live run's readers have a second to read the rest. Returns 0 or the first
 * error of any target, reported before or not; NULL is fine.
 */
int line_sink__close(struct line_sink *sink);

#endif
