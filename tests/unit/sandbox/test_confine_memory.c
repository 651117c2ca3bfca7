// SPDX-License-Identifier: GPL-2.0-or-later
/* The cache of readers' responses: it serves the same request about the same bytes, and no other. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/confine_memory.h"

static int file;

static void put(uint64_t about, const char *service, const void *data, size_t size, bool settled)
{
	struct flat flat = {0};
	struct confine_query query = {.service = service, .about = &flat, .files = {file}, .file_count = 1};
	struct confine_version version[CONFINE_FILES_MAX];
	struct confine_response response = {0};

	flat__put(&flat, about);
	assert_false(confine_memory__recall(&query, version, &response));
	version[0].settled = settled;
	response = (struct confine_response){.data = (uint8_t *)(uintptr_t)data, .size = size};
	confine_memory__keep(&query, version, &response);
	free(flat.data);
}

/* Returns whether a response is cached, and unchanged. */
static bool has(uint64_t about, const char *service, const void *data, size_t size)
{
	struct flat flat = {0};
	struct confine_query query = {.service = service, .about = &flat, .files = {file}, .file_count = 1};
	struct confine_version version[CONFINE_FILES_MAX];
	struct confine_response response = {0};
	bool known;

	flat__put(&flat, about);
	known = confine_memory__recall(&query, version, &response);
	if (known) {
		assert_int_equal(response.size, size);
		assert_memory_equal(response.data, data, size);
	}
	free(response.data);
	free(flat.data);
	return known;
}

/* Changes the file's bytes, and waits some time after the change. */
static void change(const char *to)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	assert_int_equal(pwrite(file, to, strlen(to), 0), strlen(to));
}

static int open_file(void **state)
{
	(void)state;
	file = memfd_create("request", MFD_CLOEXEC);
	if (file < 0)
		return -1;
	change("old");
	return 0;
}

static int close_file(void **state)
{
	(void)state;
	return close(file);
}

static void the_same_question_is_answered(void **state)
{
	(void)state;
	put(1, "sites", "answer", 6, true);
	assert_true(has(1, "sites", "answer", 6));
	assert_true(has(1, "sites", "answer", 6));
	assert_false(has(2, "sites", "answer", 6));
	assert_false(has(1, "lines", "answer", 6));
	put(2, "sites", "", 0, true);
	assert_true(has(2, "sites", "", 0));
}

static void a_changed_file_is_read_again(void **state)
{
	(void)state;
	put(1, "sites", "answer", 6, true);
	change("new");
	assert_false(has(1, "sites", "answer", 6));
	put(1, "sites", "other", 5, true);
	assert_true(has(1, "sites", "other", 5));
}

static void a_young_file_is_read_again(void **state)
{
	struct confine_query query = {.service = "sites", .files = {file}, .file_count = 1};
	struct confine_version version[CONFINE_FILES_MAX];
	struct confine_response response;

	(void)state;
	put(1, "sites", "answer", 6, false);
	assert_false(has(1, "sites", "answer", 6));
	change("now");
	assert_false(confine_memory__recall(&query, version, &response));
	assert_false(version[0].settled);
}

static void the_oldest_goes(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 40; i++) {
		put(i, "sites", &i, sizeof(i), true);
		if (i)
			assert_true(has(0, "sites", &(uint64_t){0}, sizeof(i))); /* this entry is used all the time */
	}
	for (uint64_t i = 1; i < 40; i++)
		assert_int_equal(has(i, "sites", &i, sizeof(i)), i > 8);
}

static void its_bytes_are_bounded(void **state)
{
	char *large = calloc(1, 1 << 20);
	int known = 0;

	(void)state;
	assert_non_null(large);
	put(100, "sites", large, 1 << 20, true); /* too large together with its request */
	assert_false(has(100, "sites", large, 1 << 20));
	for (uint64_t i = 0; i < 6; i++)
		put(i, "sites", large, 1000000, true);
	for (uint64_t i = 0; i < 6; i++)
		known += has(i, "sites", large, 1000000);
	assert_int_equal(known, 4);
	assert_true(has(5, "sites", large, 1000000));
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_same_question_is_answered, open_file, close_file),
	    cmocka_unit_test_setup_teardown(a_changed_file_is_read_again, open_file, close_file),
	    cmocka_unit_test_setup_teardown(a_young_file_is_read_again, open_file, close_file),
	    cmocka_unit_test_setup_teardown(the_oldest_goes, open_file, close_file),
	    cmocka_unit_test_setup_teardown(its_bytes_are_bounded, open_file, close_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
