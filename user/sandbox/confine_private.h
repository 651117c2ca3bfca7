/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests as those see them that start readers or wait for them. */
#ifndef VAPRO_CONFINE_PRIVATE_H
#define VAPRO_CONFINE_PRIVATE_H

#include <sys/types.h>

#include "sandbox/confine.h"
#include "sandbox/confine_memory.h"

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

#endif
