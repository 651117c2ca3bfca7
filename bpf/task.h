/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracked threads on and off the CPU: the suspension partition by kernel events, and the tasks run instead. */
#ifndef VAPRO_TASK_H
#define VAPRO_TASK_H

#include "accounts.h"

/* A task that ran while another one waited. */
struct runner {
	u32 pid, tgid, monitor;
	char comm[16];
};

static __always_inline void interfere(u32 tid, const struct runner *runner, u64 now, u64 preempted, u64 waited)
{
	struct kernel_interference_key key = {.tid = tid, .pid = runner->pid, .bin = bin_of(now)};
	void *map = key.bin & 1 ? (void *)&interference_odd : (void *)&interference_even;
	struct kernel_interference *into = bpf_map_lookup_elem(map, &key), fresh = {};

	if (into) {
		into->preempted_ns += preempted;
		into->wakeup_wait_ns += waited;
		return;
	}
	fresh.preempted_ns = preempted;
	fresh.wakeup_wait_ns = waited;
	fresh.tgid = runner->tgid;
	fresh.monitor = runner->monitor;
	__builtin_memcpy(fresh.comm, runner->comm, sizeof(fresh.comm));
	bpf_map_update_elem(map, &key, &fresh, BPF_NOEXIST);
}

/* Returns whether a task is vaprod or its confined reader. */
static __always_inline bool is_vaprod(struct task_struct *task)
{
	return own_tgid && ((u32)task->tgid == own_tgid || (u32)BPF_CORE_READ(task, real_parent, tgid) == own_tgid);
}

static __always_inline void interfere_task(u32 tid, u32 slot, struct task_struct *task, u64 now, u64 preempted,
					   u64 waited)
{
	struct runner runner = {.pid = task->pid, .tgid = task->tgid, .monitor = is_vaprod(task)};

	if (runner.monitor)
		add(counters_of(slot)->held_ns, preempted + waited);
	bpf_probe_read_kernel(runner.comm, sizeof(runner.comm), task->comm);
	interfere(tid, &runner, now, preempted, waited);
}

/*
 * prev gives up a CPU that a tracked thread waits for: prev is charged with its slice, less the time in
 * which the thread could not have had the CPU anyway.
 */
static __always_inline void charge_slice(struct waiting *waiting, struct task_struct *prev)
{
	u64 now = bpf_ktime_get_ns(), slice = now > waiting->since_ns ? now - waiting->since_ns : 0, throttled;

	if (waiting->queue) {
		throttled = throttled_time((struct cfs_rq *)waiting->queue);
		slice -= throttled_part(slice, waiting->throttled, throttled);
		waiting->throttled = throttled;
	}
	if (prev->pid && prev->pid != waiting->tid && slice) {
		interfere_task(waiting->tid, waiting->slot, prev, now, slice, 0);
		waiting->attributed_ns += slice;
	}
	waiting->since_ns = now;
}

/* From now on the task is runnable without a CPU. */
static __always_inline void waits(struct kernel_offcpu *off, struct task_struct *task)
{
	struct cfs_rq *queue = queue_of(task);

	offcpu_queue(off, (u64)queue, queue ? throttled_time(queue) : 0);
}

/* Returns whether a task is stopped by any means, or about to be. */
static __always_inline bool is_frozen(struct task_struct *task)
{
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

static __always_inline void leaves(struct bpf_thread_state *thread, struct waiting *waiting, u32 cpu,
				   struct task_struct *prev, struct task_struct *next, enum kernel_away away, u64 now)
{
	bool runnable = away == KERNEL_AWAY_RUNNABLE;

	offcpu_begin(&thread->off, now, away, next->pid);
	thread->off.own = is_vaprod(next);
	thread->off.other_tgid = next->tgid;
	bpf_probe_read_kernel(thread->off.other_comm, sizeof(thread->off.other_comm), next->comm);
	thread->off.cpu = cpu;
	if (runnable)
		waits(&thread->off, prev);
	thread->task = (u64)prev;
	thread->ran_ns = prev->se.sum_exec_runtime;
	account_left(thread, now);
	if (waiting && waiting->tid == thread->tid)
		waiting->tid = 0; /* its switch to the CPU went unseen */
	if (!runnable || !waiting || waiting->tid)
		return; /* a second thread waiting for this CPU charges the task it was switched to */
	waiting->tid = thread->tid;
	waiting->slot = thread->slot;
	waiting->since_ns = now;
	waiting->attributed_ns = 0;
	waiting->queue = thread->off.queue;
	waiting->throttled = thread->off.throttled;
}

static __always_inline void comes_back(struct bpf_thread_state *thread, struct task_struct *prev, u64 now)
{
	u64 waited, attributed = 0, queue = thread->off.queue, throttled = 0, held = thread->now.throttled_ns;
	u32 cpu = thread->off.cpu;
	struct waiting *waiting = bpf_map_lookup_elem(&waiting_on, &cpu);
	bool preempted;

	/* the queue that the thread waited in may be another CPU's */
	if (queue)
		throttled = throttled_time((struct cfs_rq *)queue);
	waited = offcpu_end(&thread->off, &thread->now, now, throttled, &preempted);
	account_got(thread, now, thread->now.throttled_ns - held);
	if (waiting && waiting->tid == thread->tid) {
		attributed = waiting->attributed_ns;
		waiting->tid = 0;
	}
	if (!waited)
		return;
	if (!preempted) {
		if (prev->pid)
			interfere_task(thread->tid, thread->slot, prev, now, 0, waited);
	} else if (thread->off.other_pid && waited > attributed) {
		struct runner runner = {
		    .pid = thread->off.other_pid, .tgid = thread->off.other_tgid, .monitor = thread->off.own};

		if (thread->off.own)
			add(counters_of(thread->slot)->held_ns, waited - attributed);
		__builtin_memcpy(runner.comm, thread->off.other_comm, sizeof(runner.comm));
		interfere(thread->tid, &runner, now, waited - attributed, 0);
	}
}

static __always_inline int switched(bool preempt, struct task_struct *prev, struct task_struct *next, u32 prev_state)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct waiting *waiting = bpf_map_lookup_elem(&waiting_on, &cpu);
	struct bpf_thread_state *thread;
	struct kernel_stolen stolen;

	if (waiting && waiting->tid)
		charge_slice(waiting, prev);
	thread = known_thread(prev);
	if (thread) {
		cpu_stolen(prev, &stolen);
		stolen_out(thread, &stolen, cpu);
		leaves(thread, waiting, cpu, prev, next,
		       away_of(preempt, prev_state, is_frozen(prev), BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait)),
		       bpf_ktime_get_ns());
	}
	thread = known_thread(next);
	if (thread) {
		cpu_stolen(next, &stolen);
		stolen_in(thread, &stolen, cpu);
		thread->rq = (u64)run_queue_of(next);
		comes_back(thread, prev, bpf_ktime_get_ns());
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
	waits(&thread->off, task);
	account_woken(thread, now);
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
