/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where a function is left, for rows whose exits are probes of their own (ARCHITECTURE section 2.3).
 * At a `ret` the stack pointer is what it was at entry, on all our CPUs.
 *
 * The function's bytes are read straight through, and those of the parts that the compiler put
 * elsewhere. A jump out of it is a tail call where the stack is as at entry, else it leads to such a
 * part. Where tail calls are followed, the exits of their targets are exits too: users that compare
 * stack pointers can share them, and a barrier whose whole body is `jmp` to the waiting function is
 * seen to wait. Elsewhere the jump itself is the exit.
 */
#ifndef VAPRO_EXITS_H
#define VAPRO_EXITS_H

#include "probe/elf/site.h"

#define EXITS_MAX 128
#define EXITS_BYTES 8

struct exit_site {
	uint64_t vaddr, offset; /* as linked, and in the file */
	enum site_class class;
	bool tail; /* a jump that leaves, else a return */
};

struct exits {
	struct exit_site sites[EXITS_MAX]; /* by address, each once */
	size_t count;
	const char *reason; /* why the function must be left alone, or NULL; static text */
	const char *unseen; /* why some exit is not seen, or NULL; static text */
	/* address and bytes of an instruction that the decoder does not know, where that is the reason */
	uint64_t undecoded;
	uint8_t undecoded_bytes[EXITS_BYTES];
	size_t undecoded_count;
};

/* Finds the exits of a function. */
void exits__find(struct image *image, const struct image_symbol *function, bool follow, struct exits *exits);

#endif
