/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One decoded x86-64 instruction, reduced to what probe sites depend on: its length, where control goes
 * after it, and which argument registers and whether the stack pointer it writes. The decoder is Zydis,
 * which knows VEX, EVEX and CET instructions, and says of every operand, the implicit ones too, whether
 * it is written. No other CPU needs the decoder.
 */
#ifndef VAPRO_INSTRUCTION_H
#define VAPRO_INSTRUCTION_H

#if defined(__x86_64__)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_ARGUMENTS 6 /* integer arguments in registers: rdi, rsi, rdx, rcx, r8, r9 */

/* Where a jump or call takes its target from. */
enum instruction_target {
	TARGET_NONE,
	TARGET_DIRECT,	 /* the instruction holds it */
	TARGET_SLOT,	 /* a pointer at a place relative to the instruction, as the linker's table has it */
	TARGET_POINTER,	 /* another pointer in memory, not indexed */
	TARGET_COMPUTED, /* a register, or an indexed table */
};

struct instruction {
	uint64_t address;
	uint8_t size;
	bool jump;	     /* jump of any kind, conditional or not; xbegin is one */
	bool always;	     /* a jump that is never passed over */
	bool call, returns;  /* a near call; a near or far return */
	bool leaves_line;    /* control may go on elsewhere than at the next instruction */
	bool system_call;    /* `syscall` */
	bool writes_stack;   /* it writes the stack pointer */
	unsigned int writes; /* bit i is set when it writes integer argument i, or a part of it */
	enum instruction_target target_kind;
	uint64_t target;      /* TARGET_DIRECT: the address */
	const char *mnemonic; /* static text */
};

/* Decodes the instruction at an address. Returns false where the bytes are no instruction. */
bool instruction__decode(const uint8_t *code, size_t left, uint64_t address, struct instruction *instruction);

#endif
#endif
