/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arithmetic of accounts: plain functions of their arguments, as in logic.h, which includes this file. A thread is in
 * one condition at a time; each change adds the time in the old condition to the bins that it overlaps.
 */
#ifndef VAPRO_ACCOUNT_H
#define VAPRO_ACCOUNT_H

#include <vapro/bpf/thread_account.h>
#include <vapro/bpf/thread_state.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define ACCOUNT_LATE 1024 /* bins; a number ahead by less than this is newer, not 27 years older */

static __always_inline void account_add_in(struct kernel_account *account, u64 bin, u32 kind, u64 ns)
{
	struct kernel_account_bin *at = &account->bins[bin & (KERNEL_ACCOUNT_BINS - 1)];

	if (at->bin != (u32)bin) {
		if (at->bin - (u32)bin < ACCOUNT_LATE)
			return; /* read by user space */
		__builtin_memset(at, 0, sizeof(*at));
		at->bin = (u32)bin;
	}
	at->ns[kind & (ACCOUNT_KINDS - 1)] += (u32)ns;
}

/* Returns how much of `held` ns, spread evenly over `all` ns, lies in `part` ns of those. */
static __always_inline u64 account_part(u64 held, u64 part, u64 all)
{
	u64 share = held >= all ? part : (held >> 8) * part / ((all >> 8) + 1);

	return share < part ? share : part;
}

/* Adds the time [from, to), UTC; held: ns throttled anywhere in that time. */
static __always_inline void account_add(struct kernel_account *account, u32 kind, u64 from, u64 to, u64 held)
{
	u64 first = from / KERNEL_BIN_NS, last, bin, begin, end, throttled;

	if (to <= from)
		return;
	last = (to - 1) / KERNEL_BIN_NS;
	/* the latest bins of a long time: user space reads earlier ones while the condition lasts */
	for (u32 i = 0; i < KERNEL_ACCOUNT_BINS; i++) {
		bin = last - i;
		if (bin < first)
			break;
		begin = bin * KERNEL_BIN_NS;
		end = begin + KERNEL_BIN_NS < to ? begin + KERNEL_BIN_NS : to;
		begin = begin > from ? begin : from;
		throttled = held ? account_part(held, end - begin, to - from) : 0;
		if (throttled)
			account_add_in(account, bin, ACCOUNT_THROTTLED, throttled);
		account_add_in(account, bin, kind, end - begin - throttled);
	}
}

/* Changes the thread's condition; held: ns throttled in the condition that ends. */
static __always_inline void account_change(struct kernel_account *account, u32 kind, u64 now, u64 utc_offset, u64 held)
{
	u32 writing = account->writing;

	__sync_lock_test_and_set(&account->writing, writing + 1);
	if (account->kind != ACCOUNT_UNKNOWN)
		account_add(account, account->kind, account->since_ns + utc_offset, now + utc_offset, held);
	account->kind = kind;
	account->since_ns = now;
	account->queue = 0;
	__sync_lock_test_and_set(&account->writing, writing + 2);
}

static __always_inline u32 account_kind_of(u32 away)
{
	return away == KERNEL_AWAY_RUNNABLE  ? ACCOUNT_PREEMPTED
	       : away == KERNEL_AWAY_STOPPED ? ACCOUNT_STOPPED
	       : away == KERNEL_AWAY_IO	     ? ACCOUNT_BLOCKED_IO
					     : ACCOUNT_BLOCKED_OTHER;
}

/*
 * The thread has a CPU now; ran: its CPU time so far. Some kernels report no switch from certain tasks: a thread whose
 * last known condition is another one came back when its CPU time began to grow. Before its first known switch its time
 * is unknown.
 */
static __always_inline void account_present(struct kernel_account *account, u64 ran, u64 now, u64 utc_offset)
{
	u64 stay = ran > account->ran_ns ? ran - account->ran_ns : 0, present = now - account->since_ns;

	if (account->kind == ACCOUNT_ON_CPU)
		return;
	if (account->ran_ns)
		account_change(account, ACCOUNT_ON_CPU, now - (stay < present ? stay : present), utc_offset, 0);
	else
		account->kind = ACCOUNT_UNKNOWN;
}

/* The thread leaves its CPU. */
static __always_inline void account_leave(struct kernel_account *account, u32 away, u64 ran, u64 now, u64 utc_offset)
{
	account_present(account, ran, now, utc_offset);
	account_change(account, account_kind_of(away), now, utc_offset, 0);
	account->ran_ns = ran;
}

/* The thread ends, on a CPU. */
static __always_inline void account_end(struct kernel_account *account, u64 ran, u64 now, u64 utc_offset)
{
	account_present(account, ran, now, utc_offset);
	account_change(account, ACCOUNT_UNKNOWN, now, utc_offset, 0);
	account->ended_ns = now;
}

/* The thread is woken while asleep or stopped. */
static __always_inline void account_wake(struct kernel_account *account, u64 now, u64 utc_offset)
{
	if (account->kind >= ACCOUNT_STOPPED)
		account_change(account, ACCOUNT_WAKEUP_WAIT, now, utc_offset, 0);
}

#endif
