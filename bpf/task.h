/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tracked threads on and off the CPU: the suspension partition as the kernel tells it, and who ran instead. */
#ifndef VAPRO_TASK_H
#define VAPRO_TASK_H

#include "fragment.h"

static __always_inline void interfere(const struct kernel_thread *thread, u32 pid, const char *comm, u64 now,
				      u64 preempted, u64 waited)
{
	struct kernel_interference_key key = { .tid = thread->tid, .pid = pid, .bin = bin_of(now) };
	void *map = key.bin & 1 ? (void *)&interference_odd : (void *)&interference_even;
	struct kernel_interference *into = bpf_map_lookup_elem(map, &key), fresh = {};

	if (into) {
		into->preempted_ns += preempted;
		into->wakeup_wait_ns += waited;
		return;
	}
	fresh.preempted_ns = preempted;
	fresh.wakeup_wait_ns = waited;
	__builtin_memcpy(fresh.comm, comm, sizeof(fresh.comm));
	bpf_map_update_elem(map, &key, &fresh, BPF_NOEXIST);
}

static __always_inline int switched(bool preempt, struct task_struct *prev, struct task_struct *next, u32 prev_state)
{
	struct kernel_thread *thread;
	u64 now = 0, waited;
	bool preempted;

	thread = bpf_task_storage_get(&threads, prev, 0, 0);
	if (thread) {
		now = bpf_ktime_get_ns();
		offcpu_begin(&thread->off, now, preempt || !prev_state,
			     BPF_CORE_READ_BITFIELD_PROBED(prev, in_iowait), next->pid);
		bpf_probe_read_kernel(thread->off.other_comm, sizeof(thread->off.other_comm), next->comm);
	}
	thread = bpf_task_storage_get(&threads, next, 0, 0);
	if (thread) {
		if (!now)
			now = bpf_ktime_get_ns();
		waited = offcpu_end(&thread->off, &thread->now, now, &preempted);
		if (!waited)
			return 0;
		if (preempted) {
			if (thread->off.other_pid)
				interfere(thread, thread->off.other_pid, thread->off.other_comm, now, waited, 0);
		} else if (prev->pid) {
			char comm[16];

			bpf_probe_read_kernel(comm, sizeof(comm), prev->comm);
			interfere(thread, prev->pid, comm, now, 0, waited);
		}
	}
	return 0;
}

static __always_inline int woken(struct task_struct *task)
{
	struct kernel_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);

	if (thread)
		offcpu_wake(&thread->off, bpf_ktime_get_ns());
	return 0;
}

/* The thread ends, or becomes another program: what it was in will not return. */
static __always_inline void ended(struct task_struct *task, u32 type)
{
	struct kernel_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
	struct kernel_function_counters *count;
	u32 row;

	if (!thread)
		return;
	if (thread->open == KERNEL_CALL) {
		row = thread->function;
		count = bpf_map_lookup_elem(&function_counters, &row);
		if (count)
			add(count->vanished, 1);
		add(counters_of(thread->slot)->vanished, 1);
	}
	drop_open(thread, LOST_VANISHED);
	tell(type, thread->tgid, thread->tid, bpf_ktime_get_ns());
	if (type == KERNEL_EXEC)
		bpf_task_storage_delete(&threads, task);
}

#endif
