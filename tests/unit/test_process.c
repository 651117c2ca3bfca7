// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes as /proc shows them: this one, its children, and none. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "target/kernel_range.h"
#include "target/process.h"
#include "target/selection.h"
#include "probe/elf/static_mpi.h"
#include "probe/elf/reader.h"

/* This symbol makes the executable one with MPI linked in. */
int MPI_Init(int *argc, char ***argv);

int MPI_Init(int *argc, char ***argv)
{
	return argc && argv;
}

static int parent_end; /* pipe end of the latest child: closing it ends the child */

/* Starts cat under the given environment; cat has echoed a byte, so that
 * its exec is over (/proc/PID/exe changes before the environment is there). */
static pid_t start(char *const *environment)
{
	char *const arguments[] = {"cat", NULL};
	int ends[2];
	char byte = 'x';
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 0);
		dup2(ends[1], 1);
		execve("/bin/cat", arguments, environment);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(write(ends[0], &byte, 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	parent_end = ends[0];
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(parent_end);
}

static struct process *read_with(char *const *environment)
{
	pid_t pid = start(environment);
	struct process *process;
	char err[128];

	assert_int_equal(process__read(pid, &process, err, sizeof(err)), 0);
	stop(pid);
	return process;
}

static void this_process_is_read(void **state)
{
	struct process *process;
	const struct process_mapping *mapping;
	char err[128];

	(void)state;
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	assert_int_equal(process->parent, getppid());
	assert_true(process->start_time > 0);
	assert_non_null(strstr(process->exe, "test_process"));
	mapping = process__mapping_at(process, (uint64_t)(uintptr_t)this_process_is_read);
	assert_non_null(mapping);
	assert_true(mapping->executable);
	assert_string_equal(mapping->path, process->exe);
	assert_null(process__mapping_at(process, 16));
	assert_non_null(process__mapping_named(process, "libc.so*"));
	assert_int_equal(process__mpi(process, NULL), PROCESS_NO_MPI);
	assert_true(process__descends(getpid(), getppid()));
	assert_false(process__descends(getppid(), getpid()));
	process__free(process);
}

static void launchers_are_understood(void **state)
{
	char *open_mpi[] = {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8", "PMIX_NAMESPACE=123", NULL};
	char *slurm[] = {"SLURM_JOB_ID=77", "SLURM_STEP_ID=2", "SLURM_PROCID=5", "SLURM_NTASKS=64", NULL};
	char *hydra[] = {"PMI_RANK=1", "PMI_SIZE=2", NULL};
	char *nonsense[] = {"OMPI_COMM_WORLD_RANK=-4", "PMI_RANK=1e9", "SLURM_PROCID=99999999999999",
			    "PMIX_NAMESPACE=a b\"c\n", NULL};
	struct process *process;

	(void)state;
	process = read_with(open_mpi);
	assert_int_equal(process->rank, 3);
	assert_int_equal(process->world_size, 8);
	assert_string_equal(process->job, "pmix:123");
	process__free(process);
	process = read_with(slurm);
	assert_int_equal(process->rank, 5);
	assert_string_equal(process->job, "slurm:77.2");
	process__free(process);
	process = read_with(hydra);
	assert_int_equal(process->rank, 1);
	assert_string_equal(process->job_kind, "mpi");
	process__free(process);
	process = read_with(nonsense);
	assert_int_equal(process->rank, -1);
	assert_string_equal(process->job, "pmix:a_b_c_");
	process__free(process);
}

static void opting_out_is_honoured(void **state)
{
	char *off[] = {"VAPRO=off", NULL}, *on[] = {"VAPRO=on", "XVAPRO=off", NULL};
	struct process *process;

	(void)state;
	process = read_with(off);
	assert_true(process->opted_out);
	process__free(process);
	process = read_with(on);
	assert_false(process->opted_out);
	process__free(process);
}

static void what_is_gone_is_said(void **state)
{
	char *none[] = {NULL};
	pid_t pid = start(none);
	struct process *process;
	char err[128];

	(void)state;
	stop(pid);
	assert_int_equal(process__read(pid, &process, err, sizeof(err)), -ESRCH);
	assert_null(process);
	assert_non_null(strstr(err, "does not exist"));
}

static void selections_match(void **state)
{
	const char *globs[] = {"test_pro*"}, *others[] = {"lmp"};
	pid_t pids[] = {getpid()};
	struct selection all = {0}, by_glob = {.globs = globs, .glob_count = 1},
			 by_other = {.globs = others, .glob_count = 1};
	struct selection by_pid = {.pids = pids, .pid_count = 1}, by_parent = {.ancestor = getppid()};
	struct process *process;
	char err[128];

	(void)state;
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	assert_true(selection__takes(&all, process));
	assert_true(selection__takes(&by_glob, process));
	assert_false(selection__takes(&by_other, process));
	assert_true(selection__takes(&by_pid, process));
	assert_true(selection__takes(&by_parent, process));
	assert_true(selection__names(&by_pid, getpid()));
	assert_false(selection__names(&by_glob, getpid()));
	process__free(process);
}

static void removed_executables_are_selected(void **state)
{
	const char *globs[] = {"a.out"}, *paths[] = {"/x/a.out"};
	struct selection by_glob = {.globs = globs, .glob_count = 1}, by_path = {.globs = paths, .glob_count = 1};
	struct process process = {.pid = 1, .exe = "/x/a.out (deleted)"};

	(void)state;
	assert_true(selection__takes(&by_glob, &process));
	assert_true(selection__takes(&by_path, &process));
	snprintf(process.exe, sizeof(process.exe), "/x/b.out (deleted)");
	assert_false(selection__takes(&by_glob, &process));
}

static void libraries_are_known_by_name(void **state)
{
	(void)state;
	assert_int_equal(process__mpi_of_path("/usr/lib/libmpi.so.40.30.4"), PROCESS_OPEN_MPI);
	assert_int_equal(process__mpi_of_path("/usr/lib/libmpi.so.40 (deleted)"), PROCESS_OPEN_MPI);
	assert_int_equal(process__mpi_of_path("/opt/intel/libmpi.so.12"), PROCESS_MPICH);
	assert_int_equal(process__mpi_of_path("/usr/lib/libmpich.so.12"), PROCESS_MPICH);
	assert_int_equal(process__mpi_of_path("/usr/lib/libmpi_mpifh.so.40"), PROCESS_NO_MPI);
	assert_int_equal(process__mpi_of_path("libmpi.so.40"), PROCESS_NO_MPI);
	assert_int_equal(process__mpi_of_path("//anon"), PROCESS_NO_MPI);
}

static void linked_in_mpi_is_found(void **state)
{
	struct static_mpi *known = static_mpi__new();
	const struct process_mapping *library;
	char *none[] = {NULL};
	struct process *process;
	char err[128];
	pid_t pid = start(none);

	(void)state;
	assert_non_null(known);
	for (int i = 0; i < 2; i++) { /* read, then cached */
		assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
		assert_int_equal(process__mpi(process, &library), PROCESS_NO_MPI);
		assert_null(library);
		static_mpi__look(known, process);
		assert_int_equal(process__mpi(process, &library), PROCESS_MPICH);
		assert_ptr_equal(library, process__executable(process));
		process__free(process);
	}
	assert_int_equal(process__read(pid, &process, err, sizeof(err)), 0);
	static_mpi__look(known, process);
	assert_int_equal(process__mpi(process, &library), PROCESS_NO_MPI);
	process__free(process);
	stop(pid);
	static_mpi__free(known);
}

static void ranks_are_distinguished(void **state)
{
	char *rank[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=7", NULL}, *other[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=8", NULL},
	     *none[] = {NULL};
	struct process *a = read_with(rank), *b = read_with(rank), *c = read_with(other), *d = read_with(none),
		       *e = read_with(none);

	(void)state;
	assert_true(process__same_rank(a, b));
	b->uid = a->uid + 1; /* another user's process belongs to another job */
	assert_false(process__same_rank(a, b));
	assert_false(process__same_rank(a, c));
	assert_false(process__same_rank(d, e));	 /* no rank at all is not the same rank */
	assert_false(process__child_of_rank(a)); /* this process, its parent, has no rank */
	process__free(a);
	process__free(b);
	process__free(c);
	process__free(d);
	process__free(e);
}

static void what_a_process_sleeps_in_is_reported(void **state)
{
	char *const environment[] = {NULL};
	struct process_activity activity = {0};
	pid_t pid = start(environment);

	(void)state;
	/* cat waits in a read from this process */
	for (int i = 0; i < 5000 && (strcmp(activity.call, "read") || activity.state != 'S'); i++) {
		assert_int_equal(process__activity(pid, &activity), 0);
		usleep(1000);
	}
	assert_string_equal(activity.call, "read");
	assert_int_equal(activity.state, 'S');
	assert_int_equal(strncmp(activity.file, "socket:[", 8), 0);
	assert_true(activity.cpu_s >= 0 && activity.cpu_s < 60);
	stop(pid);
	assert_int_equal(process__activity(pid, &activity), -ESRCH);
	assert_int_equal(process__activity(getpid(), &activity), 0);
	assert_int_equal(activity.state, 'R');
	assert_string_equal(activity.file, "");
}

static void ranges_hold_their_releases(void **state)
{
	const struct kernel_range range = {.first_major = 6, .first_minor = 11, .last_major = 6, .last_minor = 13};

	(void)state;
	assert_false(kernel_range__holds(&range, "6.10.9-amd64"));
	assert_true(kernel_range__holds(&range, "6.11.0"));
	assert_true(kernel_range__holds(&range, "6.13.12-2-foo"));
	assert_false(kernel_range__holds(&range, "6.14"));
	assert_false(kernel_range__holds(&range, "7.12"));
	assert_false(kernel_range__holds(&range, "nonsense"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(this_process_is_read),
	    cmocka_unit_test(launchers_are_understood),
	    cmocka_unit_test(opting_out_is_honoured),
	    cmocka_unit_test(what_is_gone_is_said),
	    cmocka_unit_test(removed_executables_are_selected),
	    cmocka_unit_test(libraries_are_known_by_name),
	    cmocka_unit_test(linked_in_mpi_is_found),
	    cmocka_unit_test(ranks_are_distinguished),
	    cmocka_unit_test(selections_match),
	    cmocka_unit_test(what_a_process_sleeps_in_is_reported),
	    cmocka_unit_test(ranges_hold_their_releases),
	};

	reader__main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
