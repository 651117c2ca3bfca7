/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages must not stop a daemon: where standard error is a pipe or a terminal whose reader has
 * stopped, they are lost instead. The flag that does it is not set on the file description that is
 * shared with other processes, but on one of our own.
 */
#ifndef VAPRO_STDERR_GUARD_H
#define VAPRO_STDERR_GUARD_H

/* Makes writes to standard error non-blocking. Returns what end() needs, -1 where nothing changed. */
int stderr_guard__begin(void);

/* Restores standard error. */
void stderr_guard__end(int saved);

#endif
