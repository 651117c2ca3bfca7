// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY_SECONDS 30		/* lifetime of a copy */
#define SEND_SECONDS 5		/* longest pause of a client that reads */
#define QUEUE_NS 20000000000ULL /* time for a copy to become free */

/* ---- in the copy */

/* Closes all descriptors of the daemon but the client's: a probe's link ends with its last descriptor. */
static bool leave_all(int client, pid_t daemon)
{
	static const int defaults[] = {SIGINT, SIGTERM, SIGCHLD, SIGALRM};
	struct rlimit cpu = {COPY_SECONDS, COPY_SECONDS}, core = {0, 0};
	struct timeval send = {.tv_sec = SEND_SECONDS};
	int flags;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != daemon)
		return false;
	if (client != 3 && dup2(client, 3) < 0)
		return false;
	if (close_range(4, ~0U, 0))
		return false;
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		signal(defaults[i], SIG_DFL);
	alarm(COPY_SECONDS);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &core);
	setpriority(PRIO_PROCESS, 0, 10);
	/* the copy may block from here on */
	flags = fcntl(3, F_GETFL);
	return flags >= 0 && !fcntl(3, F_SETFL, flags & ~O_NONBLOCK) &&
	       !setsockopt(3, SOL_SOCKET, SO_SNDTIMEO, &send, sizeof(send));
}

static bool send_whole(const char *data, size_t size)
{
	while (size) {
		ssize_t sent = send(3, data, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		data += sent;
		size -= (size_t)sent;
	}
	return true;
}

static bool send_head(const struct query_head *head)
{
	char text[QUERY_SENTENCE_MAX + 64];

	query_head__format(head, text, sizeof(text));
	return send_whole(text, strlen(text));
}

static bool respond(listener_answer answer, void *ctx)
{
	struct query_head head = {.line = QUERY_ERROR, .error = QUERY_FAILED, .sentence = "out of memory"};
	char *text = NULL, note[QUERY_SENTENCE_MAX] = "";
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int failed = !out || answer(ctx, out, note, &head.error);

	if (*note)
		head.sentence = note;
	if (out && fclose(out))
		return false;
	if (!failed && size > QUERY_RESPONSE_MAX) {
		head.sentence = "the response is too large";
		failed = -1;
	}
	if (failed)
		return send_head(&head);
	head.line = QUERY_NOTE;
	if (*note && !send_head(&head))
		return false;
	head = (struct query_head){.line = QUERY_OK, .bytes = size};
	return send_head(&head) && send_whole(text, size);
}

/* ---- in the daemon */

/* Returns a place for a user's copy, or copies->most. */
static size_t place_for(const struct listener_copies *copies, uid_t uid)
{
	size_t place = copies->most, vacant = 0;
	bool same = false;

	for (size_t i = 0; i < copies->most; i++) {
		if (!copies->places[i].pid) {
			place = i;
			vacant++;
		} else {
			same |= copies->places[i].uid == uid;
		}
	}
	return uid && (same || vacant < 2) ? copies->most : place;
}

/* Returns 0, -EAGAIN where other copies have to end first, or -errno of fork(). The descriptor stays the caller's. */
static int start(struct listener_copies *copies, int fd, uid_t uid, listener_answer answer, void *ctx)
{
	size_t at = place_for(copies, uid);
	pid_t daemon = getpid(), pid;

	if (at == copies->most)
		return -EAGAIN;
	pid = fork();
	if (!pid)
		_exit(!leave_all(fd, daemon) || !respond(answer, ctx));
	if (pid < 0)
		return -errno;
	copies->places[at].pid = pid;
	copies->places[at].uid = uid;
	return 0;
}

bool listener_copies__serve(struct listener_copies *copies, struct listener *listener, size_t at, bool may_start,
			    listener_answer answer, void *ctx, uint64_t now_ns)
{
	const struct listener_client *client = &listener->clients[at];
	int error = may_start ? start(copies, client->fd, client->uid, answer, ctx) : -EAGAIN;

	if (!error)
		listener__drop(listener, at);
	else if (error != -EAGAIN)
		listener__refuse(listener, at, QUERY_FAILED, "vaprod could not fork a responder");
	else if (now_ns - client->since_ns > QUEUE_NS)
		listener__refuse(listener, at, QUERY_FAILED, "other requests are at work; try again");
	return !error;
}

void listener_copies__reap(struct listener_copies *copies)
{
	for (size_t i = 0; i < copies->most; i++) {
		if (copies->places[i].pid && waitpid(copies->places[i].pid, NULL, WNOHANG))
			copies->places[i].pid = 0;
	}
}

void listener_copies__end(struct listener_copies *copies)
{
	for (size_t i = 0; i < copies->most; i++) {
		if (!copies->places[i].pid)
			continue;
		kill(copies->places[i].pid, SIGKILL);
		waitpid(copies->places[i].pid, NULL, 0);
		copies->places[i].pid = 0;
	}
}
