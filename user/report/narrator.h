/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sentences about a run for the person at the terminal, while it happens: which processes are watched, which regions
 * became slow and why, and when they ended. It reads the records that a run emits, so that it says what they say.
 * Warnings are not repeated, since they are on standard error already.
 */
#ifndef VAPRO_REPORT_NARRATOR_H
#define VAPRO_REPORT_NARRATOR_H

#include <stddef.h>

#include "records/record_table.h"

struct narrator;

/*
 * Opens the terminal that fd refers to once more, such that a terminal that was stopped (^S) does not stop the writer:
 * what it does not accept fails with EAGAIN. Returns a descriptor of the caller's, or -1 where fd is no terminal.
 */
int narrator__terminal(int fd);

/*
 * fd: written to as it is, in whole lines; what it does not accept is dropped. It stays the caller's, which should make
 * it non-blocking: a terminal that was stopped must not stop a run. width: columns. Returns NULL when out of memory.
 */
struct narrator *narrator__new(int fd, unsigned width);
void narrator__free(struct narrator *narrator);

/* Takes what a record reports, where it is of use to a person at once. */
void narrator__record(struct narrator *narrator, enum record_object type, const char *line);

/*
 * Reports the regions since the last call, in the order of their times, and the processes that were found or lost; to
 * be called about once a second.
 */
void narrator__flush(struct narrator *narrator);

#endif
