// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Code that a process has moved into memory of its own. Tools that put code into huge pages replace the mapping of an
 * executable's or library's code, or its middle, by anonymous memory or a file of hugetlbfs with the same bytes. What
 * stays of the file surrounds it.
 */
#include <string.h>

#include "target/process_private.h"

static bool is_same_file(const struct process_mapping *a, const struct process_mapping *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* Reads a line, which may be followed by others. */
static bool read_line(char *line, struct process_mapping *mapping)
{
	char *end = line ? strchr(line, '\n') : NULL;
	bool executable, is_mapping;

	if (end)
		*end = '\0';
	is_mapping = line && process__parse_line(line, mapping, &executable);
	if (end)
		*end = '\n';
	return is_mapping;
}

/* Whether it may be memory that stands for a file's: anonymous, or of huge pages by its name. */
static bool stands_for_another(const struct process_mapping *code)
{
	return !code->path[0] || !strncmp(code->path, "[anon", 5) || !strncmp(code->path, "/memfd:", 7) ||
	       strstr(code->path, "huge");
}

void process__note_moved(struct process *process, const struct process_mapping *code, char *before, char *after)
{
	struct process_mapping below, above;
	bool is_first;

	if (process->moved_count == PROCESS_MOVED_MOST || !stands_for_another(code) ||
	    !read_line(after, &above) || above.start != code->end || !above.inode || is_same_file(code, &above))
		return;
	/* the code is the first part of some executables: what follows it tells */
	is_first = above.offset == code->end - code->start;
	if (!is_first && (!read_line(before, &below) || below.end != code->start || !is_same_file(&below, &above)))
		return;
	if (!process__is_moved(process, above.device, above.inode))
		process->moved[process->moved_count++] = above;
}

bool process__is_moved(const struct process *process, uint64_t device, uint64_t inode)
{
	for (size_t i = 0; i < process->moved_count; i++)
		if (process->moved[i].inode == inode && process->moved[i].device == device)
			return true;
	return false;
}

const char *process__moved_mpi(const struct process *process)
{
	const struct process_library *library = &process->library;

	for (size_t i = 0; library->mpi != PROCESS_NO_MPI && i < process->moved_count; i++)
		if (process->moved[i].inode == library->inode && process->moved[i].device == library->device)
			return process->moved[i].path;
	return NULL;
}
