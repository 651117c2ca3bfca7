// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/bpf/features.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/bpf/modes.h"

#if defined(__x86_64__)

#define NR_URETPROBE 335 /* newer than Debian 12's headers */
#define NR_UPROBE 336

static void there(int signal)
{
	(void)signal;
	_exit(FACT_YES);
}

/* The kernel returns ENOSYS where it has no such call; a seccomp filter returns EPERM. */
static enum fact has_syscall(long number)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return FACT_UNKNOWN;
	if (!pid) {
		struct sigaction handler = {.sa_handler = there};

		sigaction(SIGILL, &handler, NULL);
		if (syscall(number) < 0 && errno == ENOSYS)
			_exit(FACT_NO);
		_exit(errno == EPERM || errno == EACCES ? FACT_UNKNOWN : FACT_YES);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return FACT_UNKNOWN;
	return WIFEXITED(status) ? (enum fact)WEXITSTATUS(status) : FACT_UNKNOWN;
}

#endif

void features__learn(struct facts *facts, bool multi)
{
	int by_thread = multi ? modes__filters_by_thread() : -EOPNOTSUPP;

	facts->thread_filter = by_thread < 0 ? FACT_UNKNOWN : by_thread ? FACT_YES : FACT_NO;
#if defined(__x86_64__)
	facts->return_syscall = has_syscall(NR_URETPROBE);
	facts->nop5_syscall = has_syscall(NR_UPROBE);
#else
	facts->return_syscall = facts->nop5_syscall = FACT_NO; /* x86 alone has them */
#endif
}
