// SPDX-License-Identifier: GPL-2.0-or-later
#include "query/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/socket.h"

#define CLIENTS 8		  /* clients without a complete request; others wait in the kernel's queue */
#define COPIES 2		  /* copies that run at the same time */
#define PATIENCE_NS 2000000000ULL /* time for a request to arrive */
#define QUEUE_NS 20000000000ULL	  /* time for a copy to become free */
#define COPY_SECONDS 30		  /* lifetime of a copy */
#define SEND_SECONDS 5		  /* longest pause of a client that reads */

struct client {
	int fd; /* -1: free */
	uint64_t since_ns;
	size_t used;
	bool complete;
	struct query_request request;
	char text[QUERY_REQUEST_MAX];
};

struct query_server {
	int fd;
	char path[QUERY_PATH_MAX];
	dev_t device;
	ino_t inode;
	query_answerer response;
	void *ctx;
	pid_t copies[COPIES]; /* 0: none */
	struct client clients[CLIENTS];
};

struct query_server *query_server__open(const char *where, query_answerer response, void *ctx, char *err,
					size_t err_size)
{
	struct query_server *server = calloc(1, sizeof(*server));
	struct stat status;

	if (!server) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	server->response = response;
	server->ctx = ctx;
	for (size_t i = 0; i < CLIENTS; i++)
		server->clients[i].fd = -1;
	server->fd = query_socket__listen(where, server->path, err, err_size);
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

const char *query_server__path(const struct query_server *server)
{
	return server->path;
}

static void drop(struct client *client)
{
	close(client->fd);
	client->fd = -1;
}

/* Sends an error line without blocking and drops the client. */
static void refuse(struct client *client, enum query_error error, const char *sentence)
{
	struct query_head head = {.line = QUERY_ERROR, .error = error, .sentence = sentence};
	char text[QUERY_SENTENCE_MAX + 64];

	query_head__format(&head, text, sizeof(text));
	if (send(client->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0;
	drop(client);
}

static void accept_clients(struct query_server *server, uint64_t now_ns)
{
	struct pollfd waiting = {.fd = server->fd, .events = POLLIN};

	/* requests are rare, and each accept4() costs the kernel a socket */
	if (poll(&waiting, 1, 0) <= 0)
		return;
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd >= 0)
			continue;
		client->fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (client->fd < 0)
			return;
		client->since_ns = now_ns;
		client->used = 0;
		client->complete = false;
		if (!query_socket__peer_is_root(client->fd))
			refuse(client, QUERY_REFUSED, "only root may query");
	}
}

static void read_client(struct client *client, uint64_t now_ns)
{
	ssize_t got = recv(client->fd, client->text + client->used, sizeof(client->text) - client->used, MSG_DONTWAIT);
	char err[256];
	int error;

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		drop(client);
		return;
	}
	if (got > 0) {
		client->used += (size_t)got;
		error = query_request__parse(client->text, client->used, &client->request, err, sizeof(err));
		client->complete = !error;
		if (error == -EINVAL) {
			refuse(client, QUERY_USAGE, err);
			return;
		}
	}
	if (!client->complete && now_ns - client->since_ns > PATIENCE_NS)
		refuse(client, QUERY_FAILED, "no request came");
}

static void reap(struct query_server *server)
{
	for (size_t i = 0; i < COPIES; i++) {
		if (server->copies[i] && waitpid(server->copies[i], NULL, WNOHANG))
			server->copies[i] = 0;
	}
}

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

static bool respond(const struct query_server *server, const struct query_request *request)
{
	struct query_head head = {.line = QUERY_ERROR, .error = QUERY_FAILED, .sentence = "out of memory"};
	char *text = NULL, note[QUERY_SENTENCE_MAX] = "";
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int failed = !out || server->response(server->ctx, request, out, note, &head.error);

	if (*note)
		head.sentence = note;
	if (out && fclose(out))
		return false;
	if (failed)
		return send_head(&head);
	head.line = QUERY_NOTE;
	if (*note && !send_head(&head))
		return false;
	head = (struct query_head){.line = QUERY_OK, .bytes = size};
	return send_head(&head) && send_whole(text, size);
}

/* ---- in the daemon */

static bool start_copy(struct query_server *server, struct client *client)
{
	pid_t daemon = getpid(), pid;
	size_t at = 0;

	while (at < COPIES && server->copies[at])
		at++;
	if (at == COPIES)
		return false;
	pid = fork();
	if (!pid)
		_exit(!leave_all(client->fd, daemon) || !respond(server, &client->request));
	if (pid < 0) {
		refuse(client, QUERY_FAILED, "vaprod could not fork a responder");
		return true;
	}
	server->copies[at] = pid;
	drop(client);
	return true;
}

void query_server__step(struct query_server *server, uint64_t now_ns)
{
	reap(server);
	accept_clients(server, now_ns);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd >= 0 && !client->complete)
			read_client(client, now_ns);
		if (client->fd < 0 || !client->complete || start_copy(server, client))
			continue;
		if (now_ns - client->since_ns > QUEUE_NS)
			refuse(client, QUERY_FAILED, "other requests are at work; try again");
	}
}

/* Removes the socket, but not a file that has replaced it. */
static void remove_socket(const struct query_server *server)
{
	struct stat status;

	if (!lstat(server->path, &status) && status.st_dev == server->device && status.st_ino == server->inode)
		unlink(server->path);
}

void query_server__close(struct query_server *server)
{
	if (!server)
		return;
	for (size_t i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			refuse(&server->clients[i], QUERY_FAILED, "vaprod has ended");
	}
	for (size_t i = 0; i < COPIES; i++) {
		if (!server->copies[i])
			continue;
		kill(server->copies[i], SIGKILL);
		waitpid(server->copies[i], NULL, 0);
	}
	remove_socket(server);
	close(server->fd);
	free(server);
}
