/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other side of vaprod's sockets, for a command that sends one request and waits for its response. */
#ifndef VAPRO_QUERY_CLIENT_H
#define VAPRO_QUERY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "query/protocol.h"
#include "query/socket.h"

#define QUERY_NAMED 16 /* sockets that are named where there are several */

struct query_found {
	char path[QUERY_PATH_MAX]; /* of the one to connect to */
	int several;		   /* how many listen where one is expected; the first QUERY_NAMED are in names */
	char names[QUERY_NAMED][QUERY_PATH_MAX];
};

/*
 * Finds the socket of a vaprod, or its status socket; where: as --socket of vaprod, a socket or the directory of
 * sockets. Returns 0; or with a sentence in err -ENOENT where none listens in the directory, -EEXIST where several do,
 * or another -errno.
 */
int query_client__find(const char *where, bool status, struct query_found *found, char *err, size_t err_size);

/*
 * Sends a request and reads the whole response; *text is malloc'ed and NUL-terminated. Returns 0; or with a sentence in
 * err -EPERM or -EACCES where the user or the listener is not the right one, or another -errno.
 */
int query_client__request(const char *path, const char *request, size_t size, double patience_s, char **text,
			  size_t *text_size, char *err, size_t err_size);

/* The parts of a response, in its text. */
struct query_response {
	const char *body; /* NULL: there is an error instead */
	size_t bytes;
	enum query_error error;
	const char *sentence; /* of the error */
};

/* Reads a response in place and calls note with the sentence of each note. Returns 0, or -EINVAL where the response is
 * incomplete. */
int query_client__read(char *text, size_t size, void (*note)(const char *sentence), struct query_response *response);

#endif
