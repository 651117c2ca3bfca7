// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/program_name.h"

static void test_names(void **state)
{
	static const struct {
		const char *exe, *command, *name;
	} cases[] = {
	    {"/opt/app", "app -n 4", "/opt/app"},
	    {"/opt/app", NULL, "/opt/app"},
	    {"/usr/bin/python3.11", "python3 train.py --epochs 3", "python3.11 train.py"},
	    {"/usr/bin/python3.11", "/usr/bin/python3 -u -W ignore -B /home/a/train.py", "python3.11 train.py"},
	    {"/usr/bin/python3.11", "python3 -m torch.distributed.run train.py", "python3.11 torch.distributed.run"},
	    {"/usr/bin/python3.11", "python3 -c import time", "/usr/bin/python3.11"},
	    {"/usr/bin/python3.11", "python3", "/usr/bin/python3.11"},
	    {"/usr/bin/python3.11", "python3 -", "/usr/bin/python3.11"},
	    {"/usr/bin/python3.11", "python3 -m", "/usr/bin/python3.11"},
	    {"/usr/bin/python3.11", "", "/usr/bin/python3.11"},
	    {"/usr/bin/python3.11", NULL, "/usr/bin/python3.11"},
	    {"/opt/julia/bin/julia", "julia --project=. -L init.jl step.jl 4", "julia step.jl"},
	    {"/usr/bin/perl", "perl -e print", "/usr/bin/perl"},
	};
	char buf[PROGRAM_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(program_name(cases[i].exe, cases[i].command, buf), cases[i].name);
}

static void test_long_names(void **state)
{
	char exe[600], command[1500], buf[PROGRAM_NAME_MAX];

	(void)state;
	memset(exe, 'x', sizeof(exe));
	exe[0] = '/';
	memcpy(exe + sizeof(exe) - 5, "/app", 5);
	program_name(exe, NULL, buf);
	assert_int_equal(strlen(buf), PROGRAM_NAME_MAX - 1);
	assert_string_equal(buf + strlen(buf) - 4, "/app");
	memset(command, 'y', sizeof(command));
	memcpy(command, "python3 ", 8);
	command[sizeof(command) - 1] = '\0';
	program_name("/usr/bin/python3", command, buf);
	assert_int_equal(strlen(buf), PROGRAM_NAME_MAX - 1);
	assert_memory_equal(buf, "python3 yyy", 11);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
