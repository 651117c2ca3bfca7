/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What reading of /proc (process.c) and of the environment (process_identity.c) share. */
#ifndef VAPRO_PROCESS_PRIVATE_H
#define VAPRO_PROCESS_PRIVATE_H

#include "target/process.h"

/* Reads a file of /proc up to limit bytes; NUL-terminated, the caller's. NULL with errno set. */
char *process__read_file(const char *path, size_t limit, size_t *length);

/* What /proc/PID/stat says after the name, which may hold anything, or NULL with errno set. *text is the caller's. */
const char *process__read_after_name(pid_t pid, char **text);

/* Parent and start time of process->pid. 0, or -errno: -ESRCH where there is none. */
int process__read_stat(struct process *process);

/* A whole decimal number in [0, INT_MAX], or -1, also for NULL. */
int process__number(const char *text);

/* Rank, world size, job and VAPRO=off; where nothing is said, what stands for it. */
void process__read_environment(struct process *process);

#endif
