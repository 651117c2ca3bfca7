/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of a thread between two borders of fragments, from the kernel and the counters: time away from
 * the CPU by cause, time stolen on the CPU, faults and switches, and sums of counters over its stays.
 * Plain functions of their arguments, as in logic.h, which includes this file.
 */
#ifndef VAPRO_COUNTS_H
#define VAPRO_COUNTS_H

#include <vapro/bpf/thread_state.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Bits of a task's state that all kernels have. */
#define STATE_STOPPED 0x4 /* by a signal */
#define STATE_TRACED 0x8

/*
 * Returns why a thread leaves the CPU, by its state; frozen: a stop of any kind, also by the cgroup's freezer, whose
 * state looks like any sleep. A sleeping thread is woken before it stops, so each stop is a separate stay off the CPU.
 */
static __always_inline enum kernel_away away_of(bool preempted, u32 state, bool frozen, bool io_wait)
{
	if (preempted || !state)
		return KERNEL_AWAY_RUNNABLE;
	if (state & (STATE_STOPPED | STATE_TRACED) || frozen)
		return KERNEL_AWAY_STOPPED;
	return io_wait ? KERNEL_AWAY_IO : KERNEL_AWAY_ASLEEP;
}

/* A thread leaves the CPU. */
static __always_inline void offcpu_begin(struct kernel_offcpu *off, u64 now, enum kernel_away away)
{
	off->out_ns = now;
	off->wake_ns = 0;
	off->away = away;
	off->queue = 0;
	off->waiter = 0;
}

/* The thread is woken. Returns whether it waits for a CPU from now on. */
static __always_inline bool offcpu_wake(struct kernel_offcpu *off, u64 now)
{
	if (!off->out_ns || off->away == KERNEL_AWAY_RUNNABLE || off->wake_ns)
		return false;
	off->wake_ns = now;
	return true;
}

/* Notes the thread's queue and that queue's throttled time so far. */
static __always_inline void offcpu_queue(struct kernel_offcpu *off, u64 queue, u64 throttled)
{
	off->queue = queue;
	off->throttled = throttled;
}

/* Returns the throttled part of a wait, by the queue's throttled total `before` and `after` the wait. */
static __always_inline u64 throttled_part(u64 waited, u64 before, u64 after)
{
	u64 part = after > before ? after - before : 0;

	return part < waited ? part : waited;
}

/*
 * A thread gets a CPU back: its time away is split into the suspension factors. throttled: as for
 * offcpu_queue, now. Returns the time spent runnable without a CPU, in no throttled queue.
 */
static __always_inline u64 offcpu_end(struct kernel_offcpu *off, struct kernel_counts *counts, u64 now, u64 throttled)
{
	u64 away, asleep, waited = 0, held;

	if (!off->out_ns || now < off->out_ns)
		goto out;
	away = now - off->out_ns;
	asleep = off->away == KERNEL_AWAY_RUNNABLE		     ? 0
		 : off->wake_ns > off->out_ns && off->wake_ns <= now ? off->wake_ns - off->out_ns
								     : away;
	waited = away - asleep;
	held = off->queue ? throttled_part(waited, off->throttled, throttled) : 0;
	counts->throttled_ns += held;
	waited -= held;
	if (off->away == KERNEL_AWAY_RUNNABLE) {
		counts->preempted_ns += waited;
		goto out;
	}
	counts->wakeup_wait_ns += waited;
	if (off->away == KERNEL_AWAY_STOPPED)
		counts->stopped_ns += asleep;
	else if (off->away == KERNEL_AWAY_IO)
		counts->blocked_io_ns += asleep;
	else
		counts->blocked_other_ns += asleep;
out:
	off->out_ns = 0;
	off->wake_ns = 0;
	return waited;
}

static __always_inline void stolen_add(struct kernel_stolen *sum, const struct kernel_stolen *to,
				       const struct kernel_stolen *from)
{
	sum->steal += to->steal > from->steal ? to->steal - from->steal : 0;
	sum->irq += to->irq > from->irq ? to->irq - from->irq : 0;
	sum->hard_irq += to->hard_irq > from->hard_irq ? to->hard_irq - from->hard_irq : 0;
	sum->soft_irq += to->soft_irq > from->soft_irq ? to->soft_irq - from->soft_irq : 0;
	sum->slow += to->slow > from->slow ? to->slow - from->slow : 0;
}

/* A thread gets a CPU; now: the CPU's stolen time so far. */
static __always_inline void stolen_in(struct bpf_thread_state *thread, const struct kernel_stolen *now, u32 cpu)
{
	thread->stolen_at = *now;
	thread->stolen_cpu = cpu + 1;
	thread->stolen_clock = 0;
}

/*
 * Returns whether more time may have been stolen since the last look. clock: the CPU queue's, where kernels add up
 * stolen time; 0: no such clock.
 */
static __always_inline bool stolen_more(struct bpf_thread_state *thread, u64 clock)
{
	if (clock && clock == thread->stolen_clock)
		return false;
	thread->stolen_clock = clock;
	return true;
}

/* A thread leaves its CPU. A stay that began unseen is left out. */
static __always_inline void stolen_out(struct bpf_thread_state *thread, const struct kernel_stolen *now, u32 cpu)
{
	if (thread->stolen_cpu == cpu + 1)
		stolen_add(&thread->stolen, now, &thread->stolen_at);
	thread->stolen_cpu = 0;
}

/*
 * Raises the running thread's counts to the time stolen up to now. Counts only grow: a switch between
 * the reads behind `now` makes this sum too small, which the next one makes up for.
 */
static __always_inline void stolen_now(struct bpf_thread_state *thread, const struct kernel_stolen *now, u32 cpu)
{
	struct kernel_stolen sum = thread->stolen;

	if (thread->stolen_cpu == cpu + 1)
		stolen_add(&sum, now, &thread->stolen_at);
	else
		stolen_in(thread, now, cpu);
	if (sum.steal > thread->now.steal_ns)
		thread->now.steal_ns = sum.steal;
	if (sum.irq > thread->now.irq_ns)
		thread->now.irq_ns = sum.irq;
	if (sum.hard_irq > thread->now.hard_irq_ns)
		thread->now.hard_irq_ns = sum.hard_irq;
	if (sum.soft_irq > thread->now.soft_irq_ns)
		thread->now.soft_irq_ns = sum.soft_irq;
	if (sum.slow > thread->now.slow_ns)
		thread->now.slow_ns = sum.slow;
}

static __always_inline void counts_delta(struct kernel_counts *delta, const struct kernel_counts *to,
					 const struct kernel_counts *from)
{
#define DELTA(member, ...) delta->member = to->member - from->member;
	KERNEL_TIMES(DELTA)
	KERNEL_TASK_COUNTS(DELTA)
#undef DELTA
}

static __always_inline void counts_add(u64 *sum, const u64 *add, const u64 *less)
{
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		sum[i] += add[i] - less[i];
}

/*
 * Returns whether the counters advanced between two readings of one stay on a CPU. Not every switch is
 * seen here, so the kernel's own number decides.
 */
static __always_inline bool reading_follows(const struct kernel_reading *reading, const struct kernel_reading *last)
{
	return reading->epoch == last->epoch && reading->enabled != last->enabled &&
	       reading->switches == last->switches;
}

/* A thread gets a CPU, whose counters show `reading`; known: `reading` is valid. */
static __always_inline void tally_in(struct kernel_tally *tally, const struct kernel_reading *reading, bool known)
{
	tally->switches++;
	if (tally->on || reading->epoch != tally->last.epoch)
		tally->gaps++; /* the thread left the CPU unseen, or its counters were exchanged */
	tally->on = known;
	tally->last = *reading;
}

/* The thread leaves the CPU. */
static __always_inline void tally_out(struct kernel_tally *tally, const struct kernel_reading *reading, bool known)
{
	tally->switches++;
	if (tally->on && known && reading_follows(reading, &tally->last))
		counts_add(tally->sum, reading->value, tally->last.value);
	else
		tally->gaps++;
	tally->on = 0;
}

/*
 * Writes the running thread's counts up to the reading in tally->now to counts. switches: tally->switches
 * before that reading; a switch since then changes the number, and false requests another reading. A stay
 * whose beginning was not seen is counted from here on: a gap.
 */
static __always_inline bool tally_now(struct kernel_tally *tally, u32 switches, u64 *counts)
{
	volatile u32 *present = &tally->switches, *on = &tally->on;

	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		counts[i] = tally->sum[i];
	if (*on && reading_follows(&tally->now, &tally->last)) {
		counts_add(counts, tally->now.value, tally->last.value);
		return *present == switches;
	}
	if (*present != switches)
		return false;
	*on = 0;
	tally->gaps++;
	tally->last = tally->now;
	*on = 1;
	if (*present == switches)
		return true;
	*on = 0; /* last may be of another stay */
	return false;
}

static __always_inline u64 counts_off_cpu(const struct kernel_counts *c)
{
	return c->preempted_ns + c->wakeup_wait_ns + c->blocked_io_ns + c->blocked_other_ns + c->throttled_ns +
	       c->stopped_ns;
}

static __always_inline u64 take_from(u64 *rest, u64 wanted)
{
	u64 part = wanted < *rest ? wanted : *rest;

	*rest -= part;
	return part;
}

/* Returns the time stolen from a thread on a CPU. */
static __always_inline u64 counts_stolen(const struct kernel_counts *c)
{
	return c->steal_ns + c->irq_ns + c->hard_irq_ns + c->soft_irq_ns + c->slow_ns;
}

/* Makes the counts of a fragment a partition of its time: hard and soft interrupts are parts of all interrupts. */
static __always_inline void counts_bound(struct kernel_counts *c, u64 duration)
{
	u64 away = counts_off_cpu(c), rest = duration > away ? duration - away : 0, parts;

	c->steal_ns = take_from(&rest, c->steal_ns);
	parts = rest;
	c->irq_ns = take_from(&rest, c->irq_ns);
	c->hard_irq_ns = take_from(&parts, c->hard_irq_ns);
	c->soft_irq_ns = take_from(&parts, c->soft_irq_ns);
	if (parts < rest)
		rest = parts;
	c->slow_ns = take_from(&rest, c->slow_ns);
}

/*
 * Ends a fragment's counts. The kernel adds up the time stolen from a CPU at its ticks, so more may
 * be found than the fragment lasts: the rest is left to the next fragment, which has to look again.
 */
static __always_inline void counts_end(struct bpf_thread_state *thread, struct kernel_counts *c, u64 duration)
{
	u64 found;

	counts_delta(c, &thread->now, &thread->border);
	found = counts_stolen(c);
	counts_bound(c, duration);
	if (counts_stolen(c) == found)
		return;
	thread->noted = thread->border_noted + 1;
	thread->stolen_clock = 0;
	thread->now.steal_ns = thread->border.steal_ns + c->steal_ns;
	thread->now.irq_ns = thread->border.irq_ns + c->irq_ns;
	thread->now.hard_irq_ns = thread->border.hard_irq_ns + c->hard_irq_ns;
	thread->now.soft_irq_ns = thread->border.soft_irq_ns + c->soft_irq_ns;
	thread->now.slow_ns = thread->border.slow_ns + c->slow_ns;
}

/*
 * Notes the kernel's counts of a task, by enum kernel_task_count; stolen time is in thread->now already. All counts
 * are monotone, and no thread leaves a CPU without a counted switch: while the sum is unchanged nothing has happened,
 * as in most fragments.
 */
static __always_inline void counts_note(struct bpf_thread_state *thread, const u64 *counts)
{
	u64 sum = counts_stolen(&thread->now);

	for (u32 i = 0; i < KERNEL_TASK_COUNTED; i++)
		sum += counts[i];
	if (sum == thread->noted)
		return;
	thread->noted = sum;
#define NOTE(member, factor, ...) thread->now.member = counts[KERNEL_TASK_##factor];
	KERNEL_TASK_COUNTS(NOTE)
#undef NOTE
}

/* Returns whether anything happened since the last border. */
static __always_inline bool counts_changed(const struct bpf_thread_state *thread)
{
	return thread->noted != thread->border_noted;
}

/* A fragment begins here. */
static __always_inline void counts_border(struct bpf_thread_state *thread)
{
	if (!counts_changed(thread))
		return;
	thread->border = thread->now;
	thread->border_noted = thread->noted;
}

static __always_inline void counts_sum(struct kernel_counts *sum, const struct kernel_counts *c)
{
#define SUM(member, ...) sum->member += c->member;
	KERNEL_TIMES(SUM)
	KERNEL_TASK_COUNTS(SUM)
#undef SUM
}

#endif
