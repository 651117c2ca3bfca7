/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel keeps per run queue: how long the queue of a group has been throttled by its CPU
 * quota, and what of a CPU's time the hypervisor, interrupts and a low frequency took (ARCHITECTURE
 * section 8). Read where a kernel has it; interrupts are timed here too, while they are watched.
 */
#ifndef VAPRO_TAKEN_H
#define VAPRO_TAKEN_H

#include "maps.h"

#define FIRST_FAIR_PRIO 100 /* real-time tasks have smaller ones, and no quota */

/*
 * Time that a queue has been throttled since ever, ns. Of a queue that is one no more, anything. Before
 * 6.6 it is told by a clock that may stand while the CPU idles or runs slowly.
 */
static __always_inline u64 throttled_time(struct cfs_rq *queue)
{
	u64 sum = 0, begun = 0, now = 0;

	if (bpf_core_field_exists(queue->throttled_clock_self_time)) {
		sum = BPF_CORE_READ(queue, throttled_clock_self_time);
		begun = BPF_CORE_READ(queue, throttled_clock_self);
		if (begun)
			now = BPF_CORE_READ(queue, rq, clock);
	} else if (bpf_core_field_exists(queue->throttled_clock_pelt_time)) {
		sum = BPF_CORE_READ(queue, throttled_clock_pelt_time);
		if (BPF_CORE_READ(queue, throttle_count)) {
			begun = BPF_CORE_READ(queue, throttled_clock_pelt);
			now = BPF_CORE_READ(queue, rq, clock_pelt) - BPF_CORE_READ(queue, rq, lost_idle_time);
		}
	} else if (bpf_core_field_exists(queue->throttled_clock_task_time)) {
		sum = BPF_CORE_READ(queue, throttled_clock_task_time);
		if (BPF_CORE_READ(queue, throttle_count)) {
			begun = BPF_CORE_READ(queue, throttled_clock_task);
			now = BPF_CORE_READ(queue, rq, clock_task);
		}
	}
	return begun && now > begun ? sum + (now - begun) : sum;
}

/* The queue that a runnable task waits in; 0 where it cannot be throttled. */
static __always_inline struct cfs_rq *queue_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq) || task->prio < FIRST_FAIR_PRIO)
		return 0;
	return task->se.cfs_rq;
}

/* That of the CPU that the task is on; 0 where kernels do not schedule by groups. */
static __always_inline struct rq *run_queue_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq : 0;
}

/* What was taken of the CPU that the task is on. */
static __always_inline void cpu_taken(struct task_struct *task, struct kernel_taken *taken)
{
	struct interrupts *interrupts;
	struct rq *rq;
	u32 zero = 0;

	__builtin_memset(taken, 0, sizeof(*taken));
	if (bpf_core_field_exists(task->se.cfs_rq)) {
		rq = task->se.cfs_rq->rq;
		if (bpf_core_field_exists(rq->prev_steal_time_rq))
			taken->steal = rq->prev_steal_time_rq;
		else if (bpf_core_field_exists(rq->prev_steal_time))
			taken->steal = rq->prev_steal_time;
		if (bpf_core_field_exists(rq->prev_irq_time))
			taken->irq = rq->prev_irq_time;
		/* one of the clocks goes as fast as the CPU does, and catches up while that is idle */
		if (bpf_core_field_exists(rq->clock_pelt) && rq->clock_task > rq->clock_pelt)
			taken->slow = rq->clock_task - rq->clock_pelt;
	}
	interrupts = watch_interrupts ? bpf_map_lookup_elem(&interrupted, &zero) : 0;
	if (interrupts) {
		taken->hard_irq = interrupts->hard_ns;
		taken->soft_irq = interrupts->soft_ns;
	}
}

/* By what the queue of the task's CPU goes at present; 0 where kernels have none such. */
static __always_inline u64 queue_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : 0;
}

/*
 * Takes note of what the kernel counts for the current thread, and of what was taken from it. Looked at by
 * the verifier once, and alone, as in counting.h.
 */
__noinline int note_counts(struct kernel_thread *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_taken taken;

	if (!thread)
		return 0;
	cpu_taken(task, &taken);
	taken_now(thread, &taken, bpf_get_smp_processor_id());
	counts_note(thread, task->min_flt, task->maj_flt, task->nvcsw, task->nivcsw, task->se.nr_migrations);
	return 0;
}

/*
 * The same, where there may be anything new. No thread leaves a CPU and none comes back without that its
 * queue's clock goes on; faults are all that it does not tell of, and interrupts that are timed here.
 */
static __always_inline void read_counts(struct kernel_thread *thread, struct task_struct *task)
{
	u64 faults = task->min_flt + task->maj_flt;

	if (!taken_more(thread, queue_clock(task)) && thread->faults == faults && !watch_interrupts)
		return;
	thread->faults = faults;
	note_counts(thread);
}

static __always_inline struct interrupts *interrupts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&interrupted, &zero);
}

static __always_inline int hard_begins(void)
{
	struct interrupts *here = interrupts_here();

	if (here)
		here->hard_since = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int hard_ends(void)
{
	struct interrupts *here = interrupts_here();

	if (here && here->hard_since) {
		here->hard_ns += bpf_ktime_get_ns() - here->hard_since;
		here->hard_since = 0;
	}
	return 0;
}

static __always_inline int soft_begins(void)
{
	struct interrupts *here = interrupts_here();

	if (here) {
		here->soft_since = bpf_ktime_get_ns();
		here->hard_before = here->hard_ns;
	}
	return 0;
}

static __always_inline int soft_ends(void)
{
	struct interrupts *here = interrupts_here();
	u64 spent, hard;

	if (here && here->soft_since) {
		spent = bpf_ktime_get_ns() - here->soft_since;
		hard = here->hard_ns - here->hard_before;
		here->soft_ns += spent > hard ? spent - hard : 0;
		here->soft_since = 0;
	}
	return 0;
}

#endif
