/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the readers of /proc (process.c) and of the environment (process_identity.c). */
#ifndef VAPRO_PROCESS_PRIVATE_H
#define VAPRO_PROCESS_PRIVATE_H

#include "target/process.h"

/* Reads a file of /proc up to limit bytes; NUL-terminated, caller frees. NULL with errno set. */
char *process__read_file(const char *path, size_t limit, size_t *length);

/* Reads /proc/PID/stat from after the name, which may hold anything. NULL with errno set. The caller frees *text. */
const char *process__read_after_name(pid_t pid, char **text);

/* Reads parent and start time of process->pid. 0, or -errno: -ESRCH without a process. */
int process__read_stat(struct process *process);

/*
 * Reads one line of /proc/PID/maps, whose path may hold anything but a newline. False for a mapping that is not
 * executable, and for a line of another form. mapping->path points into the line.
 */
bool process__parse_mapping(char *line, struct process_mapping *mapping);

/* Reads a whole decimal in [0, INT_MAX]; else -1, also for NULL. */
int process__number(const char *text);

/* Reads rank, world size, job and VAPRO=off, with defaults for missing ones. */
void process__read_environment(struct process *process);

#endif
