// SPDX-License-Identifier: GPL-2.0-or-later
#include "top/feed.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/printable.h"
#include "query/status.h"

#define RETRY_NS 1000000000ULL
#define HEAD_MOST 2048		 /* bytes of a line before the records */
#define SILENT_NS 15000000000ULL /* beyond the interval: the connection is given up */

struct feed {
	char where[512];
	unsigned interval_ms;
	int fd; /* -1: none */
	uint64_t retry_ns, heard_ns;
	char *text; /* what was received and is not used yet */
	size_t used, room;
	size_t head, body; /* sizes of the snapshot at the begin of text; head 0: not known yet */
	bool passed_on;	   /* that snapshot was passed on */
	char why[512];
	struct query_found found;
};

struct feed *feed__new(const char *where, unsigned interval_ms)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	snprintf(feed->where, sizeof(feed->where), "%s", where);
	feed->interval_ms = interval_ms;
	feed->fd = -1;
	return feed;
}

void feed__free(struct feed *feed)
{
	if (!feed)
		return;
	if (feed->fd >= 0)
		close(feed->fd);
	free(feed->text);
	free(feed);
}

__attribute__((format(printf, 3, 4))) static enum feed_state wait_on(struct feed *feed, uint64_t now_ns,
								     const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(feed->why, sizeof(feed->why), format, arguments);
	va_end(arguments);
	if (feed->fd >= 0)
		close(feed->fd);
	feed->fd = -1;
	feed->used = feed->head = 0;
	feed->retry_ns = now_ns + RETRY_NS;
	return FEED_WAITING;
}

/* Finds the socket. Returns FEED_CONNECTED, or another state. */
static enum feed_state find(struct feed *feed, uint64_t now_ns)
{
	char err[512];
	int error = query_client__find(feed->where, true, &feed->found, err, sizeof(err));

	if (!error)
		return FEED_CONNECTED;
	return wait_on(feed, now_ns, "%s", err);
}

static enum feed_state connect_to(struct feed *feed, uint64_t now_ns)
{
	const char *path = feed->found.path;
	enum feed_state state = find(feed, now_ns);
	char request[STATUS_REQUEST_MAX];
	const struct status_request wanted = {.interval_ms = feed->interval_ms};
	int length = status_request__format(&wanted, request, sizeof(request)), error;

	if (state != FEED_CONNECTED)
		return state;
	feed->fd = query_socket__connect(path);
	if (feed->fd < 0) {
		error = feed->fd;
		if (error == -ENOENT || error == -ECONNREFUSED)
			return wait_on(feed, now_ns, "waiting for vaprod: no process listens at %s", path);
		if (error == -EPERM)
			return wait_on(feed, now_ns, "%s: the process that listens there is not root", path);
		return wait_on(feed, now_ns, "%s: %s", path,
			       error == -EAGAIN ? "too many connections" : strerror(-error));
	}
	/* a new socket's buffer has room for so little; a refused client finds the reason to be read */
	if (send(feed->fd, request, (size_t)length, MSG_NOSIGNAL) != length && errno != EPIPE)
		return wait_on(feed, now_ns, "%s: %s", path, strerror(errno));
	feed->heard_ns = now_ns;
	return FEED_CONNECTED;
}

/* Makes room for what is received next. Returns whether there is some. */
static bool make_room(struct feed *feed)
{
	size_t wanted = feed->head ? feed->head + feed->body + 1 : HEAD_MOST;
	char *grown;

	if (feed->room >= wanted)
		return true;
	grown = realloc(feed->text, wanted);
	if (!grown)
		return false;
	feed->text = grown;
	feed->room = wanted;
	return true;
}

/* Reads the line before the records, once it is complete. Returns FEED_CONNECTED, FEED_REFUSED or FEED_WAITING. */
static enum feed_state read_head(struct feed *feed, uint64_t now_ns)
{
	char *stop = feed->used ? memchr(feed->text, '\n', feed->used) : NULL, line[HEAD_MOST];
	struct query_head head;

	if (!stop && feed->used < HEAD_MOST)
		return FEED_CONNECTED;
	if (!stop)
		return wait_on(feed, now_ns, "the response is not one of vaprod");
	memcpy(line, feed->text, (size_t)(stop - feed->text));
	line[stop - feed->text] = 0;
	if (query_head__parse(line, &head) || head.line == QUERY_NOTE || head.bytes > STATUS_RESPONSE_MAX)
		return wait_on(feed, now_ns, "the response is not one of vaprod");
	if (head.line == QUERY_ERROR) {
		wait_on(feed, now_ns, "%s", head.sentence);
		printable(feed->why);
		return head.error == QUERY_FAILED ? FEED_WAITING : FEED_REFUSED;
	}
	feed->head = (size_t)(stop - feed->text) + 1;
	feed->body = head.bytes;
	return FEED_CONNECTED;
}

/* Drops the snapshot that was passed on; what follows it stays. */
static void drop_passed(struct feed *feed)
{
	size_t whole = feed->head + feed->body;

	feed->used -= whole;
	memmove(feed->text, feed->text + whole, feed->used);
	feed->head = feed->body = 0;
	feed->passed_on = false;
}

enum feed_state feed__step(struct feed *feed, uint64_t now_ns)
{
	enum feed_state state = FEED_CONNECTED;

	if (feed->passed_on)
		drop_passed(feed);
	if (feed->fd < 0 && now_ns < feed->retry_ns)
		return FEED_WAITING;
	if (feed->fd < 0)
		state = connect_to(feed, now_ns);
	while (state == FEED_CONNECTED) {
		ssize_t got;

		if (!feed->head)
			state = read_head(feed, now_ns);
		if (state != FEED_CONNECTED)
			break;
		if (feed->head && feed->used >= feed->head + feed->body) {
			*feed->why = 0;
			return FEED_SNAPSHOT;
		}
		if (!make_room(feed))
			return wait_on(feed, now_ns, "out of memory");
		got = recv(feed->fd, feed->text + feed->used,
			   (feed->head ? feed->head + feed->body : HEAD_MOST) - feed->used, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if (now_ns > feed->heard_ns + SILENT_NS + feed->interval_ms * 1000000ULL)
				return wait_on(feed, now_ns, "waiting for vaprod: it does not respond");
			break;
		}
		if (got <= 0)
			return wait_on(feed, now_ns, "waiting for vaprod: it has closed the connection");
		feed->used += (size_t)got;
		feed->heard_ns = now_ns;
	}
	return state;
}

int feed__fd(const struct feed *feed)
{
	return feed->fd;
}

const char *feed__take(struct feed *feed, size_t *size)
{
	feed->passed_on = true;
	*size = feed->body;
	return feed->text + feed->head;
}

const char *feed__why(const struct feed *feed)
{
	return feed->why;
}
