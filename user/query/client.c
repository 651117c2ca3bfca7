// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define ROOM_FIRST 65536

int query_client__find(const char *where, bool status, struct query_found *found, char *err, size_t err_size)
{
	size_t length = strlen(where), suffix = status ? strlen(QUERY_STATUS) : 0;
	struct stat what;
	int count;

	found->several = 0;
	if (!length || (where[length - 1] != '/' && (stat(where, &what) || !S_ISDIR(what.st_mode)))) {
		/* the name of the status socket itself is as good */
		if (length > suffix && suffix && !strcmp(where + length - suffix, QUERY_STATUS))
			suffix = 0;
		if (length + suffix < QUERY_PATH_MAX) {
			snprintf(found->path, sizeof(found->path), "%s%s", where, suffix ? QUERY_STATUS : "");
			return 0;
		}
		snprintf(err, err_size, "%s: a socket's name has at most %zu bytes", where,
			 QUERY_PATH_MAX - 1 - suffix);
		return -ENAMETOOLONG;
	}
	count = query_socket__find(where, status, found->names, QUERY_NAMED);
	if (count == 1) {
		strcpy(found->path, found->names[0]);
		return 0;
	}
	if (count > 1) {
		found->several = count;
		snprintf(err, err_size, "%d vaprods are running; choose one by --socket", count);
		return -EEXIST;
	}
	if (count && count != -ENOENT) {
		snprintf(err, err_size, "%s: %s", where, strerror(-count));
		return count;
	}
	snprintf(err, err_size, "no running vaprod found (no socket in %s); start one with `vaprod` or `vapro run`",
		 where);
	return -ENOENT;
}

static double now_s(void)
{
	return (double)mono_now() * 1e-9;
}

/* Waits until the socket is ready. Returns 0 or -errno. */
static int ready(int fd, short events, double until)
{
	for (;;) {
		struct pollfd wait = {.fd = fd, .events = events};
		double left = until - now_s();
		int got = left > 0 ? poll(&wait, 1, (int)(left * 1000) + 1) : 0;

		if (got > 0)
			return 0;
		if (!got)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int send_whole(int fd, const char *text, size_t size, double until)
{
	while (size) {
		ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
		int error = sent < 0 ? -errno : 0;

		if (error == -EAGAIN)
			error = ready(fd, POLLOUT, until);
		else if (error == -EINTR)
			error = 0;
		if (error)
			return error;
		text += sent > 0 ? sent : 0;
		size -= sent > 0 ? (size_t)sent : 0;
	}
	return 0;
}

/* Reads until the other side closes; *text is NUL-terminated and malloc'ed. */
static int receive(int fd, double until, char **text, size_t *size)
{
	size_t room = 0;

	*text = NULL;
	*size = 0;
	for (;;) {
		ssize_t got;
		int error;

		if (*size + 1 >= room) {
			char *grown =
			    room > 2UL * QUERY_RESPONSE_MAX ? NULL : realloc(*text, room ? 2 * room : ROOM_FIRST);

			if (!grown)
				return room > 2UL * QUERY_RESPONSE_MAX ? -EMSGSIZE : -ENOMEM;
			*text = grown;
			room = room ? 2 * room : ROOM_FIRST;
		}
		got = recv(fd, *text + *size, room - *size - 1, 0);
		error = got < 0 ? -errno : 0;
		if (error == -EAGAIN)
			error = ready(fd, POLLIN, until);
		else if (error == -EINTR)
			error = 0;
		else if (got > 0)
			*size += (size_t)got;
		else if (!got) {
			(*text)[*size] = 0;
			return 0;
		}
		if (error)
			return error;
	}
}

/* Writes why there is no connection. Returns the error. */
static int say_why(const char *path, int error, char *err, size_t err_size)
{
	if (error == -ENOENT || error == -ECONNREFUSED)
		snprintf(err, err_size, "no running vaprod found (no process listens at %s)", path);
	else if (error == -EPERM)
		snprintf(err, err_size, "%s: the process that listens there is not root", path);
	else if (error == -EACCES)
		snprintf(err, err_size, "%s: only root may query", path);
	else
		snprintf(err, err_size, "%s: %s", path, error == -EAGAIN ? "too many requests" : strerror(-error));
	return error;
}

int query_client__request(const char *path, const char *request, size_t size, double patience_s, char **text,
			  size_t *text_size, char *err, size_t err_size)
{
	double until = now_s() + patience_s;
	int fd = query_socket__connect(path), error;

	*text = NULL;
	*text_size = 0;
	if (fd < 0)
		return say_why(path, fd, err, err_size);
	error = send_whole(fd, request, size, until);
	/* a refused client may find its connection closed, with the reason still to be read */
	if (!error || error == -EPIPE)
		error = receive(fd, until, text, text_size);
	close(fd);
	if (!error)
		return 0;
	/* after kill -9 a guard that is changing links keeps the socket of vaprod open for a moment (sigkill_guard.c)
	 */
	if (error == -ECONNRESET || error == -EPIPE)
		snprintf(err, err_size, "no running vaprod found (the process that listened at %s has ended)", path);
	else
		snprintf(err, err_size, "no response: %s", strerror(-error));
	free(*text);
	*text = NULL;
	return error;
}

int query_client__read(char *text, size_t size, void (*note)(const char *sentence), struct query_response *response)
{
	char *end = text + size, *stop;

	*response = (struct query_response){.body = NULL};
	for (char *at = text; at < end && (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1) {
		struct query_head head;

		*stop = 0;
		if (query_head__parse(at, &head))
			break;
		if (head.line == QUERY_ERROR) {
			response->error = head.error;
			response->sentence = head.sentence;
			return 0;
		}
		if (head.line == QUERY_NOTE) {
			note(head.sentence);
			continue;
		}
		if ((size_t)(end - stop) - 1 != head.bytes)
			break;
		response->body = stop + 1;
		response->bytes = head.bytes;
		return 0;
	}
	return -EINVAL;
}
