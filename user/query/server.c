// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/server.h"

#include <errno.h>
#include <stdlib.h>

#include "query/listener.h"

#define CLIENTS 8 /* clients without a complete request */
#define COPIES 2  /* that run at the same time */

struct query_server {
	struct listener listener;
	query_answerer response;
	void *ctx;
	struct listener_copies copies;
	struct query_request requests[CLIENTS];
};

static int parse(void *ctx, size_t at, const char *text, size_t size, char *err, size_t err_size)
{
	struct query_server *server = ctx;

	return query_request__parse(text, size, &server->requests[at], err, err_size);
}

static const struct listener_policy policy = {
    .clients = CLIENTS,
    .request_most = QUERY_REQUEST_MAX,
    .ignores_rest = true,
    .parse = parse,
};

struct query_server *query_server__open(const char *where, query_answerer response, void *ctx, char *err,
					size_t err_size)
{
	struct query_server *server = calloc(1, sizeof(*server));

	if (!server) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	server->response = response;
	server->ctx = ctx;
	server->copies.most = COPIES;
	if (!listener__init(&server->listener, query_socket__listen(where, server->listener.path, err, err_size),
			    &policy, server, err, err_size))
		return server;
	free(server);
	return NULL;
}

const char *query_server__path(const struct query_server *server)
{
	return server->listener.path;
}

/* A request as its copy sees it. */
struct request_call {
	const struct query_server *server;
	const struct query_request *request;
};

static int respond(void *ctx, FILE *out, char *note, enum query_error *error)
{
	const struct request_call *call = ctx;

	return call->server->response(call->server->ctx, call->request, out, note, error);
}

void query_server__step(struct query_server *server, uint64_t now_ns)
{
	listener_copies__reap(&server->copies);
	listener__step(&server->listener, now_ns);
	for (size_t i = 0; i < CLIENTS; i++) {
		const struct listener_client *client = &server->listener.clients[i];
		struct request_call call = {server, &server->requests[i]};

		if (client->fd >= 0 && client->complete)
			listener_copies__serve(&server->copies, &server->listener, i, true, respond, &call, now_ns);
	}
}

void query_server__close(struct query_server *server)
{
	if (!server)
		return;
	listener__clear(&server->listener);
	listener_copies__end(&server->copies);
	free(server);
}
