/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watched threads that wait for a CPU, by CPU, and the time for which the tasks that run there are charged. Plain
 * functions of their arguments, as in logic.h. A CPU's table changes under the lock of the CPU's run queue, but for
 * threads that come from another queue, which are entered without that lock: an entry is taken by an atomic exchange,
 * and counts once it has its thread.
 */
#ifndef VAPRO_WAITERS_H
#define VAPRO_WAITERS_H

#include "counts.h"

#define WAITERS 16			 /* of one CPU; a power of two */
#define WAITER_RESERVED (~0U)		 /* instead of a thread: the entry is being filled */
#define WAITER_LONGEST_NS 60000000000ULL /* a longer wait is of a thread that was forgotten while it waited */

struct waiter {
	u64 since_ns;  /* start of the slice that is not charged yet */
	u64 begin_ns;  /* start of the wait */
	u64 until_ns;  /* the wait on this CPU ended then; 0: it lasts */
	u64 queue;     /* queue of the thread; 0 where none can be throttled */
	u64 throttled; /* ns that this queue had been throttled when the slice began */
	u64 moved;     /* the kernel's task_struct of a thread from another CPU's queue, while its new one is unknown */
	u32 tid;       /* 0: the entry is free */
	u32 slot;      /* of the thread's process */
	u32 woken;     /* 1: the thread waits after a wakeup; 0: it was preempted */
	u32 pad;
};

struct waiters {
	u32 count;	      /* entries in use */
	u32 pid, bin;	      /* scratch of the CPU's switches: the task that leaves it, the bin of the switch */
	u64 task;	      /* as well: that task's task_struct in the kernel */
	u64 queue, throttled; /* as well: a queue that was looked at, and its throttled total */
	struct waiter at[WAITERS];
};

/* Enters a thread. Returns its number from 1, or 0 where the table is full. */
static __always_inline u32 waiters_add(struct waiters *waiters, const struct waiter *fresh)
{
	for (u32 i = 0; i < WAITERS; i++) {
		struct waiter *at = &waiters->at[i];

		if (at->tid || __sync_val_compare_and_swap(&at->tid, 0, WAITER_RESERVED))
			continue;
		at->since_ns = fresh->begin_ns;
		at->begin_ns = fresh->begin_ns;
		at->until_ns = 0;
		at->queue = fresh->queue;
		at->throttled = fresh->throttled;
		at->moved = fresh->moved;
		at->slot = fresh->slot;
		at->woken = fresh->woken;
		__sync_fetch_and_add(&waiters->count, 1);
		__sync_lock_test_and_set(&at->tid, fresh->tid);
		return i + 1;
	}
	return 0;
}

/* A thread waits for this CPU no more: what runs now is charged up to this time at the CPU's next switch. */
static __always_inline void waiters_end(struct waiters *waiters, u32 number, u32 tid, u64 now)
{
	struct waiter *at = &waiters->at[(number - 1) & (WAITERS - 1)];

	if (number && at->tid == tid)
		at->until_ns = now;
}

/* Frees an entry. */
static __always_inline void waiters_remove(struct waiters *waiters, u32 index)
{
	waiters->at[index & (WAITERS - 1)].tid = 0;
	__sync_fetch_and_add(&waiters->count, (u32)-1);
}

/* Returns whether an entry is done with when the CPU is given to the task `next` now. */
static __always_inline bool waiter_is_over(const struct waiter *waiter, u32 next, u64 now)
{
	return waiter->tid == next || waiter->until_ns || now > waiter->begin_ns + WAITER_LONGEST_NS;
}

/*
 * The CPU is given up now. Returns for how long of the time since the last switch, or since the wait began, the thread
 * could have had the CPU: not while its queue was throttled; throttled: that queue's total, now. The next slice begins.
 */
static __always_inline u64 waiter_slice(struct waiter *waiter, u64 now, u64 throttled)
{
	u64 until = waiter->until_ns && waiter->until_ns < now ? waiter->until_ns : now;
	u64 slice = until > waiter->since_ns ? until - waiter->since_ns : 0;

	if (waiter->queue)
		slice -= throttled_part(slice, waiter->throttled, throttled);
	waiter->throttled = throttled;
	if (now > waiter->since_ns) /* it may have come from another CPU since the clock was read */
		waiter->since_ns = now;
	return slice;
}

#endif
