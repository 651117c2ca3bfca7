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
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "target/kernel_range.h"
#include "target/process_private.h"
#include "target/selection.h"
#include "probe/elf/mpi_files.h"
#include "probe/elf/reader.h"

/* These symbols make the executable one with MPI linked in. */
int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv);

int MPI_Init(int *argc, char ***argv)
{
	return argc && argv;
}

int PMPI_Init(int *argc, char ***argv)
{
	return MPI_Init(argc, argv);
}

static int parent_end; /* pipe end of the latest child: closing it ends the child */

/* Starts cat, or a copy of it, under the given environment; cat has echoed a byte, so that
 * its exec is over (/proc/PID/exe changes before the environment is there). */
static pid_t start_copy(const char *path, char *const *environment)
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
		execve(path, arguments, environment);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(write(ends[0], &byte, 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	parent_end = ends[0];
	return pid;
}

static pid_t start(char *const *environment)
{
	return start_copy("/bin/cat", environment);
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
	uint64_t before_ns = mono_now();
	char err[128];

	(void)state;
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	assert_true(before_ns <= process->read_ns && process->read_ns <= mono_now());
	assert_int_equal(process->parent, getppid());
	assert_true(process->start_time > 0);
	assert_non_null(strstr(process->exe, "test_process"));
	mapping = process__mapping_at(process, (uint64_t)(uintptr_t)this_process_is_read);
	assert_non_null(mapping);
	assert_string_equal(mapping->path, process->exe);
	assert_null(process__mapping_at(process, 16));
	assert_null(process__mapping_at(process, (uint64_t)(uintptr_t)&parent_end)); /* data */
	assert_non_null(process__mapping_named(process, "libc.so*"));
	assert_int_equal(process__mpi(process, NULL), PROCESS_NO_MPI);
	assert_true(process__descends(getpid(), getppid()));
	assert_false(process__descends(getppid(), getpid()));
	process__free(process);
}

static void assert_names(char *const *environment, const char *job, const char *name, const char *account,
			 const char *partition, uint32_t nodes, const char *user)
{
	struct process *process = read_with(environment);
	const struct job_names *names = &process->names;

	assert_string_equal(process->job, job);
	assert_string_equal(names->name, name);
	assert_string_equal(names->account, account);
	assert_string_equal(names->partition, partition);
	assert_string_equal(names->user, user);
	assert_int_equal(names->nodes, nodes);
	assert_int_equal(names->source, *name || *account ? JOB_NAMES_ENVIRONMENT : JOB_NAMES_NONE);
	process__free(process);
}

/* The numbers of jobs are large: this machine's prolog may have written files of others. */
static void jobs_have_names(void **state)
{
	char *slurm[] = {
	    "SLURM_JOB_ID=99999977",	"SLURM_JOB_NAME=my heat", "SLURM_JOB_ACCOUNT=phys", "SLURM_PROCID=0",
	    "SLURM_JOB_PARTITION=main", "SLURM_JOB_NUM_NODES=4",  "SLURM_JOB_USER=ann",	    NULL};
	char *pbs[] = {"PBS_JOBID=99999978.server",
		       "PBS_JOBNAME=heat",
		       "PBS_ACCOUNT=phys",
		       "PBS_QUEUE=workq",
		       "PBS_NUM_NODES=2",
		       "PBS_O_LOGNAME=ann",
		       NULL};
	char *lsf[] = {"LSB_JOBID=99999979", "LSB_JOBNAME=heat", "LSB_PROJECT_NAME=phys",
		       "LSB_QUEUE=normal",   "LSFUSER=ann",	 NULL};
	char *sge[] = {"JOB_ID=99999980",
		       "SGE_TASK_ID=undefined",
		       "JOB_NAME=heat",
		       "QUEUE=all.q",
		       "NHOSTS=3",
		       "SGE_O_LOGNAME=ann",
		       NULL};
	char *flux[] = {"FLUX_JOB_ID=f2N3eXY", "FLUX_JOB_NAME=heat", "FLUX_JOB_NNODES=2", "FLUX_TASK_RANK=0", NULL};
	char *none[] = {"SLURM_JOB_ID=99999981", "SLURM_PROCID=0", NULL};
	char *no_job[] = {"SLURM_JOB_NAME=heat", NULL};
	struct process *process;

	(void)state;
	assert_names(slurm, "slurm:99999977", "my heat", "phys", "main", 4, "ann");
	assert_names(pbs, "pbs:99999978.server", "heat", "phys", "workq", 2, "ann");
	assert_names(lsf, "lsf:99999979", "heat", "phys", "normal", 0, "ann");
	assert_names(sge, "sge:99999980", "heat", "", "all.q", 3, "ann");
	assert_names(flux, "flux:f2N3eXY", "heat", "", "", 2, "");
	assert_names(none, "slurm:99999981", "", "", "", 0, "");
	process = read_with(no_job);
	assert_string_equal(process->job_kind, "none");
	assert_int_equal(process->names.source, JOB_NAMES_NONE);
	process__free(process);
}

/* A user who sets the variables chooses what is shown, but neither how long it is nor what a terminal does with it. */
static void hostile_names_are_harmless(void **state)
{
	char *variables[] = {"SLURM_JOB_ID=99999982/../../etc/passwd",
			     NULL,
			     "SLURM_JOB_ACCOUNT=\033]0;x\007\n\t\xff",
			     "SLURM_JOB_NUM_NODES=-1",
			     "SLURM_PROCID=0",
			     NULL};
	char *large = malloc(100000);
	struct process *process;

	(void)state;
	memset(large, 'x', 100000);
	memcpy(large, "SLURM_JOB_NAME=", 15);
	large[99999] = '\0';
	variables[1] = large;
	process = read_with(variables);
	assert_string_equal(process->job, "slurm:99999982_.._.._etc_passwd");
	assert_int_equal(strlen(process->names.name), JOB_NAME_SIZE - 1);
	assert_string_equal(process->names.account, "?]0;x????");
	assert_int_equal(process->names.nodes, 0);
	process__free(process);
	free(large);
}

static void launchers_are_understood(void **state)
{
	char *open_mpi[] = {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8", "PMIX_NAMESPACE=123", NULL};
	char *slurm[] = {"SLURM_JOB_ID=77", "SLURM_STEP_ID=2", "SLURM_PROCID=5", "SLURM_NTASKS=64", NULL};
	char *hydra[] = {"PMI_RANK=1", "PMI_SIZE=2", NULL};
	char *foreign_size[] = {"PMI_RANK=4", "SLURM_NTASKS=4", NULL}, *no_size[] = {"PMI_RANK=0", "PMI_SIZE=0", NULL};
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
	process = read_with(foreign_size);
	assert_int_equal(process->rank, 4);
	assert_int_equal(process->world_size, 0);
	process__free(process);
	process = read_with(no_size);
	assert_int_equal(process->rank, 0);
	assert_int_equal(process->world_size, 0);
	process__free(process);
	process = read_with(nonsense);
	assert_int_equal(process->rank, -1);
	assert_string_equal(process->job, "pmix:a_b_c_");
	process__free(process);
}

#define CODE "7f00-7fff r-xp 00a000 fe:1f 42 "

static void assert_no_mapping(const char *text)
{
	char line[256];
	struct process_mapping mapping;

	snprintf(line, sizeof(line), "%s", text);
	assert_false(process__parse_mapping(line, &mapping));
}

static void assert_path(const char *text, const char *path)
{
	struct process_mapping mapping;
	char line[16384];

	snprintf(line, sizeof(line), CODE "%s", text);
	assert_true(process__parse_mapping(line, &mapping));
	assert_int_equal(mapping.start, 0x7f00);
	assert_int_equal(mapping.end, 0x7fff);
	assert_int_equal(mapping.offset, 0xa000);
	assert_int_equal(mapping.device, makedev(0xfe, 0x1f));
	assert_int_equal(mapping.inode, 42);
	assert_string_equal(mapping.path, path);
}

static void lines_of_mappings_are_read(void **state)
{
	static const char *const paths[] = {
	    "", "[vdso]", "/a b  c ", "/x (deleted)", "/line\\012break", "/\t\r\xff", "/7f00-7fff r-xp 0 0:0 1 /y"};
	char whole[] = CODE "/x", longest[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_path(paths[i], paths[i]);
	assert_path("                /usr/lib/libmpi.so.40", "/usr/lib/libmpi.so.40");
	memset(longest, '/', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_path(longest, longest);
	for (size_t length = 0; length < strlen(CODE); length++) { /* cut anywhere before the path */
		whole[length] = '\0';
		assert_no_mapping(whole);
		whole[length] = CODE[length];
	}
	assert_no_mapping("7f00-7fff rw-p 00000000 fe:1f 42 /data x-x r-xp ");
	assert_no_mapping("7f00-7fff r-xp  00000000 fe:1f 42 /x");
	assert_no_mapping("7f00- 7fff r-xp 00000000 fe:1f 42 /x");
	assert_no_mapping(" 7f00-7fff r-xp 00000000 fe:1f 42 /x");
	assert_no_mapping("7f00-7fff r-xp -1 fe:1f 42 /x");
	assert_no_mapping("7f00-7fff r-xp 00000000 fe1f 42 /x");
	assert_no_mapping("7f00-7fff r-xp 00000000 fe:1f x42 /x");
	assert_no_mapping("7f0g-7fff r-xp 00000000 fe:1f 42 /x");
}

/* Reads a rank whose parent, which is no rank, has the given words in its command line. */
static struct process *read_rank_below(const char *first, const char *second, const char *third, const char *fourth,
				       const char *variables)
{
	char script[512], line[32] = "", byte = 'x', err[128];
	const char *const arguments[] = {"sh", "-c", script, "daemon", first, second, third, fourth, NULL};
	char *const none[] = {NULL};
	struct process *process;
	int ends[2];
	pid_t pid;

	snprintf(script, sizeof(script), "%s sh -c 'echo $$; exec cat'; :", variables);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 0);
		dup2(ends[1], 1);
		execve("/bin/sh", (char *const *)arguments, none);
		_exit(1);
	}
	close(ends[1]);
	for (size_t i = 0; i + 1 < sizeof(line) && (!i || line[i - 1] != '\n'); i++)
		assert_int_equal(read(ends[0], &line[i], 1), 1);
	assert_int_equal(write(ends[0], &byte, 1), 1); /* echoed once the exec of cat is over */
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(process__read(atoi(line), &process, err, sizeof(err)), 0);
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return process;
}

static void assert_job_below(const char *control, const char *group, const char *variables, const char *job)
{
	struct process *process = read_rank_below("--control-port", control, "--pgid", group, variables);

	assert_string_equal(process->job, job);
	process__free(process);
}

static void proxies_of_one_launcher_are_one_job(void **state)
{
	char own[256] = "", expected[512], long_host[200] = "";
	struct process *process;

	(void)state;
	gethostname(own, sizeof(own) - 1);
	assert_job_below("node7:44789", "0", "PMI_RANK=1 PMI_SIZE=4", "mpi:launcher-44789@node7");
	assert_job_below("node7:44789", "0", "PMI_RANK=3 PMI_SIZE=4", "mpi:launcher-44789@node7");
	assert_job_below("node8:44789", "0", "PMI_RANK=1 PMI_SIZE=4", "mpi:launcher-44789@node8");
	assert_job_below("node7:44789", "2", "PMI_RANK=1 PMI_SIZE=4", "mpi:launcher-44789.2@node7"); /* spawned */
	/* inside an allocation each mpiexec has a job */
	assert_job_below("node7:44789", "0", "PMI_RANK=1 SLURM_JOB_ID=77 SLURM_STEP_ID=2 SLURM_PROCID=0",
			 "slurm:77.launcher-44789@node7");
	/* an address that each machine has */
	snprintf(expected, sizeof(expected), "mpi:launcher-44789@%s", own);
	assert_job_below("localhost:44789", "0", "PMI_RANK=1", expected);
	assert_job_below("127.0.0.1:44789", "0", "PMI_RANK=1", expected);
	memset(long_host, 'h', sizeof(long_host) - 1);
	memcpy(long_host + 190, ":123", 5);
	snprintf(expected, sizeof(expected), "mpi:launcher-123@%.72s", long_host);
	assert_job_below(long_host, "0", "PMI_RANK=1", expected);
	/* nonsense is no launcher: the parent's pid stands for it, on this machine */
	process = read_rank_below("--control-port", "node7:port", "--pgid", "-3", "PMI_RANK=1");
	snprintf(expected, sizeof(expected), "mpi:launcher-%d@%s", process->parent, own);
	assert_string_equal(process->job, expected);
	process__free(process);
	process = read_rank_below("--pgid", "1", "--other", "--control-port", "PMI_RANK=1");
	snprintf(expected, sizeof(expected), "mpi:launcher-%d@%s", process->parent, own);
	assert_string_equal(process->job, expected);
	process__free(process);
}

static void equal_ids_of_two_launchers_are_two_jobs(void **state)
{
	char *node[] = {"OMPI_COMM_WORLD_RANK=0", "PMIX_NAMESPACE=123",
			"OMPI_MCA_orte_hnp_uri=122.0;tcp://192.0.2.7,198.51.100.1:41417;tcp6://[::1]:4", NULL};
	char *other[] = {"OMPI_COMM_WORLD_RANK=0", "PMIX_NAMESPACE=123",
			 "OMPI_MCA_orte_hnp_uri=122.0;tcp://192.0.2.8:41417", NULL};
	char *later[] = {"PMIX_RANK=0", "PMIX_NAMESPACE=prterun-node7-55@1", NULL};
	char *inside[] = {"PMIX_RANK=0", "PMIX_NAMESPACE=123", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0", NULL};
	char *direct[] = {"PMIX_RANK=0", "PMIX_NAMESPACE=slurm.pmix.77.0", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0", NULL};
	static const char *const jobs[] = {"pmix:123@192.0.2.7", "pmix:123@192.0.2.8", "pmix:prterun-node7-55@1",
					   "slurm:77.123", "slurm:77.0"};
	char **environments[] = {node, other, later, inside, direct};
	char *none[] = {NULL};
	char own[256] = "", expected[512];
	struct process *process;

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		process = read_with(environments[i]);
		assert_string_equal(process->job, jobs[i]);
		process__free(process);
	}
	gethostname(own, sizeof(own) - 1);
	process = read_with(none);
	snprintf(expected, sizeof(expected), "none:pid-%d@%s", process->pid, own);
	assert_string_equal(process->job, expected);
	process__free(process);
}

struct launched {
	const char *job;
	int rank;
	uint32_t world_size;
	bool launched;
	char *environment[8];
};

/* Resource managers and launchers, alone and inside of each other. */
static void every_launcher_has_its_variables(void **state)
{
	static struct launched cases[] = {
	    {"distributed:29500@node1",
	     1,
	     4,
	     false,
	     {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=node1", "MASTER_PORT=29500"}},
	    /* a task of Slurm has started several: rank and job are the narrower ones */
	    {"slurm:77.29500@node1",
	     5,
	     8,
	     true,
	     {"RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=node1", "MASTER_PORT=29500", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0",
	      "SLURM_PROCID=1"}},
	    /* without a place where they meet such variables are anybody's */
	    {"slurm:77.0",
	     1,
	     2,
	     true,
	     {"RANK=5", "WORLD_SIZE=8", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2"}},
	    {"pbs:12.pbs01.4711", 2, 4, true, {"PBS_JOBID=12.pbs01", "PALS_APID=4711", "PALS_RANKID=2", "PMI_SIZE=4"}},
	    {"lsf:345_2",
	     1,
	     6,
	     true,
	     {"LSB_JOBID=345", "LSB_JOBINDEX=2", "JSM_NAMESPACE_RANK=1", "JSM_NAMESPACE_SIZE=6"}},
	    {"lsf:345", 0, 0, true, {"LSB_JOBID=345", "LSB_JOBINDEX=0", "PMI_RANK=0"}},
	    {"lsf:345.9", 0, 0, true, {"LSB_JOBID=345", "PMIX_RANK=0", "PMIX_NAMESPACE=9"}},
	    {"flux:f2N3eXY", 3, 4, true, {"FLUX_JOB_ID=f2N3eXY", "FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4"}},
	    {"slurm:77.f2N3eXY",
	     3,
	     4,
	     true,
	     {"FLUX_JOB_ID=f2N3eXY", "FLUX_TASK_RANK=3", "FLUX_JOB_SIZE=4", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0"}},
	    {"cobalt:6.8", 7, 0, true, {"COBALT_JOBID=6", "ALPS_APP_ID=8", "ALPS_APP_PE=7"}},
	    {"sge:88_3", 0, 2, true, {"JOB_ID=88", "SGE_TASK_ID=3", "PMI_RANK=0", "PMI_SIZE=2"}},
	    {"sge:88", 0, 0, true, {"JOB_ID=88", "SGE_TASK_ID=undefined", "PMI_RANK=0"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct process *process = read_with(cases[i].environment);

		assert_string_equal(process->job, cases[i].job);
		assert_int_equal(process->rank, cases[i].rank);
		assert_int_equal(process->world_size, cases[i].world_size);
		assert_int_equal(process->launched, cases[i].launched);
		process__free(process);
	}
}

/* Where several processes meet on this machine, it is this machine's. */
static void meetings_have_a_host(void **state)
{
	char *local[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1234", NULL};
	char *too_large[] = {"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=node1", "MASTER_PORT=1234", NULL};
	char *nowhere[] = {"RANK=1", "WORLD_SIZE=2", NULL}, *foreign[] = {"JOB_ID=4", NULL};
	char own[256] = "", expected[512];
	struct process *process;

	(void)state;
	gethostname(own, sizeof(own) - 1);
	process = read_with(local);
	snprintf(expected, sizeof(expected), "distributed:1234@%s", own);
	assert_string_equal(process->job, expected);
	process__free(process);
	process = read_with(too_large);
	assert_int_equal(process->rank, -1);
	assert_string_equal(process->job_kind, "none");
	process__free(process);
	process = read_with(nowhere); /* children of one launcher */
	snprintf(expected, sizeof(expected), "mpi:launcher-%d@%s", process->parent, own);
	assert_string_equal(process->job, expected);
	assert_int_equal(process->rank, 1);
	assert_int_equal(process->world_size, 2);
	process__free(process);
	process = read_with(foreign);
	assert_string_equal(process->job_kind, "none");
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

static void targets_and_others_are_counted(void **state)
{
	const char *cats[] = {"cat"}, *others[] = {"lmp"};
	struct selection all = {0}, by_cat = {.globs = cats, .glob_count = 1},
			 by_other = {.globs = others, .glob_count = 1};
	char *none[] = {NULL}, err[128];
	struct process *process;
	size_t strangers;
	pid_t pid = start(none);

	(void)state;
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	assert_true(selection__sharers(&all, process__executable(process), &strangers) >= 1);
	assert_int_equal(strangers, 0);
	assert_int_equal(selection__sharers(&by_other, process__executable(process), &strangers), 0);
	assert_true(strangers >= 1);
	assert_true(selection__sharers(&by_cat, process__mapping_named(process, "libc.so*"), &strangers) >= 1);
	assert_true(strangers >= 1);
	process__free(process);
	stop(pid);
}

/* Package managers pad paths: they are whole in records, selected by their ends, and short in messages. */
static void long_paths_are_read(void **state)
{
	const char *globs[] = {"cat-of-a-padded-path"};
	struct selection selection = {.globs = globs, .glob_count = 1};
	char path[2048], command[4096], *none[] = {NULL}, err[128];
	char directory[] = "/tmp/vapro-long-path-XXXXXX";
	struct process *process;
	size_t used;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(directory));
	used = (size_t)snprintf(path, sizeof(path), "%s", directory);
	for (int i = 0; i < 10; i++)
		used += (size_t)snprintf(path + used, sizeof(path) - used, "/%0100d", i);
	snprintf(command, sizeof(command), "mkdir -p %s && cp /bin/cat %s/%s", path, path, globs[0]);
	assert_int_equal(system(command), 0);
	snprintf(path + used, sizeof(path) - used, "/%s", globs[0]);
	pid = start_copy(path, none);
	assert_int_equal(process__read(pid, &process, err, sizeof(err)), 0);
	assert_string_equal(process->exe, path);
	assert_non_null(process__executable(process));
	assert_true(selection__takes(&selection, process));
	assert_true(strlen(process->name) < 128);
	assert_non_null(strstr(process->name, "..."));
	assert_string_equal(process->name + strlen(process->name) - strlen(globs[0]), globs[0]);
	process__free(process);
	stop(pid);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	assert_int_equal(system(command), 0);
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

/* Some files at a time. */
static void look_at_all(struct mpi_files *files, struct process *process)
{
	char err[128];
	int status;

	while ((status = mpi_files__look(files, process, true, err, sizeof(err))) == -EINPROGRESS)
		;
	assert_int_equal(status, 0);
}

static void linked_in_mpi_is_found(void **state)
{
	struct mpi_files *files = mpi_files__new();
	const struct process_mapping *library;
	char *none[] = {NULL};
	struct process *process;
	char err[128];
	pid_t pid = start(none);

	(void)state;
	assert_non_null(files);
	for (int i = 0; i < 2; i++) { /* read, then known */
		assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
		assert_int_equal(process__mpi(process, &library), PROCESS_NO_MPI);
		assert_null(library);
		assert_int_equal(mpi_files__look(files, process, false, err, sizeof(err)), 0);
		assert_int_equal(process__mpi(process, &library), PROCESS_NO_MPI); /* no name suggests it */
		look_at_all(files, process);
		assert_int_equal(process__mpi(process, &library), PROCESS_MPICH);
		assert_ptr_equal(library, process__executable(process));
		process__free(process);
	}
	assert_int_equal(process__read(pid, &process, err, sizeof(err)), 0);
	look_at_all(files, process);
	assert_int_equal(process__mpi(process, &library), PROCESS_NO_MPI);
	process__free(process);
	stop(pid);
	mpi_files__free(files);
}

/* Whether a parent has an MPI. */
static bool has_one(void *ctx, struct process *above)
{
	++*(int *)ctx;
	return above->mapping_count;
}

static void ranks_are_distinguished(void **state)
{
	char *rank[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=7", NULL}, *other[] = {"PMIX_RANK=1", "PMIX_NAMESPACE=8", NULL},
	     *none[] = {NULL};
	struct process *a = read_with(rank), *b = read_with(rank), *c = read_with(other), *d = read_with(none),
		       *e = read_with(none);
	int queries = 0;

	(void)state;
	assert_true(process__same_rank(a, b));
	b->uid = a->uid + 1; /* another user's process belongs to another job */
	assert_false(process__same_rank(a, b));
	assert_false(process__same_rank(a, c));
	assert_false(process__same_rank(d, e)); /* no rank at all is not the same rank */
	assert_true(a->launched && !d->launched);
	assert_false(process__child_of_rank(a, has_one, &queries)); /* this process, its parent, has no rank */
	assert_int_equal(queries, 0);
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
	    cmocka_unit_test(lines_of_mappings_are_read),
	    cmocka_unit_test(jobs_have_names),
	    cmocka_unit_test(hostile_names_are_harmless),
	    cmocka_unit_test(launchers_are_understood),
	    cmocka_unit_test(proxies_of_one_launcher_are_one_job),
	    cmocka_unit_test(equal_ids_of_two_launchers_are_two_jobs),
	    cmocka_unit_test(every_launcher_has_its_variables),
	    cmocka_unit_test(meetings_have_a_host),
	    cmocka_unit_test(opting_out_is_honoured),
	    cmocka_unit_test(what_is_gone_is_said),
	    cmocka_unit_test(long_paths_are_read),
	    cmocka_unit_test(removed_executables_are_selected),
	    cmocka_unit_test(linked_in_mpi_is_found),
	    cmocka_unit_test(ranks_are_distinguished),
	    cmocka_unit_test(selections_match),
	    cmocka_unit_test(targets_and_others_are_counted),
	    cmocka_unit_test(what_a_process_sleeps_in_is_reported),
	    cmocka_unit_test(ranges_hold_their_releases),
	};

	reader__main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
