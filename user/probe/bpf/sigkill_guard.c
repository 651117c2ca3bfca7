// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/sigkill_guard.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256U << 10)

struct guarded {
	int (*work)(void *ctx);
	void *ctx;
	int result;
};

static int enter(void *ctx)
{
	struct guarded *guarded = ctx;

	/* kill -9 of the daemon's group or name must not reach this process */
	setpgid(0, 0);
	prctl(PR_SET_NAME, "vapro-guard");
	guarded->result = guarded->work(guarded->ctx);
	return 0;
}

int sigkill_guard__run(int (*work)(void *ctx), void *ctx)
{
	struct guarded guarded = {.work = work, .ctx = ctx, .result = -EINTR}; /* killed: no result */
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	pid_t pid = -1;

	if (stack != MAP_FAILED) {
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &before);
		/* as vfork: the child uses this thread's own storage meanwhile */
		pid = clone(enter, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_VFORK, &guarded);
		if (pid > 0)
			waitpid(pid, NULL, __WALL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		munmap(stack, STACK_BYTES);
	}
	return pid > 0 ? guarded.result : work(ctx);
}
