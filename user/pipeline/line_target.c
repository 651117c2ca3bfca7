/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "capture/packed_lines.h"
#include "pipeline/line_target.h"

#define FLUSH_BYTES (256U << 10)
#define PERMISSIONS 0640
#define ROOM_NS 50000000ULL  /* wait for a reader that has read everything so far */
#define END_NS 1000000000ULL /* wait for any reader, when the run ends */
#define STEP_NS 10000000ULL  /* longest single wait */

struct line_target {
	int fd;
	char *path; /* NULL: standard output */
	size_t limit;
	bool waits;   /* waits for its reader without limit */
	bool regular; /* can be cut back to its last whole line */
	bool socket;
	bool shared;	  /* O_NONBLOCK is shared with other processes: not set */
	bool torn;	  /* a newline is missing before the next line */
	bool inside;	  /* the written data ends inside a line */
	bool stalled;	  /* at the last attempt its reader did not read everything */
	bool dropping;	  /* new lines are dropped */
	bool has_stalled; /* a stall is not reported yet */
	bool has_resumed; /* a resumption is not reported yet */
	bool reported;	  /* its error was returned */
	bool dead;	  /* no line can be written any more */
	bool packs;	  /* into zstd frames */
	bool full;	  /* the limit was reached */
	bool is_news;	  /* which is not reported yet */
	int error;	  /* first error */
	char *data;	  /* lines, and the rest of a partly written line */
	size_t length, capacity;
	uint64_t lines;	  /* lines in data */
	uint64_t dropped; /* lines dropped since the reader stopped */
	uint64_t lost;
	uint64_t most, bytes; /* the limit, 0: none; size of the regular file */
	uint64_t over;	      /* lines lost to it */
	size_t spare;	      /* bytes that the packed lines leave to later ones */
};

/* Opens a descriptor with an O_NONBLOCK of its own, where the file allows that; else uses the shared one. */
static void open_standard_output(struct line_target *target, struct stat *status)
{
	int fd = -1;

	target->fd = STDOUT_FILENO;
	target->shared = true;
	memset(status, 0, sizeof(*status));
	if (fstat(STDOUT_FILENO, status) || target->waits)
		return;
	if (S_ISFIFO(status->st_mode) || S_ISCHR(status->st_mode))
		fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return;
	target->fd = fd;
	target->shared = false;
}

static bool appends(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_APPEND;
}

static bool ends_inside_line(int fd, const struct stat *status)
{
	char last;

	return S_ISREG(status->st_mode) && status->st_size && output_file__read(fd, status->st_size - 1, &last, 1) &&
	       last != '\n';
}

/* Cuts a torn frame off, which a writer that was killed may have left. Returns 0 or a negative errno. */
static int prepare_frames(int fd, struct stat *status)
{
	char path[64];
	off_t end = 0;
	int reader, ret;

	if (!S_ISREG(status->st_mode))
		return -ENOTSUP;
	if (!status->st_size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	if (reader < 0)
		return -errno;
	ret = packed_lines__whole(reader, status->st_size, &end);
	close(reader);
	if (!ret && end < status->st_size && ftruncate(fd, end))
		ret = -errno;
	status->st_size = end;
	return ret;
}

/* Opens the target's file. Returns its descriptor, or -1 with errno. */
static int open_file(const struct line_target *target, enum output_file_mode mode, struct stat *status)
{
	int fd = output_file__open(target->path, mode, PERMISSIONS, status), error;

	if (fd < 0)
		return -1;
	if (mode == OUTPUT_FILE_REPLACE && S_ISREG(status->st_mode))
		status->st_size = 0;
	error = target->packs ? -prepare_frames(fd, status) : 0;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

struct line_target *line_target__open(const char *path, enum output_file_mode mode, size_t limit)
{
	struct line_target *target = calloc(1, sizeof(*target));
	struct stat status;
	int error;

	if (!target)
		return NULL;
	target->limit = limit;
	target->waits = mode == OUTPUT_FILE_REPLACE;
	if (path) {
		target->packs = packed_lines__is_named(path);
		target->path = strdup(path);
		target->fd = target->path ? open_file(target, mode, &status) : -1;
		if (target->fd < 0) {
			error = target->path ? errno : ENOMEM;
			free(target->path);
			free(target);
			errno = error;
			return NULL;
		}
	} else {
		open_standard_output(target, &status);
	}
	target->torn = !target->packs && appends(target->fd) && ends_inside_line(target->fd, &status);
	target->regular = S_ISREG(status.st_mode);
	target->bytes = target->regular ? (uint64_t)status.st_size : 0;
	target->socket = S_ISSOCK(status.st_mode);
	return target;
}

void line_target__limit(struct line_target *target, uint64_t bytes)
{
	target->most = target->regular && target->path ? bytes : 0;
}

/* Writes; a closed pipe returns EPIPE and does not end the process, whatever it does with SIGPIPE elsewhere. */
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

/* Writes as much as possible without waiting. Returns the bytes, or -1 with EAGAIN or another errno. */
static ssize_t write_some(struct line_target *target, const char *data, size_t size)
{
	struct pollfd ready = {.fd = target->fd, .events = POLLOUT};

	if (target->socket)
		return send(target->fd, data, size, MSG_NOSIGNAL | (target->waits ? 0 : MSG_DONTWAIT));
	if (target->shared && !target->regular && !target->waits) {
		/* the descriptor may block: no more than a ready pipe takes at once */
		if (poll(&ready, 1, 0) == 0) {
			errno = EAGAIN;
			return -1;
		}
		if (size > PIPE_BUF)
			size = PIPE_BUF;
	}
	return write_quietly(target->fd, data, size);
}

/* Returns whether to try again. */
static bool wait_for_room(const struct line_target *target, uint64_t until_ns)
{
	struct pollfd ready = {.fd = target->fd, .events = POLLOUT};
	uint64_t now = mono_now(), left = until_ns > now ? until_ns - now : 0;

	if (target->waits)
		return poll(&ready, 1, -1) > 0 || errno == EINTR;
	if (!left)
		return false;
	poll(&ready, 1, (int)((left < STEP_NS ? left : STEP_NS) / 1000000) + 1);
	return true;
}

static uint64_t count_lines(const char *data, size_t size)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

/* Returns 0, -EAGAIN where the reader reads no more, or another negative errno; *done bytes were written. */
static int write_all(struct line_target *target, uint64_t until_ns, size_t *done)
{
	*done = 0;
	while (*done < target->length) {
		const char *from = target->torn ? "\n" : target->data + *done;
		ssize_t written = write_some(target, from, target->torn ? 1 : target->length - *done);

		if (written > 0) {
			*done += target->torn ? 0 : (size_t)written;
			target->bytes += (uint64_t)written;
			target->inside = from[written - 1] != '\n';
			target->torn = false;
		} else if (written < 0 && errno == EINTR) {
			continue;
		} else if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
			return -errno;
		} else if (!wait_for_room(target, until_ns)) {
			return -EAGAIN;
		}
	}
	return 0;
}

/* Removes a partly written line, so that the file stays NDJSON. */
static void cut_back(struct line_target *target, size_t done)
{
	size_t partial = 0;
	off_t end;

	while (partial < done && target->data[done - 1 - partial] != '\n')
		partial++;
	if (!partial)
		return;
	end = lseek(target->fd, 0, SEEK_CUR);
	if (!target->regular || end < (off_t)partial || ftruncate(target->fd, end - (off_t)partial) ||
	    lseek(target->fd, end - (off_t)partial, SEEK_SET) < 0)
		target->dead = true; /* a second half would begin inside a line */
	else {
		target->inside = false;
		target->bytes -= partial;
	}
}

/* Counts unwritten lines as lost. */
static void clear(struct line_target *target)
{
	target->lost += target->lines;
	target->lines = 0;
	target->length = 0;
	target->stalled = false;
}

static int fail(struct line_target *target, int error, size_t done)
{
	target->lines -= count_lines(target->data, done);
	cut_back(target, done);
	clear(target);
	if (error == EPIPE || error == EBADF)
		target->dead = true;
	if (!target->error)
		target->error = error;
	if (target->reported)
		return 0;
	target->reported = true;
	return -error;
}

static void keep_rest(struct line_target *target, size_t done)
{
	target->lines -= count_lines(target->data, done);
	target->length -= done;
	if (target->length)
		memmove(target->data, target->data + done, target->length);
	target->stalled = target->length;
	if (!target->dropping || target->length > target->limit / 2)
		return;
	target->dropping = false;
	target->has_resumed = true;
}

/* Drops lines because of the limit. */
static void drop_over(struct line_target *target, uint64_t lines)
{
	target->is_news |= !target->full;
	target->full = true;
	target->over += lines;
	target->lost += lines;
}

/* Writes a whole frame, or nothing of it. Returns 0 or a negative errno. */
static int write_frame(struct line_target *target, const char *frame, size_t size)
{
	size_t done = 0;
	int error = 0;

	while (!error && done < size) {
		ssize_t written = write_quietly(target->fd, frame + done, size - done);

		if (written < 0 && errno != EINTR)
			error = errno;
		done += written > 0 ? (size_t)written : 0;
	}
	if (error && done &&
	    (ftruncate(target->fd, (off_t)target->bytes) || lseek(target->fd, (off_t)target->bytes, SEEK_SET) < 0))
		target->dead = true; /* a torn frame hides what would follow */
	target->bytes += error ? 0 : size;
	return -error;
}

static int flush_packed(struct line_target *target)
{
	char *frame;
	size_t size;
	int ret;

	if (!target->length)
		return 0;
	ret = packed_lines__pack(target->data, target->length, &frame, &size);
	if (!ret && target->most && target->bytes + size + target->spare > target->most) {
		drop_over(target, target->lines);
		target->lines = 0;
	} else if (!ret) {
		ret = write_frame(target, frame, size);
	}
	free(frame);
	if (ret)
		return fail(target, -ret, 0);
	target->lines = 0;
	target->length = 0;
	return 0;
}

static int flush(struct line_target *target, uint64_t wait_ns)
{
	size_t done;
	int ret;

	if (target->dead) {
		clear(target);
		return 0;
	}
	if (target->packs)
		return flush_packed(target);
	ret = write_all(target, mono_now() + wait_ns, &done);
	if (ret && ret != -EAGAIN)
		return fail(target, -ret, done);
	keep_rest(target, done);
	return 0;
}

int line_target__flush(struct line_target *target)
{
	return flush(target, target->stalled ? 0 : ROOM_NS);
}

int line_target__retry(struct line_target *target)
{
	return target->stalled ? flush(target, 0) : 0;
}

int line_target__put(struct line_target *target, const char *line, size_t length, size_t spare)
{
	uint64_t pending = target->packs ? 0 : target->length + length;

	if (target->packs && spare != target->spare) {
		flush_packed(target); /* a frame has lines that leave as much */
		target->spare = spare;
	}
	/* what is packed is measured when it is written */
	if (target->most && (target->bytes + pending + spare > target->most || (target->full && spare))) {
		drop_over(target, 1);
		return 0;
	}
	if (!target->dropping && target->stalled && target->length + length > target->limit) {
		target->dropping = true;
		target->has_stalled = true;
		target->dropped = 0;
	}
	if (target->dropping) {
		target->dropped++;
		target->lost++;
		return 0;
	}
	if (grow_untouched(&target->data, &target->capacity, target->length + length, 1)) {
		target->lost++;
		return -ENOMEM;
	}
	memcpy(target->data + target->length, line, length);
	target->length += length;
	target->lines++;
	return target->length >= FLUSH_BYTES && !target->stalled ? line_target__flush(target) : 0;
}

/* Closes the file: delayed errors (NFS, quota) show only then. */
static void close_file(struct line_target *target)
{
	if (target->fd != STDOUT_FILENO && close(target->fd) && !target->error)
		target->error = errno;
}

int line_target__reopen(struct line_target *target)
{
	struct stat old, status;
	bool same;
	int fd;

	if (!target->path)
		return 0;
	flush(target, ROOM_NS);
	fd = open_file(target, OUTPUT_FILE_APPEND, &status);
	if (fd < 0)
		return -errno;
	same = !fstat(target->fd, &old) && old.st_dev == status.st_dev && old.st_ino == status.st_ino;
	target->full &= same && (uint64_t)status.st_size >= target->bytes;
	target->bytes = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
	if (same && !target->dead) {
		close(fd);
		return 0;
	}
	clear(target);
	target->torn =
	    !target->packs && (S_ISREG(status.st_mode) ? ends_inside_line(fd, &status) : same && target->inside);
	target->regular = S_ISREG(status.st_mode);
	target->inside = target->dead = target->reported = false;
	target->has_resumed |= target->dropping;
	target->dropping = false;
	close_file(target);
	target->fd = fd;
	return 0;
}

const char *line_target__name(const struct line_target *target)
{
	return target->path ? target->path : "standard output";
}

uint64_t line_target__lost(const struct line_target *target)
{
	return target->lost;
}

uint64_t line_target__over(const struct line_target *target)
{
	return target->over;
}

enum line_target_news line_target__news(struct line_target *target, uint64_t *lines)
{
	*lines = target->dropped;
	if (target->is_news) {
		target->is_news = false;
		return LINE_TARGET_FULL;
	}
	if (target->has_stalled) {
		target->has_stalled = false;
		return LINE_TARGET_STALLED;
	}
	if (target->has_resumed) {
		target->has_resumed = false;
		return LINE_TARGET_RESUMED;
	}
	return LINE_TARGET_NO_NEWS;
}

int line_target__close(struct line_target *target)
{
	int error;

	if (!target)
		return 0;
	flush(target, END_NS);
	if ((target->length || target->dropped) && !target->error)
		target->error = ETIMEDOUT;
	clear(target);
	close_file(target);
	error = target->error;
	free(target->data);
	free(target->path);
	free(target);
	return -error;
}
