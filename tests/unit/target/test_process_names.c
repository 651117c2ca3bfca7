// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of names as a prolog writes them, and what users put in their place. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/process_names.h"

static char directory[64];

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static bool reads(const char *id, uid_t uid)
{
	struct job_names names;

	return process_names__read(directory, id, uid, &names);
}

static void roots_file_is_read(void **state)
{
	struct job_names names;

	(void)state;
	write_file("77", "uid=1001\nname=heat\n", 0644);
	assert_true(process_names__read(directory, "77", 1001, &names));
	assert_string_equal(names.name, "heat");
	assert_int_equal(names.source, JOB_NAMES_PROLOG);
	assert_false(reads("77", 1002)); /* a user who claims the number of another user's job */
	assert_false(reads("78", 1001));
}

static void other_names_than_files_are_refused(void **state)
{
	char path[128], link[128];

	(void)state;
	write_file("77", "uid=1001\nname=heat\n", 0644);
	write_file(".79", "uid=1001\nname=heat\n", 0644);
	assert_false(reads(".79", 1001));
	assert_false(reads("", 1001));
	assert_false(reads(".", 1001));
	assert_false(reads("..", 1001));
	assert_false(reads("../77", 1001));
	snprintf(path, sizeof(path), "%s/80", directory);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_false(reads("80", 1001)); /* and it does not wait */
	snprintf(link, sizeof(link), "%s/81", directory);
	assert_int_equal(symlink("77", link), 0);
	assert_false(reads("81", 1001));
	unlink(path);
	unlink(link);
}

static void what_others_could_write_is_refused(void **state)
{
	char path[128];

	(void)state;
	write_file("77", "uid=1001\nname=heat\n", 0666);
	assert_false(reads("77", 1001));
	write_file("77", "uid=1001\nname=heat\n", 0664);
	assert_false(reads("77", 1001));
	write_file("77", "uid=1001\nname=heat\n", 0644);
	snprintf(path, sizeof(path), "%s/77", directory);
	assert_int_equal(chown(path, 1001, 0), 0);
	assert_false(reads("77", 1001));
	write_file("77", "uid=1001\nname=heat\n", 0644);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_false(reads("77", 1001));
	assert_int_equal(chmod(directory, 0755), 0);
	assert_true(reads("77", 1001));
}

static int begin(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/vapro-names-XXXXXX");
	return !mkdtemp(directory) || chmod(directory, 0755);
}

static int end(void **state)
{
	static const char *const names[] = {"77", ".79"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(roots_file_is_read),
	    cmocka_unit_test(other_names_than_files_are_refused),
	    cmocka_unit_test(what_others_could_write_is_refused),
	};

	if (geteuid() != 0) /* the files are root's */
		return 0;
	return cmocka_run_group_tests(tests, begin, end);
}
