// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/broker_rows.h"
#include "cli/from_blocks.h"
#include "query/protocol.h"
#include "query/socket.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "daemon/daemon.h"

#define PATIENCE_S 60	  /* time for a whole response, which may have to wait for others */
#define LIST_PATIENCE_S 2 /* the same, where it only helps to choose */
#define SOCKETS_NAMED 16

enum { ROW_SOCKET = 1, ROW_JOB, ROW_JSON, ROW_SINCE, ROW_UNTIL };

static const struct option_row rows[] = {
    {"socket", "PATH", "where vaprod is reached, as its --socket; needed where several run (" VAPRO_SOCKET ")",
     ROW_SOCKET, 0},
    {"job", "JOB", "only this job, by its identity in the records", ROW_JOB, 'j'},
    {"since", "TIME", SINCE_HELP, ROW_SINCE, 'S'},
    {"until", "TIME", UNTIL_HELP, ROW_UNTIL, 'U'},
    {"json", NULL, "`diagnosis` records, one a line, instead of text", ROW_JSON, 0},
    OPTIONS_HELP_ROW,
    FROM_ROWS,
};

static int diagnose__main(int argc, char **argv);

const struct command diagnose_command = {
    .name = "diagnose",
    .program = "vapro diagnose",
    .summary = "query a running vaprod, or a job of many nodes, for why ranks were slow in a time that you choose",
    .synopsis = "[option]... RANKS@BEGIN..END\n[option]... --since TIME|--until TIME [RANKS]\n--from URL [option]... "
		"RANKS@BEGIN..END",
    .about =
	"Queries a running vaprod (or vapro run) for why these ranks (all, or as in 0-3,7) were slow in this time, "
	"slow or not. BEGIN and END are seconds since vaprod began, or times as in the records; an empty one is "
	"the begin or the end of the retained time, so that all@.. is all of it. The retained time is printed "
	"where the region is not in it; vaprod's --keep and --keep-bytes bound it. Needs root.\n"
	"With --from it queries what the nodes of a job have published so far, all of them at once, and needs no root; "
	"nodes times --keep-bytes bound the time.",
    .examples = "vapro diagnose all@..\tall ranks, all of the retained time\n"
		"vapro diagnose 0-3,7@12..15\tthese ranks, from 12 to 15 s after vaprod began\n"
		"vapro diagnose --since 2026-11-24T08:00:00Z 0-3\tthese ranks, from a time of the day on\n"
		"vapro diagnose --from nats://broker --job slurm:123.0 all@..\tall ranks of a job of many nodes",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = diagnose__main,
};

/* Prints an error. Returns code. */
__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...)
{
	va_list arguments;

	fputs("vapro diagnose: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return code;
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
			char *grown = realloc(*text, room ? 2 * room : 65536);

			if (!grown || room > 2UL * QUERY_RESPONSE_MAX)
				return grown ? (*text = grown, -EMSGSIZE) : -ENOMEM;
			*text = grown;
			room = room ? 2 * room : 65536;
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

/* Prints a vaprod among several: its socket, its PID and its jobs. */
static void describe(const char *path)
{
	const struct query_request request = {.jobs = true};
	char query[QUERY_REQUEST_MAX + 1], *response = NULL, *rest;
	double until = now_s() + LIST_PATIENCE_S;
	int length = query_request__format(&request, query, sizeof(query)), fd = query_socket__connect(path);
	size_t size = 0, jobs = 0;

	fprintf(stderr, "  --socket %s", path);
	if (fd >= 0)
		fprintf(stderr, "  pid %d", query_socket__peer_pid(fd));
	if (fd < 0 || length < 0 || send_whole(fd, query, (size_t)length, until) ||
	    receive(fd, until, &response, &size) || strncmp(response, "ok ", 3)) {
		fputc('\n', stderr);
	} else {
		rest = response + strcspn(response, "\n");
		for (char *job; (job = strtok_r(NULL, "\n", &rest)); jobs++)
			fprintf(stderr, "%s%s", jobs ? ", " : ": ", printable(job));
		fputs(jobs ? "\n" : ": no job yet\n", stderr);
	}
	free(response);
	if (fd >= 0)
		close(fd);
}

/* Finds the one socket that has a listener. Returns 0, or an exit code after reporting why. */
static int find_socket(const char *where, char *path)
{
	char found[SOCKETS_NAMED][QUERY_PATH_MAX];
	size_t length = strlen(where);
	struct stat status;
	int count;

	if (!length || (where[length - 1] != '/' && (stat(where, &status) || !S_ISDIR(status.st_mode)))) {
		if (length >= QUERY_PATH_MAX)
			return fail(EXIT_USAGE, "%s: a socket's name has at most %zu bytes", where, QUERY_PATH_MAX - 1);
		strcpy(path, where);
		return 0;
	}
	count = query_socket__find(where, false, found, SOCKETS_NAMED);
	if (count < 0 && count != -ENOENT)
		return fail(EXIT_FAILED, "%s: %s", where, strerror(-count));
	if (count <= 0)
		return fail(EXIT_FAILED,
			    "no running vaprod found (no socket in %s); start one with `vaprod` or `vapro run`", where);
	if (count == 1) {
		strcpy(path, found[0]);
		return 0;
	}
	fail(EXIT_USAGE, "%d vaprods are running; choose one:", count);
	for (int i = 0; i < count && i < SOCKETS_NAMED; i++)
		describe(found[i]);
	return EXIT_USAGE;
}

/* Parses the head and prints the body, or the error. Returns an exit code. */
static int print_response(char *text, size_t size)
{
	static const int codes[QUERY_ERRORS] = {
	    [QUERY_USAGE] = EXIT_USAGE, [QUERY_REFUSED] = EXIT_REFUSED, [QUERY_FAILED] = EXIT_FAILED};
	char *end = text + size, *stop;

	for (char *at = text; (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1) {
		struct query_head head;

		*stop = 0;
		if (query_head__parse(at, &head))
			break;
		if (head.line == QUERY_ERROR)
			return fail(codes[head.error], "%s", head.sentence);
		if (head.line == QUERY_NOTE) {
			fail(0, "%s", head.sentence);
			continue;
		}
		if ((size_t)(end - stop) - 1 != head.bytes)
			break;
		if (fwrite(stop + 1, 1, head.bytes, stdout) != head.bytes || fflush(stdout))
			return fail(EXIT_FAILED, "standard output: %s", strerror(errno));
		return EXIT_OK;
	}
	return fail(EXIT_FAILED, "the response of vaprod is incomplete; it may have ended");
}

static int query(const char *path, const struct query_request *request)
{
	char query[QUERY_REQUEST_MAX + 1], *response = NULL;
	double until = now_s() + PATIENCE_S;
	int length = query_request__format(request, query, sizeof(query)), fd, error, code;
	size_t size;

	if (length < 0)
		return fail(EXIT_USAGE, "the region or the job is too long");
	fd = query_socket__connect(path);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return fail(EXIT_FAILED, "no running vaprod found (no process listens at %s)", path);
	if (fd == -EPERM)
		return fail(EXIT_REFUSED, "%s: the process that listens there is not root", path);
	if (fd == -EACCES)
		return fail(EXIT_REFUSED, "%s: only root may query", path);
	if (fd < 0)
		return fail(EXIT_FAILED, "%s: %s", path, fd == -EAGAIN ? "too many requests" : strerror(-fd));
	error = send_whole(fd, query, (size_t)length, until);
	/* a refused client may find its connection closed, with the reason still to be read */
	if (!error || error == -EPIPE)
		error = receive(fd, until, &response, &size);
	close(fd);
	code = error ? fail(EXIT_FAILED, "no response: %s", strerror(-error)) : print_response(response, size);
	free(response);
	return code;
}

static int diagnose__main(int argc, char **argv)
{
	struct options options = command__options(&diagnose_command, argc, argv);
	const char *where = VAPRO_SOCKET, *region = NULL;
	struct query_request request = {.width = terminal__width(STDOUT_FILENO)};
	char path[QUERY_PATH_MAX], err[SOURCE_ERR];
	struct source_options source = {.broker.name = "vapro diagnose"};
	struct time_option time = {NULL, NULL};
	int id, code;

	while ((id = options__next(&options)) != OPTIONS_END) {
		if (from_rows__set(&source, id, options.value))
			continue;
		switch (id) {
		case ROW_SOCKET:
			where = options.value;
			break;
		case ROW_JOB:
			if (!*options.value || (size_t)snprintf(request.job, sizeof(request.job), "%s",
								options.value) >= sizeof(request.job))
				return fail(EXIT_USAGE, "--job: invalid job '%s'", options.value);
			break;
		case ROW_JSON:
			request.json = true;
			break;
		case ROW_SINCE:
			time.since = options.value;
			break;
		case ROW_UNTIL:
			time.until = options.value;
			break;
		case OPTIONS_OPERAND:
			if (region)
				return fail(EXIT_USAGE, "one region is expected, not also '%s'; --help has the form",
					    options.value);
			region = options.value;
			break;
		case OPTIONS_HELP:
			return command__help(&diagnose_command, options.value, stdout);
		default:
			return EXIT_USAGE;
		}
	}
	if (time.since || time.until) {
		if (region_option__span(&request.region, region, &time, request.region_text,
					sizeof(request.region_text), err, sizeof(err)))
			return fail(EXIT_USAGE, "%s", err);
		region = request.region_text;
	}
	if (!region)
		return fail(EXIT_USAGE, "a region is needed, such as all@.. or 0-3@12..15; --help has the form");
	if (region_option__parse(&request.region, region, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (region != request.region_text && (size_t)snprintf(request.region_text, sizeof(request.region_text), "%s",
							      region) >= sizeof(request.region_text))
		return fail(EXIT_USAGE, "the region is too long");
	if (from_rows__check(&source, err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if (source.broker.servers) {
		source.job = *request.job ? request.job : NULL;
		return diagnose_from(&source, &request);
	}
	if (geteuid() != 0)
		return fail(EXIT_REFUSED, "permission denied: root only, because the data covers all users' processes");
	code = find_socket(where, path);
	return code ? code : query(path, &request);
}
