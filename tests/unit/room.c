/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs the unit tests of a room. Each test file is a program by its text; here its main() has the file's name (the
 * Makefile compiles it so), and each file runs in a process of its own, as if it were a program.
 *
 *   ROOM                   all files of the room, one after the other
 *   ROOM FILE              one file, such as test_judge
 *   ROOM FILE PATTERN      those of its tests whose names match, with * and ? as in a shell
 *   ROOM --list            the names of the files
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A confined reader is the program once more, with one argument and this environment: the services are the file's. */
#define FILE_VARIABLE "VAPRO_UNIT_FILE"

/* As the C library calls main(): with arguments that it need not declare. */
#define UNIT_FILE(name) int main_of_##name(int argc, char **argv);
UNIT_FILES
#undef UNIT_FILE

#define UNIT_FILE(name) {#name, main_of_##name},
static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} files[] = {UNIT_FILES};
#undef UNIT_FILE

enum { FILE_COUNT = sizeof(files) / sizeof(files[0]) };

/* Runs a file's tests in this process; the number of failed tests. */
static int run_file(const char *name, int argc, char **argv)
{
	for (int i = 0; i < FILE_COUNT; i++)
		if (!strcmp(files[i].name, name))
			return files[i].run(argc, argv);
	fprintf(stderr, "there is no %s here: %s --list\n", name, argv[0]);
	return 2;
}

/* Runs a file in a process of its own; whether it passed. */
static bool run_alone(const char *name, const char *program)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execl("/proc/self/exe", program, name, NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *file = getenv(FILE_VARIABLE);
	int failed = 0;

	if (argc == 1 && file)
		return run_file(file, argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (int i = 0; i < FILE_COUNT; i++)
			puts(files[i].name);
		return 0;
	}
	if (argc > 1) {
		if (argc > 2)
			cmocka_set_test_filter(argv[2]);
		setenv(FILE_VARIABLE, argv[1], 1);
		return run_file(argv[1], 1, argv);
	}
	for (int i = 0; i < FILE_COUNT; i++) {
		if (run_alone(files[i].name, argv[0]))
			continue;
		printf("%s failed\n", files[i].name);
		failed++;
	}
	printf("%d of %d files passed\n", FILE_COUNT - failed, FILE_COUNT);
	return failed > 0;
}
