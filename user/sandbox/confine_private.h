/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations shared by the two ends of a confined request; no other file includes them. */
#ifndef VAPRO_CONFINE_PRIVATE_H
#define VAPRO_CONFINE_PRIVATE_H

#include <sys/types.h>
#include <time.h>

#include "sandbox/confine.h"

#define CONFINE_NAME "vapro-reader" /* argv[0] of the template and of readers */
#define CONFINE_NOBODY 65534
#define CONFINE_CPU_SECONDS 5
#define CONFINE_LIMIT_MS 10000
#define CONFINE_MEMORY_BYTES (384ULL << 20) /* beside the files */
#define CONFINE_SENTENCE_MAX 256

/* Descriptors of a reader: the first that are free in the template, in this order; and the template's socket. */
enum { CONFINE_PIPE = 3, CONFINE_ABOUT, CONFINE_FIRST_FILE, CONFINE_SOCKET = CONFINE_FIRST_FILE + CONFINE_FILES_MAX };

/* An order to the template, with the descriptors; it returns the reader's pid, or -errno, as an int32_t. */
struct confine_order {
	char service[32];
	uint32_t file_count;
};

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

/*
 * Starts a reader of a query as a child of this process, by its template, which is started at need. pipe_end: where it
 * writes its response. Returns 0 or -errno.
 */
int confine_template__start(const struct confine_query *query, int about, int pipe_end, pid_t *pid);

/* Leaves a child that was killed to the next request, which reaps it. */
void confine__leave_behind(pid_t pid);

/* Forbids all calls from here on but those for memory, the pipe and the exit. Returns 0 or -errno. */
int confine__filter(void);

#endif
