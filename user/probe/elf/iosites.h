/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call-sites of IO (ARCHITECTURE section 3): system calls are seen inside libc, the application's
 * call-site is the return address of libc's wrapper. Where on the stack it lies at the system call
 * depends on the path taken (single- or multi-threaded), hence on the address the kernel returns to.
 */
#ifndef VAPRO_IOSITES_H
#define VAPRO_IOSITES_H

#include "target/image.h"

struct io_site {
	uint64_t vaddr;	      /* address after `syscall`, as linked: the ip that sys_enter shows */
	uint64_t offset;      /* the same in the file */
	int32_t displacement; /* the return address lies at sp + displacement */
	const char *name;     /* wrapper's name; static text */
};

/*
 * Finds the IO system calls of libc's wrappers, at most max of them, by address. Returns how many
 * were found or -ENOMEM. The caller at any other address is unknown: from glibc 2.41 on cancellable
 * calls are made by a helper common to all, and none is found for those.
 */
int iosites__find(struct image *image, struct io_site *out, size_t max);

/* Name of the index-th wrapper, as io_site has it, or NULL beyond the last. */
const char *iosites__wrapper(size_t index);

#endif
