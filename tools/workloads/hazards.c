// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Actions of programs that an observer in their text could break: each hazard acts, and its output and
 * exit code are the same with and without an observer.
 *
 *   mpirun -n 1 hazards HAZARD [GO [FILE]]
 *
 * Prints {"ready":true,"pid":P}, waits until the file GO exists (the process is then observed), and acts.
 * Last line: result HAZARD TEXT calls NAME=N... with the MPI calls of the process since GO.
 *
 *   cancel    a thread blocked in read() is cancelled; its cleanup handlers run
 *   longjmp   out of an MPI error handler, so over the MPI call, and over callers of MPI
 *   contexts  swapcontext between two stacks that both call MPI
 *   below     swapcontext inside a callback of MPI: a call on a lower stack while one is open on this
 *   above     the same with a higher stack
 *   vfork     vfork and exec
 *   fork      fork in a second thread, and in a callback of MPI: both processes return from the call
 *   setuid    a setuid program is executed by a user without rights (FILE: a setuid copy of this)
 *   exec      the process itself becomes another program
 *   signals   handlers write during MPI calls, on their own stack
 *   seccomp   an allow-list filter that kills, installed while observed
 *   filtered  the same filter, installed before GO
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hazards.h"

static const char *file;
static char *self;

static void pause_ms(long ms)
{
	struct timespec rest = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

static void wait_for(const char *go)
{
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	while (go && access(go, F_OK))
		pause_ms(10);
}

/* Returns the exit code of a child, or 128 + its signal. */
static int code_of(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- cancel */

static int blocked_pipe[2];
static atomic_int cleaned;

static void clean(void *step)
{
	atomic_fetch_add(&cleaned, *(int *)step);
}

static void *blocked(void *unused)
{
	int one = 1, hundred = 100;
	char byte;

	pthread_cleanup_push(clean, &hundred);
	pthread_cleanup_push(clean, &one);
	while (read(blocked_pipe[0], &byte, 1) == 1)
		;
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return unused;
}

static int cancel(void)
{
	int cancelled = 0, sum = 0;

	if (pipe(blocked_pipe))
		return 1;
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *result = NULL;

		pthread_create(&thread, NULL, blocked, NULL);
		if (write(blocked_pipe[1], "x", 1) != 1)
			return 1;
		pause_ms(5);
		allreduce(&sum);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		cancelled += result == PTHREAD_CANCELED;
	}
	printf("result cancel %d of 20, cleaned %d, sum %d calls MPI_Allreduce=20\n", cancelled, cleaned, sum);
	return 0;
}

/* ---- vfork, fork, setuid, exec */

static char *const shell[] = {"sh", "-c", "exit 3", NULL};

static pid_t vfork_shell(void)
{
	pid_t child = vfork();

	if (!child) {
		execv("/bin/sh", shell);
		_exit(99);
	}
	return child;
}

static int spawn(void)
{
	int codes = 0, sum = 0;

	for (int i = 0; i < 20; i++) {
		pid_t child = vfork_shell();

		codes += code_of(child);
		allreduce(&sum);
		if (posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ))
			return 1;
		allreduce(&sum);
		codes += code_of(child);
	}
	printf("result vfork codes %d, sum %d calls MPI_Allreduce=40\n", codes, sum);
	return 0;
}

static void *forks(void *codes)
{
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();

		if (!child)
			_exit(write(STDERR_FILENO, "", 0) == 0 ? 5 : 99);
		*(int *)codes += code_of(child);
	}
	return NULL;
}

static int forked_code;
static bool in_child;

static void fork_in_copy(void)
{
	pid_t child = fork();

	if (child)
		forked_code += code_of(child);
	else
		in_child = true;
}

static int fork_away(void)
{
	int key, codes = 0, sum = 0;
	pthread_t thread;
	MPI_Comm comm;

	pthread_create(&thread, NULL, forks, &codes);
	for (int i = 0; i < TIMES; i++)
		allreduce(&sum);
	pthread_join(thread, NULL);
	key = call_in_copy(fork_in_copy);
	for (int i = 0; i < 20; i++) {
		MPI_Comm_dup(MPI_COMM_SELF, &comm);
		if (in_child)
			_exit(2);
		MPI_Comm_free(&comm);
	}
	MPI_Comm_delete_attr(MPI_COMM_SELF, key);
	printf("result fork codes %d %d, sum %d calls MPI_Allreduce=%d MPI_Comm_dup=20 MPI_Comm_free=20\n", codes,
	       forked_code, sum, TIMES);
	return 0;
}

static int run_setuid(void)
{
	int sum = 0, code = 0;

	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
				_exit(98);
			execl(file, file, "who", (char *)NULL);
			_exit(99);
		}
		code += code_of(child);
		allreduce(&sum);
	}
	printf("result setuid code %d, sum %d calls MPI_Allreduce=5\n", code, sum);
	return 0;
}

static int run_exec(void)
{
	int sum = 0;

	for (int i = 0; i < TIMES; i++)
		allreduce(&sum);
	MPI_Finalize();
	printf("result exec sum %d calls MPI_Allreduce=%d\n", sum, TIMES);
	fflush(stdout);
	execl(self, self, "who", (char *)NULL);
	return 99;
}

/* ---- seccomp */

/* Installs a filter: it allows all calls older than the one of return probes; other calls kill. */
static int put_filter(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 335, 0, 1),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 424, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Returns whether the filter kills: a child tries a number of the gap. */
static int try_filter(void)
{
	pid_t child = fork();

	if (!child) {
		syscall(400);
		_exit(0);
	}
	return code_of(child);
}

static int obey_filter(const char *name)
{
	int sum = 0, wrote = 0;

	for (int i = 0; i < TIMES; i++) {
		allreduce(&sum);
		wrote += write(STDERR_FILENO, "", 0) == 0;
	}
	printf("result %s kills %d, wrote %d, sum %d calls MPI_Allreduce=%d\n", name, try_filter(), wrote, sum, TIMES);
	return 0;
}

static int do_it(const char *name)
{
	if (!strcmp(name, "cancel"))
		return cancel();
	if (!strcmp(name, "longjmp"))
		return jump();
	if (!strcmp(name, "contexts"))
		return switch_contexts();
	if (!strcmp(name, "below") || !strcmp(name, "above"))
		return callback(!strcmp(name, "above"));
	if (!strcmp(name, "vfork"))
		return spawn();
	if (!strcmp(name, "fork"))
		return fork_away();
	if (!strcmp(name, "setuid"))
		return run_setuid();
	if (!strcmp(name, "exec"))
		return run_exec();
	if (!strcmp(name, "signals"))
		return take_signals();
	if (!strcmp(name, "seccomp"))
		return put_filter() || obey_filter(name);
	if (!strcmp(name, "filtered"))
		return obey_filter(name);
	return 2;
}

int main(int argc, char **argv)
{
	const char *go = argc > 2 ? argv[2] : NULL;
	int status, level;

	if (argc < 2)
		return 2;
	self = argv[0];
	file = argc > 3 ? argv[3] : NULL;
	if (!strcmp(argv[1], "who")) {
		printf("user %d as %d\n", (int)getuid(), (int)geteuid());
		return 4;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	if (!strcmp(argv[1], "filtered") && put_filter())
		return 1;
	wait_for(go);
	status = do_it(argv[1]);
	if (strcmp(argv[1], "exec"))
		MPI_Finalize();
	return status;
}
