/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Target processes, and others that share their images. */
#ifndef VAPRO_SELECTION_H
#define VAPRO_SELECTION_H

#include "target/process.h"

/* Selects targets. Without any selection: every process that maps an MPI library. With one also processes without MPI
 * that have threads to report. */
struct selection {
	const pid_t *pids;
	size_t pid_count;
	const char *const *globs; /* for the executable's path or base name */
	size_t glob_count;
	pid_t ancestor; /* 0, or: only its descendants */
};

/* Whether a process is a target of the selection. */
bool selection__takes(const struct selection *selection, const struct process *process);

/* Whether pid was requested by number: it must then be attachable. */
bool selection__names(const struct selection *selection, pid_t pid);

/*
 * Counts the targets that map an image, and the others: a process that opted out, is traced or runs under a binary
 * translator is no target.
 */
size_t selection__sharers(const struct selection *selection, const struct process_mapping *mapping, size_t *others);

#endif
