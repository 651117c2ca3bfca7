// SPDX-License-Identifier: GPL-2.0-or-later
/* Names read in the background: what comes into the stream, in which order, and what is reported as missing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collect/name_reader.h"
#include "recorder.h"
#include "target/source.h"

#define CASE(name) "build/test/source_cases_" name
#define LIMIT_NS 60000000000ULL

static const struct confine_service services[] = {
    {SOURCE_SERVICE, source__respond},
    {0},
};

struct fixture {
	struct recorder recorder;
	struct name_reader *reader;
};

static void begin(struct fixture *fixture)
{
	*fixture = (struct fixture){0};
	recorder__clear(&fixture->recorder);
	fixture->reader = name_reader__new(&fixture->recorder.sink);
	assert_non_null(fixture->reader);
}

static void end(struct fixture *fixture)
{
	name_reader__free(fixture->reader);
	recorder__clear(&fixture->recorder);
}

static void want(struct fixture *fixture, const char *program, const char *module, uint64_t offset, bool urgent,
		 bool interpreter)
{
	struct name_image image = {
	    .file = open(program, O_RDONLY | O_CLOEXEC), .path = program, .build_id = "", .interpreter = interpreter};
	char site[128];

	assert_true(image.file >= 0);
	snprintf(site, sizeof(site), "%s@0+%#llx", module, (unsigned long long)offset);
	name_reader__want(fixture->reader, site, offset, &image, urgent);
	close(image.file); /* a process may end before its names are read */
}

/* Returns the offset of main() in a program with symbols. */
static uint64_t offset_of_main(void)
{
	unsigned long long address = 0;
	FILE *in = popen("nm " CASE("gcc") " | awk '$3 == \"main\" {print $1}'", "r");

	assert_non_null(in);
	assert_int_equal(fscanf(in, "%llx", &address), 1);
	pclose(in);
	return address + 1; /* text is linked at its offset; the byte before is looked up */
}

static const struct stream_name *name_of(const struct fixture *fixture, size_t number)
{
	const struct stream_event *event = recorder__find(&fixture->recorder, STREAM_NAME, number);

	assert_non_null(event);
	return &event->name;
}

static void test_order(void **state)
{
	uint64_t at = offset_of_main();
	struct fixture fixture;
	char text[512];

	(void)state;
	begin(&fixture);
	want(&fixture, CASE("plain"), "plain", at, false, false);
	want(&fixture, CASE("gcc"), "gcc", at, true, false);
	want(&fixture, CASE("gcc"), "gcc", at, true, false); /* again */
	name_reader__step(fixture.reader, 0);
	assert_int_equal(fixture.recorder.count, 0); /* nothing is due yet */
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_int_equal(recorder__count(&fixture.recorder, STREAM_NAME), 2);
	assert_string_equal(name_of(&fixture, 0)->function, "main");
	assert_non_null(strstr(name_of(&fixture, 0)->file, "source_cases.cpp"));
	assert_true(name_of(&fixture, 0)->line > 0);
	assert_true(!strncmp(name_of(&fixture, 0)->site, "gcc@0+", 6));
	assert_string_equal(name_of(&fixture, 1)->function, "main");
	assert_int_equal(name_of(&fixture, 1)->line, 0);
	assert_int_equal(name_of(&fixture, 1)->offset, 1);
	assert_false(name_reader__trouble(fixture.reader, text, sizeof(text))); /* plain is not the program's */
	/* known for the rest of the run */
	want(&fixture, CASE("gcc"), "gcc", at, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_int_equal(recorder__count(&fixture.recorder, STREAM_NAME), 2);
	end(&fixture);
}

static void test_missing(void **state)
{
	uint64_t at = offset_of_main();
	struct fixture fixture;
	char text[512];

	(void)state;
	begin(&fixture);
	want(&fixture, CASE("plain"), "plain", at, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_true(name_reader__trouble(fixture.reader, text, sizeof(text)));
	assert_non_null(strstr(text, "plain has no debug information"));
	want(&fixture, CASE("plain"), "plain", at + 1, true, false);
	want(&fixture, CASE("stripped"), "stripped", at, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_true(name_reader__trouble(fixture.reader, text, sizeof(text)));
	assert_non_null(strstr(text, "stripped is stripped"));
	assert_false(name_reader__trouble(fixture.reader, text, sizeof(text))); /* each once */
	want(&fixture, CASE("gcc"), "python", at, true, true);
	want(&fixture, CASE("gcc"), "module.so", at, true, true);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_true(name_reader__trouble(fixture.reader, text, sizeof(text)));
	assert_non_null(strstr(text, "python belongs to an interpreter"));
	assert_false(name_reader__trouble(fixture.reader, text, sizeof(text)));
	want(&fixture, "tests/unit/source_cases.cpp", "text", at, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_true(name_reader__trouble(fixture.reader, text, sizeof(text)));
	assert_non_null(strstr(text, "text: functions and lines of its call-sites are not known"));
	/* users do not compile what a distribution built */
	want(&fixture, "/usr/bin/env", "env", at, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_true(name_reader__trouble(fixture.reader, text, sizeof(text)));
	assert_non_null(strstr(text, "install the debug package"));
	assert_null(strstr(text, "compile it"));
	end(&fixture);
}

/* More places than one reader looks up, most of them nowhere; then a reader that is at work at the end. */
static void test_many(void **state)
{
	uint64_t at = offset_of_main();
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	for (uint64_t i = 0; i < SOURCE_PLACES_MAX + 10; i++)
		want(&fixture, CASE("gcc"), "gcc", at + (i << 32), true, false);
	want(&fixture, CASE("gcc"), "gcc", at + 4, true, false);
	name_reader__finish(fixture.reader, LIMIT_NS);
	assert_int_equal(recorder__count(&fixture.recorder, STREAM_NAME), 2);
	want(&fixture, CASE("gcc"), "other", at, true, false);
	name_reader__step(fixture.reader, UINT64_MAX);
	end(&fixture);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_missing),
	    cmocka_unit_test(test_many),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
