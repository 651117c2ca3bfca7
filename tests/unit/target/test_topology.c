// SPDX-License-Identifier: GPL-2.0-or-later
/* CPUs of other nodes than this machine, and the place of this process. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
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

#include "target/topology.h"
#include "target/quota.h"

static char root[64];

static void write_file(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/vapro-test-place-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void test_two_sockets(void **state)
{
	struct topology *topology;
	struct vapro_place place;
	char name[96], text[16];

	(void)state;
	write_file("devices/system/cpu/possible", "0-7\n");
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/topology/physical_package_id", i);
		snprintf(text, sizeof(text), "%d\n", i / 4);
		write_file(name, text);
	}
	write_file("devices/system/node/node0/cpulist", "0-1,4\n");
	write_file("devices/system/node/node3/cpulist", "2-3,5-7\n");
	write_file("bus/event_source/devices/cpu_core/cpus", "0-3\n");
	write_file("bus/event_source/devices/cpu_atom/cpus", "4-7\n");
	topology = topology__new(root, "/nonexistent");
	assert_non_null(topology);
	topology__cpu(topology, 4, &place);
	assert_int_equal(place.cpu, 4);
	assert_int_equal(place.socket, 1);
	assert_int_equal(place.numa, 0);
	assert_string_equal(place.core_type, "cpu_atom");
	topology__cpu(topology, 3, &place);
	assert_int_equal(place.socket, 0);
	assert_int_equal(place.numa, 3);
	assert_string_equal(place.core_type, "cpu_core");
	topology__cpu(topology, 8, &place);
	assert_int_equal(place.socket, -1);
	topology__free(topology);
	/* Capacities are types only where they differ. */
	write_file("devices/system/cpu/possible", "0-1\n");
	write_file("bus/event_source/devices/cpu_core/cpus", "\n");
	write_file("bus/event_source/devices/cpu_atom/cpus", "\n");
	write_file("devices/system/cpu/cpu0/cpu_capacity", "1024\n");
	write_file("devices/system/cpu/cpu1/cpu_capacity", "1024\n");
	topology = topology__new(root, "/nonexistent");
	topology__cpu(topology, 0, &place);
	assert_null(place.core_type);
	topology__free(topology);
	write_file("devices/system/cpu/cpu1/cpu_capacity", "446\n");
	topology = topology__new(root, "/nonexistent");
	topology__cpu(topology, 0, &place);
	assert_string_equal(place.core_type, "capacity-1024");
	topology__cpu(topology, 1, &place);
	assert_string_equal(place.core_type, "capacity-446");
	topology__free(topology);
}

/* Models by name, or by numbers, for each CPU; a line longer than any buffer and one that only begins alike are none.
 */
static void test_models(void **state)
{
	struct topology *topology;
	struct vapro_place place;
	char path[96], name[96], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	for (int i = 0; i < 2; i++) {
		fprintf(out, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel\t\t: 79\nmodel name\t: ", i);
		fprintf(out, "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz \nflags\t\t:");
		for (int k = 0; k < 5000; k++)
			fprintf(out, " model name: %d", k);
		fprintf(out, "\n\n");
	}
	fprintf(out, "processor\t: 99\nmodel name\t: of no CPU here\n");
	fclose(out);
	snprintf(path, sizeof(path), "%s/cpuinfo", root);
	write_file("cpuinfo", text);
	free(text);
	write_file("devices/system/cpu/possible", "0-2\n");
	topology = topology__new(root, path);
	for (int32_t cpu = 0; cpu < 2; cpu++) {
		topology__cpu(topology, cpu, &place);
		assert_string_equal(place.cpu_model, "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz");
	}
	topology__cpu(topology, 2, &place); /* offline */
	assert_null(place.cpu_model);
	topology__cpu(topology, 3, &place);
	assert_null(place.cpu_model);
	topology__free(topology);

	write_file("cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
			      "CPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\nprocessor\t: 2\n"
			      "CPU implementer\t: 0x41\nCPU part\t: 0xd05\n");
	topology = topology__new(root, path);
	topology__cpu(topology, 0, &place);
	assert_string_equal(place.cpu_model, "arm 0x41 0xd0c");
	topology__cpu(topology, 2, &place);
	assert_string_equal(place.cpu_model, "arm 0x41 0xd05");
	topology__free(topology);

	/* more models than there is room for: the others are unknown, none is wrong */
	write_file("devices/system/cpu/possible", "0-19\n");
	text = NULL;
	out = open_memstream(&text, &size);
	for (int i = 0; i < 20; i++)
		fprintf(out, "processor : %d\nmodel name : m%d\n", i, i);
	fclose(out);
	write_file("cpuinfo", text);
	free(text);
	topology = topology__new(root, path);
	for (int32_t cpu = 0; cpu < 20; cpu++) {
		topology__cpu(topology, cpu, &place);
		snprintf(name, sizeof(name), "m%d", cpu);
		if (cpu < 8)
			assert_string_equal(place.cpu_model, name);
		else
			assert_null(place.cpu_model);
	}
	topology__free(topology);
}

static void test_nothing_reported(void **state)
{
	struct topology *topology = topology__new("/nonexistent", "/nonexistent");
	struct vapro_place place;

	(void)state;
	assert_non_null(topology);
	topology__cpu(topology, 0, &place);
	assert_true(place.cpu == -1 && place.socket == -1 && place.numa == -1 && !place.core_type && !place.cpu_model);
	topology__free(topology);
}

static void test_self(void **state)
{
	struct topology *topology = topology__new("/sys", "/proc/cpuinfo");
	struct vapro_place place;
	cpu_set_t before, one;
	int cpu;

	(void)state;
	assert_false(topology__place(topology, 0, 0, &place));
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &before); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_true(topology__place(topology, getpid(), getpid(), &place));
	assert_int_equal(place.cpu, cpu);
	assert_true(!place.cgroup || place.cgroup[0] == '/');
	sched_setaffinity(0, sizeof(before), &before);
	assert_true(topology__place(topology, getpid(), getpid(), &place));
	if (CPU_COUNT(&before) > 1)
		assert_int_equal(place.cpu, -1);
	topology__free(topology);
}

static bool find(struct quota *quota)
{
	char mounts[128], membership[128];
	struct quota_roots roots;

	snprintf(mounts, sizeof(mounts), "%s/mounts", root);
	snprintf(membership, sizeof(membership), "%s/cgroup", root);
	quota__read_roots(mounts, &roots);
	return quota__find(&roots, membership, quota);
}

static void test_quota(void **state)
{
	struct quota quota;
	char text[512];

	(void)state;
	assert_false(find(&quota)); /* no cgroup files */
	snprintf(text, sizeof(text), "tmpfs %s tmpfs rw 0 0\ncgroup2 %s/v2 cgroup2 rw 0 0\n", root, root);
	write_file("mounts", text);
	write_file("cgroup", "0::/slurm/job_7/step_0\n");
	write_file("v2/slurm/job_7/step_0/cpu.max", "max 100000\n");
	assert_false(find(&quota));
	write_file("v2/slurm/job_7/cpu.max", "150000 100000\n");
	write_file("v2/slurm/cpu.max", "400000 100000\n");
	assert_true(find(&quota));
	assert_string_equal(quota.cgroup, "/slurm/job_7");
	assert_string_equal(quota.text, "cpu.max 150000 100000");
	/* the quota that was used up, though it is wider */
	write_file("v2/slurm/job_7/cpu.stat", "usage_usec 1\nnr_periods 5\nnr_throttled 0\nthrottled_usec 0\n");
	write_file("v2/slurm/cpu.stat", "usage_usec 1\nnr_periods 5\nnr_throttled 2\nthrottled_usec 17\n");
	assert_true(find(&quota));
	assert_string_equal(quota.cgroup, "/slurm");
}

static void test_quota_of_version_1(void **state)
{
	struct quota quota;
	char text[512];

	(void)state;
	snprintf(text, sizeof(text),
		 "cgroup %s/cpuset cgroup rw,cpuset 0 0\ncgroup %s/cpu cgroup rw,cpu,cpuacct 0 0\n"
		 "cgroup2 %s/unified cgroup2 rw 0 0\n",
		 root, root, root);
	write_file("mounts", text);
	write_file("cgroup", "3:cpuset:/\n2:cpu,cpuacct:/batch\n1:name=systemd:/x\n0::/x\n");
	write_file("cpu/batch/cpu.cfs_quota_us", "-1\n");
	write_file("cpu/batch/cpu.cfs_period_us", "100000\n");
	assert_false(find(&quota));
	write_file("cpu/batch/cpu.cfs_quota_us", "25000\n");
	assert_true(find(&quota));
	assert_string_equal(quota.cgroup, "/batch");
	assert_string_equal(quota.text, "cpu.cfs_quota_us 25000 of cpu.cfs_period_us 100000");
}

static bool is_frozen(void)
{
	char mounts[128], membership[128];
	struct quota_roots roots;

	snprintf(mounts, sizeof(mounts), "%s/mounts", root);
	snprintf(membership, sizeof(membership), "%s/cgroup", root);
	quota__read_roots(mounts, &roots);
	return quota__frozen(&roots, membership);
}

static void test_frozen(void **state)
{
	char text[512];

	(void)state;
	assert_false(is_frozen()); /* no cgroup files */
	snprintf(text, sizeof(text), "cgroup %s/freezer cgroup rw,freezer 0 0\ncgroup2 %s/v2 cgroup2 rw 0 0\n", root,
		 root);
	write_file("mounts", text);
	write_file("cgroup", "4:freezer:/pod\n0::/slurm/job_7\n");
	assert_false(is_frozen());
	write_file("freezer/pod/freezer.state", "FREEZING\n");
	write_file("v2/slurm/job_7/cgroup.events", "populated 1\nfrozen 0\n");
	assert_false(is_frozen());
	write_file("v2/slurm/job_7/cgroup.events", "populated 1\nfrozen 1\n");
	assert_true(is_frozen());
	write_file("v2/slurm/job_7/cgroup.events", "populated 1\nfrozen 0\n");
	write_file("freezer/pod/freezer.state", "FROZEN\n");
	assert_true(is_frozen());
}

/* A process of its own is stopped, and goes on. */
static void test_stopped(void **state)
{
	struct topology *topology = topology__new("/sys", "/proc/cpuinfo");
	pid_t child = fork();

	(void)state;
	assert_non_null(topology);
	if (!child) {
		for (;;)
			pause();
	}
	assert_int_equal(topology__stopped_by(topology, child), VAPRO_STOPPED_UNKNOWN);
	kill(child, SIGSTOP);
	waitpid(child, NULL, WUNTRACED);
	assert_int_equal(topology__stopped_by(topology, child), VAPRO_STOPPED_SIGNAL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	topology__free(topology);
}

static uint64_t find_memory(void)
{
	char mounts[128], membership[128];
	struct quota_roots roots;

	snprintf(mounts, sizeof(mounts), "%s/mounts", root);
	snprintf(membership, sizeof(membership), "%s/cgroup", root);
	quota__read_roots(mounts, &roots);
	return quota__memory(&roots, membership);
}

/* The least limit on the way up holds, that of a container's root, too. */
static void test_memory(void **state)
{
	char text[512];

	(void)state;
	assert_true(find_memory() == UINT64_MAX); /* no cgroup files */
	snprintf(text, sizeof(text), "cgroup2 %s/v2 cgroup2 rw 0 0\n", root);
	write_file("mounts", text);
	write_file("cgroup", "0::/slurm/job_7\n");
	write_file("v2/slurm/job_7/memory.max", "max\n");
	assert_true(find_memory() == UINT64_MAX);
	write_file("v2/memory.max", "12884901888\n");
	assert_true(find_memory() == 12ULL << 30);
	write_file("v2/slurm/memory.max", "4294967296\n");
	assert_true(find_memory() == 4ULL << 30);
	write_file("v2/slurm/job_7/memory.max", "8589934592\n");
	assert_true(find_memory() == 4ULL << 30);
	/* beyond memory.high the kernel takes memory back, and holds the processes up */
	write_file("v2/slurm/job_7/memory.high", "2147483648\n");
	assert_true(find_memory() == 2ULL << 30);
	write_file("cgroup", "0::/\n");
	assert_true(find_memory() == 12ULL << 30);
}

/* In a container the path of version 1 is the host's; the mounted root is the container's own group. */
static void test_memory_of_version_1(void **state)
{
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "cgroup %s/cpu cgroup rw,cpu 0 0\ncgroup %s/memory cgroup rw,memory 0 0\n", root,
		 root);
	write_file("mounts", text);
	write_file("cgroup", "5:memory:/docker/abc\n2:cpu:/other\n");
	write_file("cpu/memory.limit_in_bytes", "1\n");
	assert_true(find_memory() == UINT64_MAX);
	write_file("memory/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
	assert_true(find_memory() == 9223372036854771712ULL);
	write_file("memory/memory.limit_in_bytes", "3221225472\n");
	assert_true(find_memory() == 3ULL << 30);
	write_file("memory/docker/abc/memory.limit_in_bytes", "1073741824\n");
	assert_true(find_memory() == 1ULL << 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_two_sockets, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_models, setup, teardown),
	    cmocka_unit_test(test_nothing_reported),
	    cmocka_unit_test(test_self),
	    cmocka_unit_test_setup_teardown(test_quota, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_quota_of_version_1, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_frozen, setup, teardown),
	    cmocka_unit_test(test_stopped),
	    cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_memory_of_version_1, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
