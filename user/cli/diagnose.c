// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/diagnose.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "query/protocol.h"
#include "query/socket.h"
#include "base/clock.h"
#include "daemon/daemon.h"

#define PATIENCE_S 60 /* time for a whole response, which may have to wait for others */
#define SOCKETS_NAMED 16

enum { OPT_SOCKET = 256, OPT_JOB, OPT_JSON };

static const struct option options_table[] = {
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"job", required_argument, NULL, OPT_JOB},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void usage(FILE *out)
{
	fputs("Usage: vapro diagnose [option]... RANKS@BEGIN..END\n"
	      "\n"
	      "Queries a running vaprod (or vapro run) for why these ranks (all, or as in 0-3,7) were slow in this\n"
	      "time, slow or not. BEGIN and END are seconds since vaprod began, or times as in the records; an empty\n"
	      "one is the begin or the end of the retained time, so that all@.. is all of it. The retained time is\n"
	      "printed where the region is not in it; vaprod's --keep and --keep-bytes bound it. Needs root.\n"
	      "\n"
	      "  --socket PATH  where vaprod is reached, as its --socket; needed where several run\n"
	      "                 (" VAPRO_SOCKET ")\n"
	      "  --job JOB      only this job, by its identity in the records\n"
	      "  --json         `diagnosis` records, one a line, instead of text\n",
	      out);
}

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

/* Finds the one socket that has a listener. Returns 0, or an exit code after reporting why. */
static int find_socket(const char *where, char *path)
{
	char found[SOCKETS_NAMED][ASK_PATH_MAX];
	size_t length = strlen(where);
	struct stat status;
	int count;

	if (!length || (where[length - 1] != '/' && (stat(where, &status) || !S_ISDIR(status.st_mode)))) {
		if (length >= ASK_PATH_MAX)
			return fail(EXIT_USAGE, "%s: a socket's name has at most %zu bytes", where, ASK_PATH_MAX - 1);
		strcpy(path, where);
		return 0;
	}
	count = ask_socket__find(where, found, SOCKETS_NAMED);
	if (count < 0 && count != -ENOENT)
		return fail(EXIT_FAILED, "%s: %s", where, strerror(-count));
	if (count <= 0)
		return fail(EXIT_FAILED, "no vaprod is running here: no process listens in %s", where);
	if (count == 1) {
		strcpy(path, found[0]);
		return 0;
	}
	fail(EXIT_USAGE, "%d vaprods are running; choose one with --socket:", count);
	for (int i = 0; i < count && i < SOCKETS_NAMED; i++)
		fprintf(stderr, "  %s\n", found[i]);
	return EXIT_USAGE;
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

			if (!grown || room > 2UL * ASK_ANSWER_MAX)
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

/* Parses the head and prints the body, or the error. Returns an exit code. */
static int print_answer(char *text, size_t size)
{
	static const int codes[ASK_ERRORS] = {
	    [ASK_USAGE] = EXIT_USAGE, [ASK_REFUSED] = EXIT_REFUSED, [ASK_FAILED] = EXIT_FAILED};
	char *end = text + size, *stop;

	for (char *at = text; (stop = memchr(at, '\n', (size_t)(end - at))); at = stop + 1) {
		struct ask_head head;

		*stop = 0;
		if (ask_head__parse(at, &head))
			break;
		if (head.line == ASK_ERROR)
			return fail(codes[head.error], "%s", head.sentence);
		if (head.line == ASK_NOTE) {
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

static int query(const char *path, const struct ask_request *request)
{
	char question[ASK_REQUEST_MAX + 1], *answer = NULL;
	double until = now_s() + PATIENCE_S;
	int length = ask_request__format(request, question, sizeof(question)), fd, error, code;
	size_t size;

	if (length < 0)
		return fail(EXIT_USAGE, "the region or the job is too long");
	fd = ask_socket__connect(path);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		return fail(EXIT_FAILED, "no vaprod is running here: no process listens at %s", path);
	if (fd == -EPERM)
		return fail(EXIT_REFUSED, "%s: the process that listens there is not root", path);
	if (fd == -EACCES)
		return fail(EXIT_REFUSED, "%s: only root may query", path);
	if (fd < 0)
		return fail(EXIT_FAILED, "%s: %s", path, fd == -EAGAIN ? "too many requests" : strerror(-fd));
	error = send_whole(fd, question, (size_t)length, until);
	/* a refused client may find its connection closed, with the reason still to be read */
	if (!error || error == -EPIPE)
		error = receive(fd, until, &answer, &size);
	close(fd);
	code = error ? fail(EXIT_FAILED, "no response: %s", strerror(-error)) : print_answer(answer, size);
	free(answer);
	return code;
}

static unsigned int terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

int ask__main(int argc, char **argv)
{
	const char *where = VAPRO_SOCKET;
	struct ask_request request = {.width = terminal_width()};
	char path[ASK_PATH_MAX], err[512];
	int option, code;

	optind = 0; /* another command may have used getopt before */
	while ((option = getopt_long(argc, argv, "h", options_table, NULL)) != -1) {
		switch (option) {
		case OPT_SOCKET:
			where = optarg;
			break;
		case OPT_JOB:
			if (!*optarg ||
			    (size_t)snprintf(request.job, sizeof(request.job), "%s", optarg) >= sizeof(request.job))
				return fail(EXIT_USAGE, "--job: invalid job '%s'", optarg);
			break;
		case OPT_JSON:
			request.json = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			return EXIT_USAGE; /* getopt has said what is wrong */
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (region_option__parse(&request.region, argv[optind], err, sizeof(err)))
		return fail(EXIT_USAGE, "%s", err);
	if ((size_t)snprintf(request.region_text, sizeof(request.region_text), "%s", argv[optind]) >=
	    sizeof(request.region_text))
		return fail(EXIT_USAGE, "the region is too long");
	if (geteuid() != 0)
		return fail(EXIT_REFUSED, "needs root: vaprod has data on the processes of all users");
	code = find_socket(where, path);
	return code ? code : query(path, &request);
}
