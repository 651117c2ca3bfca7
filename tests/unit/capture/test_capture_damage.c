/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures that are cut short, damaged, of another version or of another program; errors name the offset. */
#include <errno.h>

#include "captured.h"

static void test_cut(void **state)
{
	char *data;
	long size, head;
	size_t before = 0;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	size = file_size(path_a, &data);
	head = (char *)memchr(data, '\n', (size_t)size) - data + 1;
	for (long cut = head; cut < size; cut += 7) {
		write_file(path_b, data, cut);
		assert_int_equal(replay(path_b), 1);
		assert_non_null(strstr(err, "cut short at offset"));
		assert_true(seen.count + 1 >= before); /* all before the cut; a last window may come on top */
		before = seen.count;
		/* replayed data is analysed to its end: no bundle stays without a window */
		for (size_t i = seen.count; i-- > 0 && seen.events[i].type != STREAM_WINDOW;)
			assert_int_not_equal(seen.events[i].type, STREAM_BUNDLE);
	}
	for (long cut = 0; cut < head - 1; cut += 53) {
		write_file(path_b, data, cut);
		assert_int_equal(replay(path_b), -EBADMSG);
		assert_non_null(strstr(err, "no capture"));
	}
	free(data);
}

static void test_damage(void **state)
{
	char *data;
	long size, head;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	size = file_size(path_a, &data);
	head = (char *)memchr(data, '\n', (size_t)size) - data + 1;
	for (long at = 0; at < size; at += at < head ? 17 : 1) {
		char before = data[at];

		for (int bit = at % 3; bit < 8; bit += 5) {
			int ret;

			data[at] = (char)(before ^ 1 << bit);
			write_file(path_b, data, size);
			ret = replay(path_b);
			if (at >= head) { /* the records have checksums */
				assert_true(ret == -EBADMSG || ret == 1);
				assert_non_null(strstr(err, "at offset"));
			}
		}
		data[at] = before;
	}
	free(data);
}

static void test_other_files(void **state)
{
	(void)state;
	write_file(path_a, "not a capture\n", 14);
	assert_int_equal(replay(path_a), -EBADMSG);
	write_file(path_a, "{\"magic\":\"vapro-capture/3\"}\n", 28);
	assert_int_equal(replay(path_a), -EBADMSG);
	assert_non_null(strstr(err, "another version"));
	assert_int_equal(replay("/nonexistent"), -ENOENT);
	assert_null(capture__create("/nonexistent/x", "{}"));
	assert_int_equal(errno, ENOENT);
}

static void test_full_disk(void **state)
{
	struct stream_sink *sink = capture__create("/dev/full", "{}");

	(void)state;
	assert_null(sink);
	assert_int_equal(errno, ENOSPC);
	write_host(path_a, "n1", 0, 1000, 0, true);
	recorder__clear(&seen);
	seen.refuse_after = 10;
	assert_int_equal(capture__replay((const char *const[]){path_a}, 1, &seen.sink, err, sizeof(err)), -ENOSPC);
}

/* Columns that this version does not know are skipped. */
static void test_later_version(void **state)
{
	static const char extra[] = ",{\"name\":\"later\",\"type\":\"float\",\"unit\":\"\"}";
	static const char column[] = "\"migrations\",\"type\":\"float\",\"unit\":\"count\"}";
	char *data, *grown, *at;
	long size;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	size = file_size(path_a, &data);
	*(char *)memchr(data, '\n', (size_t)size) = 0; /* the head as a text */
	at = strstr(data, column);
	assert_non_null(at);
	data[strlen(data)] = '\n';
	at += sizeof(column) - 1;
	grown = malloc((size_t)size + sizeof(extra));
	memcpy(grown, data, (size_t)(at - data));
	memcpy(grown + (at - data), extra, sizeof(extra) - 1);
	memcpy(grown + (at - data) + sizeof(extra) - 1, at, (size_t)(data + size - at));
	write_file(path_b, grown, size + (long)sizeof(extra) - 1);
	assert_int_equal(replay(path_b), 0);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 50);
	free(grown);
	free(data);
}

/* Earlier captures are as this version's with one row in each record. */
static void test_earlier_version(void **state)
{
	char *data, *number;
	long size;

	(void)state;
	write_host(path_a, "n1", 0, 1000, 0, true);
	size = file_size(path_a, &data);
	number = memmem(data, (size_t)size, "vapro-capture/2", 15);
	assert_non_null(number);
	number[14] = '1';
	write_file(path_b, data, size);
	assert_int_equal(replay(path_b), 0);
	assert_int_equal(recorder__count(&seen, STREAM_BUNDLE), 50);
	number[14] = '3';
	write_file(path_b, data, size);
	assert_int_equal(replay(path_b), -EBADMSG);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),		  cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_other_files),	  cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_later_version), cmocka_unit_test(test_earlier_version),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
