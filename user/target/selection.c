// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/selection.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define DELETED " (deleted)"

bool selection__takes(const struct selection *selection, const struct process *process)
{
	char exe[sizeof(process->exe)];
	size_t length = strlen(process->exe);
	const char *base;

	if (selection->ancestor)
		return process__descends(process->pid, selection->ancestor);
	if (!selection->pid_count && !selection->glob_count)
		return true;
	for (size_t i = 0; i < selection->pid_count; i++)
		if (selection->pids[i] == process->pid)
			return true;
	/* a removed or replaced file is still the one that was started */
	memcpy(exe, process->exe, length + 1);
	if (length > strlen(DELETED) && !strcmp(exe + length - strlen(DELETED), DELETED))
		exe[length - strlen(DELETED)] = '\0';
	base = strrchr(exe, '/');
	for (size_t i = 0; i < selection->glob_count; i++)
		if (!fnmatch(selection->globs[i], exe, 0) || (base && !fnmatch(selection->globs[i], base + 1, 0)))
			return true;
	return false;
}

bool selection__names(const struct selection *selection, pid_t pid)
{
	for (size_t i = 0; i < selection->pid_count; i++)
		if (selection->pids[i] == pid)
			return true;
	return false;
}

struct sharing {
	const struct selection *selection;
	const struct process_mapping *mapping;
	size_t targets, others;
};

static bool shares(void *ctx, const struct process *process)
{
	const struct sharing *sharing = ctx;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct process_mapping *mapping = &process->mappings[i];

		if (mapping->inode == sharing->mapping->inode && mapping->device == sharing->mapping->device)
			return true;
	}
	return false;
}

static bool count_sharer(void *ctx, const struct process *process)
{
	struct sharing *sharing = ctx;

	if (selection__takes(sharing->selection, process) && !process->opted_out && !process->traced &&
	    !process->translator)
		sharing->targets++;
	else
		sharing->others++;
	return true;
}

size_t selection__sharers(const struct selection *selection, const struct process_mapping *mapping, size_t *others)
{
	struct sharing sharing = {.selection = selection, .mapping = mapping};

	process__each(shares, count_sharer, &sharing);
	*others = sharing.others;
	return sharing.targets;
}
