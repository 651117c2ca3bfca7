// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPTS 64 /* connections accepted in a step: those who connect all the time leave room for others */
#define SECOND_NS 1000000000ULL
#define PATIENCE_NS 2000000000ULL /* time for a request to arrive */

int listener__init(struct listener *listener, int fd, const struct listener_policy *policy, void *ctx, char *err,
		   size_t err_size)
{
	size_t size = sizeof(*listener->clients) + policy->request_most;
	struct stat status;
	char *texts;

	if (fd >= 0) {
		listener->policy = policy;
		listener->ctx = ctx;
		listener->fd = fd;
		listener->clients = calloc(policy->clients, size);
		if (!listener->clients) {
			unlink(listener->path);
			close(fd);
			fd = -ENOMEM;
		}
	}
	if (fd == -ENOMEM)
		snprintf(err, err_size, "out of memory");
	if (fd < 0)
		return fd;
	texts = (char *)&listener->clients[policy->clients];
	for (size_t i = 0; i < policy->clients; i++)
		listener->clients[i] = (struct listener_client){.fd = -1, .text = texts + i * policy->request_most};
	if (!lstat(listener->path, &status)) {
		listener->device = status.st_dev;
		listener->inode = status.st_ino;
	}
	return 0;
}

void listener__drop(struct listener *listener, size_t at)
{
	close(listener->clients[at].fd);
	listener->clients[at].fd = -1;
	if (listener->policy->ended)
		listener->policy->ended(listener->ctx, at);
}

void listener__refuse(struct listener *listener, size_t at, enum query_error error, const char *sentence)
{
	struct query_head head = {.line = QUERY_ERROR, .error = error, .sentence = sentence};
	const struct listener_client *client = &listener->clients[at];
	char text[QUERY_SENTENCE_MAX + 64];

	query_head__format(&head, text, sizeof(text));
	if (!client->sending && send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	listener__drop(listener, at);
}

/* Returns why the connection of a user is refused, or NULL. */
static const char *why_not(const struct listener *listener, const struct listener_client *fresh)
{
	const struct listener_policy *policy = listener->policy;
	unsigned same = 0, users = 0;

	if (!fresh->uid)
		return NULL;
	if (!policy->user_clients)
		return "only root may query";
	for (size_t i = 0; i < policy->clients; i++) {
		const struct listener_client *client = &listener->clients[i];

		users += client != fresh && client->fd >= 0 && client->uid;
		same += client != fresh && client->fd >= 0 && client->uid == fresh->uid;
	}
	if (same >= policy->per_user)
		return "you have too many connections already";
	return users >= policy->user_clients ? "there are too many connections; try again later" : NULL;
}

/* Returns a free place, or the number of places where there is none. */
static size_t free_place(const struct listener *listener)
{
	size_t at = 0;

	while (at < listener->policy->clients && listener->clients[at].fd >= 0)
		at++;
	return at;
}

static void accept_clients(struct listener *listener, uint64_t now_ns)
{
	const struct listener_policy *policy = listener->policy;
	struct pollfd waiting = {.fd = listener->fd, .events = POLLIN};

	if (now_ns - listener->second_ns >= SECOND_NS) {
		listener->second_ns = now_ns;
		listener->accepted = 0;
	}
	for (unsigned i = 0; i < ACCEPTS; i++) {
		size_t at = free_place(listener);
		struct listener_client *client = &listener->clients[at];
		const char *why;
		int fd;

		/* requests are rare, and each accept4() costs the kernel a socket */
		if (at == policy->clients || (policy->accepts_per_s && listener->accepted >= policy->accepts_per_s) ||
		    poll(&waiting, 1, 0) <= 0)
			return;
		fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		listener->accepted++;
		*client = (struct listener_client){.fd = fd, .since_ns = now_ns, .text = client->text};
		if (query_socket__peer_uid(fd, &client->uid)) {
			listener__drop(listener, at);
			continue;
		}
		why = why_not(listener, client);
		if (why)
			listener__refuse(listener, at, QUERY_REFUSED, why);
	}
}

/* Reads what a client sends: its request, and then nothing but its end. */
static void read_client(struct listener *listener, size_t at, uint64_t now_ns)
{
	struct listener_client *client = &listener->clients[at];
	ssize_t got =
	    recv(client->fd, client->text + client->used, listener->policy->request_most - client->used, MSG_DONTWAIT);
	char err[256];
	int error;

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		listener__drop(listener, at);
		return;
	}
	if (got > 0) {
		client->used += (size_t)got;
		error = listener->policy->parse(listener->ctx, at, client->text, client->used, err, sizeof(err));
		if (error == -EINVAL) {
			listener__refuse(listener, at, QUERY_USAGE, err);
			return;
		}
		client->complete = !error;
	}
	if (!client->complete && now_ns - client->since_ns > PATIENCE_NS)
		listener__refuse(listener, at, QUERY_FAILED, "no request came");
}

void listener__step(struct listener *listener, uint64_t now_ns)
{
	accept_clients(listener, now_ns);
	for (size_t i = 0; i < listener->policy->clients; i++) {
		const struct listener_client *client = &listener->clients[i];

		if (client->fd >= 0 && !(client->complete && listener->policy->ignores_rest))
			read_client(listener, i, now_ns);
	}
}

void listener__clear(struct listener *listener)
{
	struct stat status;

	for (size_t i = 0; i < listener->policy->clients; i++) {
		if (listener->clients[i].fd >= 0)
			listener__refuse(listener, i, QUERY_FAILED, "vaprod has ended");
	}
	if (!lstat(listener->path, &status) && status.st_dev == listener->device && status.st_ino == listener->inode)
		unlink(listener->path);
	close(listener->fd);
	free(listener->clients);
	listener->clients = NULL;
}
