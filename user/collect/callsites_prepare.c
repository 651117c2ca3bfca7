// SPDX-License-Identifier: GPL-2.0-or-later
/* Images that a process needs before its first call is seen are read before it is attached. */
#include <fnmatch.h>
#include <string.h>

#include "collect/callsites_private.h"
#include "probe/elf/transparent.h"
#include "sandbox/user_file.h"

/* Whether handles are objects of a file: callsites__object(). */
static bool has_handles(const struct process_library *library, const struct process_mapping *mapping)
{
	return library->mpi == PROCESS_OPEN_MPI && library->inode == mapping->inode &&
	       library->device == mapping->device;
}

/* The executable, and what has handles, system calls or calls to pass through. */
static bool is_needed(const struct process *process, const struct process_mapping *mapping, const char *transparent,
		      bool *passed)
{
	const char *base = strrchr(mapping->path, '/');

	if (!mapping->inode || !base)
		return false;
	*passed = transparent__is(base + 1, transparent);
	return *passed || !strcmp(mapping->path, process->exe) || has_handles(&process->library, mapping) ||
	       !fnmatch("libc.so.6*", base + 1, 0);
}

int image_cache__prepare(struct image_cache *cache, const struct process *process, const char *transparent, char *err,
			 size_t err_size)
{
	int status = 0;

	for (size_t i = 0; i < process->mapping_count && !status; i++) {
		const struct process_mapping *mapping = &process->mappings[i];
		struct cached_image *cached;
		bool passed;

		if (!is_needed(process, mapping, transparent, &passed))
			continue;
		cached = image_cache__get(cache, process, mapping);
		if (!cached)
			continue;
		cached->transparent |= passed;
		status = cached_image__read(cached, err, err_size);
		if (cached->users)
			continue;
		if (cached->file >= 0)
			user_file__stat(cached->file, &cached->at_end);
		cached->idle_since = ++cache->idle_count;
	}
	image_cache__trim(cache);
	return status;
}
