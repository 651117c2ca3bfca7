/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of a live run: obstacles to its file, files that are moved away, readers that stop. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/output_file.h"
#include "pipeline/line_sink.h"
#include "daemon/stderr_guard.h"

#define BACKLOG (64U << 10)
#define LINE_BYTES 1000 /* newline included */

static char directory[64], path[96], moved[96];
static char line[LINE_BYTES]; /* NUL where the newline goes */

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-test-sink-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/lines", directory);
	snprintf(moved, sizeof(moved), "%s/lines.1", directory);
	memset(line, 'x', sizeof(line) - 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(moved);
	return rmdir(directory);
}

static void has_text(const char *file, const char *wanted)
{
	char text[256] = "";
	int fd = open(file, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, wanted);
}

static void write_text(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Does a run that writes one line. */
static void run(const char *text)
{
	struct line_sink *sink = line_sink__append(path, false, BACKLOG);

	assert_non_null(sink);
	assert_int_equal(line_sink__put(sink, text), 0);
	assert_int_equal(line_sink__close(sink), 0);
}

static void test_append(void **state)
{
	mode_t mask = umask(0);
	struct stat status;

	(void)state;
	run("{\"run\":1}");
	umask(mask);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	run("{\"run\":2}");
	has_text(path, "{\"run\":1}\n{\"run\":2}\n");
	/* a daemon that was killed in the middle of a line */
	assert_int_equal(truncate(path, 15), 0);
	run("{\"run\":3}");
	has_text(path, "{\"run\":1}\n{\"run\n{\"run\":3}\n");
}

static void refused(int error, const char *reason)
{
	alarm(10); /* an open that waits ends the test */
	assert_null(line_sink__append(path, false, BACKLOG));
	assert_int_equal(errno, error);
	assert_string_equal(output_file__reason(errno), reason);
	assert_null(line_sink__open(path, false));
	assert_int_equal(errno, error);
	alarm(0);
}

static void test_in_the_way(void **state)
{
	(void)state;
	write_text(moved, "of root");
	assert_int_equal(symlink(moved, path), 0);
	refused(ELOOP, "it is a symbolic link, which is not followed");
	has_text(moved, "of root");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(ENXIO, "it is a FIFO that no process reads, or a socket");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(EISDIR, "it is a directory");
	rmdir(path);
	assert_null(line_sink__append("/dev/zero", false, BACKLOG));
	assert_int_equal(errno, ENODEV);
}

static void test_moved_away(void **state)
{
	struct line_sink *sink = line_sink__append(path, false, BACKLOG);
	char err[256];

	(void)state;
	line_sink__put(sink, "{\"n\":1}");
	assert_int_equal(rename(path, moved), 0);
	line_sink__put(sink, "{\"n\":2}");
	assert_int_equal(line_sink__reopen(sink, err, sizeof(err)), 0);
	line_sink__put(sink, "{\"n\":3}");
	line_sink__flush(sink);
	has_text(moved, "{\"n\":1}\n{\"n\":2}\n");
	has_text(path, "{\"n\":3}\n");
	/* the file was not moved: it stays */
	assert_int_equal(line_sink__reopen(sink, err, sizeof(err)), 0);
	line_sink__put(sink, "{\"n\":4}");
	line_sink__flush(sink);
	has_text(path, "{\"n\":3}\n{\"n\":4}\n");
	/* the path cannot be opened: lines still go to the open file */
	assert_int_equal(unlink(moved) | rename(path, moved), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(line_sink__reopen(sink, err, sizeof(err)), -EISDIR);
	assert_non_null(strstr(err, "it is a directory"));
	line_sink__put(sink, "{\"n\":5}");
	assert_int_equal(line_sink__close(sink), 0);
	has_text(moved, "{\"n\":3}\n{\"n\":4}\n{\"n\":5}\n");
	rmdir(path);
}

/* Puts numbered lines, so that missing lines show. */
static void put_lines(struct line_sink *sink, int first, int count)
{
	for (int i = first; i < first + count; i++) {
		snprintf(line, sizeof(line), "%06d", i);
		line[6] = 'x';
		assert_int_equal(line_sink__put(sink, line), 0);
	}
	assert_int_equal(line_sink__flush(sink), 0);
}

/* Reads all available lines: whole, with rising numbers. Returns how many; *last: the last number. */
static int read_lines(int fd, char *rest, size_t *length, int *last)
{
	int count = 0;

	for (;;) {
		ssize_t got = recv(fd, rest + *length, LINE_BYTES - *length, MSG_DONTWAIT);

		if (got < 0 && errno == ENOTSOCK)
			got = read(fd, rest + *length, LINE_BYTES - *length);
		if (got <= 0)
			return count;
		*length += (size_t)got;
		if (*length < LINE_BYTES)
			continue;
		assert_int_equal(rest[LINE_BYTES - 1], '\n');
		assert_null(memchr(rest, '\n', LINE_BYTES - 1));
		assert_true(atoi(rest) > *last);
		*last = atoi(rest);
		*length = 0;
		count++;
	}
}

/* Checks a sink whose reader, at `from`, stops and resumes. */
static void check_stopped_reader(struct line_sink *sink, int from)
{
	char rest[LINE_BYTES], text[256];
	size_t length = 0;
	int last = -1, got;

	assert_non_null(sink);
	alarm(20);		  /* a write that waits ends the test */
	put_lines(sink, 0, 2000); /* 2 MB without a reader */
	got = (int)line_sink__lost(sink);
	assert_in_range(got, 1, 1999);
	assert_string_equal(line_sink__news(sink, text, sizeof(text)), "output_stalled");
	assert_null(line_sink__news(sink, text, sizeof(text)));
	got = 0;
	for (int i = 0; i < 100; i++) {
		got += read_lines(from, rest, &length, &last);
		line_sink__retry(sink);
	}
	assert_int_equal(got, 2000 - (int)line_sink__lost(sink));
	assert_int_equal(last, got - 1); /* the first ones, without a gap */
	assert_string_equal(line_sink__news(sink, text, sizeof(text)), "output_resumed");
	snprintf(line, sizeof(line), " %d lines before", 2000 - got);
	assert_non_null(strstr(text, line));
	memset(line, 'x', sizeof(line) - 1);
	put_lines(sink, 5000, 10);
	assert_int_equal(read_lines(from, rest, &length, &last), 10);
	assert_int_equal(last, 5009);
	/* the sink closes although no process reads */
	put_lines(sink, 6000, 2000);
	assert_int_equal(line_sink__close(sink), -ETIMEDOUT);
	alarm(0);
}

/* The test's own descriptors of standard output. */
struct output {
	int saved;
};

static void take_stdout(struct output *output, int fd)
{
	fflush(stdout);
	output->saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
}

static void give_stdout(struct output *output)
{
	dup2(output->saved, STDOUT_FILENO);
	close(output->saved);
}

static void test_stopped_fifo(void **state)
{
	int from;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	from = open(path, O_RDONLY | O_NONBLOCK);
	check_stopped_reader(line_sink__append(path, false, BACKLOG), from);
	close(from);
}

static void test_stopped_pipe(void **state)
{
	struct output output;
	int ends[2], flags;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	take_stdout(&output, ends[1]);
	check_stopped_reader(line_sink__append(NULL, true, BACKLOG), ends[0]);
	flags = fcntl(STDOUT_FILENO, F_GETFL);
	give_stdout(&output);
	assert_false(flags & O_NONBLOCK); /* shared with others, and unchanged */
	close(ends[0]);
	close(ends[1]);
}

static void test_stopped_socket(void **state)
{
	struct output output;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	take_stdout(&output, ends[1]);
	check_stopped_reader(line_sink__append(NULL, true, BACKLOG), ends[0]);
	assert_false(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK);
	give_stdout(&output);
	close(ends[0]);
	close(ends[1]);
}

/* A reader stops inside a line and leaves: the next reader begins at a line start. */
static void test_next_reader(void **state)
{
	static char bytes[2 << 20];
	struct line_sink *sink;
	char err[256], *at;
	int from, got = 0;
	ssize_t more;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	from = open(path, O_RDONLY | O_NONBLOCK);
	sink = line_sink__append(path, false, BACKLOG);
	put_lines(sink, 0, 500);
	close(from);
	assert_int_equal(line_sink__flush(sink), -EPIPE);
	from = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(line_sink__reopen(sink, err, sizeof(err)), 0);
	snprintf(line, sizeof(line), "last");
	line_sink__put(sink, line);
	for (int i = 0; i < 3; i++) { /* the first reader's rest fills the FIFO */
		while ((more = read(from, bytes + got, sizeof(bytes) - 1 - (size_t)got)) > 0)
			got += (int)more;
		line_sink__flush(sink);
	}
	bytes[got] = 0;
	at = strstr(bytes, "last\n");
	assert_non_null(at);
	assert_true(at == bytes || at[-1] == '\n');
	line_sink__close(sink);
	close(from);
}

/* Both outputs at once: lines that one loses are no loss of the other. */
static void test_both(void **state)
{
	struct output output;
	struct line_sink *sink;
	struct stat status;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	take_stdout(&output, ends[1]);
	sink = line_sink__append(path, true, BACKLOG);
	put_lines(sink, 0, 1000);
	assert_true(line_sink__lost(sink) > 0);
	line_sink__close(sink);
	give_stdout(&output);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 1000 * LINE_BYTES);
	close(ends[0]);
	close(ends[1]);
}

static void test_messages(void **state)
{
	int ends[2], saved = dup(STDERR_FILENO), guard;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	guard = stderr_guard__begin();
	alarm(10);
	for (int i = 0; i < 2000; i++)
		fprintf(stderr, "%s\n", line);
	alarm(0);
	stderr_guard__end(guard);
	guard = fcntl(STDERR_FILENO, F_GETFL);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(guard & (O_NONBLOCK | O_ACCMODE), O_WRONLY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_append, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_in_the_way, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_moved_away, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_stopped_fifo, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_stopped_pipe, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_stopped_socket, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_next_reader, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_both, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
