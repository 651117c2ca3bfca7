// SPDX-License-Identifier: GPL-2.0-or-later
/* The directories of job reports: names, what is removed, and what users put in the way. As root only. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "reports/report_store.h"

#define ANN 65533
#define BOB 65532

static char directory[64];
static int jobs_fd, spool_fd;

static void names_are_files_names(void **state)
{
	static const struct {
		const char *identity, *name, *back;
	} cases[] = {
	    {"slurm:123.0", "slurm-123.0", "slurm:123.0"},
	    {"slurm:2.372310017@192.0.2.2", "slurm-2.372310017@192.0.2.2", "slurm:2.372310017@192.0.2.2"},
	    {"none:pid-7@vm", "none-pid-7@vm", "none:pid-7@vm"},
	    {"../../etc/passwd", NULL, NULL},
	    {"", NULL, NULL},
	};
	char name[STORE_NAME_SIZE], back[STORE_NAME_SIZE], large[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		report_store__name(cases[i].identity, 1, name);
		assert_null(strchr(name, '/'));
		assert_true(name[0] != '.');
		if (!cases[i].name)
			continue;
		assert_string_equal(name, cases[i].name);
		assert_string_equal(report_store__identity(name, back), cases[i].back);
	}
	report_store__name("slurm:123.0", 7, name);
	assert_string_equal(name, "slurm-123.0~7");
	assert_string_equal(report_store__identity(name, back), "slurm:123.0");
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	report_store__name(large, 99, name);
	assert_true(strlen(name) < STORE_NAME_SIZE && strstr(name, "~99"));
}

static void the_greediest_user_gives_way(void **state)
{
	static const struct store_report reports[] = {
	    /* the latest first */
	    {.name = "a", .uid = ANN, .time_s = 100, .bytes = 10}, {.name = "b", .uid = BOB, .time_s = 90, .bytes = 50},
	    {.name = "c", .uid = BOB, .time_s = 80, .bytes = 50},  {.name = "d", .uid = ANN, .time_s = 70, .bytes = 10},
	    {.name = "e", .uid = BOB, .time_s = 60, .bytes = 50},  {.name = "f", .uid = ANN, .time_s = 10, .bytes = 10},
	};
	static const bool by_age[] = {false, false, false, false, false, true},
			  by_bytes[] = {false, false, true, false, true, true},
			  all[] = {true, true, true, true, true, true};
	bool removed[6] = {false};

	(void)state;
	assert_int_equal(report_store__choose(reports, 6, 0, 0, removed), 0);
	assert_int_equal(report_store__choose(reports, 6, 50, 0, removed), 1);
	assert_memory_equal(removed, by_age, sizeof(removed));
	assert_int_equal(report_store__choose(reports, 6, 50, 70, removed), 3);
	assert_memory_equal(removed, by_bytes, sizeof(removed));
	assert_int_equal(report_store__choose(reports, 6, 50, 1, removed), 6);
	assert_memory_equal(removed, all, sizeof(removed));
	assert_int_equal(report_store__choose(NULL, 0, 50, 1, removed), 0);
}

/* Runs as a process of its own, since the rights of a user are for good. Returns its status. */
static int in_child(int (*run)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int write_one(void)
{
	int fd = report_store__enter(jobs_fd, ANN);
	FILE *out = fd >= 0 ? report_store__begin(fd, "slurm-1", STORE_TEXT) : NULL;

	if (!out)
		return fd < 0 ? -fd : errno;
	fputs("ten lines\n", out);
	return -report_store__end(fd, "slurm-1", STORE_TEXT, out, 0);
}

static void files_are_the_users(void **state)
{
	struct store_report *reports = NULL;
	size_t count = 0, capacity = 0;
	struct stat status;
	int fd;

	(void)state;
	assert_int_equal(in_child(write_one), 0);
	assert_false(fstatat(jobs_fd, "65533", &status, AT_SYMLINK_NOFOLLOW));
	assert_int_equal(status.st_uid, ANN);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_false(fstatat(jobs_fd, "65533/slurm-1.txt", &status, AT_SYMLINK_NOFOLLOW));
	assert_int_equal(status.st_uid, ANN);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(geteuid(), 0);
	/* a second time it is replaced */
	assert_int_equal(in_child(write_one), 0);
	fd = report_store__look(jobs_fd, ANN);
	assert_true(fd >= 0);
	assert_true(report_store__has(fd, "slurm-1"));
	assert_false(report_store__has(fd, "slurm-2"));
	assert_int_equal(report_store__list(fd, ANN, &reports, &count, &capacity), 0);
	assert_int_equal(count, 1);
	assert_string_equal(reports[0].name, "slurm-1");
	assert_int_equal(reports[0].files, 1U << STORE_TEXT);
	assert_int_equal(report_store__remove(fd, "slurm-1"), 1);
	close(fd);
	free(reports);
}

static int look_of_other(void)
{
	int fd;

	if (setgid(65534) || setuid(BOB))
		return 100;
	fd = report_store__look(jobs_fd, ANN);
	return fd == -EACCES ? 0 : 1;
}

static void others_see_nothing(void **state)
{
	(void)state;
	assert_int_equal(in_child(write_one), 0);
	assert_int_equal(in_child(look_of_other), 0);
}

static void run(const char *format)
{
	char command[512];

	snprintf(command, sizeof(command), format, directory, directory, directory);
	assert_int_equal(system(command), 0);
}

static void nothing_is_written_through_a_link(void **state)
{
	struct stat status;

	(void)state;
	/* in place of the directory: root alone can have done that */
	run("rm -rf %s/jobs/65533; mkdir %s/elsewhere");
	run("ln -s %s/elsewhere %s/jobs/65533");
	assert_true(in_child(write_one) != 0);
	run("test -z \"$(ls %s/elsewhere)\" && rm %s/jobs/65533");
	/* in place of the files */
	assert_int_equal(in_child(write_one), 0);
	run("rm %s/jobs/65533/slurm-1.txt; echo kept > %s/elsewhere/file; ln -s %s/elsewhere/file "
	    "/tmp/vapro-store-link");
	run("mv /tmp/vapro-store-link %s/jobs/65533/slurm-1.txt");
	assert_int_equal(in_child(write_one), 0);
	run("test \"$(cat %s/elsewhere/file)\" = kept");
	assert_false(fstatat(jobs_fd, "65533/slurm-1.txt", &status, AT_SYMLINK_NOFOLLOW));
	assert_true(S_ISREG(status.st_mode)); /* the link itself is replaced */
	/* a directory of that name is the user's loss */
	run("rm %s/jobs/65533/slurm-1.txt; mkdir %s/jobs/65533/slurm-1.txt");
	assert_int_equal(in_child(write_one), EISDIR);
	/* a directory that is another user's is not used */
	run("rm -rf %s/jobs/65533; mkdir %s/jobs/65533; chown 65532 %s/jobs/65533");
	assert_int_equal(in_child(write_one), EPERM);
	run("rm -rf %s/jobs/65533");
}

/* A user may mount a file system of the user's own, that answers when it likes: a mount of root's stands for it. */
static void other_file_systems_are_not_entered(void **state)
{
	char command[256];
	int status;

	(void)state;
	assert_int_equal(in_child(write_one), 0);
	snprintf(command, sizeof(command), "mount -t tmpfs -o size=64k,uid=65533 none %s/jobs/65533 2>/dev/null",
		 directory);
	if (system(command))
		skip(); /* a container */
	status = in_child(write_one);
	run("umount %s/jobs/65533");
	assert_int_equal(status, EXDEV);
}

static int begin(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-store-XXXXXX");
	return !mkdtemp(directory) || chmod(directory, 0755) || report_store__open(directory, &jobs_fd, &spool_fd);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	close(jobs_fd);
	close(spool_fd);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_files_names),
	    cmocka_unit_test(the_greediest_user_gives_way),
	    cmocka_unit_test(files_are_the_users),
	    cmocka_unit_test(others_see_nothing),
	    cmocka_unit_test(nothing_is_written_through_a_link),
	    cmocka_unit_test(other_file_systems_are_not_entered),
	};

	if (geteuid() != 0)
		return 0;
	return cmocka_run_group_tests(tests, begin, end);
}
