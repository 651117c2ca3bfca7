// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernels on the CPUs that there are: what is run, and that nothing is left of it. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/generator.h"

#define FREE_BYTES (1ULL << 30)

static volatile sig_atomic_t stop;

static void stop_it(int number)
{
	stop = number;
}

static void read_machine(struct machine_cpus *machine)
{
	char err[256];

	if (machine_cpus__read(machine, "/sys", "/proc/cpuinfo", FREE_BYTES, err, sizeof(err)))
		fail_msg("%s", err);
}

static void assert_nothing_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static size_t allowed(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (size_t)CPU_COUNT(&set);
}

/* All CPUs that are allowed, each kernel, right results, bundles that end in one bin. */
static void test_run(void **state)
{
	struct machine_cpus machine;
	struct node_run *run;
	char err[256] = "";

	(void)state;
	stop = 0;
	read_machine(&machine);
	assert_int_equal(machine.count, allowed());
	if (generator__run(&machine, 1, &stop, &run, err, sizeof(err)))
		fail_msg("%s", err);
	assert_true(node_run__count(run) > 0);
	assert_int_equal(node_run__unpinned(run), 0);
	for (uint32_t i = 0; i < machine.count; i++) {
		for (int kernel = 0; kernel < NODE_KERNELS; kernel++)
			assert_false(node_run__wrong(run, i, (enum node_kernel)kernel));
	}
	assert_nothing_left();
	node_run__free(run);
	machine_cpus__clear(&machine);
}

/* One CPU of them: no kernel that needs two, and no other CPU. */
static void test_one_cpu(void **state)
{
	struct machine_cpus machine;
	struct node_run *run;
	cpu_set_t before, one;
	char err[256] = "";

	(void)state;
	stop = 0;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++) {
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	read_machine(&machine);
	assert_int_equal(machine.count, 1);
	assert_true(CPU_ISSET(machine.cpus[0].cpu, &one));
	if (generator__run(&machine, 1, &stop, &run, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_true(node_run__count(run) > 0);
	assert_false(node_run__mean_ns(run, NODE_FALSE_SHARING) > 0);
	assert_nothing_left();
	node_run__free(run);
	machine_cpus__clear(&machine);
}

/* A signal ends it long before its time. */
static void test_stopped(void **state)
{
	struct sigaction action = {.sa_handler = stop_it}, before;
	struct machine_cpus machine;
	struct node_run *run;
	char err[256] = "";

	(void)state;
	stop = 0;
	read_machine(&machine);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	alarm(1);
	assert_int_equal(generator__run(&machine, GENERATOR_MOST_S, &stop, &run, err, sizeof(err)), -EINTR);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_nothing_left();
	node_run__free(run);
	machine_cpus__clear(&machine);
}

/* A CPU that there is not, as one that went offline: its instance runs elsewhere, and that is known. */
static void test_unpinned(void **state)
{
	struct machine_cpus machine;
	struct node_run *run;
	char err[256] = "";

	(void)state;
	stop = 0;
	read_machine(&machine);
	machine.cpus[machine.count - 1].cpu = 4000;
	if (generator__run(&machine, 1, &stop, &run, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(node_run__unpinned(run), 1);
	assert_nothing_left();
	node_run__free(run);
	machine_cpus__clear(&machine);
}

/* Memory is bounded by what is free. */
static void test_memory(void **state)
{
	struct machine_cpus machine;
	char err[256] = "";

	(void)state;
	assert_int_equal(machine_cpus__read(&machine, "/sys", "/proc/cpuinfo", 1 << 20, err, sizeof(err)), -ENOMEM);
	assert_non_null(strstr(err, "1 MiB"));
	machine_cpus__clear(&machine);
	read_machine(&machine);
	assert_true(machine.count * kernels__needs(machine.array_bytes) <= FREE_BYTES / 4);
	machine_cpus__clear(&machine);
	assert_true(machine_cpus__free_bytes() > 0);
}

static void test_list(void **state)
{
	struct machine_cpu cpus[] = {{.cpu = 0}, {.cpu = 4}, {.cpu = 1}, {.cpu = 2}, {.cpu = 9}};
	struct machine_cpus machine = {.cpus = cpus, .count = 5};
	const uint32_t all[] = {0, 1, 2, 3, 4}, some[] = {4, 3};
	char text[64];

	(void)state;
	assert_string_equal(machine_cpus__list(&machine, all, 5, text, sizeof(text)), "0-2,4,9");
	assert_string_equal(machine_cpus__list(&machine, some, 2, text, sizeof(text)), "2,9");
	assert_string_equal(machine_cpus__list(&machine, NULL, 0, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_run),	     cmocka_unit_test(test_one_cpu), cmocka_unit_test(test_stopped),
	    cmocka_unit_test(test_unpinned), cmocka_unit_test(test_memory),  cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
