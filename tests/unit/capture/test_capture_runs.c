/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several runs in one capture: added by daemons that were started again, also after one that was killed. */
#include <errno.h>
#include <sys/stat.h>

#include "captured.h"
#include "capture/capture_file.h"
#include "capture/output_file.h"

/* Adds a run of one line, with a user's text among its states. */
static void add_run(const char *name, const char *text)
{
	struct stream_sink *sink = capture__append(path_a, "{}");
	char line[128];

	assert_non_null(sink);
	snprintf(line, sizeof(line), "{\"type\":\"hello\",\"host\":\"%s\",\"workload_source\":\"arguments\"}", name);
	put(sink, (struct stream_event){.type = STREAM_LINE, .line = stream__line(line)});
	put(sink, (struct stream_event){.type = STREAM_CLOCK, .clock = {1, UTC}});
	put(sink, (struct stream_event){.type = STREAM_STATE,
					.state = {.class = VAPRO_IO, .to = text, .labels = "", .common = ""}});
	put(sink, (struct stream_event){.type = STREAM_WINDOW, .window = {.begin_ns = UTC, .end_ns = UTC + S}});
	put(sink, (struct stream_event){.type = STREAM_END});
	assert_int_equal(stream__close(sink), 0);
}

static void is_run(int run, const char *name, size_t number, size_t count)
{
	struct capture_info info;

	assert_int_equal(capture__run_info(path_a, run, &info, err, sizeof(err)), 0);
	assert_string_equal(info.host, name);
	assert_int_equal(info.run, number);
	assert_int_equal(info.runs, count);
}

static int replay_run(int run)
{
	recorder__clear(&seen);
	return capture__replay_run((const char *const[]){path_a}, 1, run, &seen.sink, err, sizeof(err));
}

static void test_runs(void **state)
{
	struct capture_info info;

	(void)state;
	unlink(path_a);
	add_run("one", "x");
	is_run(CAPTURE_LAST_RUN, "one", 1, 1);
	add_run("two", "x");
	add_run("three", "x");
	is_run(1, "one", 1, 3);
	is_run(2, "two", 2, 3);
	is_run(3, "three", 3, 3);
	is_run(-1, "three", 3, 3);
	is_run(-3, "one", 1, 3);
	for (int run = 1; run <= 3; run++) {
		assert_int_equal(replay_run(run), 0);
		assert_int_equal(seen.count, 5);
	}
	assert_int_equal(capture__run_info(path_a, 4, &info, err, sizeof(err)), -EBADMSG);
	assert_non_null(strstr(err, "no such run"));
	assert_int_equal(capture__run_info(path_a, -4, &info, err, sizeof(err)), -EBADMSG);
}

/* The second run is found wherever the first run was cut off, also within the rest of the first run. */
static void test_cut_then_added(void **state)
{
	struct stat status;
	char *data;
	long size, head;

	(void)state;
	unlink(path_a);
	add_run("one", CAPTURE_HEAD_BEGIN "1\",\n");
	size = file_size(path_a, &data);
	head = (char *)memchr(data, '\n', (size_t)size) - data + 1;
	for (long cut = head; cut < size; cut += 3) {
		write_file(path_a, data, cut);
		add_run("two", "x");
		assert_int_equal(replay_run(1), 1);
		assert_non_null(strstr(err, "cut short"));
		if (replay_run(-1))
			fail_msg("cut at %ld: %s", cut, err);
		assert_int_equal(seen.count, 5);
	}
	free(data);
	assert_int_equal(stat(path_a, &status), 0);
}

/* A user's text that reads like a head is no run. */
static void test_crafted(void **state)
{
	(void)state;
	unlink(path_a);
	add_run("one", CAPTURE_HEAD_BEGIN "1\",\"byte_order\":\"little\",\"records\":{}}\n");
	is_run(CAPTURE_LAST_RUN, "one", 1, 1);
	add_run("two", CAPTURE_HEAD_BEGIN "1\",\"byte_order\":\"little\",\"records\":{}}\n");
	is_run(CAPTURE_LAST_RUN, "two", 2, 2);
	is_run(1, "one", 1, 2);
}

static void test_retained(void **state)
{
	struct stat status;
	char *data;

	(void)state;
	/* a file that is no capture stays unchanged */
	write_file(path_b, "{\"schema\"}\n", 11);
	assert_null(capture__append(path_b, "{}"));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(file_size(path_b, &data), 11);
	free(data);
	unlink(path_b);
	/* a link is not followed, a FIFO not waited for */
	assert_int_equal(symlink(path_a, path_b), 0);
	assert_null(capture__append(path_b, "{}"));
	assert_int_equal(errno, ELOOP);
	assert_null(capture__create(path_b, "{}"));
	unlink(path_b);
	assert_int_equal(mkfifo(path_b, 0600), 0);
	assert_null(capture__append(path_b, "{}"));
	assert_int_equal(errno, ENXIO);
	unlink(path_b);
	unlink(path_a);
	add_run("one", "x");
	assert_int_equal(stat(path_a, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_runs),
	    cmocka_unit_test(test_cut_then_added),
	    cmocka_unit_test(test_crafted),
	    cmocka_unit_test(test_retained),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
