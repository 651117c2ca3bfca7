// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/status_server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "query/listener.h"
#include "query/status.h"

#define SECOND_NS 1000000000ULL
#define STALLED_NS 5000000000ULL /* longest pause of a client that reads */
#define REST 50			 /* a snapshot is followed by a rest of so many times its CPU time */

/* What is under way for a client of the listener. */
struct view {
	struct status_request request;
	uint64_t due_ns; /* time of its next snapshot */
	char *text;	 /* snapshot under way, or NULL */
	size_t size, sent;
};

struct status_server {
	struct listener listener;
	struct status_answers answers;
	struct listener_copies copies;
	uint64_t rest_until_ns; /* nothing is made before */
	struct view views[STATUS_CLIENTS];
};

static int parse(void *ctx, size_t at, const char *text, size_t size, char *err, size_t err_size)
{
	struct status_server *server = ctx;

	return status_request__parse(text, size, &server->views[at].request, err, err_size);
}

static void ended(void *ctx, size_t at)
{
	struct status_server *server = ctx;

	free(server->views[at].text);
	server->views[at] = (struct view){.due_ns = 0};
}

static const struct listener_policy policy = {
    .clients = STATUS_CLIENTS,
    .user_clients = STATUS_USER_CLIENTS,
    .per_user = STATUS_PER_USER,
    .accepts_per_s = STATUS_ACCEPTS_PER_S,
    .request_most = QUERY_REQUEST_MAX,
    .parse = parse,
    .ended = ended,
};

struct status_server *status_server__open(const char *path, const struct status_answers *answers, char *err,
					  size_t err_size)
{
	struct status_server *server = calloc(1, sizeof(*server));

	if (!server) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	server->answers = *answers;
	server->copies.most = LISTENER_COPIES;
	if (!listener__init(&server->listener, query_socket__listen_status(path, server->listener.path, err, err_size),
			    &policy, server, err, err_size))
		return server;
	free(server);
	return NULL;
}

const char *status_server__path(const struct status_server *server)
{
	return server->listener.path;
}

/* Sends what a client accepts of its snapshot. */
static void send_more(struct status_server *server, size_t at, uint64_t now_ns)
{
	struct listener_client *client = &server->listener.clients[at];
	struct view *view = &server->views[at];
	ssize_t sent = send(client->fd, view->text + view->sent, view->size - view->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent > 0) {
		view->sent += (size_t)sent;
		client->sending = true;
		client->since_ns = now_ns;
	} else if ((sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) ||
		   now_ns - client->since_ns > STALLED_NS) {
		listener__drop(&server->listener, at);
		return;
	}
	if (view->sent < view->size)
		return;
	free(view->text);
	view->text = NULL;
	view->sent = view->size = 0;
	client->sending = false;
	if (!view->request.interval_ms)
		listener__drop(&server->listener, at);
}

/* Makes a client's snapshot. Returns whether there is one. */
static bool make_snapshot(struct status_server *server, size_t at)
{
	struct query_head head = {.line = QUERY_OK};
	struct view *view = &server->views[at];
	char *body = NULL, first[64];
	FILE *out = open_memstream(&body, &head.bytes);
	bool good = out && !server->answers.snapshot(server->answers.ctx, server->listener.clients[at].uid, out);

	if (out && fclose(out))
		good = false;
	good = good && head.bytes <= STATUS_RESPONSE_MAX;
	if (good) {
		query_head__format(&head, first, sizeof(first));
		view->size = strlen(first) + head.bytes;
		view->text = malloc(view->size);
		good = view->text;
	}
	if (good) {
		memcpy(view->text, first, strlen(first));
		memcpy(view->text + strlen(first), body, head.bytes);
	}
	free(body);
	return good;
}

/* Returns whether a copy of the daemon makes the response. */
static bool is_copied(const struct view *view)
{
	return view->request.report || view->request.diagnose;
}

/*
 * Returns the client whose snapshot is to be made next: root's, else the one that has waited longest. Returns the
 * number of places where there is none.
 */
static size_t next_due(const struct status_server *server, uint64_t now_ns)
{
	size_t best = STATUS_CLIENTS;

	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		const struct listener_client *client = &server->listener.clients[i];
		const struct view *view = &server->views[i];
		bool root = !client->uid;

		if (client->fd < 0 || !client->complete || is_copied(view) || view->text || now_ns < view->due_ns)
			continue;
		if (best == STATUS_CLIENTS ||
		    (root != !server->listener.clients[best].uid ? root : view->due_ns < server->views[best].due_ns))
			best = i;
	}
	return best;
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

static void make_due(struct status_server *server, uint64_t now_ns)
{
	size_t at;

	while (now_ns >= server->rest_until_ns && (at = next_due(server, now_ns)) < STATUS_CLIENTS) {
		uint64_t began_ns = cpu_ns();

		server->listener.clients[at].since_ns = now_ns;
		server->views[at].due_ns = now_ns + server->views[at].request.interval_ms * 1000000ULL;
		if (make_snapshot(server, at))
			send_more(server, at, now_ns);
		else
			listener__refuse(&server->listener, at, QUERY_FAILED,
					 "vaprod's state is too large, or memory is short");
		server->rest_until_ns = now_ns + REST * (cpu_ns() - began_ns);
	}
}

/* A report's reader, as the copy that makes it sees it. */
struct reader {
	const struct status_server *server;
	const struct status_request *request;
	uid_t uid;
};

static int respond(void *ctx, FILE *out, char *note, enum query_error *error)
{
	const struct reader *reader = ctx;

	*error = QUERY_FAILED;
	if (reader->request->diagnose)
		return reader->server->answers.diagnose(reader->server->answers.ctx, reader->uid,
							&reader->request->query, out, note, error);
	if (!reader->server->answers.report(reader->server->answers.ctx, reader->uid, out))
		return 0;
	snprintf(note, QUERY_SENTENCE_MAX, "memory is short");
	return -1;
}

/* Starts reports; a client waits where other copies have to end first. */
static void start_reports(struct status_server *server, uint64_t now_ns)
{
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		const struct listener_client *client = &server->listener.clients[i];
		struct reader reader = {server, &server->views[i].request, client->uid};
		uint64_t began_ns;

		if (client->fd < 0 || !client->complete || !is_copied(&server->views[i]))
			continue;
		began_ns = cpu_ns();
		if (listener_copies__serve(&server->copies, &server->listener, i, now_ns >= server->rest_until_ns,
					   respond, &reader, now_ns))
			server->rest_until_ns = now_ns + REST * (cpu_ns() - began_ns);
	}
}

void status_server__step(struct status_server *server, uint64_t now_ns)
{
	listener_copies__reap(&server->copies);
	listener__step(&server->listener, now_ns);
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		if (server->listener.clients[i].fd >= 0 && server->views[i].text)
			send_more(server, i, now_ns);
	}
	start_reports(server, now_ns);
	make_due(server, now_ns);
}

void status_server__close(struct status_server *server)
{
	if (!server)
		return;
	listener__clear(&server->listener);
	listener_copies__end(&server->copies);
	free(server);
}
