/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracked threads on and off the CPU: the suspension partition by kernel events, and the tasks run instead. */
#ifndef VAPRO_TASK_H
#define VAPRO_TASK_H

#include "accounts.h"

/* Returns whether a task is vaprod or its confined reader. */
static __always_inline bool is_vaprod(struct task_struct *task)
{
	return own_tgid &&
	       ((u32)BPF_CORE_READ(task, tgid) == own_tgid || (u32)BPF_CORE_READ(task, real_parent, tgid) == own_tgid);
}

/* Two calls: the verifier inlines the lookup in a map that does not depend on the path. */
static __always_inline struct kernel_interference *interference_of(const struct kernel_interference_key *key)
{
	struct kernel_interference *found;

	if (key->bin & 1) {
		found = bpf_map_lookup_elem(&interference_odd, key);
		barrier(); /* or the compiler makes one call of them */
		return found;
	}
	return bpf_map_lookup_elem(&interference_even, key);
}

/*
 * Returns whether a thread may have another entry of a bin, and counts it: one owner's threads, which wait for each
 * other, would fill the map.
 */
static __always_inline bool has_entry(u32 slot, u32 bin)
{
	struct kernel_owner *owner = owner_of(counters_of(slot));
	u32 odd = bin & 1;

	begin_bin(&owner->tasks_bin[odd], &owner->tasks_used[odd], bin);
	if (owner->tasks_used[odd] >= room_of(owner, interference_room))
		return false;
	add(owner->tasks_used[odd], 1);
	return true;
}

/* The task that leaves the CPU takes its first slice of this thread in this bin. */
static __always_inline void first_slice(const struct waiters *waiters, const struct waiter *waiter, u64 slice)
{
	struct kernel_interference_key key = {.tid = waiter->tid, .pid = waiters->pid, .bin = waiters->bin};
	void *map = key.bin & 1 ? (void *)&interference_odd : (void *)&interference_even;
	struct task_struct *task = (struct task_struct *)waiters->task;
	struct kernel_interference fresh = {.longest_ns = slice, .slices = 1};

	if (waiter->woken)
		fresh.wakeup_wait_ns = slice;
	else
		fresh.preempted_ns = slice;
	fresh.tgid = BPF_CORE_READ(task, tgid);
	fresh.monitor = is_vaprod(task);
	bpf_probe_read_kernel(fresh.comm, sizeof(fresh.comm), task->comm);
	if (fresh.monitor)
		add(counters_of(waiter->slot)->held_ns, slice);
	if (!has_entry(waiter->slot, key.bin) || bpf_map_update_elem(map, &key, &fresh, BPF_NOEXIST))
		lose(waiter->slot, KERNEL_LOST_INTERFERENCE, 1);
}

/* Adds a slice of the task that leaves the CPU to what a thread lost to that task in this bin. */
static __always_inline void interfere(const struct waiters *waiters, const struct waiter *waiter, u64 slice)
{
	struct kernel_interference_key key = {.tid = waiter->tid, .pid = waiters->pid, .bin = waiters->bin};
	struct kernel_interference *into = interference_of(&key);

	if (!into) {
		first_slice(waiters, waiter, slice);
		return;
	}
	if (waiter->woken)
		into->wakeup_wait_ns += slice;
	else
		into->preempted_ns += slice;
	into->slices++;
	if (slice > into->longest_ns)
		into->longest_ns = slice;
	if (into->monitor)
		add(counters_of(waiter->slot)->held_ns, slice);
}

/* The kernel has put a thread that moved into the queue of its CPU by now. */
static __always_inline void find_queue(struct waiter *waiter)
{
	struct task_struct *task = (struct task_struct *)waiter->moved;

	waiter->moved = 0;
	if (!bpf_core_field_exists(task->se.cfs_rq) || BPF_CORE_READ(task, prio) < FIRST_FAIR_PRIO)
		return;
	waiter->queue = (u64)BPF_CORE_READ(task, se.cfs_rq);
	waiter->throttled = throttled_time((struct cfs_rq *)waiter->queue);
}

/* A waiting thread is charged to the task that leaves the CPU. Global, as the functions of accounts.h. */
__noinline int charge_waiter(struct waiters *waiters, u32 index, u64 now)
{
	struct waiter *waiter;
	u64 throttled = 0, slice;

	if (!waiters)
		return 0;
	waiter = &waiters->at[index & (WAITERS - 1)];
	if (waiter->moved)
		find_queue(waiter);
	if (waiter->queue) {
		/* threads of one group wait in one queue */
		if (waiter->queue != waiters->queue)
			waiters->throttled = throttled_time((struct cfs_rq *)waiter->queue);
		waiters->queue = waiter->queue;
		throttled = waiters->throttled;
	}
	slice = waiter_slice(waiter, now, throttled);
	if (slice && waiters->pid && waiters->pid != waiter->tid)
		interfere(waiters, waiter, slice);
	return 0;
}

/* prev gives up a CPU that watched threads wait for, and next gets it. No thread is charged to an idle CPU. */
static __always_inline void charge_waiters(struct waiters *waiters, struct task_struct *prev, u32 next, u64 now)
{
	u32 left = waiters->count, tid;

	waiters->queue = 0;
	waiters->task = (u64)prev;
	waiters->pid = prev->pid;
	waiters->bin = bin_of(now);
	for (u32 i = 0; i < WAITERS && left; i++) {
		tid = waiters->at[i].tid;
		if (!tid || tid == WAITER_RESERVED)
			continue;
		left--;
		charge_waiter(waiters, i, now);
		if (waiter_is_over(&waiters->at[i], next, now))
			waiters_remove(waiters, i);
	}
}

/* The thread waits from now on for a CPU, in the queue of thread->off; moved: 1 where that queue is another CPU's. */
__noinline int begin_to_wait(struct bpf_thread_state *thread, u32 cpu, u64 now, u32 moved)
{
	struct waiters *waiters = bpf_map_lookup_elem(&waiting_on, &cpu);
	struct waiter fresh = {};

	if (!thread)
		return 0;
	fresh.begin_ns = now;
	fresh.queue = moved ? 0 : thread->off.queue;
	fresh.throttled = thread->off.throttled;
	fresh.moved = moved ? thread->task : 0;
	fresh.tid = thread->tid;
	fresh.slot = thread->slot;
	fresh.woken = thread->off.away != KERNEL_AWAY_RUNNABLE;
	thread->off.cpu = cpu;
	thread->off.waiter = waiters ? waiters_add(waiters, &fresh) : 0;
	if (!thread->off.waiter)
		lose(thread->slot, KERNEL_LOST_INTERFERENCE, 1);
	return 0;
}

/* The thread waits no more for the CPU of thread->off. */
static __always_inline void end_of_wait(struct bpf_thread_state *thread, u64 now)
{
	u32 cpu = thread->off.cpu;
	struct waiters *waiters = bpf_map_lookup_elem(&waiting_on, &cpu);

	if (waiters)
		waiters_end(waiters, thread->off.waiter, thread->tid, now);
	thread->off.waiter = 0;
}

/* From now on the task is runnable without a CPU. */
static __always_inline void waits(struct bpf_thread_state *thread, struct task_struct *task, u32 cpu, u64 now)
{
	struct cfs_rq *queue = queue_of(task);

	offcpu_queue(&thread->off, (u64)queue, queue ? throttled_time(queue) : 0);
	begin_to_wait(thread, cpu, now, 0);
}

/* Returns the CPU in whose queue a task is. */
static __always_inline u32 cpu_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : bpf_get_smp_processor_id();
}

/* Returns whether a task is stopped by any means, or about to be. */
static __always_inline bool is_frozen(struct task_struct *task)
{
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

static __always_inline void leaves(struct bpf_thread_state *thread, u32 cpu, struct task_struct *prev,
				   enum kernel_away away, u64 now)
{
	if (thread->off.waiter)
		end_of_wait(thread, now); /* its switch to the CPU went unseen */
	offcpu_begin(&thread->off, now, away);
	if (away == KERNEL_AWAY_RUNNABLE)
		waits(thread, prev, cpu, now);
	thread->task = (u64)prev;
	thread->ran_ns = prev->se.sum_exec_runtime;
	account_left(thread, now);
}

static __always_inline void comes_back(struct bpf_thread_state *thread, u32 cpu, u64 now)
{
	u64 queue = thread->off.queue, throttled = 0, held = thread->now.throttled_ns;

	/* the queue that the thread waited in may be another CPU's */
	if (queue)
		throttled = throttled_time((struct cfs_rq *)queue);
	offcpu_end(&thread->off, &thread->now, now, throttled);
	account_got(thread, now, thread->now.throttled_ns - held);
	if (thread->off.waiter && thread->off.cpu != cpu)
		end_of_wait(thread, now); /* its move to this CPU went unseen */
	thread->off.waiter = 0;
}

static __always_inline int switched(bool preempt, struct task_struct *prev, struct task_struct *next, u32 prev_state)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct waiters *waiters = bpf_map_lookup_elem(&waiting_on, &cpu);
	struct bpf_thread_state *thread;
	struct kernel_stolen stolen;
	u64 now = 0; /* one time for all of a switch: what is waited is what is charged */

	if (waiters && waiters->count) {
		now = bpf_ktime_get_ns();
		charge_waiters(waiters, prev, next->pid, now);
	}
	thread = known_thread(prev);
	if (thread) {
		if (!now)
			now = bpf_ktime_get_ns();
		cpu_stolen(prev, &stolen);
		stolen_out(thread, &stolen, cpu);
		leaves(thread, cpu, prev,
		       away_of(preempt, prev_state, is_frozen(prev), BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait)),
		       now);
	}
	thread = known_thread(next);
	if (thread) {
		if (!now)
			now = bpf_ktime_get_ns();
		cpu_stolen(next, &stolen);
		stolen_in(thread, &stolen, cpu);
		thread->rq = (u64)run_queue_of(next);
		comes_back(thread, cpu, now);
	}
	if (counting)
		count_switch(prev, next);
	return 0;
}

static __always_inline int woken(struct task_struct *task)
{
	struct bpf_thread_state *thread = known_thread(task);
	u64 now;

	if (!thread)
		return 0;
	now = bpf_ktime_get_ns();
	if (!offcpu_wake(&thread->off, now))
		return 0;
	waits(thread, task, cpu_of(task), now);
	account_woken(thread, now);
	return 0;
}

/* A task moves to another CPU's queue. One that waits is charged to what runs there from now on. */
static __always_inline int migrated(struct task_struct *task, u32 cpu)
{
	struct bpf_thread_state *thread = known_thread(task);
	u64 now;

	if (!thread || !thread->off.waiter)
		return 0;
	now = bpf_ktime_get_ns();
	end_of_wait(thread, now);
	begin_to_wait(thread, cpu, now, 1);
	return 0;
}

/* The thread ends, or executes another program: its open call will not return. */
static __always_inline void ended(struct task_struct *task, u32 type)
{
	struct bpf_thread_state *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (!thread)
		return;
	if (thread->open == KERNEL_CALL)
		add(counters_of(thread->slot)->vanished, 1);
	if (thread->open == KERNEL_WAIT) {
		read_counts(thread, task);
		close_vertex(thread, bpf_ktime_get_ns());
	}
	drop_open(thread, KERNEL_LOST_VANISHED);
	requests_end(thread, task);
	account_ended(thread, task->se.sum_exec_runtime, bpf_ktime_get_ns());
	report_hits(thread, 0);
	send_event(type, thread->tgid, thread->tid, bpf_ktime_get_ns());
	/* posted operations are of an epoch of the thread's state, and end with it */
	if (type == KERNEL_EXEC) {
		bpf_task_storage_delete(&threads, task);
		bpf_task_storage_delete(&pending_calls, task);
	}
}

#endif
