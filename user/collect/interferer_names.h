/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of tasks whose program was executed from memory: the kernel calls them by the file, "memfd:sealed-91", which
 * says nothing to people. Their process is called by its first argument instead.
 */
#ifndef VAPRO_INTERFERER_NAMES_H
#define VAPRO_INTERFERER_NAMES_H

#include <sys/types.h>

#define INTERFERER_NAME_SIZE 16 /* as of the kernel's names */
#define INTERFERER_NAMES 64	/* processes remembered; a power of two */

struct interferer_names {
	struct {
		pid_t pid;
		char comm[INTERFERER_NAME_SIZE], name[INTERFERER_NAME_SIZE];
	} known[INTERFERER_NAMES];
};

/*
 * Replaces comm, the name of a task of process pid, where that is a file in memory and the process has another name.
 * It stays as it is where the process has ended.
 */
void interferer_names__replace(struct interferer_names *names, pid_t pid, char comm[INTERFERER_NAME_SIZE]);

#endif
