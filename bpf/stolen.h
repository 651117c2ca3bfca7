/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's sums per run queue: how long the queue of a group has been throttled by its CPU quota,
 * and the CPU time stolen by the hypervisor, interrupts and a low frequency (ARCHITECTURE section 8).
 * Sums are read where kernels have them; interrupts are timed here too, while watched.
 */
#ifndef VAPRO_STOLEN_H
#define VAPRO_STOLEN_H

#include "maps.h"

#define FIRST_FAIR_PRIO 100 /* real-time tasks have smaller priorities, and no quota */

/*
 * Returns the total throttled time of a queue, ns; undefined if the queue was freed. Before 6.6 the time is
 * measured by a clock that may stand while the CPU idles or runs slowly.
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

/* Returns the queue that a runnable task waits in; 0 where it cannot be throttled. */
static __always_inline struct cfs_rq *queue_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq) || task->prio < FIRST_FAIR_PRIO)
		return 0;
	return task->se.cfs_rq;
}

/* Returns the run queue of the task's CPU; 0 where kernels have no group scheduling. */
static __always_inline struct rq *run_queue_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq : 0;
}

/* Reads the time stolen from the task's CPU. */
static __always_inline void cpu_stolen(struct task_struct *task, struct kernel_stolen *stolen)
{
	struct interrupts *interrupts;
	struct rq *rq;
	u32 zero = 0;

	__builtin_memset(stolen, 0, sizeof(*stolen));
	if (bpf_core_field_exists(task->se.cfs_rq)) {
		rq = task->se.cfs_rq->rq;
		if (bpf_core_field_exists(rq->prev_steal_time_rq))
			stolen->steal = rq->prev_steal_time_rq;
		else if (bpf_core_field_exists(rq->prev_steal_time))
			stolen->steal = rq->prev_steal_time;
		if (bpf_core_field_exists(rq->prev_irq_time))
			stolen->irq = rq->prev_irq_time;
		/* clock_pelt goes as fast as the CPU does, and catches up while the CPU is idle */
		if (bpf_core_field_exists(rq->clock_pelt) && rq->clock_task > rq->clock_pelt)
			stolen->slow = rq->clock_task - rq->clock_pelt;
	}
	interrupts = watch_interrupts ? bpf_map_lookup_elem(&interrupted, &zero) : 0;
	if (interrupts) {
		stolen->hard_irq = interrupts->hard_ns;
		stolen->soft_irq = interrupts->soft_ns;
	}
}

/* Returns the present clock of the task's CPU's queue; 0 where kernels have none. */
static __always_inline u64 queue_clock(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) ? task->se.cfs_rq->rq->clock : 0;
}

#define COUNT_OF_TASK(member, factor, of_task)                                                                         \
	[KERNEL_TASK_##factor] = bpf_core_field_exists(task->of_task) ? task->of_task : 0,

/*
 * Notes the kernel's counts of the current thread, 0 where the kernel has none, and the time stolen from the thread.
 * The verifier checks this function once and alone, as in counting.h.
 */
__noinline int note_counts(struct bpf_thread_state *thread)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const u64 counts[] = {KERNEL_TASK_COUNTS(COUNT_OF_TASK)};
	struct kernel_stolen stolen;

	if (!thread)
		return 0;
	cpu_stolen(task, &stolen);
	stolen_now(thread, &stolen, bpf_get_smp_processor_id());
	counts_note(thread, counts);
	return 0;
}

/*
 * Notes counts where any may be new. The queue's clock advances whenever a thread leaves a CPU or comes
 * back; it shows all but faults, and interrupts that are timed here.
 */
static __always_inline void read_counts(struct bpf_thread_state *thread, struct task_struct *task)
{
	u64 faults = task->min_flt + task->maj_flt;

	if (!stolen_more(thread, queue_clock(task)) && thread->faults == faults && !watch_interrupts)
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
