/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accounts of tracked threads, updated at the scheduler's events, read by user space. */
#ifndef VAPRO_ACCOUNTS_H
#define VAPRO_ACCOUNTS_H

#include "fragment.h"

#define CLONE_THREAD 0x10000
#define ACCOUNT_TRIES 8

/* Gives an account to a thread without one. Numbers wrap around; those of live threads are skipped. */
__noinline int give_account(struct bpf_thread_state *thread)
{
	struct kernel_account *account;

	if (!thread)
		return 0;
	for (u32 i = 0; i < ACCOUNT_TRIES; i++) {
		u32 at = __sync_fetch_and_add(&accounts_given, 1) & (KERNEL_ACCOUNTS - 1);

		account = bpf_map_lookup_elem(&accounts, &at);
		if (!account || account->tid)
			continue;
		__builtin_memset(account, 0, offsetof(struct kernel_account, bins));
		account->tgid = thread->tgid;
		thread->account = at + 1;
		__sync_lock_test_and_set(&account->tid, thread->tid);
		return 0;
	}
	add(accounts_lost, 1);
	thread->account = KERNEL_NO_ACCOUNT;
	return 0;
}

static __always_inline struct kernel_account *account_of(struct bpf_thread_state *thread)
{
	struct kernel_account *account;
	u32 at;

	if (!thread->account)
		give_account(thread);
	at = thread->account - 1;
	account = bpf_map_lookup_elem(&accounts, &at);
	if (!account || account->tid != thread->tid || account->ended_ns)
		return 0;
	return account;
}

static __always_inline void account_waits(struct kernel_account *account, const struct bpf_thread_state *thread)
{
	account->throttled = thread->off.throttled;
	account->queue = thread->off.queue;
}

/*
 * The three functions below are global: the verifier checks each once, and each has its own stack.
 * The thread has left its CPU, as thread->off says.
 */
__noinline int account_left(struct bpf_thread_state *thread, u64 now)
{
	struct kernel_account *account;

	if (!thread)
		return 0;
	account = account_of(thread);
	if (!account)
		return 0;
	account->steal_ns = thread->stolen.steal;
	account->task = thread->task;
	account_leave(account, thread->off.away, thread->ran_ns, now, utc_offset_ns);
	account_waits(account, thread);
	return 0;
}

/* The thread is woken. */
__noinline int account_woken(struct bpf_thread_state *thread, u64 now)
{
	struct kernel_account *account;

	if (!thread)
		return 0;
	account = account_of(thread);
	if (!account)
		return 0;
	account_wake(account, now, utc_offset_ns);
	account_waits(account, thread);
	return 0;
}

/* The thread gets a CPU with the run queue thread->rq; held: ns throttled in the wait for the CPU. */
__noinline int account_got(struct bpf_thread_state *thread, u64 now, u64 held)
{
	struct kernel_account *account;

	if (!thread)
		return 0;
	account = account_of(thread);
	if (!account)
		return 0;
	account->rq = thread->rq;
	account->steal_at = thread->stolen_at.steal;
	account_change(account, ACCOUNT_ON_CPU, now, utc_offset_ns, held);
	return 0;
}

/* The thread has ended, or executes another program with another account; ran: its CPU time. */
static __always_inline void account_ended(struct bpf_thread_state *thread, u64 ran, u64 now)
{
	struct kernel_account *account = account_of(thread);

	if (account)
		account_end(account, ran, now, utc_offset_ns);
}

/* A new thread of a tracked process is tracked as its parent is, before its first call. */
static __always_inline int thread_begins(struct task_struct *task, u64 clone_flags)
{
	struct bpf_thread_state *parent, *thread;
	u32 tgid = task->tgid;

	if (!(clone_flags & CLONE_THREAD))
		return 0;
	parent = known_thread(bpf_get_current_task_btf());
	if (!parent || parent->tgid != tgid || !bpf_map_lookup_elem(&processes, &tgid))
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!thread) {
		lose(parent->slot, KERNEL_LOST_NO_STORAGE, 1);
		return 0;
	}
	thread->tgid = tgid;
	thread->tid = task->pid;
	thread->slot = parent->slot;
	thread->process_flags = parent->process_flags;
	thread->generation = generation;
	thread->rows_generation = rows_generation;
	thread->set = governed_of(parent->slot)->set;
	thread->probe_epoch = governed_of(parent->slot)->probe_epoch;
	thread->drop_open_epoch = governed_of(parent->slot)->drop_open_epoch;
	send_event(KERNEL_THREAD, tgid, task->pid, bpf_ktime_get_ns());
	return 0;
}

static __always_inline u64 stolen_of(u64 queue)
{
	struct rq *rq = (struct rq *)queue;

	if (!rq)
		return 0;
	if (bpf_core_field_exists(rq->prev_steal_time_rq))
		return BPF_CORE_READ(rq, prev_steal_time_rq);
	return bpf_core_field_exists(rq->prev_steal_time) ? BPF_CORE_READ(rq, prev_steal_time) : 0;
}

/* Returns for how long a thread that seems to wait for a CPU has had one: the switch to it went unseen. */
static __always_inline u64 runs_unseen(volatile struct kernel_account *account)
{
	struct task_struct *task = (struct task_struct *)account->task;
	u64 ran;

	if (!task || !bpf_core_field_exists(task->on_cpu) || BPF_CORE_READ(task, pid) != (int)account->tid ||
	    !BPF_CORE_READ(task, on_cpu))
		return 0;
	ran = BPF_CORE_READ(task, se.sum_exec_runtime);
	return ran > account->ran_ns ? ran - account->ran_ns : 0;
}

/*
 * Computes what no switch has added to an account yet: time stolen from the present stay on a CPU, or throttled in
 * the present wait, or a stay that no switch began. User space sets the number, runs the program and reads the result
 * in the object's memory.
 */
static __always_inline int look_at_account(void)
{
	u32 number = account_looked.number, writing;
	volatile struct kernel_account *account = bpf_map_lookup_elem(&accounts, &number);
	u64 stolen, queue, now, then, throttled = 0, running = 0;

	if (!account)
		return 0;
	writing = account->writing;
	stolen = account->steal_ns;
	if (account->kind == ACCOUNT_ON_CPU) {
		now = stolen_of(account->rq);
		then = account->steal_at;
		if (now > then && account->writing == writing) /* else another stay has begun */
			stolen += now - then;
	} else {
		queue = account->queue;
		now = queue ? throttled_time((struct cfs_rq *)queue) : 0;
		then = account->throttled;
		if (now > then && account->writing == writing)
			throttled = now - then;
		now = runs_unseen(account);
		if (account->writing == writing)
			running = now;
	}
	account_looked.steal_ns = stolen;
	account_looked.throttled_ns = throttled;
	account_looked.running_ns = running;
	return 0;
}

#endif
