// SPDX-License-Identifier: GPL-2.0-or-later
/* A program that was executed from memory is called by its first argument, any other as the kernel calls it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "collect/interferer_names.h"

/* Executes a copy of cat in memory, which waits for the other end of its input. */
static pid_t execute_from_memory(const char *argument, int *input)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *arguments[] = {(char *)argument, NULL}, *none[] = {NULL};
		int from = open("/bin/cat", O_RDONLY), to = memfd_create("sealed-91", MFD_CLOEXEC);
		struct stat stat;

		if (fstat(from, &stat) || sendfile(to, from, NULL, (size_t)stat.st_size) != stat.st_size)
			_exit(1);
		dup2(ends[0], 0);
		close(ends[1]);
		fexecve(to, arguments, none);
		_exit(1);
	}
	close(ends[0]);
	*input = ends[1];
	return pid;
}

/* Waits until the process has the argument: it was executed. */
static void wait_for(pid_t pid, const char *argument)
{
	char path[40], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	for (int i = 0; i < 2000 && strcmp(text, argument); i++) {
		FILE *file = fopen(path, "r");
		size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

		text[got] = '\0';
		if (file)
			fclose(file);
		usleep(5000);
	}
	assert_string_equal(text, argument);
}

static void programs_in_memory_have_their_name(void **state)
{
	static const char argument[] = "/opt/site/agent-with-a-long-name";
	struct interferer_names *names = calloc(1, sizeof(*names));
	char comm[INTERFERER_NAME_SIZE] = "memfd:sealed-91", again[INTERFERER_NAME_SIZE] = "memfd:sealed-91";
	int input;
	pid_t pid = execute_from_memory(argument, &input);

	(void)state;
	wait_for(pid, argument);
	interferer_names__replace(names, pid, comm);
	assert_string_equal(comm, "agent-with-a-lo");
	close(input);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	interferer_names__replace(names, pid, again); /* it has ended, but was seen before */
	assert_string_equal(again, "agent-with-a-lo");
	free(names);
}

static void others_stay(void **state)
{
	struct interferer_names *names = calloc(1, sizeof(*names));
	char comm[INTERFERER_NAME_SIZE] = "hog", ended[INTERFERER_NAME_SIZE] = "memfd:x";
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	interferer_names__replace(names, getpid(), comm);
	assert_string_equal(comm, "hog");
	interferer_names__replace(names, pid, ended);
	assert_string_equal(ended, "memfd:x");
	interferer_names__replace(names, 0, ended);
	assert_string_equal(ended, "memfd:x");
	free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(programs_in_memory_have_their_name),
	    cmocka_unit_test(others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
