// SPDX-License-Identifier: GPL-2.0-or-later
/* What is read of files about the kernel's permissions, of made-up machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "target/machine.h"

static char root[] = "/tmp/vapro-test-machine-XXXXXX";

static void put(const char *folder, const char *name, const char *text)
{
	char command[512], path[256];
	FILE *file;

	snprintf(command, sizeof(command), "mkdir -p %s%s", root, folder);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void bare(void **state)
{
	struct machine machine;

	(void)state;
	machine__read(&machine, root);
	assert_string_equal(machine.lockdown, "");
	assert_int_equal(machine.perf_event_paranoid, MACHINE_UNKNOWN);
	assert_int_equal(machine.ptrace_scope, MACHINE_UNKNOWN);
	assert_int_equal(machine.seccomp, MACHINE_UNKNOWN);
	assert_false(machine.btf || machine.cgroup || machine__locked(&machine));
}

static void locked_down(void **state)
{
	struct machine machine;

	(void)state;
	put("/sys/kernel/security", "lockdown", "none [integrity] confidentiality\n");
	put("/proc/sys/kernel", "perf_event_paranoid", "-1\n");
	put("/proc/sys/kernel/yama", "ptrace_scope", "1\n");
	put("/proc/sys/kernel", "unprivileged_bpf_disabled", "2\n");
	put("/proc/self", "status", "Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
	put("/sys/kernel/btf", "vmlinux", "x");
	put("/sys/fs/cgroup/cpu", "cpu.shares", "1\n");
	machine__read(&machine, root);
	assert_string_equal(machine.lockdown, "integrity");
	assert_false(machine__locked(&machine));
	assert_int_equal(machine.perf_event_paranoid, -1);
	assert_int_equal(machine.ptrace_scope, 1);
	assert_int_equal(machine.unprivileged_bpf_disabled, 2);
	assert_int_equal(machine.seccomp, 2);
	assert_true(machine.btf);
	assert_int_equal(machine.cgroup, 1);
	put("/sys/kernel/security", "lockdown", "none integrity [confidentiality]\n");
	put("/sys/fs/cgroup", "cgroup.controllers", "cpu io memory\n");
	machine__read(&machine, root);
	assert_true(machine__locked(&machine));
	assert_int_equal(machine.cgroup, 2);
}

static int make(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bare), cmocka_unit_test(locked_down)};

	return cmocka_run_group_tests(tests, make, clean);
}
