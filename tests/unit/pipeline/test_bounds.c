/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an output takes: which records, how many bytes, packed or not; files that are rotated. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/file_kind.h"
#include "capture/output_file.h"
#include "capture/packed_lines.h"
#include "pipeline/line_sink.h"

#define HEAD(type) "{\"schema\":\"vapro/1\",\"type\":\"" type "\",\"host\":\"n1\""
#define VARIANCE(id, alarm) HEAD("variance") ",\"job\":\"j\",\"id\":" id ",\"alarm\":" alarm "}"
#define DIAGNOSIS(id) HEAD("diagnosis") ",\"job\":\"j\",\"variance\":" id "}"
#define BACKLOG (64U << 10)
#define ROTATIONS 1000
#define MIB (1U << 20)

static char directory[64], path[96], moved[112], fifo[96];

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-test-bounds-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/lines", directory);
	snprintf(moved, sizeof(moved), "%s.1", path);
	snprintf(fifo, sizeof(fifo), "%s/fifo.zst", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(moved);
	unlink(fifo);
	return rmdir(directory);
}

static void use_packed(void)
{
	strcat(path, ".ndjson.zst");
	snprintf(moved, sizeof(moved), "%s.1", path);
}

static off_t size_of(const char *name)
{
	struct stat status;

	assert_int_equal(stat(name, &status), 0);
	return status.st_size;
}

/* Counts the lines of a file, packed or not; each must be a whole one. last: gets the last one. */
static unsigned count_lines(const char *name, char last[64])
{
	FILE *file = packed_lines__open(name);
	unsigned count = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	assert_non_null(file);
	while ((length = getline(&line, &room, file)) > 0) {
		assert_int_equal(line[0], '{');
		assert_int_equal(line[length - 1], '\n');
		snprintf(last, 64, "%s", line);
		count++;
	}
	free(line);
	fclose(file);
	return count;
}

static void test_records(void **state)
{
	static const char *const all[] = {HEAD("hello") "}",
					  HEAD("process") "}",
					  HEAD("window") "}",
					  HEAD("heatmap") "}",
					  VARIANCE("1", "false"),
					  DIAGNOSIS("1"),
					  VARIANCE("2", "true"),
					  DIAGNOSIS("2"),
					  VARIANCE("2", "false"),
					  HEAD("cause") ",\"alarm\":false}",
					  HEAD("cause") ",\"alarm\":true}",
					  HEAD("hang") ",\"job\":\"j\",\"id\":3,\"alarm\":true}",
					  HEAD("warning") "}",
					  "no record",
					  HEAD("bye") "}"};
	static const struct {
		const char *word, *passed; /* y: the line of this place passes */
	} cases[] = {{NULL, "yyyyyyyyyyyyyyy"},
		     {"all", "yyyyyyyyyyyyyyy"},
		     {"no-maps", "yyynyyyyyyyyyyy"},
		     {"alarms", "ynnnnnyyynyyyny"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record_filter *filter = record_filter__new(record_filter__choice(cases[i].word));

		assert_non_null(filter);
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			assert_int_equal(record_filter__passes(filter, all[k]), cases[i].passed[k] == 'y');
		record_filter__free(filter);
	}
}

/* Without maps a window has no keys that are 0, null or false; others stay as they are. */
static void test_shortened(void **state)
{
	static const char window[] =
	    HEAD("window") ",\"ranks\":\"0-3\",\"partial\":false,\"coverage\":{\"io\":0,\"total\":0.5},\"open\":0,"
			   "\"lost\":{\"ring_full\":0,\"governed\":7},\"io\":{\"traced_pct\":0,\"node_tax_pct\":0.1},"
			   "\"small\":{\"count\":0,\"lost_seconds\":0},\"clusters\":null,\"clock\":{\"mono_ns\":1},"
			   "\"uncovered\":[{\"to\":null,\"reason\":\"rare\"}],\"sensing\":{\"rank\":1}}";
	static const char wanted[] =
	    HEAD("window") ",\"ranks\":\"0-3\",\"coverage\":{\"io\":0,\"total\":0.5},\"lost\":{\"governed\":7},"
			   "\"io\":{\"traced_pct\":0,\"node_tax_pct\":0.1},\"uncovered\":[{\"reason\":\"rare\"}]}";
	struct record_filter *bare = record_filter__new(RECORDS_NO_MAPS), *all = record_filter__new(RECORDS_ALL);
	char *text = record_filter__shortened(bare, window);

	(void)state;
	assert_string_equal(text, wanted);
	free(text);
	assert_null(record_filter__shortened(bare, HEAD("cause") ",\"alarm\":false}"));
	assert_null(record_filter__shortened(all, window));
	record_filter__free(bare);
	record_filter__free(all);
}

/* Writes lines of records up to and over a limit. Returns how many were lost. */
static uint64_t write_beyond(uint64_t most, unsigned count, unsigned length)
{
	struct line_sink *sink = line_sink__append(path, false, BACKLOG);
	char line[2000], text[300], last[64];
	uint64_t lost;

	assert_non_null(sink);
	assert_int_equal(line_sink__bound(sink, RECORDS_ALL, most), 0);
	for (unsigned i = 0; i < count; i++) {
		/* random letters, which do not pack */
		int used = snprintf(line, sizeof(line), HEAD("window") ",\"text\":\"");

		for (; used < (int)length - 2; used++)
			line[used] = (char)('a' + (uint64_t)random() % 26);
		snprintf(line + used, sizeof(line) - (size_t)used, "\"}");
		assert_int_equal(line_sink__put(sink, line), 0);
		if (i % 16 == 15)
			assert_int_equal(line_sink__flush(sink), 0);
	}
	lost = line_sink__lost(sink);
	assert_int_equal(line_sink__over(sink), lost);
	assert_string_equal(line_sink__news(sink, text, sizeof(text)), "output_full");
	assert_null(line_sink__news(sink, text, sizeof(text)));
	assert_int_equal(line_sink__put(sink, HEAD("bye") "}"), 0);
	assert_int_equal(line_sink__flush(sink), 0);
	assert_int_equal(line_sink__over(sink), lost);
	assert_true(size_of(path) <= (off_t)most);
	assert_int_equal(count_lines(path, last), count - lost + 1);
	assert_string_equal(last, HEAD("bye") "}\n");
	/* a rotation makes room */
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(line_sink__reopen(sink, text, sizeof(text)), 0);
	assert_int_equal(line_sink__put(sink, line), 0);
	assert_int_equal(line_sink__close(sink), 0);
	assert_int_equal(count_lines(path, last), 1);
	return lost;
}

static void test_limit(void **state)
{
	uint64_t lost;

	(void)state;
	lost = write_beyond(MIB, 2000, 1000);
	assert_true(lost > 900 && lost < 1000);
	assert_true(size_of(moved) > MIB - 8192);
}

static void test_limit_packed(void **state)
{
	uint64_t lost;

	(void)state;
	use_packed();
	lost = write_beyond(MIB, 2500, 1000);
	assert_true(lost > 100 && lost < 2000);
}

/* As logrotate does it: the file is moved away while lines come, then the sink reopens it. No line is lost. */
static void rotate(void)
{
	struct line_sink *sink = line_sink__append(path, false, BACKLOG);
	unsigned written = 0, found = 0;
	char line[64], last[64], text[300];

	assert_non_null(sink);
	for (int i = 0; i < ROTATIONS; i++) {
		for (int k = 0; k < 3; k++) {
			snprintf(line, sizeof(line), "{\"line\":%u}", written++);
			assert_int_equal(line_sink__put(sink, line), 0);
			if (k == i % 3)
				assert_int_equal(line_sink__flush(sink), 0);
			if (k == 1)
				assert_int_equal(rename(path, moved), 0);
		}
		assert_int_equal(line_sink__reopen(sink, text, sizeof(text)), 0);
		found += count_lines(moved, last);
	}
	assert_int_equal(line_sink__lost(sink), 0);
	assert_int_equal(line_sink__close(sink), 0);
	found += count_lines(path, last);
	assert_int_equal(found, written);
}

static void test_rotations(void **state)
{
	(void)state;
	rotate();
}

static void test_rotations_packed(void **state)
{
	(void)state;
	use_packed();
	rotate();
}

static void run(const char *line)
{
	struct line_sink *sink = line_sink__append(path, false, BACKLOG);

	assert_non_null(sink);
	assert_int_equal(line_sink__put(sink, line), 0);
	assert_int_equal(line_sink__close(sink), 0);
}

/* A frame that a killed writer left half is cut off, and the next run is read. */
static void test_torn(void **state)
{
	char last[64];
	off_t whole;

	(void)state;
	use_packed();
	run(HEAD("hello") "}");
	assert_int_equal(file_kind__of(path), FILE_KIND_RECORDS);
	whole = size_of(path);
	run(HEAD("bye") "}");
	for (off_t cut = size_of(path) - 1; cut > whole; cut--) {
		assert_int_equal(truncate(path, cut), 0);
		assert_int_equal(count_lines(path, last), 1);
	}
	run(HEAD("bye") "}");
	assert_int_equal(count_lines(path, last), 2);
	assert_string_equal(last, HEAD("bye") "}\n");
}

/* What is there and is something else stays as it is. */
static void test_refused(void **state)
{
	static const char text[] = "not packed, and of another program\n";
	int fd;

	(void)state;
	use_packed();
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	close(fd);
	assert_null(line_sink__append(path, false, BACKLOG));
	assert_int_equal(errno, EBADMSG);
	assert_int_equal(size_of(path), sizeof(text));
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK);
	assert_null(line_sink__append(fifo, false, BACKLOG));
	assert_int_equal(errno, ENOTSUP);
	assert_non_null(strstr(output_file__reason(ENOTSUP), "files only"));
	close(fd);
}

/* A full device: no half frame is left, and lines are counted. */
static void test_full_device(void **state)
{
	struct line_sink *sink;

	(void)state;
	assert_int_equal(symlink("/dev/full", fifo), 0);
	assert_null(line_sink__append(fifo, false, BACKLOG)); /* links are not followed, packed or not */
	unlink(fifo);
	sink = line_sink__append("/dev/full", false, BACKLOG);
	assert_non_null(sink);
	assert_int_equal(line_sink__put(sink, "{}"), 0);
	assert_int_equal(line_sink__flush(sink), -ENOSPC);
	assert_int_equal(line_sink__lost(sink), 1);
	assert_int_equal(line_sink__over(sink), 0);
	line_sink__close(sink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_records, setup, teardown),
	    cmocka_unit_test(test_shortened),
	    cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_limit_packed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rotations, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rotations_packed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_full_device, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
