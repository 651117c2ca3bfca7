// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests to the confined reader, surveys of images and lines of source: good responses equal parsing
 * in-process, no response is believed unchecked, and damaged files do no harm.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
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
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/elf/survey.h"
#include "sandbox/confine.h"
#include "target/image_tables.h"
#include "target/process.h"
#include "target/source.h"

#define CASES "build/test/site_cases.so"
#define FLIP "VAPRO_FLIP" /* before a number at the end of a file */
#define FLIPS 160
#define TABLE_FLIPS 4000
#ifndef DAMAGES /* a long run is made with -DDAMAGES=2000 */
#define DAMAGES 12
#endif

/* A survey whose response is spoilt as a number at the end of its file says, as by a reader that its image controls. */
static int spoilt_survey(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
			 struct flat *response, char *err, size_t err_size)
{
	uint32_t state = 0;
	const char *flip = files[0].data + files[0].size - sizeof(FLIP) - sizeof(state);
	int status;

	if (files[0].size > sizeof(FLIP) + sizeof(state) && !memcmp(flip, FLIP, sizeof(FLIP)))
		memcpy(&state, flip + sizeof(FLIP), sizeof(state));
	status = survey__respond(about, files, file_count, response, err, err_size);

	for (int i = 0; state && !status && i < 3; i++) {
		uint8_t *at;

		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		at = &response->data[state % response->size];
		*at = i == 2 ? 0xff : (uint8_t)(state >> 24);
	}
	if (state && !status && state % 4 == 0)
		response->size -= state % (response->size / 2);
	return status;
}

static const struct confine_service services[] = {
    {SURVEY_SERVICE, spoilt_survey},
    {SOURCE_SERVICE, source__respond},
    {0},
};

struct truth {
	struct image *image;
	struct survey_wanted wanted[256];
	struct image_symbol symbols[256];
	size_t count;
};

static int collect(const struct image_symbol *symbol, void *ctx)
{
	struct truth *truth = ctx;

	assert_true(truth->count < 256);
	truth->symbols[truth->count] = *symbol;
	truth->wanted[truth->count++] = (struct survey_wanted){.symbol = symbol->name, .arguments = 0x3f};
	return 0;
}

static void same_text(const char *a, const char *b)
{
	assert_string_equal(a ? a : "", b ? b : "");
}

static void same_objects(struct image *reported, struct image *image)
{
	uint64_t vaddr, size, other_vaddr, other_size;

	assert_int_equal(image__object(reported, "object", &vaddr, &size), 0);
	assert_int_equal(image__object(image, "object", &other_vaddr, &other_size), 0);
	assert_int_equal(vaddr, other_vaddr);
	assert_int_equal(size, other_size);
	assert_int_equal(image__object(reported, "push_first", &vaddr, &size), -ENOENT);
}

/* The survey reports the same on each function as image.c and site.c here. */
static void test_survey(void **state)
{
	static struct truth truth;
	char err[256] = "";
	const struct survey_function *functions;
	struct survey *survey;
	struct image *reported;
	size_t count, matched = 0;
	int file = open(CASES, O_RDONLY | O_CLOEXEC);

	(void)state;
	truth.image = image__open(CASES, err, sizeof(err));
	assert_non_null(truth.image);
	image__functions(truth.image, false, collect, &truth);
	assert_true(truth.count > 10);
	survey = survey__query(file, 0, "/cases.so", SURVEY_NAMES, truth.wanted, truth.count, err, sizeof(err));
	if (!survey)
		fail_msg("%s", err);
	reported = survey__image(survey);
	assert_string_equal(image__build_id(reported), image__build_id(truth.image));
	functions = survey__functions(survey, &count);
	for (size_t i = 0; i < count; i++) {
		const struct survey_function *function = &functions[i];
		uint64_t distance, offset;
		struct site site;

		for (size_t j = 0; j < truth.count; j++) {
			const struct image_symbol *symbol = &truth.symbols[j];

			if (strcmp(symbol->name, function->symbol.name) || symbol->vaddr != function->symbol.vaddr)
				continue;
			matched++;
			site__choose(truth.image, symbol, 0x3f, &site);
			assert_int_equal(function->symbol.offset, symbol->offset);
			assert_int_equal(function->symbol.size, symbol->size);
			assert_int_equal(function->site.vaddr, site.vaddr);
			assert_int_equal(function->site.offset, site.offset);
			assert_int_equal(function->site.shift, site.shift);
			assert_int_equal(function->site.class, site.class);
			same_text(function->site.reason, site.reason);
			same_text(function->site.instruction, site.instruction);
		}
		assert_int_equal(image__offset_of(reported, function->symbol.vaddr, &offset), 0);
		assert_int_equal(offset, function->symbol.offset);
		same_text(image__symbolise(reported, function->symbol.vaddr, &distance),
			  image__symbolise(truth.image, function->symbol.vaddr, &distance));
	}
	assert_int_equal(matched, truth.count);
	same_objects(reported, truth.image);
	/* the survey has no bytes to be parsed here */
	assert_null(image__bytes(reported, functions[0].symbol.vaddr, &count));
	survey__free(survey);
	image__free(truth.image);
	close(file);
}

static void test_survey_refuses(void **state)
{
	char err[256] = "";
	int file = open("tests/unit/site_cases.S", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_null(survey__query(file, 0, "/cases.S", SURVEY_NAMES, NULL, 0, err, sizeof(err)));
	assert_string_equal(err, "/cases.S: not an ELF file");
	close(file);
}

/* Spoilt responses are refused by name, or their rest is safe to use. */
static void test_survey_spoilt(void **state)
{
	static const struct survey_wanted wanted[] = {{"push_first", 0x3f}, {"no_frame", 0x3f}};
	int cases = open(CASES, O_RDONLY | O_CLOEXEC), file = memfd_create("cases", MFD_CLOEXEC), refused = 0;
	off_t size_of_cases = lseek(cases, 0, SEEK_END);

	(void)state;
	lseek(cases, 0, SEEK_SET);
	assert_int_equal(sendfile(file, cases, NULL, (size_t)size_of_cases), size_of_cases);
	assert_int_equal(pwrite(file, FLIP, sizeof(FLIP), size_of_cases), sizeof(FLIP));
	for (uint32_t i = 1; i <= FLIPS; i++) {
		char err[256] = "";
		const struct survey_function *functions;
		struct survey *survey;
		uint64_t vaddr, size;
		size_t count;

		/* the file has changed, and is read again */
		assert_int_equal(pwrite(file, &i, sizeof(i), size_of_cases + (off_t)sizeof(FLIP)), sizeof(i));
		survey =
		    survey__query(file, 0, CASES, i % 4 ? 0 : SURVEY_NAMES | SURVEY_IO, wanted, 2, err, sizeof(err));
		if (!survey) {
			assert_non_null(strstr(err, "makes no sense"));
			refused++;
			continue;
		}
		functions = survey__functions(survey, &count);
		for (size_t j = 0; j < count; j++) {
			assert_true(functions[j].wanted < 2);
			assert_true(functions[j].site.class < SITE_CLASSES);
			assert_true(functions[j].site.vaddr - functions[j].symbol.vaddr < 4096);
			image__symbolise(survey__image(survey), functions[j].symbol.vaddr, &size);
		}
		image__object(survey__image(survey), "object", &vaddr, &size);
		assert_true(strlen(image__build_id(survey__image(survey))) < IMAGE_BUILD_ID_MAX);
		survey__free(survey);
	}
	assert_true(refused > 0 && refused < FLIPS);
	close(file);
	close(cases);
}

/* Spoilt tables without a reader, and many more: tables with any content. */
static void test_tables_spoilt(void **state)
{
	char err[256] = "";
	struct image *image = image__open(CASES, err, sizeof(err));
	uint32_t random = 12345;
	struct flat good = {0};
	int refused = 0;

	(void)state;
	assert_non_null(image);
	image_tables__put(image, true, &good);
	assert_false(good.failed);
	for (int i = 0; i < TABLE_FLIPS; i++) {
		uint8_t *bytes = malloc(good.size);
		size_t size = good.size;
		struct flat_reader reader;
		struct image *reported;
		uint64_t vaddr, distance;
		bool memory;

		assert_non_null(bytes);
		memcpy(bytes, good.data, size);
		for (int j = 0; j < 3; j++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			bytes[random % size] = (uint8_t)(random >> 24);
		}
		if (i % 5 == 0)
			size = random % size;
		reader = (struct flat_reader){.at = bytes, .end = bytes + size};
		reported = image_tables__get(&reader, 1 << 20, &memory);
		refused += !reported;
		for (uint64_t at = 0; reported && at < 0x4000; at += 256)
			if (!image__vaddr_of(reported, at, &vaddr))
				image__symbolise(reported, vaddr, &distance);
		image__free(reported);
		free(bytes);
	}
	assert_true(refused > 0 && refused < TABLE_FLIPS);
	free(good.data);
	image__free(image);
}

/* Returns the call's return address, as an offset in the program's file. */
static __attribute__((noinline)) uint64_t called_from(void)
{
	uint64_t address = (uint64_t)__builtin_return_address(0);
	const struct process_mapping *mapping;
	struct process *self;
	char err[256];

	assert_int_equal(process__read(getpid(), &self, err, sizeof(err)), 0);
	mapping = process__mapping_at(self, address);
	assert_non_null(mapping);
	address += mapping->offset - mapping->start;
	process__free(self);
	return address;
}

/* Damaged files, DWARF and all, give a response or a sentence, whatever happens to the reader. */
static void test_damaged(void **state)
{
	static const struct survey_wanted wanted[] = {{"main", 0}, {"called_from", 0}};
	uint64_t offsets[] = {called_from(), 0x1000};
	uint32_t random = 4711;
	int good = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	off_t size = lseek(good, 0, SEEK_END);
	char *bytes = malloc((size_t)size);

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(pread(good, bytes, (size_t)size, 0), size);
	close(good);
	for (int i = 0; i < DAMAGES; i++) {
		char err[256] = "", path[64];
		int file = memfd_create("damaged", MFD_CLOEXEC);
		struct survey *survey;
		struct source *source;

		assert_int_equal(write(file, bytes, (size_t)size), size);
		for (int j = 0; j < 200; j++) {
			/* most of the damage goes where the tables and the DWARF are: the ends of the file */
			off_t at =
			    j % 4 ? size - 1 - (off_t)(random % (uint32_t)(size * 2 / 3)) : (off_t)(random % 4096);

			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			if (at >= 64) /* the head stays: without it no table is read */
				assert_int_equal(pwrite(file, &random, 1, at), 1);
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		survey = survey__query(file, 0, path, SURVEY_NAMES | SURVEY_IO, wanted, 2, err, sizeof(err));
		assert_true(survey || *err);
		survey__free(survey);
		err[0] = '\0';
		source = source__query(path, "", NULL, offsets, 2, err, sizeof(err));
		assert_true(source || *err);
		source__free(source);
		close(file);
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_survey),	  cmocka_unit_test(test_survey_refuses),
	    cmocka_unit_test(test_survey_spoilt), cmocka_unit_test(test_tables_spoilt),
	    cmocka_unit_test(test_damaged),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
