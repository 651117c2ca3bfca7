/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where to put a probe: ARCHITECTURE section 2.2. A site is entry+k such that (a) the path from
 * entry is straight, (b) the stack pointer is what it is at entry, by .eh_frame's CFA at k and by
 * the instructions passed, (c) no branch of the function and no other symbol lands in (entry, k],
 * (d) no argument register that the row reads is written before k, (e) the kernel emulates the
 * instruction (nop5 only at k = 0). Otherwise it is the entry itself. Cost is the reason: an emulated
 * instruction costs one trap, any other is single-stepped.
 */
#ifndef VAPRO_SITE_H
#define VAPRO_SITE_H

#include "target/image.h"

enum site_class {
	SITE_EMULATED, /* push, jmp, jcc, call, nop: one trap */
	SITE_NOP5,     /* optimised by kernels from 6.18 on; only at an entry */
	SITE_STEPPED,  /* single-stepped out of line: two traps */
	SITE_REFUSED,  /* must not be probed: reason says why */
	SITE_CLASSES,
};

struct site {
	uint64_t vaddr;	 /* where the probe goes */
	uint64_t offset; /* the same in the file */
	uint32_t shift;	 /* k */
	enum site_class class;
	const char *instruction; /* mnemonic, for people */
	const char *reason;	 /* why not shifted, or why refused; static text */
};

/*
 * Chooses the site of a function. arguments: bit i is set when the row reads integer argument i
 * (System V order: rdi, rsi, rdx, rcx, r8, r9). The class is SITE_REFUSED where no probe may be set.
 */
void site__choose(struct image *image, const struct image_symbol *function, unsigned int arguments, struct site *site);

/* Class of one instruction at any place; *why is set where it must not be probed. */
enum site_class site__classify(const uint8_t *bytes, size_t size, const char **why);

extern const char *const site_class_name[SITE_CLASSES];

#endif
