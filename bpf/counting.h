/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters count per CPU, for every thread that runs there; a tracked thread's counts are summed up
 * over its stays at the scheduler's switches and read at the borders of its computations
 * (ARCHITECTURE section 3). The arithmetic is in counts.h.
 *
 * A probe's program may be preempted between reading counters and using the values; the scheduler's
 * program may not. So the latter alone writes the sums, and a probe that sees such a write reads again.
 */
#ifndef VAPRO_COUNTING_H
#define VAPRO_COUNTING_H

#include "maps.h"

#define COUNT_ATTEMPTS 3

/* Reads this CPU's counters. Fails where one is missing, displaced by another user's, or being exchanged. */
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
		reading.switches--; /* without this switch */
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

/* Reads the current thread's counts up to now. False: they are unknown. */
static __always_inline bool count_now(struct task_struct *task, struct kernel_tally *tally, u64 *counts)
{
	volatile u32 *switches = &tally->switches;

	for (u32 attempt = 0; attempt < COUNT_ATTEMPTS; attempt++) {
		u32 before = *switches;

		if (!read_events(task, &tally->now))
			break;
		if (tally_now(tally, before, counts))
			return true;
	}
	tally->gaps++;
	return false;
}

/*
 * The verifier checks each function below once and alone: the programs that call them nearly reach the
 * stack size and the length that kernels allow.
 */

/* A computation of the current thread begins. */
__noinline int count_begin(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_tally *tally;

	tally = bpf_task_storage_get(&tallies, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (tally)
		tally->mark = count_now(task, tally, tally->border) ? tally->gaps + 1 : 0;
	return 0;
}

/* The computation ends: its counts go into the thread's bundle and the key. Returns 0 where unknown. */
__noinline int count_end(struct kernel_bundle_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kernel_tally *tally = bpf_task_storage_get(&tallies, task, 0, 0);
	struct bpf_thread_state *thread;
	volatile u32 *epoch = &event_epoch;
	struct kernel_bundle *one;
	u32 group;

	if (!key || !tally)
		return 0;
	if (!tally->mark || !count_now(task, tally, tally->delta) || tally->gaps + 1 != tally->mark)
		return 0;
	thread = bpf_task_storage_get(&threads, task, 0, 0); /* looked up late to save stack */
	if (!thread)
		return 0;
	group = event_group;
	if (*epoch != tally->now.epoch)
		return 0; /* the counters were exchanged: `group` may be the next one's */
	one = &thread->one;
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		one->event_sum[i] = tally->delta[i] - tally->border[i];
	for (u32 i = 0; i < KERNEL_MAGNITUDES; i++)
		one->event_min[i] = one->event_max[i] = i < magnitude_count ? one->event_sum[i] : 0;
	key->cell = work_cell_of(one->event_min[0]);
	key->named_cell[0] = work_cell_of(one->event_min[1]);
	key->named_cell[1] = work_cell_of(one->event_min[2]);
	key->group = (u8)group;
	return 1;
}

#define STATS_STALE_BINS 50 /* 10 s unused: others may have the entry */

/*
 * Counted computation has statistics by state and work. Two workloads with one index do not share
 * the entry: a long duration is not unusual for more work. Returns the index in `stats`, or one past
 * its end where another workload has the entry.
 */
__noinline u32 work_place(u32 state, u32 cell, u32 bin)
{
	u32 of = (state * 0x9e3779b1u) ^ ((cell >> 3) * 0x85ebca6bu), index = KERNEL_STATES + (of >> 16);
	struct kernel_state_stats *seen = bpf_map_lookup_elem(&stats, &index);

	if (!seen)
		return 2 * KERNEL_STATES;
	if (seen->of != of) {
		if (seen->n && bin - seen->bin < STATS_STALE_BINS)
			return 2 * KERNEL_STATES;
		seen->of = of;
		seen->n = 0;
		seen->min_ns = 0;
	}
	seen->bin = bin;
	return index;
}

#endif
