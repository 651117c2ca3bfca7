/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The account of one tracked thread: what it was in, second by second, from the scheduler's events alone
 * (ARCHITECTURE section 6). The kernel side keeps it at all times, with probes or without; user space has the table
 * mapped, reads each bin once when it is over, and frees the account of a thread that has ended.
 */
#ifndef VAPRO_KERNEL_ACCOUNT_H
#define VAPRO_KERNEL_ACCOUNT_H

#include <vapro/kernel.h>

#define KERNEL_ACCOUNTS 8192	/* a power of two */
#define KERNEL_ACCOUNT_BINS 16	/* kept until they are read: 3.2 s; a power of two */
#define KERNEL_NO_ACCOUNT (~0U) /* in place of a number: the table was full */

enum account_kind {
	ACCOUNT_UNKNOWN, /* no event of it was seen yet */
	ACCOUNT_ON_CPU,
	ACCOUNT_PREEMPTED,   /* runnable, another task runs on its CPU */
	ACCOUNT_WAKEUP_WAIT, /* woken, waiting for a CPU */
	ACCOUNT_THROTTLED,   /* a part of the two before; no thread is in it */
	ACCOUNT_STOPPED,
	ACCOUNT_BLOCKED_IO,
	ACCOUNT_BLOCKED_OTHER,
	ACCOUNT_KINDS
};

struct kernel_account_bin {
	u32 bin; /* low half of its number */
	u32 ns[ACCOUNT_KINDS];
};

struct kernel_account {
	u32 tid; /* 0: the account is free; written last */
	u32 tgid;
	u32 writing;   /* odd while the kernel side changes what follows */
	u32 kind;      /* what the thread is in ... */
	u64 since_ns;  /* ... since then, CLOCK_MONOTONIC */
	u64 queue;     /* of a wait for a CPU: the run queue, 0 where none can be throttled ... */
	u64 throttled; /* ... and how long that had been throttled when the wait began */
	u64 steal_ns;  /* stolen from its stays on CPUs up to the last one's end */
	u64 steal_at;  /* what had been stolen of the CPU when the present stay began */
	u64 ended_ns;  /* the thread has ended, or is another program; 0: it lives */
	u64 rq;	       /* the kernel's run queue of the CPU that it has, or had last */
	struct kernel_account_bin bins[KERNEL_ACCOUNT_BINS];
};

#endif
