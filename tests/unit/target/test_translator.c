// SPDX-License-Identifier: GPL-2.0-or-later
/* Binary translators are recognised by the names of their files, and no other program is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "target/process.h"
#include "target/translator.h"

static void files_of_translators_are_known(void **state)
{
	static const char *const files[][2] = {
	    {"/usr/libexec/valgrind/memcheck-amd64-linux", "Valgrind"},
	    {"/opt/valgrind/libexec/valgrind/none-arm64-linux", "Valgrind"},
	    {"/usr/libexec/valgrind/vgpreload_core-amd64-linux.so", "Valgrind"},
	    {"/usr/bin/valgrind.bin", "Valgrind"},
	    {"/usr/bin/qemu-x86_64", "qemu-user"},
	    {"/usr/bin/qemu-aarch64-static", "qemu-user"},
	    {"/usr/bin/qemu-x86_64 (deleted)", "qemu-user"},
	    {"/opt/dr/lib64/release/libdynamorio.so", "DynamoRIO"},
	    {"/opt/pin/intel64/bin/pinbin", "Pin"},
	    {"/usr/lib/rr/librrpreload.so", "rr"},
	    {"/usr/bin/FEXInterpreter", "FEX"},
	    {"/usr/local/bin/box64", "box64"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_string_equal(translator__of_path(files[i][0]), files[i][1]);
}

static void other_files_are_not(void **state)
{
	static const char *const files[] = {"",
					    "/",
					    "[vdso]",
					    "/usr/bin/qemu-system-x86_64",
					    "/usr/bin/qemu-img",
					    "/usr/lib/x86_64-linux-gnu/libmpi.so.40",
					    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
					    "/home/u/valgrind-amd64-linux/a.out",
					    "/home/u/pin",
					    "/home/u/rr"};
	char longest[300];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_null(translator__of_path(files[i]));
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_null(translator__of_path(longest));
	assert_null(process__translator(getpid()));
	assert_null(process__translator(-1));
}

static void processes_say_what_executes_them(void **state)
{
	struct process *process;
	char err[128];

	(void)state;
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	assert_null(process->translator);
	process__free(process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_of_translators_are_known),
	    cmocka_unit_test(other_files_are_not),
	    cmocka_unit_test(processes_say_what_executes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
