/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU-specific parts: where a call's arguments, its call-site and its stack pointer lie, and
 * the numbers and registers of system calls. A context may only be read at constant offsets, so its
 * registers are copied once.
 */
#ifndef VAPRO_ARCH_H
#define VAPRO_ARCH_H

#include "maps.h"

struct arguments {
	u64 in[8]; /* registers; a power of two for the masks */
	u64 sp;
	u64 frame; /* the caller's frame pointer at a function's entry */
	u64 site;  /* call-site of arm64; on x86 it lies at sp */
};

#if defined(__TARGET_ARCH_x86)

#define ARGUMENT_REGISTERS 6
#define RETURN_ON_STACK true /* a call's return address lies where the stack pointer was at its entry */

static __always_inline void arguments_read(struct arguments *args, struct pt_regs *ctx)
{
	args->in[0] = ctx->di;
	args->in[1] = ctx->si;
	args->in[2] = ctx->dx;
	args->in[3] = ctx->cx;
	args->in[4] = ctx->r8;
	args->in[5] = ctx->r9;
	args->in[6] = args->in[7] = 0;
	args->sp = ctx->sp;
	args->frame = ctx->bp;
	args->site = 0;
}

/* Returns where the stack arguments begin. */
static __always_inline u64 stack_arguments(const struct arguments *args)
{
	return args->sp + 8;
}

static __always_inline long call_site(const struct arguments *args, u64 *site)
{
	return bpf_probe_read_user(site, sizeof(*site), (void *)args->sp);
}

/* Returns the caller's stack pointer after the call has returned. */
static __always_inline u64 caller_sp(const struct arguments *args)
{
	return args->sp + 8;
}

/* Returns the stack pointer at the entry of the returning call: `ret` has popped the return address. */
static __always_inline u64 entry_sp(struct pt_regs *ctx)
{
	return ctx->sp - 8;
}

/* Reads the present return address of the call that entered at sp. */
static __always_inline bool returns_to(const struct arguments *args, u64 sp, u64 *address)
{
	return !bpf_probe_read_user(address, sizeof(*address), (void *)sp);
}

static __always_inline u64 place(struct pt_regs *ctx)
{
	return ctx->ip;
}

/* Returns the address in the program at which an interrupt came; 0: in the kernel. */
static __always_inline u64 sampled_address(struct pt_regs *ctx)
{
	return ctx->cs & 3 ? ctx->ip : 0;
}

#define SYSCALL_A0(regs) ((regs)->di)
#define SYSCALL_A1(regs) ((regs)->si)
#define SYSCALL_A2(regs) ((regs)->dx)
#define SYSCALL_IP(regs) ((regs)->ip)
#define SYSCALL_FRAME(regs) ((regs)->bp)

enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_OPEN = 2,
	NR_CLOSE = 3,
	NR_PREAD = 17,
	NR_PWRITE = 18,
	NR_READV = 19,
	NR_WRITEV = 20,
	NR_FSYNC = 74,
	NR_FDATASYNC = 75,
	NR_OPENAT = 257,
};

#elif defined(__TARGET_ARCH_arm64)

#define ARGUMENT_REGISTERS 8
#define RETURN_ON_STACK false

static __always_inline void arguments_read(struct arguments *args, struct pt_regs *ctx)
{
	args->in[0] = ctx->regs[0];
	args->in[1] = ctx->regs[1];
	args->in[2] = ctx->regs[2];
	args->in[3] = ctx->regs[3];
	args->in[4] = ctx->regs[4];
	args->in[5] = ctx->regs[5];
	args->in[6] = ctx->regs[6];
	args->in[7] = ctx->regs[7];
	args->sp = ctx->sp;
	args->frame = ctx->regs[29];
	args->site = ctx->regs[30];
}

static __always_inline u64 stack_arguments(const struct arguments *args)
{
	return args->sp;
}

static __always_inline long call_site(const struct arguments *args, u64 *site)
{
	*site = args->site;
	return 0;
}

static __always_inline u64 caller_sp(const struct arguments *args)
{
	return args->sp;
}

static __always_inline u64 entry_sp(struct pt_regs *ctx)
{
	return ctx->sp;
}

/* The return address of an outer frame may lie anywhere; a tail call has it in its register still. */
static __always_inline bool returns_to(const struct arguments *args, u64 sp, u64 *address)
{
	*address = args->site;
	return args->sp == sp;
}

static __always_inline u64 place(struct pt_regs *ctx)
{
	return ctx->pc;
}

static __always_inline u64 sampled_address(struct pt_regs *ctx)
{
	return ctx->pstate & 15 ? 0 : ctx->pc; /* the exception level */
}

#define SYSCALL_A0(regs) ((regs)->regs[0])
#define SYSCALL_A1(regs) ((regs)->regs[1])
#define SYSCALL_A2(regs) ((regs)->regs[2])
#define SYSCALL_IP(regs) ((regs)->pc)
#define SYSCALL_FRAME(regs) ((regs)->regs[29])

enum {
	NR_OPENAT = 56,
	NR_CLOSE = 57,
	NR_READ = 63,
	NR_WRITE = 64,
	NR_READV = 65,
	NR_WRITEV = 66,
	NR_PREAD = 67,
	NR_PWRITE = 68,
	NR_FSYNC = 82,
	NR_FDATASYNC = 83,
	NR_OPEN = -1, /* no such call */
};

#else
#error "unsupported CPU: declare its registers"
#endif

/* Returns argument i (from 1). */
static __always_inline u64 argument(const struct arguments *args, u8 i)
{
	u64 value = 0;

	if (i <= ARGUMENT_REGISTERS)
		return args->in[(i - 1) & 7];
	bpf_probe_read_user(&value, sizeof(value), (void *)(stack_arguments(args) + 8 * (i - ARGUMENT_REGISTERS - 1)));
	return value;
}

#endif
