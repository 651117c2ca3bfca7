// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/ranks_present.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "probe/elf/mpi_files.h"
#include "target/process.h"

enum { NAMED = 4 }; /* processes that are listed by name */

struct ranks {
	char *text;
	size_t size;
	int count;
};

/* A process that maps an MPI library. This process and those that it descends from are no ranks: a script has them. */
static bool is_rank(void *ctx, const struct process *process)
{
	(void)ctx;
	if (process__descends(getpid(), process->pid))
		return false;
	for (size_t i = 0; i < process->mapping_count; i++) {
		if (process->mappings[i].inode && mpi_files__suggests(process->mappings[i].path))
			return true;
	}
	return false;
}

static bool add_rank(void *ctx, const struct process *process)
{
	struct ranks *ranks = ctx;
	size_t used = strlen(ranks->text);

	if (ranks->count++ >= NAMED)
		return true;
	if (process->rank >= 0)
		snprintf(ranks->text + used, ranks->size - used, "%s%d (%s, rank %d)", used ? ", " : "", process->pid,
			 process->name, process->rank);
	else
		snprintf(ranks->text + used, ranks->size - used, "%s%d (%s)", used ? ", " : "", process->pid,
			 process->name);
	return true;
}

int ranks_present__find(char *text, size_t size)
{
	struct ranks ranks = {.text = text, .size = size};
	size_t used;

	*text = '\0';
	process__each(is_rank, add_rank, &ranks);
	used = strlen(text);
	if (ranks.count > NAMED)
		snprintf(text + used, size - used, " and %d more", ranks.count - NAMED);
	return ranks.count;
}
