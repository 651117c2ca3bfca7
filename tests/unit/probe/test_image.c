// SPDX-License-Identifier: GPL-2.0-or-later
/* ELF images: their contents, refusals, and damaged files, which must never do harm. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/elf/iosites.h"
#include "probe/elf/site.h"
#include "target/image.h"

#define CASES "build/test/site_cases.so"
#ifndef FLIPS /* a long run is made with -DFLIPS=10000 */
#define FLIPS 400
#endif
#define TRUNCATIONS 200

static struct image *open_image(const char *path)
{
	char err[256] = "";
	struct image *image = image__open(path, err, sizeof(err));

	if (!image)
		fail_msg("%s: %s", path, err);
	return image;
}

struct find {
	const char *name;
	struct image_symbol found[4];
	int count, total;
};

static int find(const struct image_symbol *symbol, void *ctx)
{
	struct find *search = ctx;

	search->total++;
	if (!strcmp(symbol->name, search->name) && search->count < 4)
		search->found[search->count++] = *symbol;
	return 0;
}

static int stop(const struct image_symbol *symbol, void *ctx)
{
	(void)symbol;
	return ++*(int *)ctx == 2 ? -EINTR : 0;
}

static void test_names(void **state)
{
	struct image *image = open_image(CASES);

	(void)state;
	image__free(image);
	image__free(NULL);
}

static void test_symbols(void **state)
{
	struct image *image = open_image(CASES);
	struct find search = {.name = "push_first"};
	uint64_t vaddr, offset, size, distance;
	const uint8_t *bytes;
	size_t left;
	int calls = 0;

	(void)state;
	assert_int_equal(image__functions(image, false, find, &search), 0);
	assert_int_equal(search.count, 1);
	assert_true(search.found[0].dynamic);
	assert_false(search.found[0].ifunc);
	assert_true(search.found[0].size > 0);
	assert_int_equal(image__offset_of(image, search.found[0].vaddr, &offset), 0);
	assert_int_equal(offset, search.found[0].offset);
	assert_int_equal(image__vaddr_of(image, offset, &vaddr), 0);
	assert_int_equal(vaddr, search.found[0].vaddr);
	assert_int_equal(image__offset_of(image, UINT64_MAX, &offset), -ENOENT);
	assert_int_equal(image__vaddr_of(image, UINT64_MAX, &vaddr), -ENOENT);

	bytes = image__bytes(image, search.found[0].vaddr, &left);
	assert_non_null(bytes);
	assert_true(left >= search.found[0].size);
#if defined(__x86_64__)
	assert_int_equal(bytes[0], 0x53); /* push %rbx */
#endif
	assert_null(image__bytes(image, UINT64_MAX - 8, &left));

	assert_string_equal(image__symbolise(image, search.found[0].vaddr + 1, &distance), "push_first");
	assert_int_equal(distance, 1);
	assert_null(image__symbolise(image, UINT64_MAX, &distance));

	assert_int_equal(image__object(image, "object", &vaddr, &size), 0);
	assert_int_equal(size, 8);
	assert_int_equal(image__object(image, "push_first", &vaddr, &size), -ENOENT);
	assert_int_equal(image__functions(image, false, stop, &calls), -EINTR);
	assert_int_equal(calls, 2);
	image__free(image);
}

#if defined(__x86_64__)

static struct image_symbol symbol_of(struct image *image, const char *name)
{
	struct find search = {.name = name};

	image__functions(image, true, find, &search);
	assert_int_equal(search.count, 1);
	return search.found[0];
}

static void test_aliases(void **state)
{
	struct image *image = open_image(CASES);
	struct image_symbol a = symbol_of(image, "mov_push"), b = symbol_of(image, "mov_push_alias");
	struct image_symbol inside = symbol_of(image, "symbol_inside");
	struct find search = {.name = "hidden"};

	(void)state;
	assert_int_equal(a.offset, b.offset);
	assert_true(symbol_of(image, "chosen_late").ifunc);
	/* a library's .symtab is read only where `all` is set; a label without type is no function */
	image__functions(image, false, find, &search);
	assert_int_equal(search.count, 0);
	assert_false(symbol_of(image, "hidden").dynamic);
	search = (struct find){.name = "second_entry"};
	image__functions(image, true, find, &search);
	assert_int_equal(search.count, 0);

	assert_false(image__symbol_between(image, a.vaddr, a.vaddr));
	assert_false(image__symbol_between(image, a.vaddr, a.vaddr + a.size));
	assert_true(image__symbol_between(image, inside.vaddr, inside.vaddr + 3));
	assert_false(image__symbol_between(image, inside.vaddr, inside.vaddr + 2));
	assert_true(image__symbol_between(image, inside.vaddr - 1, inside.vaddr));
	image__free(image);
}

static void test_cfa(void **state)
{
	struct image *image = open_image(CASES);
	struct image_symbol push = symbol_of(image, "push_first");
	int64_t displacement = 0;

	(void)state;
	assert_int_equal(image__cfa(image, push.vaddr, &displacement), 0);
	assert_int_equal(displacement, 8);
	assert_int_equal(image__cfa(image, push.vaddr + 1, &displacement), 0);
	assert_int_equal(displacement, 16);
	assert_int_equal(image__cfa(image, symbol_of(image, "no_frame").vaddr, &displacement), -ENOENT);
	assert_int_equal(image__cfa(image, symbol_of(image, "cfa_other_register").vaddr + 3, &displacement), -EINVAL);
	image__free(image);
}

#endif

/* An executable's .symtab counts, and so does the version of a name that a library keeps for old programs. */
static void test_executable(void **state)
{
	struct image *image = open_image("/proc/self/exe");
	struct find search = {.name = "main"};

	(void)state;
	image__functions(image, false, find, &search);
	assert_int_equal(search.count, 1);
	image__free(image);
}

static const char *libc_path(void)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					    "/lib/aarch64-linux-gnu/libc.so.6"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (!access(paths[i], R_OK))
			return paths[i];
	return NULL;
}

static void test_libc(void **state)
{
	struct find search = {.name = "pthread_cond_wait"};
	const char *path = libc_path();
	struct io_site sites[128];
	struct image *image;
	int64_t cfa;
	int count;

	(void)state;
	if (!path)
		skip();
	image = open_image(path);
	assert_int_equal(strlen(image__build_id(image)), 40);
	image__functions(image, false, find, &search);
	assert_true(search.count >= 1);
	assert_true(search.total > 1000);
	/* stripped: frames are still there */
	assert_int_equal(image__cfa(image, search.found[0].vaddr, &cfa), 0);
#if defined(__x86_64__)
	assert_int_equal(cfa, 8);
	count = iosites__find(image, sites, 128);
	assert_true(count >= 0);
	for (int i = 0; i < count; i++)
		assert_true(sites[i].displacement >= 0 && sites[i].displacement % 8 == 0);
#else
	(void)sites;
	(void)count;
#endif
	image__free(image);
}

static void refuse(const char *path)
{
	char err[256] = "";

	if (image__open(path, err, sizeof(err)))
		fail_msg("%s was accepted", path);
	assert_string_not_equal(err, "");
	/* The reason is optional. */
	assert_null(image__open(path, NULL, 0));
}

static void test_refused(void **state)
{
	char directory[] = "/tmp/vapro.XXXXXX", fifo[64];

	(void)state;
	refuse("/nonexistent");
	refuse("/");
	refuse("/dev/zero");
	refuse("/proc/self/status");
	refuse("tests/unit/site_cases.S");
	assert_non_null(mkdtemp(directory));
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	refuse(fifo); /* refused without waiting for a writer */
	unlink(fifo);
	rmdir(directory);
}

static char *load(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	char *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *size, file), *size);
	fclose(file);
	return data;
}

struct visit {
	struct image *image;
	int left;
};

static int use(const struct image_symbol *symbol, void *ctx)
{
	struct visit *visit = ctx;
	struct site site;
	uint64_t distance;
	int64_t cfa;

	assert_true(strlen(symbol->name) < 4096);
	site__choose(visit->image, symbol, 0x3f, &site);
	image__cfa(visit->image, symbol->vaddr + 5, &cfa);
	image__symbolise(visit->image, symbol->vaddr + 2, &distance);
	return --visit->left <= 0;
}

/* Does all of the daemon's actions on an image with any bytes. Returns whether it opened. */
static bool digest(const char *data, size_t size)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	struct io_site sites[16];
	struct visit visit = {.left = 200};
	uint64_t vaddr, bytes;
	char path[64], err[256];
	size_t left;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	visit.image = image__open(path, err, sizeof(err));
	close(fd);
	if (!visit.image)
		return false;
	image__functions(visit.image, true, use, &visit);
	image__object(visit.image, "object", &vaddr, &bytes);
	image__vaddr_of(visit.image, 0x1000, &vaddr);
	image__bytes(visit.image, 0x1000, &left);
	iosites__find(visit.image, sites, 16);
	assert_true(strlen(image__build_id(visit.image)) < IMAGE_BUILD_ID_MAX);
	image__free(visit.image);
	return true;
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void damage(const char *path, size_t hot, size_t hot_size)
{
	uint32_t seed = 0x2545f491;
	int opened = 0;
	size_t size;
	char *data = load(path, &size), *copy = malloc(size);

	assert_non_null(copy);
	assert_true(digest(data, size));
	for (int i = 0; i < FLIPS; i++) {
		unsigned int flips = 1 + next_random(&seed) % 8;

		memcpy(copy, data, size);
		for (unsigned int j = 0; j < flips; j++) {
			/* Two of three flips hit headers and tables, where they hurt; extremes as often as noise. */
			size_t at =
			    next_random(&seed) % 3 ? hot + next_random(&seed) % hot_size : next_random(&seed) % size;
			static const uint8_t extremes[] = {0x00, 0xff, 0x7f, 0x80};

			copy[at % size] =
			    (char)(next_random(&seed) % 2 ? extremes[next_random(&seed) % 4] : next_random(&seed));
		}
		opened += digest(copy, size);
	}
	/* Some damaged images must open, else the test is void. */
	assert_true(opened > FLIPS / 8);
	for (int i = 0; i < TRUNCATIONS; i++) {
		size_t length = next_random(&seed) % size;
		char *exact = malloc(length + 1);

		assert_non_null(exact);
		memcpy(exact, data, length);
		digest(exact, length);
		free(exact);
	}
	free(copy);
	free(data);
}

static void test_damaged(void **state)
{
	size_t size;
	char *data = load(CASES, &size);
	Elf64_Ehdr header;

	(void)state;
	memcpy(&header, data, sizeof(header));
	free(data);
	damage(CASES, 0, sizeof(header) + header.e_phnum * sizeof(Elf64_Phdr));
	damage(CASES, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
	damage(CASES, 0x200, 0xc00);   /* dynamic symbols and strings */
	damage(CASES, 0x2000, 0x1000); /* frames */
	damage(CASES, 0x1000, 0x400);  /* code */
}

static void test_other_machines(void **state)
{
	size_t size;
	char *data = load(CASES, &size);

	(void)state;
	data[EI_CLASS] = ELFCLASS32;
	assert_false(digest(data, size));
	data[EI_CLASS] = ELFCLASS64;
	data[EI_DATA] = ELFDATA2MSB;
	assert_false(digest(data, size));
	data[EI_DATA] = ELFDATA2LSB;
	data[offsetof(Elf64_Ehdr, e_machine)] = EM_S390;
	assert_false(digest(data, size));
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_symbols),
#if defined(__x86_64__)
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_cfa),
#endif
		cmocka_unit_test(test_executable),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_other_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
