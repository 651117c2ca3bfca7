/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters. They count per CPU and for whoever runs there; what belongs to a tracked thread is summed
 * up over its stays by the scheduler's switches, and read at the borders of its computations
 * (ARCHITECTURE section 3). The arithmetic is in logic.h.
 *
 * A probe's program may be preempted between reading counters and using what it read; the scheduler's
 * program may not. So the latter alone writes the sums, and who sees it did so meanwhile reads again.
 */
#ifndef VAPRO_COUNTING_H
#define VAPRO_COUNTING_H

#include "maps.h"

#define COUNT_ATTEMPTS 3

/* What this CPU's counters show. Fails where one is missing, displaced by somebody else's, or being exchanged. */
static __always_inline bool read_events(struct task_struct *task, struct kernel_reading *reading)
{
	u64 first = (u64)bpf_get_smp_processor_id() * KERNEL_EVENTS;
	volatile u32 *epoch = &event_epoch;
	struct bpf_perf_event_value value;
	u32 count;

	__builtin_memset(reading, 0, sizeof(*reading));
	reading->epoch = *epoch;
	reading->switches = (u32)(task->nvcsw + task->nivcsw);
	count = event_count;
	for (u32 i = 0; i < KERNEL_EVENTS; i++) {
		if (i >= count)
			break;
		if (bpf_perf_event_read_value(&perf_events, first + i, &value, sizeof(value)))
			return false;
		reading->value[i] = value.counter;
		if (!i)
			reading->enabled = value.enabled;
	}
	return count && *epoch == reading->epoch;
}

static __always_inline void count_switch(struct task_struct *prev, struct task_struct *next)
{
	struct kernel_tally *leaves, *comes;
	struct kernel_reading reading;
	bool known = false, read = false;

	leaves = bpf_task_storage_get(&tallies, prev, 0, 0);
	if (leaves) {
		known = read = read_events(prev, &reading);
		reading.switches--; /* this one is in it already */
		tally_out(leaves, &reading, known);
	}
	comes = bpf_task_storage_get(&tallies, next, 0, 0);
	if (comes) {
		if (!read)
			known = read_events(next, &reading);
		reading.switches = (u32)(next->nvcsw + next->nivcsw);
		tally_in(comes, &reading, known);
	}
}

/* The current thread's counts up to now. False where they are not known. */
static __always_inline bool count_now(struct task_struct *task, struct kernel_tally *tally, u64 *counts)
{
	volatile u32 *turns = &tally->turns;

	for (u32 attempt = 0; attempt < COUNT_ATTEMPTS; attempt++) {
		u32 before = *turns;

		if (!read_events(task, &tally->now))
			break;
		if (tally_now(tally, before, counts))
			return true;
	}
	tally->gaps++;
	return false;
}

/* A computation begins. */
static __always_inline void count_begin(void)
{
	struct task_struct *task;
	struct kernel_tally *tally;

	if (!counting)
		return;
	task = bpf_get_current_task_btf();
	tally = bpf_task_storage_get(&tallies, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (tally)
		tally->mark = count_now(task, tally, tally->border) ? tally->gaps + 1 : 0;
}

/* It ends: its counts are in delta. NULL where they are not known. */
static __always_inline const struct kernel_tally *count_end(void)
{
	struct task_struct *task;
	struct kernel_tally *tally;

	if (!counting)
		return 0;
	task = bpf_get_current_task_btf();
	tally = bpf_task_storage_get(&tallies, task, 0, 0);
	if (!tally || !tally->mark || !count_now(task, tally, tally->delta) || tally->gaps + 1 != tally->mark)
		return 0;
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		tally->delta[i] -= tally->border[i];
	return tally;
}

/* Enters the counts of a computation. */
static __always_inline void bundle_count(struct kernel_bundle *one, struct kernel_bundle_key *key,
					 const struct kernel_tally *tally)
{
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		one->event_sum[i] = tally->delta[i];
	for (u32 i = 0; i < KERNEL_MAGNITUDES; i++)
		one->event_min[i] = one->event_max[i] = i < magnitude_count ? tally->delta[i] : 0;
	key->cell = work_cell_of(one->event_min[0]);
	key->named_cell[0] = work_cell_of(one->event_min[1]);
	key->named_cell[1] = work_cell_of(one->event_min[2]);
	key->group = (u8)event_group;
}

#endif
