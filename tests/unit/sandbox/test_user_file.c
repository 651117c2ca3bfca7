// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of users are opened without waiting for their owner: target/user_file.h. */
#include "sandbox/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[32];
static char path[sizeof(directory) + 8];

static int setup(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/vapro-user-file-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

/* Starts a child that holds a write lease on the file until it reads a byte. */
static pid_t hold_lease(int ready, int hold)
{
	pid_t child = fork();
	int file;
	char byte;

	if (child)
		return child;
	signal(SIGIO, SIG_IGN);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	byte = file >= 0 && !fcntl(file, F_SETLEASE, F_WRLCK);
	if (write(ready, &byte, 1) != 1)
		_exit(1);
	_exit(read(hold, &byte, 1) < 0);
}

static void test_lease(void **state)
{
	int ready[2], hold[2], file, error;
	char held = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	child = hold_lease(ready[1], hold[0]);
	assert_true(child > 0);
	assert_int_equal(read(ready[0], &held, 1), 1);
	file = user_file__open(path);
	error = errno;
	/* the child has a copy of the end that it reads from: a byte ends it */
	assert_int_equal(write(hold[1], "", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(hold[i]);
	}
	if (!held) {
		print_message("no lease on this file system\n");
		skip();
	}
	assert_int_equal(file, -1);
	assert_int_equal(error, EWOULDBLOCK);
	/* opens when the lease has ended */
	file = user_file__open(path);
	assert_true(file >= 0);
	close(file);
}

/* What refers to a file knows its status, can be opened again, and cannot be read. */
static void test_refer(void **state)
{
	struct stat st, truth;
	int file, again;
	char byte;

	(void)state;
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(file, "abc", 3), 3);
	assert_int_equal(fstat(file, &truth), 0);
	close(file);
	file = user_file__refer(path);
	assert_true(file >= 0);
	assert_int_equal(user_file__stat(file, &st), 0);
	assert_int_equal(st.st_dev, truth.st_dev);
	assert_int_equal(st.st_ino, truth.st_ino);
	assert_int_equal(st.st_mode, truth.st_mode);
	assert_int_equal(st.st_uid, truth.st_uid);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(st.st_ctim.tv_sec, truth.st_ctim.tv_sec);
	assert_int_equal(st.st_ctim.tv_nsec, truth.st_ctim.tv_nsec);
	assert_int_equal(read(file, &byte, 1), -1);
	again = user_file__reopen(file);
	assert_true(again >= 0);
	assert_int_equal(read(again, &byte, 1), 1);
	close(again);
	close(file);
	unlink(path);
}

/* A FIFO without a writer. */
static void test_fifo(void **state)
{
	struct stat st;
	int file;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	file = user_file__open(path);
	assert_true(file >= 0);
	assert_int_equal(fstat(file, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(file);
}

static void test_missing(void **state)
{
	(void)state;
	assert_int_equal(user_file__open(path), -1);
	assert_int_equal(errno, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_lease, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_refer, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
