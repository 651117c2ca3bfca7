/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations shared by the two ends of a confined request; no other file includes them. */
#ifndef VAPRO_CONFINE_PRIVATE_H
#define VAPRO_CONFINE_PRIVATE_H

#include <sys/types.h>
#include <time.h>

#include "sandbox/confine.h"

#define CONFINE_NAME "vapro-reader" /* argv[0] of a reader; then service and number of files */
#define CONFINE_NOBODY 65534
#define CONFINE_CPU_SECONDS 5
#define CONFINE_LIMIT_MS 10000
#define CONFINE_MEMORY_BYTES (384ULL << 20) /* beside the files */
#define CONFINE_SENTENCE_MAX 256

/* Descriptors of a reader. */
enum { CONFINE_PIPE = 3, CONFINE_ABOUT, CONFINE_FIRST_FILE };

/* Exit codes of a reader that failed. */
enum { CONFINE_EXIT_SETUP = 71, CONFINE_EXIT_MEMORY, CONFINE_EXIT_READ };

struct confine_head {
	uint64_t status; /* 0, or an errno: a sentence follows */
	uint64_t size;	 /* bytes that follow */
};

extern bool confine__armed;

/* Identity of a file and of its content. */
struct confine_version {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	bool settled; /* the last change is so old that another one would have another time */
};

/* Returns all 0, which no file has, where the version is not known. */
struct confine_version confine_version__of(int fd);
bool confine_version__same(const struct confine_version *a, const struct confine_version *b);

/*
 * Copies the remembered response to the same request about the same files, as confine__query() would give
 * it. Returns whether it did. Fills files with the versions before the request is sent.
 */
bool confine_memory__recall(const struct confine_query *query, struct confine_version *files,
			    struct confine_response *response);

/* Remembers a response, within bounds (32, 4 MiB); the oldest are forgotten. Out of memory it does nothing. */
void confine_memory__keep(const struct confine_query *query, const struct confine_version *files,
			  const struct confine_response *response);

/* Forbids all calls from here on but those for memory, the pipe and the exit. Returns 0 or -errno. */
int confine__filter(void);

#endif
