// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The caller's side of the template: a process that has loaded and linked the program and does nothing but start
 * readers as copies of itself. Loading and linking cost 15 ms of processor time, which ranks may need; a copy costs 2.
 */
#include "sandbox/confine_order.h"
#include "sandbox/confine_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time for a template to start a reader, and for the one that replaces it: the caller waits so long. */
static const int start_ms[] = {1000, 4000};

/* The template of one process: a process that was forked off has its own. */
static struct reader_template {
	pid_t owner; /* 0: there is none */
	pid_t pid;
	int socket;
} own;

static void forget_template(void)
{
	if (!own.owner)
		return;
	close(own.socket);
	if (own.owner == getpid()) {
		kill(own.pid, SIGKILL);
		confine__leave_behind(own.pid);
	}
	own.owner = 0;
}

static int spawn(int socket, pid_t *pid)
{
	char name[] = CONFINE_NAME;
	char *argv[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, common;
	int status;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	sigemptyset(&none);
	sigemptyset(&common);
	sigaddset(&common, SIGPIPE);
	sigaddset(&common, SIGINT);
	/* a process group of its own: a terminal's ^C does not reach it or its readers */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &common);
	status = posix_spawn_file_actions_adddup2(&actions, socket, CONFINE_SOCKET);
#if !defined(__SANITIZE_ADDRESS__) /* a sanitizer prints to the tests' terminal; other readers print nothing */
	for (int fd = 0; fd < 3 && !status; fd++)
		status = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
#endif
	if (!status)
		status = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -status;
}

static int start_template(void)
{
	int ends[2], high, status;
	pid_t pid;

	if (own.owner == getpid())
		return 0;
	forget_template();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	/* dup2() to the same number would leave the descriptor closed on exec */
	high = fcntl(ends[1], F_DUPFD_CLOEXEC, CONFINE_SOCKET + 1);
	status = high < 0 ? -errno : spawn(high, &pid);
	if (high >= 0)
		close(high);
	close(ends[1]);
	if (status)
		close(ends[0]);
	else
		own = (struct reader_template){.owner = getpid(), .pid = pid, .socket = ends[0]};
	return status;
}

static int send_order(const struct confine_query *query, int about, int pipe_end)
{
	struct confine_order order = {.file_count = query->file_count};
	int descriptors[2 + CONFINE_FILES_MAX] = {pipe_end, about};
	size_t size = sizeof(int) * (2 + query->file_count);
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(descriptors))];
	} control = {0};
	struct iovec data = {.iov_base = &order, .iov_len = sizeof(order)};
	struct msghdr message = {
	    .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = CMSG_SPACE(size)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	snprintf(order.service, sizeof(order.service), "%s", query->service);
	memcpy(descriptors + 2, query->files, sizeof(int) * query->file_count);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(head), descriptors, size);
	return sendmsg(own.socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(order) ? 0 : -errno;
}

/* Receives the pid of the reader that was ordered, within a limit. */
static int receive_pid(int limit_ms, pid_t *pid)
{
	struct pollfd wait = {.fd = own.socket, .events = POLLIN};
	int32_t got;
	int ready;

	do
		ready = poll(&wait, 1, limit_ms);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return ready ? -errno : -ETIMEDOUT;
	if (recv(own.socket, &got, sizeof(got), 0) != (ssize_t)sizeof(got))
		return -EPIPE;
	*pid = got;
	return got > 0 ? 0 : got;
}

int confine_template__start(const struct confine_query *query, int about, int pipe_end, pid_t *pid)
{
	int status = -EPIPE;

	/* a template that was killed, as by the out-of-memory killer, or does not answer is replaced once */
	for (int i = 0; i < 2 && status; i++) {
		status = start_template();
		if (!status)
			status = send_order(query, about, pipe_end);
		if (!status)
			status = receive_pid(start_ms[i], pid);
		if (status)
			forget_template();
	}
	return status;
}
