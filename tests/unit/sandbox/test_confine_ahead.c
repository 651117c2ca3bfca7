// SPDX-License-Identifier: GPL-2.0-or-later
/* Queries of a program that does not wait: what is answered later, what one user costs another, and silent readers. */
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
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/confine_owner.h"
#include "sandbox/confine_private.h"
#include "sandbox/confine_watch.h"

#define MALLORY 60001
#define ALICE 60002
#define LARGE (1U << 20)

enum deed { ECHO, SLEEP_FOR_EVER, SPIN, LARGE_RESPONSE, CRASH };

static int do_deed(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		   struct flat *response, char *err, size_t err_size)
{
	static volatile uint32_t word;
	enum deed deed = (enum deed)flat__get(about);

	(void)files, (void)file_count, (void)err, (void)err_size;
	while (deed == SLEEP_FOR_EVER)
		syscall(SYS_futex, &word, 0 /* wait */, 0, NULL, NULL, 0);
	while (deed == SPIN)
		word++;
	if (deed == CRASH)
		syscall(SYS_getppid);
	for (uint32_t i = 0; i < (deed == LARGE_RESPONSE ? LARGE / 8 : 1); i++)
		flat__put(response, 77);
	return 0;
}

static const struct confine_service services[] = {{"deed", do_deed}, {0}};

/* A file that is not root's: its user is charged for it. */
static int file_of(const char *bytes)
{
	int file = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(write(file, bytes, strlen(bytes)), strlen(bytes));
	if (!geteuid())
		assert_int_equal(fchown(file, MALLORY, MALLORY), 0);
	return file;
}

static int query(int file, uid_t owner, enum deed deed, size_t *size, char *err)
{
	struct flat about = {0};
	struct confine_query query = {
	    .service = "deed", .about = &about, .files = {file}, .file_count = 1, .owner = owner};
	struct confine_response response;
	int status;

	flat__put(&about, deed);
	status = confine__query(&query, &response, err, 256);
	if (size)
		*size = response.size;
	free(response.data);
	free(about.data);
	return status;
}

/* Readers in the background have the least priority: beside other tests one would take minutes for its five seconds. */
static void hurry_readers(void)
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	const struct sched_param none = {0};
	int pid;

	while (children && fscanf(children, "%d", &pid) == 1) {
		sched_setscheduler(pid, SCHED_OTHER, &none);
		setpriority(PRIO_PROCESS, (id_t)pid, 0);
	}
	if (children)
		fclose(children);
}

/* Repeats a query until it has a result, or waits for more than a reader at work. */
static int result(int file, uid_t owner, enum deed deed, size_t *size, char *err)
{
	int status;

	for (int i = 0; (status = query(file, owner, deed, size, err)) == -EINPROGRESS; i++) {
		if (i > 9000)
			fail_msg("no result: %s", err);
		hurry_readers();
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return status;
}

static void test_response_is_stored(void **state)
{
	int file = file_of("stored");
	char err[256] = "";
	size_t size = 0;

	(void)state;
	assert_int_equal(result(file, ALICE, ECHO, &size, err), 0);
	assert_int_equal(size, 8);
	/* more than a pipe holds, and more than is remembered of a response */
	assert_int_equal(result(file, ALICE, LARGE_RESPONSE, &size, err), 0);
	assert_int_equal(size, LARGE);
	close(file);
}

/* A reader that sleeps is a file system that does not answer: it costs its own user every file, and no other. */
static void test_silent(void **state)
{
	int held = file_of("held"), file = file_of("other");
	char err[256] = "";

	(void)state;
	assert_int_equal(result(held, MALLORY, SLEEP_FOR_EVER, NULL, err), -ETIMEDOUT);
	assert_string_equal(err, "its file system does not answer");
	assert_int_equal(query(file, MALLORY, ECHO, NULL, err), -ETIMEDOUT);
	assert_non_null(strstr(err, "another file"));
	assert_int_equal(result(file, ALICE, ECHO, NULL, err), 0);
	close(held);
	close(file);
}

/* The time of readers is charged to the user; the first reason stays. */
static void test_bounded(void **state)
{
	int slow = file_of("slow"), file = file_of("more");
	char err[256] = "";

	(void)state;
	assert_int_equal(result(slow, ALICE, SPIN, NULL, err), -EPROTO);
	assert_non_null(strstr(err, "processor time"));
	assert_int_equal(result(slow, ALICE, SPIN, NULL, err), -EPROTO);
	assert_non_null(strstr(err, "processor time"));
	assert_int_equal(result(file, ALICE, ECHO, NULL, err), -EDQUOT);
	close(slow);
	close(file);
}

static void test_first_reason(void **state)
{
	int file = file_of("bad");
	char err[256] = "";

	(void)state;
	assert_int_equal(result(file, 60003, CRASH, NULL, err), -EPROTO);
	assert_non_null(strstr(err, "forbidden"));
	assert_int_equal(result(file, 60003, CRASH, NULL, err), -EPROTO);
	assert_non_null(strstr(err, "forbidden"));
	assert_non_null(strstr(err, "not tried again yet"));
	close(file);
}

static void test_owner_pays(void **state)
{
	int64_t now_ms = 1000;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(confine_owner__patience(1, now_ms), CONFINE_OWNER_WAIT_ONCE_MS);
	confine_owner__waited(1, 900000000, now_ms);
	assert_int_equal(confine_owner__patience(1, now_ms), 100);
	confine_owner__waited(1, 200000000, now_ms);
	assert_int_equal(confine_owner__patience(1, now_ms), 0);
	assert_int_equal(confine_owner__patience(2, now_ms), CONFINE_OWNER_WAIT_ONCE_MS);
	assert_int_equal(confine_owner__patience(1, now_ms + 12000), 100);
	/* what is overdrawn is paid back before more is read */
	confine_owner__charge(1, 5000000000, now_ms);
	assert_false(confine_owner__may_read(1, now_ms + 89000));
	assert_true(confine_owner__may_read(1, now_ms + 103000));
	assert_true(confine_owner__may_read(2, now_ms));
	/* a user that is not seen for long makes way for others */
	for (uid_t uid = 10; uid < 10 + CONFINE_OWNERS; uid++)
		assert_true(confine_owner__may_read(uid, now_ms + 104000));
	assert_int_equal(confine_owner__patience(1, now_ms + 104000), CONFINE_OWNER_WAIT_ONCE_MS);
}

static void test_watch(void **state)
{
	struct confine_watch watch = {0};

	(void)state;
	confine_watch__note(&watch, " D 1 2 3 4 5 6 7 8 9 10 0 0 1");
	assert_int_equal(watch.silent, 1);
	confine_watch__note(&watch, " S 1 2 3 4 5 6 7 8 9 10 0 0 1");
	assert_int_equal(watch.silent, 2);
	confine_watch__note(&watch, " S 1 2 3 4 5 6 7 8 9 10 1 0 1");
	assert_int_equal(watch.silent, 0);
	confine_watch__note(&watch, " R 1 2 3 4 5 6 7 8 9 10 1 0 1");
	assert_int_equal(watch.silent, 0);
	confine_watch__note(&watch, "");
	assert_int_equal(watch.silent, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_owner_pays),	       cmocka_unit_test(test_watch),
	    cmocka_unit_test(test_response_is_stored), cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_first_reason),       cmocka_unit_test(test_bounded),
	};

	confine__main(argc, argv, services);
	confine__wait_for_none();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
