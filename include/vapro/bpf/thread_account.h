/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of one tracked thread: its time by condition, bin by bin, from the scheduler's events alone
 * (ARCHITECTURE section 6). The kernel side updates it at all times, with probes or without; user space has the table
 * mapped, reads each bin once when it is over, and frees the account of a thread that has ended.
 */
#ifndef VAPRO_KERNEL_ACCOUNT_H
#define VAPRO_KERNEL_ACCOUNT_H

#include <vapro/bpf/abi.h>

#define KERNEL_ACCOUNTS 8192	/* a power of two */
#define KERNEL_ACCOUNT_BINS 16	/* retained until read: 3.2 s; a power of two */
#define KERNEL_NO_ACCOUNT (~0U) /* instead of a number: the table was full */

enum account_kind {
	ACCOUNT_UNKNOWN, /* no event of the thread was seen yet */
	ACCOUNT_ON_CPU,
	ACCOUNT_PREEMPTED,   /* runnable, another task runs on its CPU */
	ACCOUNT_WAKEUP_WAIT, /* woken, waiting for a CPU */
	ACCOUNT_THROTTLED,   /* a part of the two before; never a thread's kind */
	ACCOUNT_STOPPED,
	ACCOUNT_BLOCKED_IO,
	ACCOUNT_BLOCKED_OTHER,
	ACCOUNT_KINDS
};

struct kernel_account_bin {
	u32 bin; /* low half of the bin's number */
	u32 ns[ACCOUNT_KINDS];
};

struct kernel_account {
	u32 tid; /* 0: the account is free; written last */
	u32 tgid;
	u32 writing;   /* odd while the kernel side changes the account */
	u32 kind;      /* enum account_kind of the thread */
	u64 since_ns;  /* start of that kind, CLOCK_MONOTONIC */
	u64 queue;     /* run queue of a wait for a CPU, 0 where none can be throttled */
	u64 throttled; /* throttled time of that queue when the wait began */
	u64 steal_ns;  /* stolen from the thread's stays on CPUs up to the last one's end */
	u64 steal_at;  /* stolen from the CPU when the present stay began */
	u64 ended_ns;  /* end of the thread or its program; 0: the thread lives */
	u64 rq;	       /* the kernel's run queue of the thread's present or last CPU */
	u64 task;      /* the kernel's task_struct of the thread; 0: no switch was seen yet */
	u64 ran_ns;    /* CPU time of the thread when it left its CPU last, by the kernel's own clock of the thread */
	struct kernel_account_bin bins[KERNEL_ACCOUNT_BINS];
};

#endif
