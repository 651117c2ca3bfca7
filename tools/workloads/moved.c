// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Moves the code of the MPI library into memory of the process's own, as libmoved.so, preloaded: as tools do that put
 * code into huge pages.
 */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void move(uintptr_t begin, size_t size)
{
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		abort();
	memcpy(copy, (const void *)begin, size);
	if (mprotect(copy, size, PROT_READ | PROT_EXEC) ||
	    mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) == MAP_FAILED)
		abort();
}

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)unused;
	for (int i = 0; strstr(info->dlpi_name, "libmpi.so") && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
		uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz + page - 1) & ~(page - 1);

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			move(begin, end - begin);
	}
	return 0;
}

__attribute__((constructor)) static void move_code(void)
{
	dl_iterate_phdr(look, NULL);
}
