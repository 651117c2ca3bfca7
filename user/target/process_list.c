// SPDX-License-Identifier: GPL-2.0-or-later
/* All processes of the node. */
#include "target/process.h"

#include <dirent.h>
#include <stdlib.h>

void process__each(bool (*wants)(void *ctx, const struct process *process),
		   bool (*visit)(void *ctx, const struct process *process), void *ctx)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool more = true;

	while (dir && more && (entry = readdir(dir))) {
		struct process *process;
		char err[256];
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || process__glance(pid, &process, err, sizeof(err)))
			continue;
		if (wants(ctx, process) && !process__complete(process, err, sizeof(err)))
			more = visit(ctx, process);
		process__free(process);
	}
	if (dir)
		closedir(dir);
}
