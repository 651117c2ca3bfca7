// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/status_server.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "query/protocol.h"
#include "query/socket.h"
#include "query/status.h"

#define ACCEPTS 4	 /* connections accepted in a step */
#define ACCEPTS_PER_S 32 /* and in a second: others wait in the kernel's queue */
#define SECOND_NS 1000000000ULL
#define PATIENCE_NS 2000000000ULL /* time for a request to arrive */
#define STALLED_NS 5000000000ULL  /* longest pause of a client that reads */
#define REST 50			  /* a snapshot is followed by a rest of so many times its CPU time */

struct client {
	int fd; /* -1: free */
	uid_t uid;
	uint64_t since_ns; /* time of its connection, or of the last progress */
	uint64_t due_ns;   /* time of its next snapshot */
	unsigned interval_ms;
	bool complete; /* its request */
	size_t used;
	char request[STATUS_REQUEST_MAX];
	char *text; /* snapshot under way, or NULL */
	size_t size, sent;
};

struct status_server {
	int fd;
	char path[QUERY_PATH_MAX];
	dev_t device;
	ino_t inode;
	status_answerer answer;
	void *ctx;
	uint64_t rest_until_ns; /* no snapshot is made before */
	uint64_t second_ns;	/* begin of the second in which connections are counted */
	unsigned accepted;	/* in that second */
	struct client clients[STATUS_CLIENTS];
};

struct status_server *status_server__open(const char *path, status_answerer answer, void *ctx, char *err,
					  size_t err_size)
{
	struct status_server *server = calloc(1, sizeof(*server));
	struct stat status;

	if (!server) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	server->answer = answer;
	server->ctx = ctx;
	for (size_t i = 0; i < STATUS_CLIENTS; i++)
		server->clients[i].fd = -1;
	server->fd = query_socket__listen_status(path, server->path, err, err_size);
	if (server->fd < 0) {
		free(server);
		return NULL;
	}
	if (!lstat(server->path, &status)) {
		server->device = status.st_dev;
		server->inode = status.st_ino;
	}
	return server;
}

const char *status_server__path(const struct status_server *server)
{
	return server->path;
}

static void drop(struct client *client)
{
	close(client->fd);
	client->fd = -1;
	free(client->text);
	client->text = NULL;
}

/* Sends an error line, as far as it is accepted at once, and drops the client. */
static void refuse(struct client *client, enum query_error error, const char *sentence)
{
	struct query_head head = {.line = QUERY_ERROR, .error = error, .sentence = sentence};
	char text[QUERY_SENTENCE_MAX + 64];

	query_head__format(&head, text, sizeof(text));
	/* inside a snapshot the line would be taken for a part of it */
	if (!client->sent && send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	drop(client);
}

/* Returns why a user gets no further connection, or NULL. */
static const char *why_not(const struct status_server *server, uid_t uid)
{
	unsigned same = 0, users = 0;

	if (!uid)
		return NULL;
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		users += client->fd >= 0 && client->uid;
		same += client->fd >= 0 && client->uid == uid;
	}
	if (same >= STATUS_PER_USER)
		return "you have too many connections already";
	return users >= STATUS_USER_CLIENTS ? "there are too many connections; try again later" : NULL;
}

static struct client *free_place(struct status_server *server)
{
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		if (server->clients[i].fd < 0)
			return &server->clients[i];
	}
	return NULL;
}

static void accept_clients(struct status_server *server, uint64_t now_ns)
{
	struct pollfd waiting = {.fd = server->fd, .events = POLLIN};

	if (now_ns - server->second_ns >= SECOND_NS) {
		server->second_ns = now_ns;
		server->accepted = 0;
	}
	for (unsigned i = 0; i < ACCEPTS && server->accepted < ACCEPTS_PER_S; i++) {
		struct client *client = free_place(server), fresh = {.since_ns = now_ns};
		const char *why;

		if (!client || poll(&waiting, 1, 0) <= 0)
			return;
		fresh.fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fresh.fd < 0)
			return;
		server->accepted++;
		if (query_socket__peer_uid(fresh.fd, &fresh.uid)) {
			close(fresh.fd);
			continue;
		}
		why = why_not(server, fresh.uid);
		*client = fresh;
		if (why)
			refuse(client, QUERY_REFUSED, why);
	}
}

/* Reads what a client sends: its request, and then nothing but its end. */
static void read_client(struct client *client, uint64_t now_ns)
{
	char err[256];
	ssize_t got;
	int error;

	got = recv(client->fd, client->request + client->used, sizeof(client->request) - client->used, MSG_DONTWAIT);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		drop(client);
		return;
	}
	if (got > 0) {
		client->used += (size_t)got;
		error = status_request__parse(client->request, client->used, &client->interval_ms, err, sizeof(err));
		if (error == -EINVAL) {
			refuse(client, QUERY_USAGE, err);
			return;
		}
		client->complete = !error;
		client->due_ns = now_ns;
	}
	if (!client->complete && now_ns - client->since_ns > PATIENCE_NS)
		refuse(client, QUERY_FAILED, "no request came");
}

/* Sends what a client accepts of its snapshot. */
static void send_more(struct client *client, uint64_t now_ns)
{
	ssize_t sent =
	    send(client->fd, client->text + client->sent, client->size - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent > 0) {
		client->sent += (size_t)sent;
		client->since_ns = now_ns;
	} else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
		drop(client);
		return;
	} else if (now_ns - client->since_ns > STALLED_NS) {
		drop(client);
		return;
	}
	if (client->sent < client->size)
		return;
	free(client->text);
	client->text = NULL;
	client->sent = client->size = 0;
	if (!client->interval_ms)
		drop(client);
}

/* Makes a client's snapshot. Returns whether there is one. */
static bool make_snapshot(const struct status_server *server, struct client *client)
{
	struct query_head head = {.line = QUERY_OK};
	char *body = NULL, first[64];
	FILE *out = open_memstream(&body, &head.bytes);
	bool good = out && !server->answer(server->ctx, client->uid, out);

	if (out && fclose(out))
		good = false;
	good = good && head.bytes <= STATUS_RESPONSE_MAX;
	if (good) {
		query_head__format(&head, first, sizeof(first));
		client->size = strlen(first) + head.bytes;
		client->text = malloc(client->size);
		good = client->text;
	}
	if (good) {
		memcpy(client->text, first, strlen(first));
		memcpy(client->text + strlen(first), body, head.bytes);
	}
	free(body);
	return good;
}

/* Returns the client whose snapshot is to be made next: root's, else the one that has waited longest. NULL: none. */
static struct client *next_due(struct status_server *server, uint64_t now_ns)
{
	struct client *best = NULL;

	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd < 0 || !client->complete || client->text || now_ns < client->due_ns)
			continue;
		if (!best || (!client->uid != !best->uid ? !client->uid : client->due_ns < best->due_ns))
			best = client;
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
	struct client *client;

	while (now_ns >= server->rest_until_ns && (client = next_due(server, now_ns))) {
		uint64_t began_ns = cpu_ns();

		client->since_ns = now_ns;
		client->due_ns = now_ns + client->interval_ms * 1000000ULL;
		if (make_snapshot(server, client))
			send_more(client, now_ns);
		else
			refuse(client, QUERY_FAILED, "vaprod's state is too large, or memory is short");
		server->rest_until_ns = now_ns + REST * (cpu_ns() - began_ns);
	}
}

void status_server__step(struct status_server *server, uint64_t now_ns)
{
	accept_clients(server, now_ns);
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd >= 0)
			read_client(client, now_ns);
		if (client->fd >= 0 && client->text)
			send_more(client, now_ns);
	}
	make_due(server, now_ns);
}

void status_server__close(struct status_server *server)
{
	struct stat status;

	if (!server)
		return;
	for (size_t i = 0; i < STATUS_CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			refuse(&server->clients[i], QUERY_FAILED, "vaprod has ended");
	}
	/* a file that has replaced the socket stays */
	if (!lstat(server->path, &status) && status.st_dev == server->device && status.st_ino == server->inode)
		unlink(server->path);
	close(server->fd);
	free(server);
}
