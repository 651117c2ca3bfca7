// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/stderr_guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int stderr_guard__begin(void)
{
	int saved = -1, own = -1;
	struct stat status;

	if (fstat(STDERR_FILENO, &status) || (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)))
		return -1;
	own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own < 0)
		return -1;
	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (saved >= 0)
		dup2(own, STDERR_FILENO);
	close(own);
	return saved;
}

void stderr_guard__end(int saved)
{
	if (saved < 0)
		return;
	dup2(saved, STDERR_FILENO);
	close(saved);
}
