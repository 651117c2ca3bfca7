// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of call-sites: what was read of a file serves the next process that maps it, unless the file has changed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/callsites.h"
#include "probe/elf/survey.h"
#include "sandbox/confine.h"
#include "target/process.h"
#include "collect/image_cache.h"

#define CASES "build/test/site_cases.so"
#define FUNCTION "no_frame"

static const struct confine_service services[] = {{SURVEY_SERVICE, survey__respond}, {0}};

static char path[] = "/tmp/vapro-callsites-XXXXXX";
static uint64_t address;

static int copy_library(void **state)
{
	int to = mkstemp(path), from = open(CASES, O_RDONLY | O_CLOEXEC);
	struct stat about;
	void *library;

	(void)state;
	assert_true(from >= 0 && to >= 0 && !fstat(from, &about));
	assert_int_equal(sendfile(to, from, NULL, (size_t)about.st_size), about.st_size);
	close(from);
	close(to);
	library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	address = (uint64_t)(uintptr_t)dlsym(library, FUNCTION);
	assert_int_not_equal(address, 0);
	return 0;
}

static int remove_library(void **state)
{
	(void)state;
	return unlink(path);
}

/* Names the function as a process that begins and ends. Returns whether its file was read for that. */
static bool reads(struct image_cache *cache)
{
	struct process *process;
	struct callsites *callsites;
	struct callsite site;
	char err[256];
	bool read;

	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	callsites = callsites__new(cache, process);
	assert_non_null(callsites);
	callsites__resolve(callsites, address + 1, &site);
	assert_string_equal(site.symbol, FUNCTION "+0x1");
	read = callsites__read_ns(callsites) > 0;
	callsites__free(callsites);
	process__free(process);
	return read;
}

static void a_file_is_read_once(void **state)
{
	struct image_cache *cache = image_cache__new(NULL);

	(void)state;
	assert_true(reads(cache));
	assert_false(reads(cache));
	assert_false(reads(cache));
	image_cache__free(cache);
}

static void a_file_that_has_changed_is_read_again(void **state)
{
	struct image_cache *cache = image_cache__new(NULL);
	int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	(void)state;
	assert_true(reads(cache));
	assert_int_equal(write(file, "", 1), 1);
	assert_true(reads(cache));
	assert_false(reads(cache));
	close(file);
	image_cache__free(cache);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_file_is_read_once),
	    cmocka_unit_test(a_file_that_has_changed_is_read_again),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, copy_library, remove_library);
}
