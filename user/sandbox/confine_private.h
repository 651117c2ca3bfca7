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

/* Whether a reader of a user's files was killed and cannot end: its file system does not answer. */
bool confine__left_behind(uid_t owner);

/* Whether files broke a reader recently: 0, or -EPROTO with what was wrong. */
int confine__broken(const struct confine_query *query, const struct confine_version *files, char *err, size_t err_size);

/* A response, as far as it has come; all zeros: nothing has. */
struct confine_inbox {
	uint8_t *data;
	size_t size, room;
};

/* Receives what a pipe that does not wait has. 0 at its end, -EAGAIN where more may come, or another -errno. */
int confine_inbox__receive(struct confine_inbox *inbox, int pipe);

/* Opens a complete response: 0; -EINVAL with a refusal's sentence; -EPIPE where it is not complete; or -ENOMEM. */
int confine_inbox__open(struct confine_inbox *inbox, struct confine_response *response, char *err, size_t err_size);

void confine_inbox__free(struct confine_inbox *inbox);

/* confine_request__begin() with a reader of common priority and a limit of its own. */
int confine_request__start(const struct confine_query *query, unsigned int limit_ms, struct confine_request **started,
			   char *err, size_t err_size);

/* Waits until more of the response may have come, for a limited time. */
void confine_request__wait(const struct confine_request *request, unsigned int limit_ms);

/* The reader's process; 0: none works. */
pid_t confine_request__reader(const struct confine_request *request);

/* Whether the owner of a query pays for its reader: a file is not root's. */
bool confine__is_charged(const struct confine_query *query);

/* confine__query() of a program that does not wait long (confine__wait_for_none()). */
bool confine_ahead__is_on(void);

/* Whether such a program has a reader of a user's files that waits for a file system. */
bool confine_ahead__is_held(uid_t owner);
int confine_ahead__query(const struct confine_query *query, struct confine_response *response, char *err,
			 size_t err_size);

/* Forbids all calls from here on but those for memory, the pipe and the exit. Returns 0 or -errno. */
int confine__filter(void);

#endif
