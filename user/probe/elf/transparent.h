/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transparent images (ARCHITECTURE section 3): language bindings and wrappers of a site, between the
 * application and the functions that are probed. A call-site inside one is hopped over to the true
 * caller. A table made beforehand holds what an unwinder would know at each call of the image, so that
 * the kernel side finds the caller with one look-up and one read.
 */
#ifndef VAPRO_TRANSPARENT_H
#define VAPRO_TRANSPARENT_H

#include <stdbool.h>
#include <vapro/bpf/abi.h>

#include "target/image.h"

struct transparent_call {
	uint32_t vaddr; /* linked address that the call returns to */
	struct kernel_hop hop;
};

/* Whether an image of this base name is transparent: a binding of an MPI library, or one of more (globs by ','). */
bool transparent__is(const char *basename, const char *more);

/*
 * Whether an image is a library that programs call in place of MPI: it defines functions of MPI, passes their calls on
 * by their other names, PMPI_X, and calls no function of MPI for itself. Profilers and wrappers of sites are such
 * libraries, whatever their names, and bindings of Fortran. Needs no symbols of image__from_bytes().
 */
bool transparent__passes_on(struct image *image);

/*
 * Makes the table of an image: every call whose frame .eh_frame describes by the stack pointer or the
 * frame pointer, by address. Returns how many, with *calls to be freed by the caller, or -ENOMEM.
 */
int transparent__find(struct image *image, struct transparent_call **calls);

#endif
