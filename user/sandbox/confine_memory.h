/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recent responses of readers, by request and by the versions of the files. */
#ifndef VAPRO_CONFINE_MEMORY_H
#define VAPRO_CONFINE_MEMORY_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "sandbox/confine_query.h"

/* Identity of a file and of its content. */
struct confine_version {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	bool settled; /* the last change is so old that another one would have another time */
};

/* Returns all 0, which no file has, where the version is not known. */
struct confine_version confine_memory__version(int fd);
bool confine_memory__is_same(const struct confine_version *a, const struct confine_version *b);

/*
 * Copies the remembered response to the same request about the same files, as confine__query() would give
 * it. Returns whether it did. Fills files with the versions before the request is sent.
 */
bool confine_memory__recall(const struct confine_query *query, struct confine_version *files,
			    struct confine_response *response);

/* Remembers a response, within bounds (32, 4 MiB); the oldest are forgotten. Out of memory it does nothing. */
void confine_memory__keep(const struct confine_query *query, const struct confine_version *files,
			  const struct confine_response *response);

#endif
