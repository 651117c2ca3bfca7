// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages that are held stay in memory, and are released; a holder that is killed is replaced. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/confine_private.h"
#include "sandbox/page_holder.h"
#include "sandbox/user_file.h"

#define PAGES 8

static const struct confine_service services[] = {{0}};
static char path[] = "/var/tmp/vapro-pages-XXXXXX"; /* on a disk: pages of a tmpfs are never dropped */
static int file;
static uint64_t page;

static int setup(void **state)
{
	char *bytes;

	(void)state;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	bytes = calloc(PAGES, page);
	file = mkstemp(path);
	if (file < 0 || !bytes || write(file, bytes, PAGES * page) != (ssize_t)(PAGES * page))
		return -1;
	free(bytes);
	return fsync(file);
}

static int teardown(void **state)
{
	(void)state;
	close(file);
	return unlink(path);
}

/* Drops the file's pages from memory; the bits of those that stay. */
static unsigned int stay(void)
{
	unsigned char in[PAGES];
	unsigned int bits = 0;
	void *at;

	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	at = mmap(NULL, PAGES * page, PROT_READ, MAP_SHARED, file, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(mincore(at, PAGES * page, in), 0);
	munmap(at, PAGES * page);
	for (int i = 0; i < PAGES; i++)
		bits |= (in[i] & 1U) << i;
	return bits;
}

/* Waits until a released page can be dropped: its release is not answered. */
static unsigned int stay_none(void)
{
	unsigned int bits = stay();

	for (int i = 0; bits && i < 1000; i++, bits = stay())
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return bits;
}

static int begin(struct page_hold *hold, int reference, uint64_t first, uint64_t second)
{
	uint64_t offsets[] = {first, second, first + 1};
	int status;

	while ((status = page_holder__hold(hold, reference, 1, offsets, 3)) == -EINPROGRESS)
		;
	return status;
}

static void test_held(void **state)
{
	struct page_hold hold, other;
	int reference = user_file__refer(path);

	(void)state;
	if (stay()) {
		print_message("this file system keeps pages\n");
		skip();
	}
	assert_int_equal(begin(&hold, reference, 5 * page + 10, 2 * page), 0);
	assert_int_equal(stay() & 0x24, 0x24);
	assert_int_equal(begin(&other, reference, 3 * page, 4 * page), 0);
	assert_int_equal(stay() & 0x3c, 0x3c);
	page_holder__release(&hold);
	page_holder__release(&other);
	assert_int_equal(stay_none(), 0);
	/* the kernel may refuse a page behind the end, which is no page of a probe */
	assert_int_equal(begin(&hold, reference, page, 100 * page), 0);
	page_holder__release(&hold);
	close(reference);
}

static void test_killed(void **state)
{
	struct page_hold hold;
	int reference = user_file__refer(path);

	(void)state;
	assert_int_equal(begin(&hold, reference, 0, page), 0);
	assert_true(hold.holder > 0);
	kill(hold.holder, SIGKILL);
	page_holder__release(&hold);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(begin(&hold, reference, 0, page), 0);
		page_holder__release(&hold);
	}
	assert_int_equal(begin(&hold, reference, 0, page), 0);
	assert_true(hold.id);
	page_holder__release(&hold);
	close(reference);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_held), cmocka_unit_test(test_killed)};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, setup, teardown);
}
