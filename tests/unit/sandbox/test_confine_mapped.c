// SPDX-License-Identifier: GPL-2.0-or-later
/* Large files are mapped by readers: what they see, and what becomes of a reader whose file is truncated meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/confine.h"
#include "sandbox/flat.h"

#define LARGE ((1U << 20) + 12345)

enum deed { DEED_SUM, DEED_WATCH };

static uint64_t sum_of(const volatile uint8_t *data, size_t size)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	return sum;
}

/* Sums up a file and overwrites it in the reader's own memory; or looks at it until something ends that. */
static int look(struct flat_reader *about, struct confine_file *files, unsigned int file_count, struct flat *response,
		char *err, size_t err_size)
{
	enum deed deed = (enum deed)flat__get(about);

	if (file_count != 1) {
		snprintf(err, err_size, "no file");
		return -EINVAL;
	}
	do
		flat__put(response, sum_of((uint8_t *)files[0].data, files[0].size));
	while (deed == DEED_WATCH);
	memset(files[0].data, 0, files[0].size);
	flat__put(response, files[0].size);
	return 0;
}

static const struct confine_service services[] = {
    {"look", look},
    {0},
};

/* A file of so many bytes that nothing else has open, and their sum. */
static int file_of(size_t size, uint64_t *sum)
{
	char name[] = "/tmp/vapro-mapped-XXXXXX";
	uint8_t *bytes = malloc(size);
	int file = mkstemp(name);

	assert_true(file >= 0 && bytes);
	unlink(name);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(write(file, bytes, size), size);
	*sum = sum_of(bytes, size);
	free(bytes);
	return file;
}

static void test_content(void **state)
{
	static const size_t sizes[] = {1000, LARGE, 1 << 20, 0};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct confine_response response;
		struct flat_reader reader;
		struct flat about = {0};
		char err[256] = "";
		uint64_t sum;
		int file = file_of(sizes[i], &sum);
		struct confine_query query = {.service = "look", .about = &about, .files = {file}, .file_count = 1};

		flat__put(&about, DEED_SUM);
		for (int again = 0; again < 2; again++) { /* what a reader writes is its own */
			assert_int_equal(confine__query(&query, &response, err, sizeof(err)), 0);
			reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
			assert_int_equal(flat__get(&reader), sum);
			assert_int_equal(flat__get(&reader), sizes[i]);
			assert_true(flat__done(&reader));
			free(response.data);
		}
		free(about.data);
		close(file);
	}
}

/* Whether a child of this process maps a file of file_of(). */
static bool is_mapped(void)
{
	char name[64], line[1024];
	bool found = false;
	long child;
	FILE *children, *maps;

	snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
	children = fopen(name, "re");
	assert_non_null(children);
	while (!found && fscanf(children, "%ld", &child) == 1) {
		snprintf(name, sizeof(name), "/proc/%ld/maps", child);
		maps = fopen(name, "re");
		while (maps && !found && fgets(line, sizeof(line), maps))
			found = strstr(line, "/vapro-mapped-");
		if (maps)
			fclose(maps);
	}
	fclose(children);
	return found;
}

/* The reader ends because its file does, and not by its limits. */
static void test_truncated_meanwhile(void **state)
{
	struct flat about = {0};
	uint64_t sum;
	int file = file_of(LARGE, &sum), status;
	struct confine_query query = {
	    .service = "look", .about = &about, .files = {file}, .file_count = 1, .limit_ms = 60000};
	struct confine_request *request;
	struct confine_response response;
	char err[256] = "";

	(void)state;
	flat__put(&about, DEED_WATCH);
	assert_int_equal(confine_request__begin(&query, &request, err, sizeof(err)), 0);
	confine_request__end_idle(request);
	while (!is_mapped()) {
		assert_int_equal(confine_request__poll(request, &response, err, sizeof(err)), -EAGAIN);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	assert_int_equal(ftruncate(file, 4096), 0);
	while ((status = confine_request__poll(request, &response, err, sizeof(err))) == -EAGAIN)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_int_equal(status, -EPROTO);
	assert_null(response.data);
	assert_null(strstr(err, "no answer"));
	assert_null(strstr(err, "processor time"));
	confine_request__free(request);
	free(about.data);
	close(file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_content), cmocka_unit_test(test_truncated_meanwhile)};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
