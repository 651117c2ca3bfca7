/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/sink.h"

#define FLUSH_BYTES (256 << 10)
#define STALL_MS 5000

struct target {
	int fd; /* -1 = none */
	char *name;
	bool own;     /* we opened it */
	bool regular; /* can be cut back to its last whole line */
	bool told;    /* its error was returned */
	bool dead;    /* nothing can reach it any more */
	int error;    /* the first one */
};

struct line_sink {
	struct target file, out;
	char *buffer;
	size_t length, capacity;
	uint64_t lines, lost;
	char sentence[512];
};

static void target__init(struct target *target, int fd, const char *name, bool own)
{
	struct stat status;

	target->fd = fd;
	target->name = strdup(name);
	target->own = own;
	target->regular = !fstat(fd, &status) && S_ISREG(status.st_mode);
}

struct line_sink *line_sink__open(const char *path, bool to_stdout)
{
	struct line_sink *sink = calloc(1, sizeof(*sink));
	int fd;

	if (!sink)
		return NULL;
	sink->file.fd = sink->out.fd = -1;
	if (path && !strcmp(path, "-")) {
		path = NULL;
		to_stdout = true;
	}
	if (to_stdout) {
		target__init(&sink->out, STDOUT_FILENO, "standard output", false);
		if (!sink->out.name)
			goto no_memory;
	}
	if (path) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0) {
			int error = errno;

			free(sink->out.name);
			free(sink);
			errno = error;
			return NULL;
		}
		target__init(&sink->file, fd, path, true);
		if (!sink->file.name)
			goto no_memory;
	}
	return sink;
no_memory:
	line_sink__close(sink);
	errno = ENOMEM;
	return NULL;
}

/* A closed pipe must come back as EPIPE and not end the process, whatever it does with SIGPIPE elsewhere. */
static ssize_t write_quietly(int fd, const char *data, size_t size)
{
	static const struct timespec now;
	sigset_t pipe_set, old, pending;
	bool was_pending;
	ssize_t written;
	int error;

	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	written = write(fd, data, size);
	error = errno;
	if (written < 0 && error == EPIPE && !was_pending)
		sigtimedwait(&pipe_set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return written;
}

static uint64_t count_lines(const char *data, size_t size)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

/* What is left of a line that was written in part is taken away, so that the file stays NDJSON. */
static void cut_back(struct target *target, const char *data, size_t done)
{
	size_t partial = 0;
	off_t end;

	while (partial < done && data[done - 1 - partial] != '\n')
		partial++;
	if (!partial)
		return;
	end = lseek(target->fd, 0, SEEK_CUR);
	if (!target->regular || end < (off_t)partial || ftruncate(target->fd, end - (off_t)partial) ||
	    lseek(target->fd, end - (off_t)partial, SEEK_SET) < 0)
		target->dead = true; /* a second half would begin inside a line */
}

static int target__write(struct line_sink *sink, struct target *target)
{
	size_t done = 0;
	int error = 0;

	if (target->fd < 0 || !sink->length)
		return 0;
	if (target->dead) {
		sink->lost += sink->lines;
		return 0;
	}
	while (done < sink->length) {
		ssize_t written = write_quietly(target->fd, sink->buffer + done, sink->length - done);

		if (written >= 0) {
			done += (size_t)written;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			struct pollfd ready = {.fd = target->fd, .events = POLLOUT};

			if (poll(&ready, 1, STALL_MS) != 0)
				continue;
			errno = ETIMEDOUT;
		}
		error = errno;
		break;
	}
	if (!error)
		return 0;
	sink->lost += sink->lines - count_lines(sink->buffer, done);
	cut_back(target, sink->buffer, done);
	if (error == EPIPE || error == EBADF)
		target->dead = true;
	if (!target->error)
		target->error = error;
	if (target->told)
		return 0;
	target->told = true;
	snprintf(sink->sentence, sizeof(sink->sentence), "%s: %s; lines are being lost", target->name, strerror(error));
	return -error;
}

int line_sink__flush(struct line_sink *sink)
{
	int first = target__write(sink, &sink->file), second = target__write(sink, &sink->out);

	sink->length = 0;
	sink->lines = 0;
	return first ? first : second;
}

int line_sink__put(struct line_sink *sink, const char *line)
{
	size_t length = strlen(line), needed = sink->length + length + 1;
	char *grown;

	if (sink->file.fd < 0 && sink->out.fd < 0)
		return 0;
	if (needed > sink->capacity) {
		size_t capacity = needed + needed / 2;

		grown = realloc(sink->buffer, capacity);
		if (!grown) {
			sink->lost += (sink->file.fd >= 0) + (sink->out.fd >= 0);
			return -ENOMEM;
		}
		sink->buffer = grown;
		sink->capacity = capacity;
	}
	memcpy(sink->buffer + sink->length, line, length);
	sink->length += length;
	sink->buffer[sink->length++] = '\n';
	sink->lines++;
	return sink->length >= FLUSH_BYTES ? line_sink__flush(sink) : 0;
}

const char *line_sink__error(const struct line_sink *sink)
{
	return sink->sentence[0] ? sink->sentence : NULL;
}

uint64_t line_sink__lost(const struct line_sink *sink)
{
	return sink->lost;
}

static void target__close(struct target *target)
{
	/* delayed errors (NFS, quota) show at close only */
	if (target->fd >= 0 && target->own && close(target->fd) && !target->error)
		target->error = errno;
	free(target->name);
}

int line_sink__close(struct line_sink *sink)
{
	int error;

	if (!sink)
		return 0;
	line_sink__flush(sink);
	target__close(&sink->file);
	target__close(&sink->out);
	error = sink->file.error ? sink->file.error : sink->out.error;
	free(sink->buffer);
	free(sink);
	return -error;
}
